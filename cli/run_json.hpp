#pragma once

#include <string>

#include "scenarios/run.hpp"

namespace trainyard::cli {

/// The object that `trainyard run --json` prints: SI base units, the unit as a suffix of the key.
/// What is not defined (the mean time between no interruptions) is null. Accounts come twice:
/// `ledger_gpu_s` to compute with, and `ledger_gpu_ns`, the exact integers as decimal text, since
/// their sum passes 2^64.
std::string run_json(const scenarios::RunResult& result);

}  // namespace trainyard::cli
