#pragma once

#include <string>
#include <vector>

#include "analysis/table.hpp"

/// Ledgers for reports: where the GPU time went, largest first.
namespace trainyard::analysis {

struct Share {
  std::string account;
  GpuNanoseconds gpu_ns = 0;
  double gpu_s = 0.0;
  double share = 0.0;  // of the total; 0 for all if the total is 0
  friend bool operator==(const Share&, const Share&) = default;
};

struct Breakdown {
  std::vector<Share> shares;  // descending; equal ones in the ledger's order
  GpuNanoseconds total = 0;   // exact
};

/// From a table with the columns of ledger_table(). Throws RunFileError if it has others.
Breakdown breakdown(const Table& ledger);

/// All digits: "76441190400000000000".
std::string text_of(GpuNanoseconds amount);

}  // namespace trainyard::analysis
