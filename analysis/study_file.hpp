#pragma once

#include <string>

#include "analysis/study.hpp"

/// The merged table of a study as a file: a run file without events (run_file.hpp), whose tables
/// are
///
///     study/axes     name, path, units, given (1: points are ranked for each of its values)
///     study/metrics  name, of, units, better
///     study/points   for each axis NAME: its label and NAME_value, its number
///     study/runs     point, replication, seed, state, fingerprint, a column a metric
///     study/no_effect  settings that did nothing in any run, with the reason
///     study/ledgers  point, replication, GPU-seconds of the cluster by account
///
/// The same study gives the same bytes, whoever ran its runs, and in whatever order.
namespace trainyard::analysis {

/// Replaces a file of that name only if it is one of ours. Throws RunFileError.
void write_study(const Study& study, const std::string& path, const std::string& version,
                 const std::string& commit);

/// Throws RunFileError: file, object and reason.
Study read_study(const std::string& path);

/// Whether this file can be opened and is a study's.
bool is_study_file(const std::string& path);

/// One line a run: axes, replication, seed, state, metrics. Units are in the head.
std::string study_csv(const Study& study);

}  // namespace trainyard::analysis
