#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/study.hpp"
#include "scenarios/study.hpp"

/// The folder that a study's runs go into:
///
///     study.json               which study this is: its hash says what may be added
///     manifest.jsonl           a line a run: number, parameters, seed, file, state
///     runs/p0012-r0003.json    the result of a run, under this name once it is complete
///     runs/p0012-r0003.h5      its run file, if the study keeps it
///     study.h5, table.csv      all results in one table
///
/// Several processes may work in one folder, each on its own runs: a result is complete or not
/// there.
namespace trainyard::scenarios {

/// A folder that cannot be used: it holds another study, or results that are not to be touched.
struct StudyRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class StudyFolder {
 public:
  /// Makes the folder and its study.json. One that holds results is refused unless `resume`, one of
  /// another study always.
  StudyFolder(const StudyDesign& design, std::string folder, bool resume);

  /// Values of the metrics and what else the merged table has of a run; none: it has not run.
  std::optional<analysis::StudyRun> result(std::size_t point, std::size_t replication) const {
    return result(point, replication, nullptr);
  }
  bool has(std::size_t point, std::size_t replication) const;
  /// `result` is what run_json() gave; `before`, if the study has a warm-up, that of the same run
  /// ended there, else empty.
  analysis::StudyRun save(std::size_t point, std::size_t replication, const std::string& result,
                          const std::string& before, const std::string& version,
                          const std::string& commit) const;
  /// What the run file of this run is called.
  std::string run_file(std::size_t point, std::size_t replication) const;

  /// All results so far, in the order of points and replications; those that are wanted and not
  /// there are "missing".
  analysis::Study merged() const;
  void write_manifest(const analysis::Study& study) const;

  const std::string& path() const { return folder_; }
  std::string table() const { return folder_ + "/study.h5"; }
  std::string csv() const { return folder_ + "/table.csv"; }

 private:
  std::string name_of(std::size_t point, std::size_t replication) const;
  /// What the merged table wants to know of a result beside its figures.
  struct About {
    std::vector<std::string> no_effect;  // settings that the run said did nothing
    std::string build;
  };
  analysis::StudyRun read(const std::string& text, std::size_t point, std::size_t replication,
                          const std::string& file, About* about) const;
  std::optional<analysis::StudyRun> result(std::size_t point, std::size_t replication,
                                           About* about) const;

  const StudyDesign& design_;
  std::string folder_;
};

/// Whether a point has runs enough: as many as the study says, or an interval that is narrow
/// enough. `values` are those of the metric that decides, in the order of replications.
bool is_settled(const StudyDesign& design, const std::vector<double>& values);

}  // namespace trainyard::scenarios
