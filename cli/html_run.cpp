#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "analysis/breakdown.hpp"
#include "analysis/explain.hpp"
#include "analysis/svg_chart.hpp"
#include "cli/explain_report.hpp"
#include "cli/html_page.hpp"
#include "cli/html_report.hpp"
#include "cli/summary.hpp"
#include "cli/terminal.hpp"
#include "models/training/ledger.hpp"
#include "scenarios/check.hpp"
#include "scenarios/uncertainty.hpp"

/// The report of one run.
namespace trainyard::cli {
namespace {

using analysis::Explanation;
using analysis::RunReader;
using Json = nlohmann::json;

constexpr std::size_t rows_shown = 12;
constexpr std::size_t buckets = 300;  // of a curve
constexpr double least_in_waterfall = 5e-4;

std::string number(const char* form, double x) {
  char text[64];
  std::snprintf(text, sizeof text, form, x);
  return text;
}

std::string hours(double s) {
  return s < 7200 ? number("%.1f min", s / 60) : number("%.1f h", s / 3600);
}

std::optional<double> figure_of(const std::vector<analysis::Attribute>& summary,
                                const std::string& name) {
  for (const analysis::Attribute& a : summary) {
    if (a.name != name) continue;
    if (const auto* real = std::get_if<double>(&a.value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&a.value)) return double(*whole);
    if (const auto* natural = std::get_if<std::uint64_t>(&a.value)) return double(*natural);
  }
  return std::nullopt;
}

std::string spoken_account(const std::string& name) {
  for (std::size_t a = 0; a < models::accounts; ++a)
    if (name == name_of(models::Account(a))) return std::string(spoken(models::Account(a)));
  return name;
}

/// From the peak of all GPUs to useful work, in the order of the ledger.
void add_waterfall(HtmlPage& page, const RunReader& run, const std::string& job) {
  const std::string path = "jobs/" + job + "/ledger";
  if (!run.has_table(path)) return;
  const analysis::Breakdown ledger = analysis::breakdown(run.table(path));
  analysis::WaterfallChart chart{.title = job + ": from the peak of its GPUs to useful work",
                                 .whole = "peak x time",
                                 .rest = "useful FLOPs"};
  double small = 0;
  for (std::size_t a = 0; a < models::accounts; ++a) {
    const std::string name(name_of(models::Account(a)));
    const auto found = std::find_if(ledger.shares.begin(), ledger.shares.end(),
                                    [&](const analysis::Share& s) { return s.account == name; });
    if (found == ledger.shares.end() || name == "useful" || found->share <= 0) continue;
    if (found->share < least_in_waterfall) {
      small += found->share;
      continue;
    }
    chart.losses.push_back(
        {spoken_account(name), found->share, 0, number("%.2f %%", 100 * found->share), false});
  }
  if (small > 0)
    chart.losses.push_back({"others", small, 0, number("%.2f %%", 100 * small), false});
  page.figure(svg_of(chart),
              "Shares of all GPU time that the job held. The last bar is the model's own FLOPs at "
              "peak rate: the MFU over the whole time.");
}

/// Curves on one time axis; series of a kind that do not move are left out.
void add_series(HtmlPage& page, const RunReader& run) {
  std::size_t shown = 0;
  for (const std::string& name : run.series_names()) {
    analysis::Series series = run.series(name);
    if (series.value.size() < 2 || name.find("plant/") != std::string::npos || shown == 6) continue;
    const auto [low, high] = std::minmax_element(series.value.begin(), series.value.end());
    if (*low == *high) continue;
    analysis::LineChart chart{
        .title = series.long_name.empty() ? name : series.long_name,
        .x_title = "days of simulated time",
        .y_title = name + (series.units.empty() || series.units == "1" ? "" : ", " + series.units),
        .is_step = true,
        .height = 220};
    analysis::ChartSeries curve;
    curve.name = name;
    for (std::size_t i = 0; i < series.value.size(); ++i) {
      curve.x.push_back(double(series.time_ns[i]) / 86400e9);
      curve.y.push_back(series.value[i]);
    }
    analysis::keep_envelope(curve.x, curve.y, buckets);
    chart.series.push_back(std::move(curve));
    page.figure(svg_of(chart), name +
                                   ": from one change to the next; where there are more changes "
                                   "than pixels, least and greatest are kept");
    ++shown;
  }
}

void add_job(HtmlPage& page, const RunReader& run, const Explanation& why,
             const std::vector<analysis::Attribute>& summary) {
  const std::string& job = why.rows.name;
  const std::string prefix = "jobs." + job + '.';
  const auto figure = [&](const char* key) { return figure_of(summary, prefix + key); };
  const double goodput = figure("goodput").value_or(why.goodput);
  std::string answer =
      job + " trained " + percent(goodput) + " of its time on steps that were kept";
  if (!why.outside.empty() && why.outside.front().share > 0)
    answer += "; most of the rest went to " + why.outside.front().name + " (" +
              percent(why.outside.front().share) + ")";
  if (!why.levers.empty() && !why.levers.front().in_steps && why.levers.front().points > 0.005)
    answer += "; what would help most: " + why.levers.front().what + " (" +
              number("+%.2f", why.levers.front().points) + " points)";
  page.answer(answer + ".");
  std::vector<HtmlPage::Card> cards{
      {"goodput", percent(goodput), "time in kept steps / wall time, first start to end"}};
  if (const auto mfu = figure("mfu"))
    cards.push_back({"MFU", percent(*mfu), "model FLOPs / peak, over time in steps"});
  if (const auto step = figure("step_s"))
    cards.push_back({"step", number("%.3f s", *step), "mean of kept steps"});
  if (const auto count = figure("interruptions"))
    cards.push_back({"interruptions", number("%.0f", *count),
                     *count > 0 ? "one every " + hours(why.wall_s / *count) : "unplanned"});
  if (const auto cost = figure_of(summary, "cost.per_useful_gpu_h_USD"))
    cards.push_back({"cost", number("%.2f USD", *cost), "a useful GPU-hour"});
  page.cards(cards);
  add_waterfall(page, run, job);

  page.heading("What " + job + " lost, and to what");
  std::vector<std::vector<std::string>> rows;
  for (const analysis::TimeShare& share : why.outside)
    if (share.s > 0) rows.push_back({share.name, hours(share.s), percent(share.share)});
  if (rows.empty())
    page.paragraph("Nothing: all of its time was kept.");
  else
    page.table({"outside of kept steps", "time", "of the wall time"}, rows);
  rows.clear();
  for (const analysis::ClassCost& c : why.classes) {
    if (rows.size() == rows_shown) break;
    rows.push_back({c.cls, std::to_string(c.count), hours(c.total_s()), hours(c.detection_s),
                    hours(c.restart_s), hours(c.waiting_s), hours(c.lost_s)});
  }
  if (!rows.empty())
    page.table({"failure class", "count", "cost", "detection", "restart", "waiting", "lost work"},
               rows);
  rows.clear();
  for (const analysis::Lever& lever : why.levers) {
    if (rows.size() == rows_shown || lever.points < 0.005) break;
    rows.push_back({lever.what, number("%.2f", lever.points), number("%.0f", lever.gpu_s / 3600)});
  }
  if (!rows.empty()) {
    page.heading("What would help, to first order");
    page.table({"change", "points", "GPU-hours"}, rows);
  }
  page.list(why.notes);
}

void collect_sources(const Json& json, std::set<std::string>& out) {
  if (json.is_object())
    for (const auto& [key, value] : json.items()) {
      if (key == "source" && value.is_string() && !value.get<std::string>().empty())
        out.insert(value.get<std::string>());
      collect_sources(value, out);
    }
  else if (json.is_array())
    for (const Json& item : json) collect_sources(item, out);
}

/// What the figures rest on, and the scenario itself.
void add_scenario(HtmlPage& page, const std::string& scenario) {
  const Json json = Json::parse(scenario, nullptr, false);
  if (!json.is_object()) return;
  const scenarios::ReadResult read = scenarios::read_scenario_text(scenario, "scenario");
  if (read.ok()) page.warnings(scenarios::scenario_warnings(read.scenario));
  std::set<std::string> sources;
  collect_sources(json, sources);
  page.heading("Assumptions and sources");
  if (read.ok())
    for (const auto& [name, job] : read.scenario.jobs) {
      const scenarios::Uncertainty uncertainty = scenarios::uncertainty_of(
          scenarios::Catalog::standard(), read.scenario.cluster.server.gpu, job.software,
          job.parallel.precision);
      page.paragraph("Calibration of the step of " + name + ": " +
                     std::string(scenarios::text_of(uncertainty)) + "; error to expect: " +
                     std::string(scenarios::expected_step_error(uncertainty)) + '.');
    }
  if (json.contains("description") && json["description"].is_string())
    page.paragraph(json["description"].get<std::string>());
  if (!sources.empty()) page.list({sources.begin(), sources.end()});
  page.folded("The scenario as run, every default filled in", scenario);
}

}  // namespace

void add_scenario_to_report(HtmlPage& page, const std::string& scenario) {
  add_scenario(page, scenario);
}

std::string run_html(const RunReader& run) {
  const std::string name = run.text("scenario_name");
  std::string subtitle = "A run of " + name;
  if (const analysis::Value* seed = run.attribute("seed"))
    subtitle += ", seed " + analysis::text_of(*seed);
  const auto summary = run.summary();
  if (const auto s = figure_of(summary, "simulated_s"))
    subtitle += ", " + to_text(seconds(*s)) + " simulated";
  subtitle += "; trainyard " + run.text("creator_version") + ", " + run.text("git_commit");
  HtmlPage page(name, subtitle);
  if (const auto notice = run.notice()) page.warnings({*notice});
  const analysis::CauseLog log(run);
  for (const std::string& job : analysis::job_names(run))
    add_job(page, run, analysis::explain(run, job, log), summary);
  page.heading("Over time");
  add_series(page, run);
  add_scenario(page, run.text("scenario"));
  return page.text();
}

}  // namespace trainyard::cli
