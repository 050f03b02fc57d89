#pragma once

#include <string>

#include "analysis/run_reader.hpp"

namespace trainyard::analysis {

/// Series and summary of a run in the OpenMetrics text format 1.0, which Prometheus imports:
/// gauges with the unit in the name and simulated seconds from `epoch_s` on as timestamps.
///
///     # TYPE trainyard_power_watts gauge
///     # UNIT trainyard_power_watts watts
///     trainyard_power_watts{scenario="quickstart"} 204800 0.000000000
std::string openmetrics_of(const RunReader& run, double epoch_s);

}  // namespace trainyard::analysis
