#include "cli/plan_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/page.hpp"

namespace trainyard::cli {
namespace {

constexpr double day_s = 86400;
constexpr double crowded = 0.9;  // share of the memory from which a caching allocator may fail

std::string number(const char* format, double x) {
  char text[48];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

void sizing_lines(Page& page, const PlanReport& r) {
  const scenarios::Sizing& s = *r.sizing;
  page.heading("Sizing: 6 N D");
  page.row("N", short_number(s.parameters), "parameters that one token meets");
  page.row("D", short_number(s.tokens), "tokens");
  page.row("6 N D", number("%.4g", s.flops),
           "FLOP of the whole training, attention not counted: " +
               number("%.4g FLOP/s", s.flops_per_s()) + " over that time");
  const std::string why = r.mfu_is_predicted ? ", predicted for the fastest plan below"
                          : r.mfu_is_given   ? ", as given"
                                             : ", assumed: give --mfu or --gpus";
  page.row("TFLOP/s a GPU", number("%.4g", s.flops_per_gpu / 1e12),
           number("%.4g peak", r.peak_flops / 1e12) + number(" x %.1f %% MFU", 100 * s.mfu) + why);
  page.row("GPUs", with_commas(std::int64_t(s.whole_gpus())),
           s.gpus == s.whole_gpus() ? "" : number("%.1f, rounded up", s.gpus));
  page.row("days", number("%.2f", s.seconds / day_s),
           number("%.4g GPU-hours", s.gpus * s.seconds / 3600));
}

void envelope_lines(Page& page, const PlanReport& r) {
  page.heading("Envelope");
  page.row("servers", with_commas(std::int64_t(r.servers)),
           "of " + std::to_string(r.gpus_per_server) + " GPUs, without spares");
  page.row("power, MW", number("%.3g", r.power_W / 1e6),
           "GPUs at their limit and the rest of the servers; without fabric and cooling");
  if (r.sizing)
    page.row("energy, GWh", number("%.3g", r.power_W * r.sizing->seconds / 3.6e12),
             "at that power for that time");
  if (r.price_usd > 0)
    page.row("price, M USD", number("%.3g", r.price_usd / 1e6),
             "GPUs, adapters and servers at the catalog's prices; without fabric");
}

void measured_lines(Page& page, const scenarios::MeasuredPoint& m) {
  page.heading("Measured point: " + m.layout + " on " + with_commas(m.gpus) + " GPUs");
  page.row("measured", number("%.4g s", m.measured_s), "one step");
  page.row("predicted", number("%.4g s", m.predicted_s),
           "with the constants of the catalog: " +
               number("%+.1f %%", 100 * (m.predicted_s / m.measured_s - 1)));
  page.row("factor", number("%.4f", m.compute_scale),
           "on the speed of compute, to meet the measurement; used for all plans below");
}

/// One column of the table of plans.
struct Column {
  std::string title;
  std::size_t width;
  std::function<std::string(const scenarios::RankedPlan&)> text;
};

std::vector<Column> report_columns(const PlanReport& r) {
  using P = scenarios::RankedPlan;
  const std::vector<P>& plans = r.search->plans;
  const auto any = [&](auto is) { return std::any_of(plans.begin(), plans.end(), is); };
  std::vector<Column> out{
      {"step, s", 10, [](const P& p) { return number("%.4g", p.step_s); }},
      {"MFU, %", 8, [](const P& p) { return number("%.1f", 100 * p.mfu); }},
      {"tokens/s", 10, [](const P& p) { return short_number(p.tokens_per_s); }},
      {"memory", 9, [](const P& p) { return percent(p.memory_share); }},
      {"TP", 5, [](const P& p) { return std::to_string(p.parallel.tensor); }},
      {"PP", 4, [](const P& p) { return std::to_string(p.parallel.pipeline); }}};
  if (any([](const P& p) { return p.parallel.chunks > 1; }))
    out.push_back({"v", 4, [](const P& p) { return std::to_string(p.parallel.chunks); }});
  if (any([](const P& p) { return p.parallel.context > 1; }))
    out.push_back({"CP", 4, [](const P& p) { return std::to_string(p.parallel.context); }});
  if (any([](const P& p) { return p.parallel.expert > 1; }))
    out.push_back({"EP", 4, [](const P& p) { return std::to_string(p.parallel.expert); }});
  out.push_back({"DP", 6, [&r](const P& p) {
                   return std::to_string(
                       r.gpus / (p.parallel.tensor * p.parallel.pipeline * p.parallel.context));
                 }});
  out.push_back({"MB", 4, [](const P& p) { return std::to_string(p.parallel.micro_batch); }});
  if (any([](const P& p) { return p.parallel.sharding != models::Sharding::zero1; }))
    out.push_back(
        {"sharding", 10, [](const P& p) { return std::string(name_of(p.parallel.sharding)); }});
  if (any([](const P& p) { return p.parallel.recompute != models::Recompute::none; }))
    out.push_back(
        {"recompute", 11, [](const P& p) { return std::string(name_of(p.parallel.recompute)); }});
  return out;
}

void nothing_found(Page& page, const PlanReport& r) {
  if (r.search->candidates > 0) {
    page.bullet(Colour::red, "!", "no layout fits in memory; nearest: " + r.search->least_memory);
    return;
  }
  page.bullet(Colour::red, "!", "no layout divides, not even one of a single stage:");
  for (const Problem& p : r.no_layout)
    page.bullet(Colour::red, "!", p.path + ": " + p.what + "; " + p.right + " would do");
}

void plan_lines(Page& page, const PlanReport& r) {
  const scenarios::PlanSearch& search = *r.search;
  page.heading("Plans, fastest first");
  for (const std::string& line :
       wrapped(with_commas(std::int64_t(search.candidates)) + " layouts divide; " +
                   with_commas(std::int64_t(search.too_large)) + " do not fit in memory; " +
                   with_commas(std::int64_t(search.played)) + " were played; " +
                   with_commas(std::int64_t(search.ruled_out)) +
                   " cannot be among the first by their bound",
               std::size_t(std::max(page.terminal().width, 40)) - 2))
    page.line("  " + line);
  if (search.plans.empty()) {
    nothing_found(page, r);
    return;
  }
  page.line();
  const std::vector<Column> columns = report_columns(r);
  std::string head;
  for (const Column& c : columns) head += right(c.title, c.width);
  page.line(head);
  bool is_crowded = false;
  for (const scenarios::RankedPlan& p : search.plans) {
    std::string line;
    for (const Column& c : columns) line += right(c.text(p), c.width);
    page.line(line);
    is_crowded = is_crowded || p.memory_share > crowded;
  }
  page.line();
  page.bullet(
      Colour::dim, "-",
      "tensor, pipeline, context, expert and data-parallel sizes; v: model chunks of a stage "
      "(interleaved above 1); MB: sequences of a micro-batch");
  const bool all_zero1 = std::none_of(columns.begin(), columns.end(),
                                      [](const Column& c) { return c.title == "sharding"; });
  if (all_zero1)
    page.bullet(Colour::dim, "-",
                "optimizer state is sharded over the data-parallel ranks (zero-1)");
  if (is_crowded)
    page.bullet(
        Colour::yellow, "!",
        "above 90 % of the memory a caching allocator may fail; --fill 0.9 leaves such plans out");
}

}  // namespace

std::string plan_text(const PlanReport& r, const Terminal& terminal) {
  Page page(terminal);
  page.line(
      painted(terminal, Colour::bold, r.model) + ": " + short_number(r.parameters) + " parameters" +
      (r.active_parameters < r.parameters ? ", " + short_number(r.active_parameters) + " active"
                                          : "") +
      ", on " + r.gpu + " in " + r.precision);
  if (r.gpus > 0)
    page.line(with_commas(r.gpus) + " GPUs, " + with_commas(r.global_batch) + " sequences of " +
              with_commas(r.sequence) + " tokens a step");
  if (!r.note.empty()) page.bullet(Colour::dim, "-", r.note);
  if (r.measured) measured_lines(page, *r.measured);
  if (r.sizing) sizing_lines(page, r);
  if (r.servers > 0) envelope_lines(page, r);
  if (r.search) plan_lines(page, r);
  return page.text();
}

std::string plan_json(const PlanReport& r) {
  using Json = nlohmann::ordered_json;
  Json out{{"schema", "trainyard-plan-1"},
           {"model", r.model},
           {"parameters", r.parameters},
           {"active_parameters", r.active_parameters},
           {"gpu", r.gpu},
           {"peak_flops", r.peak_flops},
           {"precision", r.precision}};
  if (!r.note.empty()) out["note"] = r.note;
  if (r.measured)
    out["measured"] = {{"layout", r.measured->layout},
                       {"gpus", r.measured->gpus},
                       {"measured_s", r.measured->measured_s},
                       {"predicted_s", r.measured->predicted_s},
                       {"compute_scale", r.measured->compute_scale}};
  if (r.sizing)
    out["sizing"] = {{"tokens", r.sizing->tokens},
                     {"flops", r.sizing->flops},
                     {"flops_per_gpu", r.sizing->flops_per_gpu},
                     {"mfu", r.sizing->mfu},
                     {"mfu_is_predicted", r.mfu_is_predicted},
                     {"gpus", r.sizing->whole_gpus()},
                     {"gpus_exact", r.sizing->gpus},
                     {"time_s", r.sizing->seconds}};
  if (r.servers > 0)
    out["envelope"] = {{"servers", r.servers}, {"power_W", r.power_W}, {"price_usd", r.price_usd}};
  if (!r.search) return out.dump(2) + '\n';
  const scenarios::PlanSearch& search = *r.search;
  out["gpus"] = r.gpus;
  out["global_batch"] = r.global_batch;
  out["sequence"] = r.sequence;
  out["candidates"] = search.candidates;
  out["too_large"] = search.too_large;
  out["played"] = search.played;
  out["ruled_out"] = search.ruled_out;
  if (!search.least_memory.empty()) out["least_memory"] = search.least_memory;
  out["plans"] = Json::array();
  for (const scenarios::RankedPlan& p : search.plans) {
    const models::ParallelSpec& layout = p.parallel;
    // As a scenario has it under jobs.NAME.parallel.
    Json parallel{{"tensor", layout.tensor},
                  {"pipeline", layout.pipeline},
                  {"context", layout.context},
                  {"expert", layout.expert}};
    if (layout.expert_tensor) parallel["expert_tensor"] = *layout.expert_tensor;
    parallel["schedule"] = std::string(name_of(layout.schedule));
    parallel["chunks"] = layout.chunks;
    parallel["micro_batch"] = layout.micro_batch;
    parallel["sharding"] = std::string(name_of(layout.sharding));
    parallel["recompute"] = std::string(name_of(layout.recompute));
    parallel["precision"] = r.precision;
    out["plans"].push_back({{"layout", scenarios::layout_text(layout, r.gpus)},
                            {"step_s", p.step_s},
                            {"bound_s", p.bound_s},
                            {"tokens_per_s", p.tokens_per_s},
                            {"mfu", p.mfu},
                            {"memory_bytes", p.memory.value()},
                            {"memory_share", p.memory_share},
                            {"parallel", std::move(parallel)}});
  }
  return out.dump(2) + '\n';
}

}  // namespace trainyard::cli
