#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "scenarios/validate.hpp"

namespace trainyard::cli {

/// Errors by group, and what was not used and why.
std::string validation_text(const scenarios::ValidationReport& report, const Terminal& terminal);

/// The object of `trainyard validate --json`.
std::string validation_json(const scenarios::ValidationReport& report);

/// Every prediction beside its published figure; columns with units in their names.
std::string validation_csv(const scenarios::ValidationReport& report);

}  // namespace trainyard::cli
