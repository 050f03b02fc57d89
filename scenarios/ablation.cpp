#include "scenarios/ablation.hpp"

#include <algorithm>
#include <map>

#include "models/training/step_model.hpp"
#include "scenarios/mechanism_names.hpp"
#include "scenarios/published_run.hpp"
#include "scenarios/world.hpp"

namespace trainyard::scenarios {
namespace {

constexpr std::size_t stride_of_composed = 12;  // as in a calibration

/// Nothing if the run has no path on its fabric.
std::vector<double> steps_of(const PublishedRun& run, const Site& site,
                             std::span<const Ablation> ablations) {
  models::Placement placement;
  for (int s = 0; s < run.machine.cluster.servers; ++s)
    placement.servers.emplace_back(std::size_t(s));
  models::StepModel model(run.job, run.machine.cluster.server, site.router);
  if (!model.profile(placement).cut_off.empty()) return {};
  std::vector<double> out;
  for (const Ablation& ablation : ablations) {
    models::JobSpec job = run.job;
    job.mechanisms = ablation.mechanisms;
    out.push_back(model.step_s_of(job, placement));
  }
  return out;
}

double error_pct(const AblatedRow& row, std::size_t ablation) {
  return 100 * (row.predicted_s[ablation] / row.published_s - 1);
}

}  // namespace

std::vector<Ablation> ablations() {
  std::vector<Ablation> out{{"nothing", {}}};
  models::Mechanisms no_traffic;
  no_traffic.tensor_traffic = no_traffic.data_traffic = no_traffic.pipeline_traffic =
      no_traffic.context_traffic = no_traffic.expert_traffic = false;
  out.push_back({"all traffic", no_traffic});
  for (const MechanismName& mechanism : mechanism_names) {
    Ablation& one = out.emplace_back(Ablation{std::string(mechanism.name), {}});
    one.mechanisms.*(mechanism.flag) = false;
  }
  return out;
}

std::vector<AblatedRow> ablated_rows(const PublishedTable& table,
                                     std::span<const Ablation> ablations,
                                     std::vector<Diagnostic>& mistakes, const RowFilter& wanted) {
  PublishedShelf shelf;
  std::vector<PublishedRun> runs;
  for (const TableRow& row : table.rows) {
    if (wanted && !wanted(table, row)) continue;
    auto read = published_run(table, row, shelf, mistakes);
    if (auto* run = std::get_if<PublishedRun>(&read)) runs.push_back(std::move(*run));
  }
  if (!mistakes.empty()) return {};
  const bool is_composed = std::all_of(runs.begin(), runs.end(), [](const PublishedRun& run) {
    return run.software_part == "vtrain" && run.machine.cluster.servers == 1;
  });
  std::vector<AblatedRow> out;
  for (std::size_t i = 0; i < runs.size(); i += is_composed ? stride_of_composed : 1) {
    const PublishedRun& run = runs[i];
    const Site* site = shelf.sites.of(run.machine);
    if (!site) continue;
    std::vector<double> steps = steps_of(run, *site, ablations);
    if (steps.empty()) continue;
    out.push_back({.id = run.id,
                   .group = run.stack + (is_composed ? ", one server" : "") +
                            (run.has_experts() ? ", experts" : ""),
                   .has_experts = run.has_experts(),
                   .published_s = run.published_s,
                   .predicted_s = std::move(steps)});
  }
  return out;
}

std::vector<AblationEffect> effects_of(std::span<const AblatedRow> rows,
                                       std::span<const Ablation> ablations, std::size_t least_rows,
                                       std::size_t most_groups) {
  std::map<std::string, std::vector<const AblatedRow*>> groups;
  for (const AblatedRow& row : rows) groups[row.group].push_back(&row);
  const auto summary = [](const std::vector<const AblatedRow*>& of, std::size_t ablation) {
    std::vector<double> errors;
    for (const AblatedRow* row : of) errors.push_back(error_pct(*row, ablation));
    return summary_of(std::move(errors));
  };
  std::vector<const AblatedRow*> dense;
  for (const AblatedRow& row : rows)
    if (!row.has_experts) dense.push_back(&row);
  std::vector<AblationEffect> out;
  for (std::size_t a = 0; a < ablations.size(); ++a) {
    AblationEffect& effect = out.emplace_back();
    effect.name = ablations[a].name;
    effect.dense = summary(dense, a);
    for (const auto& [name, members] : groups) {
      if (members.size() < least_rows) continue;
      GroupEffect group{name, summary(members, 0), summary(members, a)};
      if (group.rise_pct() > 0) effect.suffers.push_back(std::move(group));
    }
    std::stable_sort(
        effect.suffers.begin(), effect.suffers.end(),
        [](const GroupEffect& x, const GroupEffect& y) { return x.rise_pct() > y.rise_pct(); });
    if (effect.suffers.size() > most_groups) effect.suffers.resize(most_groups);
  }
  return out;
}

}  // namespace trainyard::scenarios
