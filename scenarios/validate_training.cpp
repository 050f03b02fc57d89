#include "scenarios/validate_training.hpp"

#include <array>
#include <memory>

#include "models/training/step_model.hpp"
#include "scenarios/world.hpp"
#include "scenarios/write.hpp"

namespace trainyard::scenarios {
namespace {

models::Placement first_servers(const PublishedRun& run) {
  models::Placement placement;
  for (int s = 0; s < run.machine.cluster.servers; ++s)
    placement.servers.emplace_back(std::size_t(s));
  return placement;
}

/// Everything a prediction depends on, as text.
std::string inputs_of(const PublishedRun& run) {
  Scenario scenario;
  scenario.cluster = run.machine.cluster;
  scenario.jobs["job"] = run.job;
  return write_scenario(scenario);
}

/// What is trained on which GPUs, without how.
std::string question_of(const PublishedRun& run) {
  Scenario scenario;
  models::JobSpec& job = scenario.jobs["job"];
  job.model = run.job.model;
  job.gpus = run.job.gpus;
  job.global_batch = run.job.global_batch;
  job.sequence = run.job.sequence;
  job.parallel.precision = run.job.parallel.precision;
  return run.gpu_part + write_scenario(scenario);
}

Comparable comparable_of(const PublishedRun& run, const models::StepProfile& profile) {
  const double peak = run.machine.cluster.server.gpu.peak_16bit.value() * run.job.gpus;
  return {.inputs = inputs_of(run),
          .question = question_of(run),
          .baseline = run.gpu + ", " + run.precision + ", " + run.recompute,
          .ideal = profile.model_flops / peak,
          .part = run.has_experts() ? "experts" : "dense"};
}

RowPredictor start_training(const ValidationSetup& setup) {
  return [shelf = std::make_shared<PublishedShelf>(), mechanisms = setup.mechanisms](
             const PublishedTable& table, const TableRow& row,
             std::vector<Diagnostic>& mistakes) -> RowResult {
    auto read = published_run(table, row, *shelf, mistakes);
    if (auto* reason = std::get_if<SkipReason>(&read)) return std::move(*reason);
    const auto& run = std::get<PublishedRun>(read);
    const auto step = predicted_step(run, *shelf, mechanisms);
    if (!step) return SkipReason("no path between its servers");
    return prediction_of(run, *step);
  };
}

RowPredictor start_vtrain(const ValidationSetup& setup) {
  return [training = start_training(setup)](const PublishedTable& table, const TableRow& row,
                                            std::vector<Diagnostic>& mistakes) {
    RowResult result = training(table, row, mistakes);
    if (auto* p = std::get_if<RowPrediction>(&result))
      for (const char* column : {"tp", "pp", "dp", "micro_batch", "gpus", "hidden"})
        p->groups.emplace_back(column, std::string(table.text(row, column)));
    return result;
  };
}

PublishedQuantity step_time() {
  return {.name = "step time", .column = "time_s", .unit = "s", .per_unit = 1};
}

}  // namespace

Uncertainty uncertainty_of(const PublishedRun& run, const PublishedShelf& shelf) {
  const std::string sure = shelf.parts.how_sure(run.gpu_part, run.job.parallel.precision);
  if (sure.empty()) return Uncertainty::new_system;
  return sure == "fit" && run.is_known_stack ? Uncertainty::calibrated : Uncertainty::extrapolated;
}

std::optional<StepPrediction> predicted_step(const PublishedRun& run, PublishedShelf& shelf,
                                             const models::Mechanisms& mechanisms) {
  const Site* site = shelf.sites.of(run.machine);
  if (!site) return std::nullopt;
  models::JobSpec job = run.job;
  job.mechanisms = mechanisms;
  models::StepModel model(job, run.machine.cluster.server, site->router);
  StepPrediction out;
  out.profile = model.profile(first_servers(run));
  if (!out.profile.cut_off.empty()) return std::nullopt;
  out.step_s = to_seconds(out.profile.step);
  out.uncertainty = uncertainty_of(run, shelf);
  return out;
}

std::string size_class_of(int gpus) {
  for (const int most : {8, 64, 256, 1024, 4096})
    if (gpus <= most) return "<= " + std::to_string(most);
  return "> 4096";
}

RowPrediction prediction_of(const PublishedRun& run, const StepPrediction& step) {
  RowPrediction out;
  out.published = run.published_s;
  out.predicted = step.step_s;
  out.method = run.software_part;
  out.uncertainty = step.uncertainty;
  const std::string part = run.has_experts() ? "experts" : "dense";
  const std::string end = run.has_experts() ? ", experts" : "";
  out.groups = {{"layers", part},
                {"target", run.derived ? "derived" : "reported"},
                {"paper", run.paper},
                {"stack", run.stack + end},
                {"GPU", run.gpu + end},
                {"precision", run.precision + end},
                {"software", run.software + end},
                {"GPUs", size_class_of(run.job.gpus) + end},
                {"recomputation", run.recompute + end},
                {"stack, GPU, precision", run.stack + ", " + run.gpu + ", " + run.precision + end}};
  out.rules = run.rules;
  out.comparable = comparable_of(run, step.profile);
  return out;
}

TableKind training_table() {
  return {.name = "training",
          .required = {"model", "layers", "hidden", "heads", "ffn", "vocab", "seq",
                       "global_batch_seqs", "tp", "pp", "precision", "gpu", "gpus"},
          .one_of = {"iter_time_s", "iter_time_s_derived"},
          .predict = nullptr,
          .start = start_training,
          .quantity = step_time(),
          .refers_to = {}};
}

TableKind vtrain_table() {
  return {.name = "vtrain",
          .required = {"layers", "hidden", "heads", "ffn", "vocab", "seq", "global_batch_seqs",
                       "micro_batch", "tp", "dp", "pp", "precision", "gpu", "gpus",
                       "internode_gbps_per_node", "iter_time_s"},
          .one_of = {},
          .predict = nullptr,
          .start = start_vtrain,
          .quantity = step_time(),
          .refers_to = {}};
}

}  // namespace trainyard::scenarios
