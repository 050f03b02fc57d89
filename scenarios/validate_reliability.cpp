#include "scenarios/validate_reliability.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "models/training/checkpoints.hpp"
#include "scenarios/reliability_run.hpp"

namespace trainyard::scenarios {
namespace {

using namespace std::chrono_literals;

constexpr int seeds = 20;

/// How a prediction is to be read.
enum class Judged {
  printed,      // against the printed figure
  lower_bound,  // the printed figure is what the run reached at least
  bounded_by    // our inputs are bounds, so the prediction is the least that is possible
};

struct Case {
  ReliabilityRun run;
  std::string failures;  // where they come from
  std::vector<std::string> rules = {};
  Judged judged = Judged::printed;
};

Case published_inputs(const PublishedTable& table, const TableRow& row, double rate,
                      double interval_min, std::vector<Diagnostic>& mistakes) {
  Case c;
  c.run.failures = server_failures(rate);
  c.failures = "failures at the rate of the row";
  const auto restart = table.number(row, "restart_min", mistakes);
  if (!restart) c.rules.push_back("restart not stated: 5 min, as in other rows of the paper");
  const std::string_view stall = table.text(row, "ckpt_stall_s");
  if (stall.empty()) c.rules.push_back("stall of a save not stated: none");
  c.run.checkpoint =
      saves_every(seconds(60 * interval_min), seconds(first_number(stall).value_or(0)));
  c.run.restart = {.replace = 0s, .start_up = seconds(60 * restart.value_or(5)), .load = false};
  return c;
}

/// "needs ... 10-s checkpoint writes": at the rate of RSC-1 and the interval that is best for it.
Case target_12k(double gpus) {
  constexpr double write_s = 10, rate = 6.5;
  const double mtbi_s = models::mean_time_between_interruptions_s(gpus / 8, rate / 1000);
  Case c;
  c.run.failures = server_failures(rate);
  c.failures = "failures at the rate of RSC-1";
  c.run.checkpoint =
      saves_every(seconds(models::young_interval_s(write_s, mtbi_s)), seconds(write_s));
  c.run.restart = {.replace = 0s, .start_up = 5min, .load = false};
  c.rules = {"writes of 10 s at Young's interval",
             "restart not stated: 5 min, as in other rows of the paper"};
  c.judged = Judged::lower_bound;
  return c;
}

/// As scenarios/library/llama3-405b-16k.json.
Case llama3() {
  Case c;
  c.run.failures = *failures_of("llama3-pretraining");
  c.failures = "profile llama3-pretraining";
  c.run.duration = 24h * 54;
  c.run.checkpoint = saves_every(10min, 5s);
  c.run.checkpoint.keep = 144;  // a day: what is corrupt must not be all there is
  c.run.restart = {.replace = 2min, .start_up = 6min, .load = false};
  c.rules = {"interval 10 min, stall 5 s, restart 8 min: assumed"};
  c.judged = Judged::lower_bound;
  return c;
}

/// ByteRobust: every step is saved to peers, 0.9 % of the step; an incident costs 50 min at most.
Case byterobust() {
  Case c;
  c.run.failures = *failures_of("planning-defaults");
  c.failures = "profile planning-defaults";
  for (auto it = c.run.failures.classes.begin(); it != c.run.failures.classes.end();) {
    const bool is_cable = it->first.starts_with("access-link") || it->first.ends_with("switch");
    it->second.detection = {};
    it = is_cable || it->second.effect == models::Effect::slow ? c.run.failures.classes.erase(it)
                                                               : std::next(it);
  }
  c.run.checkpoint = saves_every(1min, 540ms);
  c.run.restart = {.replace = 0s, .start_up = 50min, .load = false};
  c.rules = {"failures not stated: planning-defaults, without its network",
             "every incident costs the 50 min that are printed as its most"};
  c.judged = Judged::bounded_by;
  return c;
}

/// FT-HSDP: a failure each 18 min, a cold recovery of 600 s.
Case ft_hsdp(double gpus) {
  Case c;
  c.run.failures = failures_every(18min, std::int64_t(gpus) / 8);
  c.failures = "a failure each 18 min";
  c.run.checkpoint = saves_every(10min, 5s);
  c.run.restart = {.replace = 0s, .start_up = 600s, .load = false};
  c.rules = {"interval 10 min, stall 5 s: assumed, as for Llama 3",
             "cold recovery 600 s: its measured figure at 65,536 GPUs"};
  return c;
}

/// OPT: about 90 restarts in 60 days, by hand.
Case opt(double gpus) {
  Case c;
  c.run.failures = failures_every(16h, std::int64_t(gpus) / 8);
  c.failures = "a failure each 16 h (90 restarts in 60 days)";
  c.run.checkpoint = saves_every(3h, 30s);
  c.run.restart = {.replace = 0s, .start_up = 68min, .load = false};
  c.rules = {"interval 3 h, stall 30 s: assumed",
             "restart 68 min: what a platform without automatic recovery reports"};
  return c;
}

std::variant<Case, SkipReason> case_of(const PublishedTable& table, const TableRow& row,
                                       std::optional<double> gpus,
                                       std::vector<Diagnostic>& mistakes) {
  const std::string_view name = table.text(row, "case");
  const auto rate = table.number(row, "node_fail_per_1000_node_days", mistakes);
  const auto interval = table.number(row, "ckpt_interval_min", mistakes);
  if (!gpus) return SkipReason("the result alone is published: no size, failures or restart");
  if (rate && interval) return published_inputs(table, row, *rate, *interval, mistakes);
  if (name.starts_with("12k-GPU")) return target_12k(*gpus);
  if (name.starts_with("Llama 3")) return llama3();
  if (name.starts_with("ByteRobust")) return byterobust();
  if (name.starts_with("FT-HSDP")) return ft_hsdp(*gpus);
  if (name.starts_with("OPT")) return opt(*gpus);
  return SkipReason("neither rates nor restarts of this system are known");
}

RowResult predict_effective_time(const PublishedTable& table, const TableRow& row,
                                 std::vector<Diagnostic>& mistakes) {
  const auto published = table.number(row, "value", mistakes);
  const auto gpus = table.number(row, "gpus", mistakes);
  if (!published) return SkipReason("no figure stated");
  auto read = case_of(table, row, gpus, mistakes);
  if (auto* reason = std::get_if<SkipReason>(&read)) return std::move(*reason);
  Case& c = std::get<Case>(read);
  c.run.gpus = std::int64_t(*gpus);
  const ReliabilityEstimate e = estimate(c.run, seeds);
  RowPrediction out;
  out.published = 100 * *published;
  out.predicted = 100 * e.effective.mean;
  out.method = c.failures + ": " +
               with_interval(100 * e.effective.mean, 100 * e.effective.half_width, 2) + " %";
  out.rules = c.rules;
  out.uncertainty = c.judged == Judged::printed && c.rules.empty() ? Uncertainty::extrapolated
                                                                   : Uncertainty::new_system;
  const bool is_met = c.judged == Judged::bounded_by ? out.predicted <= out.published
                                                     : out.predicted >= out.published;
  out.groups = {{"kind", std::string(table.text(row, "kind"))},
                {"judged", c.judged == Judged::printed ? "by the printed figure"
                           : is_met                    ? "a bound, met"
                                                       : "a bound, missed"}};
  return out;
}

}  // namespace

std::optional<double> first_number(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) == 0) ++at;
  if (at == text.size()) return std::nullopt;
  return std::strtod(std::string(text.substr(at)).c_str(), nullptr);
}

std::string with_interval(double value, double half_width, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f ± %.*f", decimals, value, decimals, half_width);
  return text.data();
}

TableKind effective_time_table() {
  return {.name = "effective-time",
          .required = {"case", "metric", "value", "node_fail_per_1000_node_days",
                       "ckpt_interval_min", "restart_min"},
          .one_of = {},
          .predict = predict_effective_time,
          .start = nullptr,
          .quantity = {.name = "effective time",
                       .column = "effective_pct",
                       .unit = "%",
                       .per_unit = 1,
                       .in_points = true},
          .refers_to = {}};
}

}  // namespace trainyard::scenarios
