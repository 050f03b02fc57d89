#pragma once

#include <string>
#include <vector>

#include "scenarios/diagnostic.hpp"

namespace trainyard::cli {

/// docs/validation.md from a directory of published tables (*.csv), notes.md and carry.json.
/// Throws UsageError if it holds no table of training runs.
std::string validation_page_of(const std::string& directory,
                               std::vector<scenarios::Diagnostic>& mistakes);

}  // namespace trainyard::cli
