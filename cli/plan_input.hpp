#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "scenarios/plan_search.hpp"
#include "scenarios/read.hpp"

namespace trainyard::cli {

/// What `trainyard plan` is to plan: a job on a cluster, its own layout of no interest.
struct PlanInput {
  scenarios::ReadResult read;  // with mistakes: nothing else is valid
  std::string job;
  std::optional<scenarios::MeasuredPoint> measured;
  std::string note;  // what of the machine was chosen, for the report
  bool searches = false;
};

/// A catalog model on servers of --server and a fabric without oversubscription, or a scenario, in
/// which --gpus, --batch and --sequence replace what the job says. Throws UsageError.
PlanInput read_plan_input(const Parsed& args);

/// Values of options: above 0.
double positive(const Parsed& args, const std::string& option, double otherwise);
int whole(const Parsed& args, const std::string& option, int otherwise);

}  // namespace trainyard::cli
