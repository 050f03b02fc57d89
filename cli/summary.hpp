#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "scenarios/run.hpp"

namespace trainyard::cli {

/// What a run says at its end, for people: what was asked, the answer for each job, where the time
/// of all GPUs went, what to be careful about, where the file is. Figures are rounded to what a
/// fluid model can claim.
std::string summary(const scenarios::RunResult& result, const Terminal& terminal);

/// Name of an account as a person would say it: "pipeline bubble".
std::string_view spoken(models::Account account);

}  // namespace trainyard::cli
