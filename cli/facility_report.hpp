#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "scenarios/facility_report.hpp"

namespace trainyard::cli {

/// Asked of a part of the cooling plant over what it can do: above this nothing of it runs.
inline constexpr double nothing_left = 1e3;

/// The plant at rest: power, ratings, single losses, shared parents, swing of training.
std::string facility_text(const scenarios::FacilityReport& report, const Terminal& terminal);

/// The object of `trainyard facility --json`: SI base units, the unit as a suffix of the key.
std::string facility_json(const scenarios::FacilityReport& report);

}  // namespace trainyard::cli
