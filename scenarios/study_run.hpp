#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/study.hpp"
#include "scenarios/study_folder.hpp"

/// Runs a study: what is missing of its results, on all threads.
///
///     StudyFolder folder(design, "out", resume);
///     StudyOutcome out = run_study(design, folder, {.threads = 2});
///     folder.merged()                  // does not depend on threads, shards or interruptions
///
/// Work is dealt in blocks: one replication of all points of a stage, so that runs that meet the
/// same failures share what a stage knows; or one point, if replications are added until they
/// suffice. Each thread has one stage at a time and stays on it as long as there is work for it.
namespace trainyard::scenarios {

struct StudyBlock {
  std::size_t stage = 0;
  std::size_t first_run = 0;  // in StudyBlocks::runs
  std::size_t runs = 0;
  std::optional<std::size_t> point;  // all runs of it, as many as it takes
};

/// All blocks of a study, in an order that is the same everywhere.
struct StudyBlocks {
  struct Run {
    std::size_t point, replication;
  };
  explicit StudyBlocks(const StudyDesign& design);
  std::vector<StudyBlock> blocks;  // by stage
  std::vector<Run> runs;
};

/// Hands out blocks. Called by several threads.
class StudyWork {
 public:
  virtual ~StudyWork() = default;
  /// A block that nobody else gets; of `stage` if there is one left.
  virtual std::optional<std::size_t> next(std::optional<std::size_t> stage) = 0;
};

/// The blocks of one of `shards` processes: a contiguous piece of all.
std::unique_ptr<StudyWork> work_of_shard(const StudyBlocks& blocks, std::size_t shard,
                                         std::size_t shards);

struct StudyRunOptions {
  int threads = 1;
  StudyWork* work = nullptr;  // default: all blocks
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(std::size_t runs_done, std::uint64_t events)> progress = {};
  std::string command_line = {}, version = {}, commit = {};
};

struct StudyOutcome {
  std::size_t done = 0;    // ran now
  std::size_t found = 0;   // were there already
  std::size_t failed = 0;  // of those that ran now
  bool is_cancelled = false;
  std::uint64_t events = 0;
  std::uint64_t profiles_computed = 0, profiles_reused = 0;
  std::vector<std::string> failures;  // the first few, in words
};

StudyOutcome run_study(const StudyDesign& design, const StudyFolder& folder,
                       const StudyRunOptions& options);

}  // namespace trainyard::scenarios
