#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/read.hpp"

namespace trainyard::scenarios {

/// What only the parts know of a scenario that reads well: the fabric can be cabled, every job's
/// layout is possible and fits in memory. In the order of the file. Empty: the scenario can run.
std::vector<Diagnostic> check_scenario(const ReadResult& read);

/// read_scenario() and check_scenario(): what every command starts with. All mistakes are in
/// `diagnostics`.
ReadResult load_scenario(const std::filesystem::path& file,
                         const std::vector<std::string>& overrides = {});

/// Bytes of all saves that may be on a store at once: one more than a level keeps while the newest
/// is written, and two more while saves are verified.
Bytes saves_at_most(const Scenario& scenario, const std::string& store);

/// What should be read before the results are believed: memory close to its limit, counts that hide
/// something.
std::vector<std::string> scenario_warnings(const Scenario& scenario);

}  // namespace trainyard::scenarios
