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

std::string mean_text(const MeanInterval& m, const Terminal& terminal) {
  return m.n == 0 ? "-" : with_interval(m.mean, m.half_width, terminal);
}

/// The best point in words, and those that cannot be told from it.
std::string answer_of(const Study& study, std::size_t metric, const PointRanking& ranking,
                      const Terminal& terminal) {
  const analysis::Ranked& best = ranking.ranking.systems[ranking.ranking.best];
  const std::size_t point = ranking.points[ranking.ranking.best];
  const std::string given = study.name_of_part(point, true);
  std::string out = (given.empty() ? "" : given + ": ") + title_of(study.metrics[metric]) + " is " +
                    (study.metrics[metric].better == Better::higher ? "highest" : "lowest") +
                    " with " + study.name_of_part(point, false) + ": " +
                    mean_text(best.value, terminal);
  std::size_t tied = 0;
  std::string first;
  for (std::size_t i = 0; i < ranking.points.size(); ++i) {
    if (i == ranking.ranking.best || !ranking.ranking.systems[i].is_tied) continue;
    if (tied++ == 0) first = study.name_of_part(ranking.points[i], false);
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

/// Where a point stands among those that it is ranked with.
struct Standing {
  std::string mark = "  ", behind = "-";
};
Standing standing_of(std::size_t point, const std::vector<PointRanking>& rankings,
                     const Terminal& terminal) {
  for (const PointRanking& ranking : rankings) {
    const auto at = std::find(ranking.points.begin(), ranking.points.end(), point);
    if (at == ranking.points.end()) continue;
    const std::size_t i = std::size_t(at - ranking.points.begin());
    const analysis::Ranked& r = ranking.ranking.systems[i];
    if (i == ranking.ranking.best) return {"* ", "0"};
    return {r.is_tied && ranking.replications > 1 ? "~ " : "  ", mean_text(r.behind, terminal)};
  }
  return {};
}

/// Of the metric that ranks: means, and how far behind the best.
void print_points(Page& page, const Study& study, const std::vector<PointRanking>& rankings) {
  constexpr std::size_t metric = 0;
  const Terminal& terminal = page.terminal();
  page.heading(title_of(study.metrics[metric]) + " (" + study.metrics[metric].of + ')');
  std::vector<std::string> head{"  "};
  for (const std::string& name : axis_names(study)) head.push_back(name);
  head.insert(head.end(), {"mean at " + at_confidence(study), "n"});
  if (!rankings.empty()) head.emplace_back("behind the best");
  Table table(head);
  for (std::size_t p = 0; p < std::min(study.points.size(), points_shown); ++p) {
    const auto values = analysis::finite(analysis::values_of(study, p, metric));
    const MeanInterval mean = analysis::mean_interval(values, study.confidence);
    const Standing standing = standing_of(p, rankings, terminal);
    std::vector<std::string> cells{standing.mark};
    for (const std::string& label : study.points[p].labels) cells.push_back(label);
    cells.insert(cells.end(),
                 {values.empty() ? "-" : mean_text(mean, terminal), std::to_string(values.size())});
    if (!rankings.empty()) cells.push_back(standing.behind);
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
               "points", "n", "narrower"});
  for (const analysis::AxisEffect& e : effects)
    table.add({study.axes[e.axis].name, e.label, e.against, mean_text(e.difference, terminal),
               e.mean_against == 0
                   ? "-"
                   : number("%+.2f %%", 100 * e.difference.mean / std::abs(e.mean_against)),
               std::to_string(e.points), std::to_string(e.difference.n),
               e.difference.n < 2 || e.difference.half_width == 0
                   ? "-"
                   : number("%.1f x", e.pairing_gain)});
  table.print(page);
  page.line();
  page.bullet(Colour::dim, "-",
              "points: pairs of points, which differ in this axis alone; narrower: than the "
              "interval would be if every run had its own luck");
}

void print_optima(Page& page, const Study& study) {
  const std::vector<std::string> optima = study_optima(study);
  if (optima.empty()) return;
  const bool is_low = study.metrics.front().better == Better::lower;
  page.heading(std::string(is_low ? "Bottom" : "Top") + " of " + study.metrics.front().name +
               ", of a parabola through the points near the best");
  for (const std::string& text : optima) page.bullet(Colour::plain, "-", text);
}

void print_study(Page& page, const Study& study) {
  const Terminal& terminal = page.terminal();
  if (study.metrics.empty()) return;
  const auto rankings = analysis::rank_points(study, 0);
  if (!study.question.empty()) page.line(painted(terminal, Colour::dim, study.question));
  for (const std::string& answer : study_answers(study, terminal))
    for (const std::string& line : wrapped(answer, std::size_t(std::max(terminal.width, 40))))
      page.line(painted(terminal, Colour::bold, line));
  print_points(page, study, rankings);
  if (!rankings.empty()) {
    page.line();
    const bool has_given = !study.name_of_part(rankings.front().points.front(), true).empty();
    page.bullet(Colour::dim, "-",
                std::string("* the best") + (has_given ? " for what is given" : "") +
                    "; ~ cannot be told from it; behind: how much worse than the best, all of a "
                    "column together at " +
                    at_confidence(study));
  }
  print_others(page, study);
  print_effects(page, study, 0);
  print_optima(page, study);
  const std::vector<std::string> warnings = study_warnings(study);
  if (!warnings.empty()) page.line();
  for (const std::string& warning : warnings) page.bullet(Colour::yellow, "!", warning);
}

/// What the runs themselves said of a setting that did nothing: ". Reason: …".
std::string reason_of(const Study& study, const std::string& path) {
  for (const std::string& setting : study.no_effect)
    if (!path.empty() && setting.starts_with(path + ": "))
      return ". The runs say why: " + setting.substr(path.size() + 2);
  return {};
}

std::size_t failed_runs(const Study& study) {
  return std::size_t(std::count_if(study.runs.begin(), study.runs.end(),
                                   [](const auto& run) { return run.state == "failed"; }));
}

}  // namespace

std::string at_confidence(const Study& study) {
  return number("%.4g %%", 100 * study.confidence);
}

std::string figure(double value, double half_width) {
  if (!std::isfinite(value)) return "-";
  // Two digits of the half width; five of a value that has none.
  const bool has_width = std::isfinite(half_width) && half_width > rounding * std::abs(value);
  const double last = has_width ? half_width / 10 : std::abs(value) / 1e4;
  const int decimals = last > 0 ? std::clamp(int(std::ceil(-std::log10(last))), 0, 9) : 0;
  if (decimals == 0 && std::abs(value) >= 1e4 && std::abs(value) < 1e15)
    return with_commas(std::llround(value));
  if (std::abs(value) >= 1e15 || (value != 0 && std::abs(value) < 1e-5))
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
  const bool says_it = metric.name.ends_with('_' + metric.units);
  return metric.units.empty() || metric.units == "1" || says_it
             ? metric.name
             : metric.name + " in " + metric.units;
}

std::vector<std::string> study_answers(const Study& study, const Terminal& terminal) {
  std::vector<std::string> out;
  for (const PointRanking& ranking : analysis::rank_points(study, 0))
    out.push_back(answer_of(study, 0, ranking, terminal));
  if (out.empty()) out = {study.name + ": " + count(study.points.size(), "point")};
  return out;
}

std::vector<std::string> study_optima(const Study& study) {
  std::vector<std::string> out;
  const auto in_units = [](double x, const std::string& units) {
    if (units == "s" && x > 0 && x < 3e9) return to_text(seconds(x));
    return number("%.4g", x) + (units == "1" ? "" : ' ' + units);
  };
  for (const analysis::StudyOptimum& o : analysis::optima(study, 0)) {
    const analysis::StudyAxis& axis = study.axes[o.axis];
    if (axis.is_given) continue;
    std::string rest;
    for (std::size_t a = 0; a < study.axes.size(); ++a)
      if (a != o.axis)
        rest += (rest.empty() ? "" : ", ") + study.axes[a].name + ' ' +
                study.points[o.points.front()].labels[a];
    const std::string where = rest.empty() ? axis.name : axis.name + " with " + rest;
    if (o.is_at_end)
      out.push_back(where +
                    ": the best point is at the end of what was run; the axis would have to go on "
                    "there");
    else if (!o.top)
      out.push_back(where + ": the curve is too flat to place it");
    else
      out.push_back(where + ": " + in_units(o.top->at, axis.units) + ", between " +
                    in_units(o.top->low, axis.units) + " and " + in_units(o.top->high, axis.units) +
                    " at " + at_confidence(study) + (o.is_log ? " (fitted in its logarithm)" : ""));
  }
  return out;
}

std::vector<std::string> study_warnings(const Study& study) {
  std::vector<std::string> out;
  if (study.builds.find(',') != std::string::npos)
    out.push_back("results were made by several builds of trainyard (" + study.builds +
                  "): what moved between them is among the differences");
  for (const analysis::NoEffectAxis& none : analysis::axes_without_effect(study))
    out.push_back("the axis " + study.axes[none.axis].name + " changes nothing: " +
                  (none.is_same_run
                       ? "all its values gave the same events, in "
                       : "all its values gave the same metrics (but not the same events), in ") +
                  count(none.pairs, "pair") + " of runs with everything else equal" +
                  reason_of(study, study.axes[none.axis].path));
  return out;
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
