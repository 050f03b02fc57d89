#include "cli/load.hpp"

#include <filesystem>
#include <iostream>

#include "scenarios/check.hpp"

namespace trainyard::cli {

std::optional<scenarios::ReadResult> load_or_complain(const std::string& file,
                                                      const std::vector<std::string>& overrides) {
  scenarios::ReadResult read = scenarios::load_scenario(file, overrides);
  if (read.ok()) return read;
  std::cerr << to_text(read.diagnostics);
  return std::nullopt;
}

std::string name_of_scenario(const scenarios::Scenario& scenario, const std::string& file) {
  return scenario.name.empty() ? std::filesystem::path(file).stem().string() : scenario.name;
}

}  // namespace trainyard::cli
