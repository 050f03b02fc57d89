#pragma once

#include <string>

#include "analysis/trace_writer.hpp"
#include "models/training/step_model.hpp"

namespace trainyard::cli {

/// One step as a Chrome trace: a thread for each pipeline stage with its passes, one below it for
/// parameters and gradients on the network, the power of the job as a counter.
analysis::Trace step_trace(const std::string& job, const models::StepTimeline& timeline,
                           const models::StepProfile& profile);

}  // namespace trainyard::cli
