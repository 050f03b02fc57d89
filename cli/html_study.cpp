#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/study_statistics.hpp"
#include "analysis/svg_chart.hpp"
#include "cli/html_page.hpp"
#include "cli/html_report.hpp"
#include "cli/study_report.hpp"

/// The report of a study.
namespace trainyard::cli {

void add_scenario_to_report(HtmlPage& page, const std::string& scenario);  // html_run.cpp

namespace {

using analysis::Better;
using analysis::MeanInterval;
using analysis::Study;

constexpr std::size_t most_curves = 8;
constexpr std::size_t accounts_shown = 8;

Terminal plain_unicode() {
  Terminal t;
  t.unicode = true;
  return t;
}

MeanInterval mean_of(const Study& study, std::size_t point, std::size_t metric) {
  return analysis::mean_interval(analysis::finite(analysis::values_of(study, point, metric)),
                                 study.confidence);
}

std::size_t values_on(const Study& study, std::size_t axis) {
  std::vector<std::string> labels;
  for (const auto& point : study.points)
    if (std::find(labels.begin(), labels.end(), point.labels[axis]) == labels.end())
      labels.push_back(point.labels[axis]);
  return labels.size();
}

/// The axis that goes to the right: the one with the most values; numbers before names.
std::size_t axis_to_the_right(const Study& study) {
  std::size_t best = 0;
  const auto weight = [&](std::size_t a) {
    return 2 * values_on(study, a) + (study.axes[a].units.empty() ? 0 : 1);
  };
  for (std::size_t a = 1; a < study.axes.size(); ++a)
    if (weight(a) > weight(best)) best = a;
  return best;
}

/// Axes that make charts of their own, so that no chart has too many curves: those that are given
/// first, then from the left.
std::vector<std::size_t> axes_of_charts(const Study& study, std::size_t axis) {
  std::size_t curves = 1;
  for (std::size_t a = 0; a < study.axes.size(); ++a)
    if (a != axis) curves *= values_on(study, a);
  std::vector<std::size_t> out;
  for (const bool is_given : {true, false})
    for (std::size_t a = 0; a < study.axes.size() && curves > most_curves; ++a) {
      if (a == axis || study.axes[a].is_given != is_given || values_on(study, a) < 2) continue;
      out.push_back(a);
      curves /= values_on(study, a);
    }
  return out;
}

/// Labels of a point on these axes, or on all but these and `axis`.
std::string labels_of(const Study& study, std::size_t point, std::size_t axis,
                      const std::vector<std::size_t>& charts, bool of_charts) {
  std::string out;
  for (std::size_t a = 0; a < study.axes.size(); ++a) {
    const bool is_chart = std::find(charts.begin(), charts.end(), a) != charts.end();
    if (a == axis || is_chart != of_charts || values_on(study, a) < 2) continue;
    out += (out.empty() ? "" : ", ") + study.axes[a].name + ' ' + study.points[point].labels[a];
  }
  return out;
}

/// Mean and interval of a metric against the axis, a curve for each combination of the others.
void add_curves(HtmlPage& page, const Study& study, std::size_t metric) {
  if (study.axes.empty()) return;
  const std::size_t axis = axis_to_the_right(study);
  const bool has_numbers = !study.axes[axis].units.empty();
  std::vector<std::string> labels;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const auto& point : study.points) {
    if (std::find(labels.begin(), labels.end(), point.labels[axis]) == labels.end())
      labels.push_back(point.labels[axis]);
    low = std::min(low, point.numbers[axis]);
    high = std::max(high, point.numbers[axis]);
  }
  struct Facet {
    std::string name;
    std::vector<analysis::ChartSeries> curves;
    std::map<std::string, std::size_t> known;
  };
  const std::vector<std::size_t> charts = axes_of_charts(study, axis);
  std::vector<Facet> facets;
  std::map<std::string, std::size_t> known;
  for (std::size_t p = 0; p < study.points.size(); ++p) {
    const std::string chart = labels_of(study, p, axis, charts, true);
    const auto [of_chart, is_new_chart] = known.emplace(chart, facets.size());
    if (is_new_chart) facets.push_back({chart, {}, {}});
    Facet& facet = facets[of_chart->second];
    const std::string name = labels_of(study, p, axis, charts, false);
    const auto [at, is_new] = facet.known.emplace(name, facet.curves.size());
    if (is_new) facet.curves.emplace_back().name = name;
    analysis::ChartSeries& curve = facet.curves[at->second];
    const MeanInterval m = mean_of(study, p, metric);
    const std::size_t label = std::size_t(
        std::find(labels.begin(), labels.end(), study.points[p].labels[axis]) - labels.begin());
    curve.x.push_back(has_numbers ? study.points[p].numbers[axis] : double(label));
    curve.y.push_back(m.n > 0 ? m.mean : std::numeric_limits<double>::quiet_NaN());
    curve.low.push_back(m.low());
    curve.high.push_back(m.high());
  }
  std::string units = study.axes[axis].units;
  // Minutes and hours are what people save in.
  double scale = 1;
  if (units == "s" && high >= 7200) {
    scale = 3600;
    units = "h";
  } else if (units == "s" && high >= 120) {
    scale = 60;
    units = "min";
  }
  // Names on one curve are what the bars below show.
  if (!has_numbers && facets.size() == 1 && facets[0].curves.size() == 1) return;
  for (Facet& facet : facets) {
    for (auto& curve : facet.curves)
      for (double& x : curve.x) x /= has_numbers ? scale : 1;
    analysis::LineChart chart;
    chart.title = title_of(study.metrics[metric]) + " against " + study.axes[axis].name +
                  (facet.name.empty() ? "" : ", with " + facet.name);
    chart.x_title = study.axes[axis].name + (units.empty() || units == "1" ? "" : ", " + units);
    chart.y_title = title_of(study.metrics[metric]);
    chart.is_log_x = has_numbers && low > 0 && high / low >= 8;
    if (!has_numbers) {
      chart.x_labels = labels;
      chart.has_lines = false;  // names have no order
    }
    chart.height = facets.size() > 1 ? 300 : 380;
    chart.series = std::move(facet.curves);
    page.figure(svg_of(chart), "Means of " + study.metrics[metric].of + "; bars are intervals at " +
                                   at_confidence(study));
  }
}

/// What each value of each axis does: a tornado.
void add_effects(HtmlPage& page, const Study& study, std::size_t metric) {
  auto effects = analysis::axis_effects(study, metric);
  if (effects.empty()) return;
  std::stable_sort(effects.begin(), effects.end(), [](const auto& a, const auto& b) {
    return std::abs(a.difference.mean) > std::abs(b.difference.mean);
  });
  if (effects.size() > 24) effects.resize(24);
  analysis::BarChart chart{
      .title = "What changes " + study.metrics[metric].name,
      .x_title = "difference of " + title_of(study.metrics[metric]) + " on equal luck"};
  const bool has_one_axis = study.axes.size() == 1;
  if (has_one_axis)
    chart.title += ", against " + study.axes[0].name + ' ' + effects.front().against;
  for (const analysis::AxisEffect& e : effects) {
    const std::string label =
        has_one_axis ? e.label : study.axes[e.axis].name + ": " + e.label + " against " + e.against;
    chart.bars.push_back(
        {label, e.difference.mean, e.difference.half_width,
         with_interval(e.difference.mean, e.difference.half_width, plain_unicode()), false});
  }
  page.figure(svg_of(chart),
              "One value of an axis against its first one, the mean over all pairs of points that "
              "differ in nothing else; black: the interval");
}

void add_ledger(HtmlPage& page, const Study& study) {
  std::vector<double> total(study.accounts.size(), 0.0);
  std::vector<std::vector<double>> by_point(study.points.size(), total);
  for (const analysis::StudyRun& run : study.runs)
    for (std::size_t a = 0; a < run.ledger_gpu_s.size(); ++a) {
      total[a] += run.ledger_gpu_s[a];
      by_point[run.point][a] += run.ledger_gpu_s[a];
    }
  std::vector<std::size_t> order;
  for (std::size_t a = 0; a < total.size(); ++a)
    if (total[a] > 0) order.push_back(a);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return total[a] > total[b]; });
  if (order.empty()) return;
  if (order.size() > accounts_shown) order.resize(accounts_shown);
  page.heading("Where the GPU time went");
  std::vector<std::string> head{"point"};
  for (const std::size_t a : order) head.push_back(study.accounts[a]);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t p = 0; p < study.points.size(); ++p) {
    double all = 0;
    for (const double gpu_s : by_point[p]) all += gpu_s;
    if (all <= 0) continue;
    std::vector<std::string> row{study.name_of_point(p)};
    for (const std::size_t a : order) row.push_back(percent(by_point[p][a] / all));
    rows.push_back(std::move(row));
  }
  page.table(head, rows);
}

void add_points(HtmlPage& page, const Study& study) {
  std::vector<std::string> head;
  for (const auto& axis : study.axes) head.push_back(axis.name);
  if (head.empty()) head.emplace_back("point");
  head.emplace_back("n");
  for (const auto& metric : study.metrics) head.push_back(title_of(metric));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t p = 0; p < study.points.size(); ++p) {
    std::vector<std::string> row = study.points[p].labels;
    if (row.empty()) row.emplace_back("as it is");
    row.push_back(std::to_string(mean_of(study, p, 0).n));
    for (std::size_t m = 0; m < study.metrics.size(); ++m) {
      const MeanInterval mean = mean_of(study, p, m);
      row.push_back(mean.n == 0 ? "-" : with_interval(mean.mean, mean.half_width, plain_unicode()));
    }
    rows.push_back(std::move(row));
  }
  page.table(head, rows);
}

}  // namespace

std::string study_html(const Study& study) {
  std::string subtitle = "A study of " + std::to_string(study.points.size()) + " points, " +
                         std::to_string(study.runs.size()) + " runs";
  if (study.common_random_numbers) subtitle += " on equal luck";
  HtmlPage page(study.question.empty() ? study.name : study.question, study.name + ": " + subtitle);
  if (study.metrics.empty()) return page.text();
  for (const std::string& answer : study_answers(study, plain_unicode())) page.answer(answer);
  std::size_t failed = 0, missing = 0;
  for (const analysis::StudyRun& run : study.runs) {
    failed += run.state == "failed" ? 1 : 0;
    missing += run.state == "missing" ? 1 : 0;
  }
  std::vector<std::string> warnings = study_warnings(study);
  if (failed > 0)
    warnings.push_back(std::to_string(failed) + " runs failed; their metrics count nowhere");
  if (missing > 0) warnings.push_back(std::to_string(missing) + " runs are missing");
  add_curves(page, study, 0);
  page.warnings(warnings);
  add_effects(page, study, 0);
  const std::vector<std::string> optima = study_optima(study);
  if (!optima.empty()) {
    page.heading("Where the best lies");
    page.list(optima);
  }
  page.heading("All points");
  add_points(page, study);
  if (study.metrics.size() > 1) {
    page.heading("The other metrics");
    for (std::size_t m = 1; m < study.metrics.size(); ++m) add_curves(page, study, m);
  }
  add_ledger(page, study);
  if (!study.base.empty()) add_scenario_to_report(page, study.base);
  return page.text();
}

}  // namespace trainyard::cli
