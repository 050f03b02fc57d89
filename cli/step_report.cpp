#include "cli/step_report.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/page.hpp"
#include "cli/summary.hpp"

namespace trainyard::cli {

using models::StepPart;

namespace {

double tokens_per_s(const StepReport& r) {
  return r.profile.tokens / to_seconds(r.profile.step);
}

double flops_per_gpu(const StepReport& r) {
  return r.profile.model_flops / to_seconds(r.profile.step) / double(r.gpus);
}

void add_parts(Page& page, const StepReport& r) {
  page.heading("Where the step goes (mean over the GPUs)");
  const double step = double(r.profile.step.count());
  double longest = 0;
  for (const Duration part : r.profile.parts) longest = std::max(longest, double(part.count()));
  for (std::size_t p = 0; p < models::step_parts; ++p) {
    const Duration part = r.profile.parts[p];
    if (part.count() == 0) continue;
    page.bar_row(std::string(spoken(models::account_of(StepPart(p)))),
                 p == 0 ? Colour::green : Colour::yellow, double(part.count()) / longest,
                 percent(double(part.count()) / step), to_text(part));
  }
}

void add_slow(Page& page, const StepReport& r) {
  if (r.slow.empty()) return;
  page.heading("Slow GPUs");
  for (const StepReport::SlowGpu& slow : r.slow) {
    char text[96];
    std::snprintf(text, sizeof text, "GPU %lld at %.4g of its speed: stage %d of replica %d",
                  static_cast<long long>(slow.gpu), slow.speed, slow.stage, slow.replica);
    page.bullet(Colour::yellow, "!", text);
  }
  page.row("step without", to_text(r.step_without_slow),
           "with them it takes " +
               percent(to_seconds(r.profile.step) / to_seconds(r.step_without_slow)) +
               " of that; " + std::to_string(r.replicas_played) +
               (r.replicas_played == 1 ? " replica" : " different replicas") + " played");
}

void add_memory(Page& page, const StepReport& r) {
  if (r.memory.empty()) return;
  page.heading("Memory of the fullest GPU: " + to_text(Bytes(r.memory_total)) + " of " +
               to_text(Bytes(r.memory_capacity)));
  for (const StepReport::MemoryItem& item : r.memory)
    page.bar_row(item.name, Colour::blue, item.bytes / r.memory_capacity,
                 percent(item.bytes / r.memory_capacity), to_text(Bytes(item.bytes)));
}

void add_links(Page& page, const StepReport& r) {
  if (r.busiest_links.empty()) return;
  page.heading("Busiest links (bytes moved / what the link could move in a step)");
  constexpr std::size_t shown = 5;
  for (std::size_t i = 0; i < std::min(shown, r.busiest_links.size()); ++i) {
    const StepReport::LinkLine& link = r.busiest_links[i];
    std::string users;
    for (const std::string& user : link.users) users += (users.empty() ? "" : ", ") + user;
    page.bullet(Colour::plain, right(percent(link.utilisation), 8),
                link.name + (users.empty() ? "" : ": " + users));
    if (!link.pairs.empty())
      page.bullet(Colour::dim, std::string(8, ' '),
                  to_text(Bytes(link.bytes)) + " a step, of which " +
                      to_text(Bytes(link.pairs.front().bytes)) + " " + link.pairs.front().text);
  }
}

void add_bounds(Page& page, const StepReport& r) {
  page.heading("Closed-form bounds: no step can be shorter");
  const models::StepBounds& b = r.profile.bounds;
  const auto row = [&](const char* name, double s, const char* what) {
    if (s > 0) page.row(name, to_text(seconds(s)), what);
  };
  row("FLOPs", b.flops_s, "model FLOPs at the peak of the GPUs");
  row("compute", b.compute_s, "the busiest stage, without communication and bubble");
  row("pipeline", b.pipeline_s, "with the ideal bubble of the schedule");
  row("busiest link", b.busiest_link_s, "its bytes / its capacity");
}

}  // namespace

std::string step_text(const StepReport& r, const Terminal& terminal) {
  Page page(terminal);
  page.line(painted(terminal, Colour::bold, r.scenario) + ": one step of " + r.job + " (" +
            r.model + ") on " + with_commas(r.gpus) + " GPUs");
  page.line();
  page.row(
      "step", to_text(r.profile.step),
      short_number(r.profile.tokens) + " tokens; " + short_number(tokens_per_s(r)) + " tokens/s");
  page.row("MFU", percent(r.mfu),
           "model FLOPs / peak of its GPUs; " + short_number(flops_per_gpu(r)) + "FLOP/s a GPU");
  if (!r.uncertainty.empty())
    page.row("certainty", r.uncertainty,
             "expect an error of " + r.expected_error + " (docs/validation.md)");
  if (r.hfu > r.mfu) page.row("HFU", percent(r.hfu), "the same with recomputed activations");
  add_slow(page, r);
  add_parts(page, r);
  add_memory(page, r);
  add_links(page, r);
  add_bounds(page, r);
  if (!r.profile.notes.empty()) page.heading("Notes");
  for (const std::string& note : r.profile.notes) page.bullet(Colour::yellow, "!", note);
  return page.text();
}

std::string step_json(const StepReport& r) {
  using Json = nlohmann::ordered_json;
  const auto s = [&](StepPart part) { return to_seconds(r.profile.part(part)); };
  Json out;
  out["schema"] = "trainyard-step-1";
  out["scenario"] = r.scenario;
  out["job"] = r.job;
  out["model"] = r.model;
  out["gpus"] = r.gpus;
  out["step_s"] = to_seconds(r.profile.step);
  out["tokens_per_step"] = r.profile.tokens;
  out["tokens_per_s"] = tokens_per_s(r);
  out["model_flops"] = r.profile.model_flops;
  out["hardware_flops"] = r.profile.hardware_flops;
  out["mfu"] = r.mfu;
  if (!r.uncertainty.empty())
    out["uncertainty"] = {{"class", r.uncertainty}, {"expected_error", r.expected_error}};
  out["hfu"] = r.hfu;
  out["tflops_per_gpu"] = flops_per_gpu(r) * 1e-12;

  out["slow_gpus"] = Json::array();
  for (const StepReport::SlowGpu& slow : r.slow)
    out["slow_gpus"].push_back({{"gpu", slow.gpu},
                                {"speed", slow.speed},
                                {"stage", slow.stage},
                                {"replica", slow.replica}});
  if (!r.slow.empty()) {
    out["step_without_slow_s"] = to_seconds(r.step_without_slow);
    out["replicas_played"] = r.replicas_played;
  }

  Json split;  // sums to step_s; compute = useful + kernel_inefficiency, which also stand alone
               // under compute_s
  split["compute"] = s(StepPart::useful) + s(StepPart::kernel_inefficiency);
  for (std::size_t p = std::size_t(StepPart::recompute); p < models::step_parts; ++p)
    split[std::string(name_of(StepPart(p)))] = s(StepPart(p));
  out["split_s"] = std::move(split);
  out["compute_s"] = {{"useful", s(StepPart::useful)},
                      {"kernel_inefficiency", s(StepPart::kernel_inefficiency)}};

  Json memory;
  for (const StepReport::MemoryItem& item : r.memory) memory[item.name] = item.bytes;
  memory["total"] = r.memory_total;
  memory["capacity"] = r.memory_capacity;
  out["memory_bytes"] = std::move(memory);

  const models::StepBounds& b = r.profile.bounds;
  out["bounds_s"] = {{"flops", b.flops_s},
                     {"compute", b.compute_s},
                     {"pipeline", b.pipeline_s},
                     {"busiest_link", b.busiest_link_s}};
  Json busiest = Json::array();
  for (const StepReport::LinkLine& link : r.busiest_links) {
    Json pairs = Json::array();
    for (const StepReport::LinkLine::Pair& pair : link.pairs)
      pairs.push_back({{"user", pair.text}, {"bytes", pair.bytes}});
    busiest.push_back({{"link", link.name},
                       {"utilisation", link.utilisation},
                       {"bytes", link.bytes},
                       {"capacity_Bps", link.capacity_Bps},
                       {"users", link.users},
                       {"pairs", std::move(pairs)}});
  }
  out["links"] = {{"busiest", std::move(busiest)}};
  out["notes"] = r.profile.notes;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace trainyard::cli
