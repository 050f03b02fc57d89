#pragma once

#include "models/training/step_profile.hpp"
#include "scenarios/published_run.hpp"
#include "scenarios/validate.hpp"

/// Published step times against the step model: tables of training runs (training), and vTrain's
/// measured layouts (vtrain), which name fewer columns. Docs: docs/guide/validate.md.
namespace trainyard::scenarios {

struct StepPrediction {
  double step_s = 0;
  models::StepProfile profile;
  Uncertainty uncertainty = Uncertainty::new_system;
};

/// The step of a run on the first servers of its machine, alone on the intact fabric. None if the
/// model finds no path for it.
std::optional<StepPrediction> predicted_step(const PublishedRun& run, PublishedShelf& shelf,
                                             const models::Mechanisms& mechanisms = {});

/// Calibrated: GPU, precision and stack are those of fitted rows. Extrapolated: the stack is new,
/// or the rate of the GPU in this precision derived from another. New system: that rate is not
/// known.
Uncertainty uncertainty_of(const PublishedRun& run, const PublishedShelf& shelf);

/// Shared by kinds of tables whose rows are runs.
RowPrediction prediction_of(const PublishedRun& run, const StepPrediction& step);

/// "<= 8", "<= 64", … GPUs.
std::string size_class_of(int gpus);

TableKind training_table();
TableKind vtrain_table();

}  // namespace trainyard::scenarios
