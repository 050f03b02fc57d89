#include "analysis/svg_chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace trainyard::analysis {
namespace {

constexpr std::array colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                             "#E69F00", "#56B4E9", "#000000", "#8C6D1F"};
constexpr std::array dashes{"", "7 3", "2 3", "9 3 2 3", "1 2", "12 4", "4 4", "5 2 2 2"};
constexpr double letter = 6.6;  // mean width of one in the 12 px font

std::string number(double x, const char* form = "%.2f") {
  char text[40];
  std::snprintf(text, sizeof text, form, x);
  std::string out = text;
  if (out == "-0.00") out = "0.00";
  return out;
}

std::string tick_text(double x, double step) {
  if (x == 0) return "0";
  const double size = std::abs(x);
  if (size >= 1e15 || size < 1e-4) return number(x, "%.3g");
  if (size >= 1e4) {
    constexpr std::pair<double, const char*> scales[] = {
        {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
    for (const auto& [scale, name] : scales)
      if (size >= scale) return number(x / scale, "%.4g") + name;
  }
  const int decimals = step > 0 ? std::clamp(int(std::ceil(-std::log10(step) - 1e-9)), 0, 6) : 2;
  return number(x, ("%." + std::to_string(decimals) + "f").c_str());
}

/// A value of a logarithmic axis as it is: 16384, 2.5.
std::string place_text(double x) {
  return std::abs(x) < 1e5 ? number(x, "%.6g") : tick_text(x, x);
}

std::string text(double x, double y, const std::string& what, const std::string& more = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" + more + ">" + escaped(what) +
         "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& more) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
         "\" y2=\"" + number(y2) + "\" " + more + "/>\n";
}

std::string begin(int width, int height, const std::string& title) {
  return "<svg viewBox=\"0 0 " + std::to_string(width) + ' ' + std::to_string(height) +
         "\" role=\"img\" aria-label=\"" + escaped(title) +
         "\" xmlns=\"http://www.w3.org/2000/svg\" font-family=\"system-ui, sans-serif\" "
         "font-size=\"12\" fill=\"currentColor\">\n" +
         text(4, 16, title, " font-size=\"14\" font-weight=\"600\"");
}

/// A mark that differs from its neighbours in form.
std::string mark(std::size_t series, double x, double y) {
  const std::string colour = colours[series % colours.size()];
  const std::string fill = "\" fill=\"" + colour + "\"/>\n";
  switch (series % 4) {
    case 0:
      return "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"3.5" + fill;
    case 1:
      return "<rect x=\"" + number(x - 3) + "\" y=\"" + number(y - 3) +
             "\" width=\"6\" height=\"6" + fill;
    case 2:
      return "<path d=\"M" + number(x) + ' ' + number(y - 4.5) + "l4 7.5h-8z" + fill;
    default:
      return "<path d=\"M" + number(x) + ' ' + number(y - 4.5) + "l4.5 4.5l-4.5 4.5l-4.5 -4.5z" +
             fill;
  }
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double v) {
    if (!std::isfinite(v)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  bool is_empty() const { return low > high; }
};

/// Powers of ten, or 1, 2, 5 times them, where they lie between.
std::vector<double> log_ticks(double low, double high) {
  std::vector<double> out;
  const bool is_wide = high / low > 300;
  for (int power = int(std::floor(std::log10(low))); power <= int(std::ceil(std::log10(high)));
       ++power)
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10, power);
      if ((digit == 1.0 || !is_wide) && tick >= low / 1.0001 && tick <= high * 1.0001)
        out.push_back(tick);
    }
  return out;
}

/// All places of the values if they are no more than `most`; else none.
std::vector<double> few_values(const std::vector<ChartSeries>& series, std::size_t most) {
  std::vector<double> out;
  for (const ChartSeries& s : series) out.insert(out.end(), s.x.begin(), s.x.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.size() > most) out.clear();
  return out;
}

std::string legend(const std::vector<ChartSeries>& series, double x, double& y, double right) {
  std::string out;
  const double start = x;
  for (std::size_t s = 0; s < series.size(); ++s) {
    const double width = 34 + letter * double(series[s].name.size()) + 14;
    if (x + width > right && x > start) {
      x = start;
      y += 18;
    }
    out += line(x, y - 4, x + 24, y - 4,
                "stroke=\"" + std::string(colours[s % colours.size()]) +
                    "\" stroke-width=\"2\" stroke-dasharray=\"" + dashes[s % dashes.size()] + "\"");
    out += mark(s, x + 12, y - 4);
    out += text(x + 30, y, series[s].name);
    x += width;
  }
  return out;
}

std::size_t longest_label(const std::vector<ChartBar>& bars) {
  std::size_t longest = 4;
  for (const ChartBar& bar : bars) longest = std::max(longest, bar.label.size());
  return std::min<std::size_t>(longest, 46);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

std::vector<double> nice_ticks(double low, double high, int count) {
  if (!(high > low)) high = low + std::max(1.0, std::abs(low));
  const double rough = (high - low) / std::max(count, 1);
  const double unit = std::pow(10, std::floor(std::log10(rough)));
  double step = unit;
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0})
    if ((step = factor * unit) >= rough) break;
  std::vector<double> out;
  for (double i = std::floor(low / step); i * step < high + step * 0.999; ++i)
    out.push_back(i * step);
  return out;
}

void keep_envelope(std::vector<double>& x, std::vector<double>& y, std::size_t buckets) {
  if (x.size() <= 4 * buckets || buckets == 0) return;
  std::vector<double> kept_x, kept_y;
  for (std::size_t b = 0; b < buckets; ++b) {
    const std::size_t begin = b * x.size() / buckets, end = (b + 1) * x.size() / buckets;
    std::size_t low = begin, high = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
    }
    std::array<std::size_t, 4> kept{begin, std::min(low, high), std::max(low, high), end - 1};
    for (std::size_t k = 0; k < kept.size(); ++k) {
      if (k > 0 && kept[k] == kept[k - 1]) continue;
      kept_x.push_back(x[kept[k]]);
      kept_y.push_back(y[kept[k]]);
    }
  }
  x = std::move(kept_x);
  y = std::move(kept_y);
}

std::string svg_of(const LineChart& chart) {
  Range x_range, y_range;
  for (const ChartSeries& s : chart.series)
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (!std::isfinite(s.y[i])) continue;
      x_range.add(s.x[i]);
      y_range.add(s.y[i]);
      if (i < s.low.size() && std::isfinite(s.low[i]) && std::isfinite(s.high[i])) {
        y_range.add(s.low[i]);
        y_range.add(s.high[i]);
      }
    }
  std::string out = begin(chart.width, chart.height, chart.title);
  if (x_range.is_empty())
    return out + text(chart.width / 2.0, chart.height / 2.0, "no data", " text-anchor=\"middle\"") +
           "</svg>\n";
  double top = 36;
  const double left = 66, right = chart.width - 14.0, bottom = chart.height - 44.0;
  if (chart.series.size() > 1) {
    double y = 36;
    out += legend(chart.series, left, y, right);
    top = y + 14;
  }
  const std::vector<double> y_ticks = nice_ticks(y_range.low, y_range.high, 5);
  const double y_low = y_ticks.front(), y_high = y_ticks.back();
  const bool has_labels = !chart.x_labels.empty();
  const double margin = has_labels ? 0.5 : 0;
  double x_low = x_range.low - margin, x_high = x_range.high + margin;
  if (x_low == x_high) x_high = x_low + 1;
  const auto px = [&](double x) {
    const double share = chart.is_log_x ? std::log(x / x_low) / std::log(x_high / x_low)
                                        : (x - x_low) / (x_high - x_low);
    return left + share * (right - left);
  };
  const auto py = [&](double y) {
    return bottom - (y - y_low) / (y_high - y_low) * (bottom - top);
  };

  const double step = y_ticks.size() > 1 ? y_ticks[1] - y_ticks[0] : 1;
  for (const double tick : y_ticks) {
    out += line(left, py(tick), right, py(tick), "stroke=\"currentColor\" stroke-opacity=\"0.15\"");
    out += text(left - 6, py(tick) + 4, tick_text(tick, step), " text-anchor=\"end\"");
  }
  std::vector<double> x_ticks;
  if (has_labels)
    for (std::size_t i = 0; i < chart.x_labels.size(); ++i) x_ticks.push_back(double(i));
  else if (chart.is_log_x)
    x_ticks = few_values(chart.series, 10);
  if (x_ticks.empty())
    x_ticks = chart.is_log_x ? log_ticks(x_low, x_high) : nice_ticks(x_low, x_high, 7);
  const double x_step = x_ticks.size() > 1 ? x_ticks[1] - x_ticks[0] : 1;
  for (std::size_t i = 0; i < x_ticks.size(); ++i) {
    if (x_ticks[i] < x_low - 1e-9 || x_ticks[i] > x_high * (1 + 1e-9)) continue;
    const double x = px(x_ticks[i]);
    out += line(x, bottom, x, bottom + 4, "stroke=\"currentColor\"");
    out += text(x, bottom + 17,
                has_labels       ? chart.x_labels[i]
                : chart.is_log_x ? place_text(x_ticks[i])
                                 : tick_text(x_ticks[i], x_step),
                " text-anchor=\"middle\"");
  }
  out += line(left, bottom, right, bottom, "stroke=\"currentColor\"");
  out += text((left + right) / 2, chart.height - 8.0, chart.x_title, " text-anchor=\"middle\"");
  out += "<text transform=\"translate(13 " + number((top + bottom) / 2) +
         ") rotate(-90)\" text-anchor=\"middle\">" + escaped(chart.y_title) + "</text>\n";

  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    const ChartSeries& series = chart.series[s];
    const std::string colour = colours[s % colours.size()];
    // Marks of several series at one place would hide each other's intervals.
    const double shift = has_labels ? (double(s) - double(chart.series.size() - 1) / 2) * 7 : 0;
    std::string path;
    bool is_open = false;
    double last_y = 0;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.y[i])) {
        is_open = false;
        continue;
      }
      const double x = px(series.x[i]) + shift, y = py(series.y[i]);
      if (is_open && chart.is_step) path += 'L' + number(x) + ' ' + number(last_y);
      path += (is_open ? 'L' : 'M') + number(x) + ' ' + number(y);
      is_open = true;
      last_y = y;
    }
    if (chart.has_lines)
      out += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour +
             "\" stroke-width=\"1.8\" stroke-dasharray=\"" + dashes[s % dashes.size()] + "\"/>\n";
    if (chart.is_step || series.x.size() > 60) continue;  // a line says enough
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.y[i])) continue;
      const double x = px(series.x[i]) + shift;
      if (i < series.low.size() && std::isfinite(series.low[i]) && std::isfinite(series.high[i])) {
        const std::string style = "stroke=\"" + colour + "\" stroke-width=\"1.2\"";
        out += line(x, py(series.low[i]), x, py(series.high[i]), style);
        out += line(x - 4, py(series.low[i]), x + 4, py(series.low[i]), style);
        out += line(x - 4, py(series.high[i]), x + 4, py(series.high[i]), style);
      }
      out += mark(s, x, py(series.y[i]));
    }
  }
  return out + "</svg>\n";
}

std::string svg_of(const BarChart& chart) {
  constexpr double row = 24, top = 30;
  const double left = 12 + letter * double(longest_label(chart.bars));
  const int height = int(top + row * double(chart.bars.size()) + 40);
  Range range;
  range.add(chart.from);
  std::size_t beside = 0;
  for (const ChartBar& bar : chart.bars) {
    const double half = std::isfinite(bar.half_width) ? bar.half_width : 0;
    range.add(bar.value - half);
    range.add(bar.value + half);
    beside = std::max(beside, bar.text.size());
  }
  std::string out = begin(chart.width, height, chart.title);
  const double right = chart.width - 12 - letter * double(beside);
  const std::vector<double> ticks = nice_ticks(range.low, range.high, 5);
  const auto px = [&](double x) {
    return left + (x - ticks.front()) / (ticks.back() - ticks.front()) * (right - left);
  };
  const double bottom = top + row * double(chart.bars.size());
  for (const double tick : ticks) {
    out += line(px(tick), top, px(tick), bottom, "stroke=\"currentColor\" stroke-opacity=\"0.15\"");
    out += text(px(tick), bottom + 15, tick_text(tick, ticks[1] - ticks[0]),
                " text-anchor=\"middle\"");
  }
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const ChartBar& bar = chart.bars[i];
    const double y = top + row * double(i) + 4;
    std::string label = bar.label;
    if (label.size() > longest_label(chart.bars)) label = label.substr(0, 43) + "...";
    out +=
        text(left - 6, y + 12, label,
             std::string(" text-anchor=\"end\"") + (bar.is_marked ? " font-weight=\"600\"" : ""));
    if (!std::isfinite(bar.value)) {
      out += text(left + 4, y + 12, "no value");
      continue;
    }
    const double x0 = px(chart.from), x1 = px(bar.value);
    out += "<rect x=\"" + number(std::min(x0, x1)) + "\" y=\"" + number(y) + "\" width=\"" +
           number(std::max(std::abs(x1 - x0), 0.5)) + "\" height=\"" + number(row - 8) +
           "\" fill=\"" + (bar.is_marked ? colours[1] : colours[0]) + "\" fill-opacity=\"0.8\"/>\n";
    if (std::isfinite(bar.half_width) && bar.half_width > 0) {
      const double a = px(bar.value - bar.half_width), b = px(bar.value + bar.half_width);
      const double middle = y + (row - 8) / 2;
      const char* style = "stroke=\"currentColor\" stroke-width=\"1.4\"";
      out += line(a, middle, b, middle, style);
      out += line(a, middle - 4, a, middle + 4, style);
      out += line(b, middle - 4, b, middle + 4, style);
    }
    out += text(right + 8, y + 12, bar.text);
  }
  out += line(px(chart.from), top, px(chart.from), bottom, "stroke=\"currentColor\"");
  out += text((left + right) / 2, height - 6.0, chart.x_title, " text-anchor=\"middle\"");
  return out + "</svg>\n";
}

std::string svg_of(const WaterfallChart& chart) {
  constexpr double row = 22, top = 30;
  std::vector<ChartBar> all{{chart.whole, 1, 0, "100 %", false}};
  all.insert(all.end(), chart.losses.begin(), chart.losses.end());
  double left_over = 1;
  for (const ChartBar& loss : chart.losses) left_over -= loss.value;
  all.push_back({chart.rest, left_over, 0, number(100 * left_over, "%.2f %%"), true});
  const double left = 12 + letter * double(longest_label(all)), right = chart.width - 64.0;
  const int height = int(top + row * double(all.size()) + 8);
  std::string out = begin(chart.width, height, chart.title);
  const auto px = [&](double share) { return left + share * (right - left); };
  double at = 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_end = i == 0 || i + 1 == all.size();
    const double y = top + row * double(i);
    const double from = is_end ? 0 : at - all[i].value, to = is_end ? all[i].value : at;
    out += text(left - 6, y + 13, all[i].label, " text-anchor=\"end\"");
    out += "<rect x=\"" + number(px(from)) + "\" y=\"" + number(y + 2) + "\" width=\"" +
           number(std::max(px(to) - px(from), 0.6)) + "\" height=\"" + number(row - 6) +
           "\" fill=\"" + (is_end ? colours[0] : colours[1]) + "\" fill-opacity=\"0.8\"/>\n";
    if (i + 1 < all.size())
      out += line(px(is_end ? to : from), y + row - 4, px(is_end ? to : from), y + row + 2,
                  "stroke=\"currentColor\" stroke-opacity=\"0.5\"");
    out += text(right + 8, y + 13, all[i].text);
    if (!is_end) at = from;
  }
  return out + "</svg>\n";
}

}  // namespace trainyard::analysis
