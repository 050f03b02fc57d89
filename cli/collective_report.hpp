#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "scenarios/collective_sweep.hpp"

namespace trainyard::cli {

/// A sweep as a table, with the limiting links and the notes of its rows below.
std::string collective_text(const std::string& scenario, const scenarios::SweepResult& result,
                            const Terminal& terminal);

/// The object of `trainyard collective --json`: SI base units, the unit as a suffix of the key.
std::string collective_json(const std::string& scenario, const scenarios::SweepResult& result);

/// One line a row, columns named as in JSON; notes are left out.
std::string collective_csv(const scenarios::SweepResult& result);

}  // namespace trainyard::cli
