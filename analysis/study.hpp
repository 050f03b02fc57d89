#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a study found, as plain data: the merged table of all its runs. Written as HDF5 and CSV,
/// read back by whoever compares or shows studies (study_file.hpp).
///
///     for (const StudyRun& run : study.runs)
///       std::cout << study.name_of_point(run.point) << ": " << run.values[0] << '\n';
namespace trainyard::analysis {

/// What is varied.
struct StudyAxis {
  std::string name;
  std::string path;   // of the scenario; empty: each value changes several settings
  std::string units;  // of the numbers; "1": pure numbers, empty: there are none
  /// Nobody chooses it, such as a scale that is given: points are ranked for each of its values.
  bool is_given = false;
  friend bool operator==(const StudyAxis&, const StudyAxis&) = default;
};

enum class Better : std::uint8_t { neither, higher, lower };
constexpr std::string_view name_of(Better b) {
  constexpr std::string_view names[] = {"neither", "higher", "lower"};
  return names[static_cast<std::size_t>(b)];
}
std::optional<Better> better_named(std::string_view name);

/// What is measured.
struct StudyMetric {
  std::string name;
  std::string of;     // "jobs.llama.goodput", or products and quotients of such figures
  std::string units;  // UDUNITS spelling; "1": a pure number
  Better better = Better::neither;
  friend bool operator==(const StudyMetric&, const StudyMetric&) = default;
};

/// One design: a value of every axis.
struct StudyPoint {
  std::vector<std::string> labels;  // by axis, as written in the study
  std::vector<double> numbers;      // by axis, in its units; not a number: the value is none
};

struct StudyRun {
  std::size_t point = 0;
  std::size_t replication = 0;
  std::uint64_t seed = 0;
  std::string state;  // "complete", "failed"; "missing": it has not run
  std::string fingerprint;
  std::vector<double> values;        // by metric; not a number: not defined in this run
  std::vector<double> ledger_gpu_s;  // of the cluster, by account
  bool is_complete() const { return state == "complete"; }
};

struct Study {
  std::string name;
  std::string description;
  std::string question;
  std::string hash;  // of all that decides what is run
  std::string base;  // the scenario without any axis, as JSON
  bool common_random_numbers = true;
  double confidence = 0.95;
  std::vector<StudyAxis> axes;
  std::vector<StudyMetric> metrics;
  std::vector<std::string> accounts;  // of the ledger
  std::vector<StudyPoint> points;
  std::vector<StudyRun> runs;  // by point, then replication
  /// Settings that did nothing in any complete run, as runs tell it: "path: reason".
  std::vector<std::string> no_effect;
  std::string builds;  // that made the results: "0.1.0 f67c8a0", separated by commas

  /// "topology fat-tree, oversubscription 4"; "as it is" without axes.
  std::string name_of_point(std::size_t point) const;
  /// Of the axes that are given, or of the others; may be empty.
  std::string name_of_part(std::size_t point, bool is_given) const;
  std::size_t axis(std::string_view name) const;    // axes.size(): there is none
  std::size_t metric(std::string_view name) const;  // metrics.size(): there is none
};

}  // namespace trainyard::analysis
