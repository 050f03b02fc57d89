#pragma once

#include <string>

#include "scenarios/run.hpp"

namespace trainyard::scenarios {

/// The object that `trainyard run --json` prints: SI base units, the unit as a suffix of the key.
/// What is not defined (the mean time between no interruptions) is null. Accounts come twice:
/// `ledger_gpu_s` to compute with, and `ledger_gpu_ns`, the exact integers as decimal text, since
/// their sum passes 2^64.
std::string run_json(const RunResult& result);

/// An object with the keys that the result of this scenario will have, to look names of figures up
/// in before the run.
std::string shape_of_run_json(const Scenario& scenario);

}  // namespace trainyard::scenarios
