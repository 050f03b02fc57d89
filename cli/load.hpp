#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/read.hpp"

namespace trainyard::cli {

/// Reads and checks a scenario; mistakes are printed on stderr, and the result is then empty (exit
/// status 2).
std::optional<scenarios::ReadResult> load_or_complain(const std::string& file,
                                                      const std::vector<std::string>& overrides);

/// Name of a scenario: its own, else the file's without folder and ending.
std::string name_of_scenario(const scenarios::Scenario& scenario, const std::string& file);

}  // namespace trainyard::cli
