#pragma once

#include "analysis/run_reader.hpp"
#include "analysis/trace_writer.hpp"

/// A run as a Chrome trace (JSON object format), which ui.perfetto.dev and chrome://tracing open:
/// jobs with their states as slices, saves under them, interruptions and what the event log has of
/// them as instants, series as counters. Times are microseconds of simulated time.
///
///     const Trace trace = trace_of(run, {.from_ns = 0, .to_ns = 86'400'000'000'000});
///     write_maybe_gzip("run.json.gz", trace.json);
namespace trainyard::analysis {

Trace trace_of(const RunReader& run, const TraceOptions& options);

}  // namespace trainyard::analysis
