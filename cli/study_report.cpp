#include "cli/study_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "analysis/study_statistics.hpp"
#include "cli/page.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

using analysis::Better;
using analysis::MeanInterval;
using analysis::PointRanking;
using analysis::Study;

constexpr std::size_t points_shown = 60;
constexpr double rounding = 1e-12;     // of a mean of equal values
constexpr double least_width = 1e-14;  // and of a difference of two of them

std::string number(const char* form, double x) {
  char text[64];
  std::snprintf(text, sizeof text, form, x);
  return text;
}

std::string count(std::size_t n, const std::string& what) {
  return with_commas(std::int64_t(n)) + ' ' + what + (n == 1 ? "" : "s");
}

std::string at_confidence(const Study& study) {
  return number("%.4g %%", 100 * study.confidence);
}

std::string mean_text(const MeanInterval& m, const Terminal& terminal) {
  return m.n == 0 ? "-" : with_interval(m.mean, m.half_width, terminal);
}

/// The best point in words, and those that cannot be told from it.
std::string answer_of(const Study& study, std::size_t metric, const PointRanking& ranking,
                      const Terminal& terminal) {
  const analysis::Ranked& best = ranking.ranking.systems[ranking.ranking.best];
  std::string out = title_of(study.metrics[metric]) + " is " +
                    (study.metrics[metric].better == Better::higher ? "highest" : "lowest") +
                    " with " + study.name_of_point(ranking.points[ranking.ranking.best]) + ": " +
                    mean_text(best.value, terminal);
  std::size_t tied = 0;
  std::string first;
  for (std::size_t i = 0; i < ranking.points.size(); ++i) {
    if (i == ranking.ranking.best || !ranking.ranking.systems[i].is_tied) continue;
    if (tied++ == 0) first = study.name_of_point(ranking.points[i]);
  }
  if (ranking.replications < 2)
    out += " (one replication: nothing is known of its luck)";
  else if (tied == 1)
    out += "; " + first + " cannot be told from it";
  else if (tied > 1)
    out += "; " + std::to_string(tied) + " others cannot be told from it";
  return out;
}

std::vector<std::string> axis_names(const Study& study) {
  std::vector<std::string> out;
  for (const analysis::StudyAxis& axis : study.axes) out.push_back(axis.name);
  return out;
}

/// Of the metric that ranks: means, and how far behind the best.
void print_points(Page& page, const Study& study, const std::optional<PointRanking>& ranking) {
  constexpr std::size_t metric = 0;
  const Terminal& terminal = page.terminal();
  page.heading(title_of(study.metrics[metric]) + " (" + study.metrics[metric].of + ')');
  std::vector<std::string> head{"  "};
  for (const std::string& name : axis_names(study)) head.push_back(name);
  head.insert(head.end(), {"mean at " + at_confidence(study), "n"});
  if (ranking) head.emplace_back("behind the best");
  Table table(head);
  for (std::size_t p = 0; p < std::min(study.points.size(), points_shown); ++p) {
    const auto values = analysis::finite(analysis::values_of(study, p, metric));
    const MeanInterval mean = analysis::mean_interval(values, study.confidence);
    std::string mark = "  ", behind = "-";
    if (ranking) {
      const auto at = std::find(ranking->points.begin(), ranking->points.end(), p);
      if (at != ranking->points.end()) {
        const std::size_t i = std::size_t(at - ranking->points.begin());
        const analysis::Ranked& r = ranking->ranking.systems[i];
        const bool is_best = i == ranking->ranking.best;
        mark = is_best ? "* " : r.is_tied && ranking->replications > 1 ? "~ " : "  ";
        behind = is_best ? "0" : mean_text(r.behind, terminal);
      }
    }
    std::vector<std::string> cells{mark};
    for (const std::string& label : study.points[p].labels) cells.push_back(label);
    cells.insert(cells.end(),
                 {values.empty() ? "-" : mean_text(mean, terminal), std::to_string(values.size())});
    if (ranking) cells.push_back(behind);
    table.add(cells);
  }
  table.print(page);
  if (study.points.size() > points_shown)
    page.line("  and " + count(study.points.size() - points_shown, "more point") +
              ": see the table");
}

/// Means of the other metrics, a column each.
void print_others(Page& page, const Study& study) {
  if (study.metrics.size() < 2) return;
  page.heading("Means of the other metrics");
  std::vector<std::string> head{"  "};
  for (const std::string& name : axis_names(study)) head.push_back(name);
  for (std::size_t m = 1; m < study.metrics.size(); ++m) head.push_back(title_of(study.metrics[m]));
  Table table(head);
  for (std::size_t p = 0; p < std::min(study.points.size(), points_shown); ++p) {
    std::vector<std::string> cells{"  "};
    for (const std::string& label : study.points[p].labels) cells.push_back(label);
    for (std::size_t m = 1; m < study.metrics.size(); ++m) {
      const auto values = analysis::finite(analysis::values_of(study, p, m));
      const MeanInterval mean = analysis::mean_interval(values, study.confidence);
      cells.push_back(values.empty() ? "-" : figure(mean.mean, mean.half_width));
    }
    table.add(cells);
  }
  table.print(page);
}

void print_effects(Page& page, const Study& study, std::size_t metric) {
  const auto effects = analysis::axis_effects(study, metric);
  if (effects.empty()) return;
  const Terminal& terminal = page.terminal();
  page.heading("What each axis does to " + study.metrics[metric].name +
               ", the others equal, on equal luck");
  Table table({"axis", "value", "against", "difference at " + at_confidence(study), "of it",
               "pairs of points", "n"});
  for (const analysis::AxisEffect& e : effects)
    table.add({study.axes[e.axis].name, e.label, e.against, mean_text(e.difference, terminal),
               e.mean_against == 0
                   ? "-"
                   : number("%+.2f %%", 100 * e.difference.mean / std::abs(e.mean_against)),
               std::to_string(e.points), std::to_string(e.difference.n)});
  table.print(page);
}

void print_optima(Page& page, const Study& study, std::size_t metric) {
  const auto optima = analysis::optima(study, metric);
  if (optima.empty()) return;
  const bool is_low = study.metrics[metric].better == Better::lower;
  page.heading(std::string(is_low ? "Bottom" : "Top") + " of " + study.metrics[metric].name +
               ", of a parabola through the points");
  const auto in_units = [](double x, const std::string& units) {
    if (units == "s" && x > 0 && x < 3e9) return to_text(seconds(x));
    return number("%.4g", x) + (units == "1" ? "" : ' ' + units);
  };
  for (const analysis::StudyOptimum& o : optima) {
    const analysis::StudyAxis& axis = study.axes[o.axis];
    std::string rest;
    for (std::size_t a = 0; a < study.axes.size(); ++a)
      if (a != o.axis)
        rest += (rest.empty() ? "" : ", ") + study.axes[a].name + ' ' +
                study.points[o.points.front()].labels[a];
    const std::string where = rest.empty() ? axis.name : axis.name + " with " + rest;
    if (o.is_at_end) {
      page.bullet(Colour::dim, "-",
                  where +
                      ": the best point is at the end of what was run; the axis would have to "
                      "go on there");
      continue;
    }
    if (!o.top) {
      page.bullet(Colour::dim, "-", where + ": the curve is too flat to place it");
      continue;
    }
    const double low = study.points[o.points.front()].numbers[o.axis];
    const double high = study.points[o.points.back()].numbers[o.axis];
    std::string text = where + ": " + in_units(o.top->at, axis.units) + ", between " +
                       in_units(o.top->low, axis.units) + " and " +
                       in_units(o.top->high, axis.units) + " at " + at_confidence(study) +
                       (o.is_log ? " (in its logarithm)" : "");
    if (o.top->at < low || o.top->at > high) text += "; that lies outside of what was run";
    page.bullet(Colour::plain, "-", text);
  }
}

void print_no_effect(Page& page, const Study& study) {
  for (const analysis::NoEffectAxis& none : analysis::axes_without_effect(study))
    page.bullet(Colour::yellow, "!",
                "the axis " + study.axes[none.axis].name + " changes nothing: " +
                    (none.is_same_run
                         ? "all its values gave the same events, in "
                         : "all its values gave the same metrics (but not the same events), in ") +
                    count(none.pairs, "pair") + " of runs with everything else equal");
}

void print_study(Page& page, const Study& study) {
  const Terminal& terminal = page.terminal();
  if (study.metrics.empty()) return;
  const auto ranking = analysis::rank_points(study, 0);
  if (!study.question.empty()) page.line(painted(terminal, Colour::dim, study.question));
  for (const std::string& line :
       wrapped(ranking ? answer_of(study, 0, *ranking, terminal)
                       : study.name + ": " + count(study.points.size(), "point"),
               std::size_t(std::max(terminal.width, 40))))
    page.line(painted(terminal, Colour::bold, line));
  print_points(page, study, ranking);
  if (ranking) {
    page.line();
    std::string legend =
        "* the best; ~ cannot be told from it; behind: how much worse than the "
        "best, all of a column together at " +
        at_confidence(study);
    if (ranking->replications > 1 && study.common_random_numbers)
      legend += "; equal replications had equal luck, which makes intervals of differences " +
                number("%.1f", ranking->pairing_gain) + " times narrower here";
    page.bullet(Colour::dim, "-", legend);
  }
  print_others(page, study);
  print_effects(page, study, 0);
  print_optima(page, study, 0);
  const auto none = analysis::axes_without_effect(study);
  if (!none.empty()) page.line();
  print_no_effect(page, study);
}

std::size_t failed_runs(const Study& study) {
  return std::size_t(std::count_if(study.runs.begin(), study.runs.end(),
                                   [](const auto& run) { return run.state == "failed"; }));
}

}  // namespace

std::string figure(double value, double half_width) {
  if (!std::isfinite(value)) return "-";
  // Two digits of the half width; five of a value that has none.
  const bool has_width = std::isfinite(half_width) && half_width > rounding * std::abs(value);
  const double last = has_width ? half_width / 10 : std::abs(value) / 1e4;
  const int decimals = last > 0 ? std::clamp(int(std::ceil(-std::log10(last))), 0, 9) : 0;
  if (std::abs(value) >= 1e7 || (value != 0 && std::abs(value) < 1e-5))
    return number("%.4g", value);
  return number(("%." + std::to_string(decimals) + "f").c_str(), value);
}

std::string with_interval(double value, double half_width, const Terminal& terminal) {
  if (!std::isfinite(half_width)) return figure(value, half_width);
  const bool is_exact = half_width <= std::max(rounding * std::abs(value), least_width);
  return (is_exact && std::abs(value) <= least_width ? "0" : figure(value, half_width)) +
         (terminal.unicode ? " \u00b1 " : " +- ") +
         (is_exact ? "0" : figure(half_width, half_width));
}

std::string title_of(const analysis::StudyMetric& metric) {
  return metric.units.empty() || metric.units == "1" ? metric.name
                                                     : metric.name + " in " + metric.units;
}

std::string study_text(const Study& study, const Terminal& terminal) {
  Page page(terminal);
  print_study(page, study);
  return page.text();
}

std::string sweep_text(const Study& study, const SweepFacts& facts, const Terminal& terminal) {
  Page page(terminal);
  print_study(page, study);
  page.heading("Runs");
  const scenarios::StudyOutcome& o = facts.outcome;
  const std::uint64_t profiles = o.profiles_computed + o.profiles_reused;
  page.row("runs", with_commas(std::int64_t(study.runs.size() - facts.missing)),
           count(study.points.size(), "point") + "; " + count(o.done, "run") + " in " +
               to_text(seconds(facts.wall_s)) + ", " + with_commas(std::int64_t(o.found)) +
               " were there");
  if (profiles > 0)
    page.row("step profiles", percent(double(o.profiles_reused) / double(profiles)),
             "of " + short_number(double(profiles)) +
                 " came from the cache that runs on one fabric share");
  if (facts.missing > 0)
    page.bullet(Colour::yellow, "!", count(facts.missing, "run") + " are missing");
  if (const std::size_t failed = failed_runs(study); failed > 0)
    page.bullet(Colour::red, "!", count(failed, "run") + " failed; their metrics count nowhere");
  for (const std::string& failure : o.failures) page.bullet(Colour::red, "!", failure);
  page.row("table", "", facts.table + ", " + facts.csv);
  return page.text();
}

std::string study_plan_text(const scenarios::StudyDesign& design, const Terminal& terminal) {
  Page page(terminal);
  page.line(painted(terminal, Colour::bold, design.name));
  if (!design.question.empty()) page.line(design.question);
  page.line();
  std::vector<std::string> head{"point"};
  for (const analysis::StudyAxis& axis : design.axes) head.push_back(axis.name);
  head.emplace_back("GPUs");
  head.emplace_back("simulated");
  head.emplace_back("fabric");
  Table table(head);
  for (std::size_t p = 0; p < design.points.size(); ++p) {
    const auto& point = design.points[p];
    std::vector<std::string> cells{std::to_string(p)};
    cells.insert(cells.end(), point.labels.begin(), point.labels.end());
    cells.push_back(with_commas(std::int64_t(point.scenario.cluster.servers) *
                                point.scenario.cluster.server.gpus));
    cells.push_back(to_text(point.scenario.duration));
    cells.push_back('#' + std::to_string(point.stage + 1));
    table.add(cells);
  }
  table.print(page);
  page.line();
  std::string replications = design.precision
                                 ? std::to_string(design.least) + " to " +
                                       std::to_string(design.most) + " replications, until " +
                                       design.metrics[design.precision->metric].name +
                                       " is known to " + number("%g", design.precision->half_width)
                                 : count(design.most, "replication");
  page.bullet(Colour::plain, "-",
              count(design.points.size(), "point") + ", " + replications + " of each" +
                  (design.precision ? ", at most " : ": ") + count(design.most_runs(), "run"));
  page.bullet(Colour::plain, "-",
              count(design.stages, "fabric") +
                  " with the steps of jobs on it; points of one number share them");
  page.bullet(Colour::plain, "-",
              design.common_random_numbers
                  ? "seeds " + std::to_string(design.seed) + " to " +
                        std::to_string(design.seed + design.most - 1) +
                        ", the same for all points: differences are on equal luck"
                  : "every run has its own seed, from " + std::to_string(design.seed) + " on");
  for (const analysis::StudyMetric& m : design.metrics)
    page.bullet(
        Colour::plain, "-",
        m.name + ": " + m.of +
            (m.better == Better::neither ? ""
                                         : ", " + std::string(name_of(m.better)) + " is better"));
  return page.text();
}

}  // namespace trainyard::cli
