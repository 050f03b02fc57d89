#include "scenarios/study_metrics.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "scenarios/study_fields.hpp"

namespace trainyard::scenarios {
namespace {

bool has_ending(const std::string& text, std::string_view ending) {
  return text.size() >= ending.size() && std::string_view(text).ends_with(ending);
}

}  // namespace

std::string last_key(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

std::string units_of(const std::string& key) {
  constexpr std::pair<std::string_view, const char*> suffixes[] = {
      {"_per_kWh", ""},        {"_gpu_s", "s"}, {"_s", "s"},   {"_J", "J"}, {"_USD", "USD"},
      {"_kWh", "kW h"},        {"_W", "W"},     {"_m3", "m3"}, {"_h", "h"}, {"_tCO2e", "t"},
      {"_C", "degree_Celsius"}};
  for (const auto& [ending, units] : suffixes)
    if (has_ending(key, ending)) return units;
  return "1";
}

analysis::Better better_of(const std::string& key) {
  for (const char* high : {"goodput", "mfu", "hfu", "ettr", "tokens", "availability", "steps_kept",
                           "useful", "mtbi_s", "kept_s", "useful_gpu_h", "utilisation"})
    if (key == high) return analysis::Better::higher;
  if (key == "simulated_s" || key == "elapsed_s") return analysis::Better::neither;
  for (const char* ending : {"_s", "_USD", "_J", "_kWh", "_tCO2e", "_m3", "interruptions",
                             "saves_lost", "pue", "wue_L_per_kWh", "cuts", "data_wait"})
    if (has_ending(key, ending)) return analysis::Better::lower;
  return analysis::Better::neither;
}

void add_default_metrics(const Scenario& scenario, StudyDesign& design) {
  for (const auto& [name, job] : scenario.jobs) {
    const std::string prefix = scenario.jobs.size() == 1 ? "" : name + "-";
    for (const char* key : {"goodput", "step_s", "mfu", "ettr", "interruptions"}) {
      if (!is_plain_name(prefix + key)) continue;
      const std::string of = "jobs." + name + '.' + key;
      design.metrics.push_back({prefix + key, of, units_of(key), better_of(key)});
    }
  }
  if (scenario.economics)
    design.metrics.push_back(
        {"per_useful_eflop_USD", "cost.per_useful_eflop_USD", "USD", analysis::Better::lower});
}

std::optional<MetricFormula> MetricFormula::parse(const std::string& text) {
  MetricFormula out;
  bool is_divisor = false;
  for (std::size_t start = 0;;) {
    const std::size_t times = text.find(" * ", start), over = text.find(" / ", start);
    const std::size_t end = std::min({times, over, text.size()});
    Factor factor{is_divisor, text.substr(start, end - start), 1.0};
    if (factor.path.empty() || factor.path.find(' ') != std::string::npos) return std::nullopt;
    const char* last = factor.path.data() + factor.path.size();
    if (const auto [stop, error] = std::from_chars(factor.path.data(), last, factor.number);
        error == std::errc{} && stop == last)
      factor.path.clear();
    out.factors.push_back(std::move(factor));
    if (end == text.size()) return out;
    is_divisor = over < times;
    start = end + 3;
  }
}

analysis::StudyMetric metric_of_figure(const std::string& path) {
  const std::string key = last_key(path);
  return {path, path, units_of(key), better_of(key)};
}

bool is_additive(const std::string& path) {
  if (path.find("ledger_gpu_s.") != std::string::npos || path == "simulated_s" || path == "events")
    return true;
  for (const char* key :
       {"tokens", "steps_kept", "kept_s", "elapsed_s", "interruptions", "planned_interruptions",
        "checkpoints", "saves_lost", "saves_refused", "shrinks", "reroutes", "cuts", "energy_J",
        "site_J", "it_J", "cooling_J", "losses_J", "water_m3"})
    if (last_key(path) == key) return true;
  return path.find("interruptions_by_class.") != std::string::npos;
}

}  // namespace trainyard::scenarios
