#pragma once

#include <string>
#include <vector>

#include "analysis/run_reader.hpp"

namespace trainyard::analysis {

/// Writes events, series, tables and the summary of a run as CSV files (RFC 4180: comma, CRLF,
/// quotes where needed) into `folder`, laid out as in the run file: log/events.csv,
/// series/NAME.csv, jobs/llm/ledger.csv, summary.csv. The first line names each column with its
/// unit in brackets; reals have 17 digits, so that they read back the same. Returns the paths
/// written, relative to `folder`.
std::vector<std::string> export_csv(const RunReader& run, const std::string& folder);

/// One field, quoted if it must be.
std::string csv_field(const std::string& text);

}  // namespace trainyard::analysis
