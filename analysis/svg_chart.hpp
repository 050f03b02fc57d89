#pragma once

#include <string>
#include <vector>

/// Charts as SVG text for reports: no scripts, no fonts of their own, colours that the colour-blind
/// can tell apart (Okabe and Ito, 2008) and marks that differ without colour. The same data give
/// the same bytes.
///
///     LineChart chart{.title = "Goodput against the interval", .x_title = "interval, s", …};
///     html += svg_of(chart);
namespace trainyard::analysis {

struct ChartSeries {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> low, high;  // interval of each y; empty: none
};

struct LineChart {
  std::string title;
  std::string x_title, y_title;            // with units
  bool is_log_x = false;                   // all x above zero
  std::vector<std::string> x_labels = {};  // instead of numbers: x is 0, 1, …
  std::vector<ChartSeries> series = {};
  bool is_step = false;   // a value holds until the next
  bool has_lines = true;  // between values that follow each other
  int width = 760, height = 340;
};
/// Values that are not finite make a gap. A chart without any value says so.
std::string svg_of(const LineChart& chart);

struct ChartBar {
  std::string label;
  double value = 0;
  double half_width = 0;  // 0 or infinite: no interval is drawn
  std::string text;       // beside the bar
  bool is_marked = false;
};
struct BarChart {
  std::string title;
  std::string x_title;
  std::vector<ChartBar> bars = {};
  int width = 760;
  double from = 0;  // where bars begin
};
/// Horizontal bars, one below the other.
std::string svg_of(const BarChart& chart);

/// From a whole, by what is taken away, to what is left.
struct WaterfallChart {
  std::string title;
  std::string whole;                  // "peak of all GPUs"
  std::vector<ChartBar> losses = {};  // shares of the whole
  std::string rest;                   // "useful"
  int width = 760;
};
std::string svg_of(const WaterfallChart& chart);

/// '<', '>', '&' and quotes for HTML and SVG.
std::string escaped(const std::string& text);

/// Round numbers from below `low` to above `high`, about `count` of them.
std::vector<double> nice_ticks(double low, double high, int count);

/// At most 2 * `buckets` points of a long series with the first, least, greatest and last value of
/// each bucket, so that no spike is lost. x ascending.
void keep_envelope(std::vector<double>& x, std::vector<double>& y, std::size_t buckets);

}  // namespace trainyard::analysis
