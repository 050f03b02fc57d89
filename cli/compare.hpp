#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/paired_statistics.hpp"
#include "analysis/study.hpp"
#include "cli/terminal.hpp"

/// Two runs or two studies beside each other: settings that differ, metrics with the difference and
/// its interval, where the GPU time went.
namespace trainyard::cli {

/// One side: a run, a study, or one point of a study.
struct CompareSide {
  std::string name;      // as the user named it
  std::string what;      // "a run of quickstart, seed 1", "20 runs: interval 5 min, spares 0"
  std::string scenario;  // as JSON, every default filled in; of a study: without its axes
  std::optional<std::size_t> point;  // of the study, if only one is meant
  analysis::Study study;             // of a run: one point with one run
};

/// Reads a run file, a study's folder or table, or FOLDER@POINT. Throws Failure.
CompareSide read_side(const std::string& argument);

/// A setting that is not the same on both sides; empty: it is not there.
struct Difference {
  std::string path, a, b;
};

struct ComparedMetric {
  analysis::StudyMetric metric;
  double a = 0, b = 0;                // means over the runs that are compared
  analysis::MeanInterval difference;  // b - a, of pairs of equal luck where there are any
  bool is_paired = false;
  std::size_t n_a = 0, n_b = 0;
  std::string verdict;  // "b is higher", "cannot be told apart", …
};

struct ComparedAccount {
  std::string account;
  double a = 0, b = 0;  // shares of all GPU time
};

struct Comparison {
  CompareSide a, b;
  double confidence = 0.95;
  std::vector<Difference> settings;
  std::vector<ComparedMetric> metrics;
  std::vector<ComparedAccount> ledger;
  std::vector<std::string> notes;
};

Comparison compare(CompareSide a, CompareSide b);

std::string compare_text(const Comparison& comparison, const Terminal& terminal);
/// {"schema":…, "settings":…, "ledger":…, METRIC: {a, b, difference, low, high, verdict, …}}
std::string compare_json(const Comparison& comparison);

}  // namespace trainyard::cli
