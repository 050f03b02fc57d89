#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace trainyard::scenarios {

/// The scenario as a JSON file that reads back as the same scenario: every default filled in, parts
/// written out in full, quantities with units. Optional values that are not given stay out: they
/// are derived.
std::string write_scenario(const Scenario& scenario);

}  // namespace trainyard::scenarios
