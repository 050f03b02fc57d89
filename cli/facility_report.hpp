#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "scenarios/facility_report.hpp"

namespace trainyard::cli {

/// The plant at rest: power, ratings, single losses, shared parents, swing of training.
std::string facility_text(const scenarios::FacilityReport& report, const Terminal& terminal);

/// The object of `trainyard facility --json`: SI base units, the unit as a suffix of the key.
std::string facility_json(const scenarios::FacilityReport& report);

}  // namespace trainyard::cli
