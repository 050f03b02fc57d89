#include "scenarios/study_run.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "scenarios/run.hpp"
#include "scenarios/run_json.hpp"
#include "scenarios/stage.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

constexpr std::size_t failures_told = 5;

/// A thread stays on its stage; one that needs another takes the one with the most work left that
/// the fewest threads are on.
class BlocksOfShard final : public StudyWork {
 public:
  BlocksOfShard(const StudyBlocks& all, std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b) {
      if (stages_.empty() || stages_.back().stage != all.blocks[b].stage)
        stages_.push_back({all.blocks[b].stage, b, b});
      ++stages_.back().end;
    }
  }

  std::optional<std::size_t> next(std::optional<std::size_t> stage) override {
    const std::lock_guard lock(mutex_);
    Left* best = nullptr;
    for (Left& left : stages_) {
      if (left.next == left.end) continue;
      if (stage && left.stage == *stage) return left.next++;
      if (best == nullptr || left.users < best->users ||
          (left.users == best->users && left.end - left.next > best->end - best->next))
        best = &left;
    }
    if (best == nullptr) return std::nullopt;
    ++best->users;
    return best->next++;
  }

 private:
  struct Left {
    std::size_t stage, next, end;
    int users = 0;
  };
  std::mutex mutex_;
  std::vector<Left> stages_;
};

/// One thread's share of the work.
class Worker {
 public:
  Worker(const StudyDesign& design, const StudyBlocks& blocks, const StudyFolder& folder,
         const StudyRunOptions& options, std::mutex& mutex, StudyOutcome& outcome,
         std::atomic<bool>& stop)
      : design_(design),
        blocks_(blocks),
        folder_(folder),
        options_(options),
        mutex_(mutex),
        outcome_(outcome),
        stop_(stop) {}

  void work(StudyWork& source) {
    std::optional<std::size_t> stage;
    while (!stop_) {
      const std::optional<std::size_t> next = source.next(stage);
      if (!next) break;
      const StudyBlock& block = blocks_.blocks[*next];
      if (stage != block.stage) drop_stage();
      stage = block.stage;
      if (block.point)
        run_until_settled(*block.point);
      else
        for (std::size_t i = 0; i < block.runs && !stop_; ++i) {
          const StudyBlocks::Run& run = blocks_.runs[block.first_run + i];
          if (folder_.has(run.point, run.replication))
            note_found();
          else
            run_one(run.point, run.replication);
        }
    }
    drop_stage();
  }

 private:
  void drop_stage() {
    if (!stage_) return;
    const std::lock_guard lock(mutex_);
    outcome_.profiles_computed += stage_->profiles_computed();
    outcome_.profiles_reused += stage_->profiles_reused();
    stage_.reset();
  }

  void note_found() {
    const std::lock_guard lock(mutex_);
    ++outcome_.found;
    report();
  }

  void report() const {
    if (options_.progress) options_.progress(outcome_.done + outcome_.found, outcome_.events);
  }

  void run_until_settled(std::size_t point) {
    std::vector<double> values;
    for (std::size_t r = 0; !stop_ && !is_settled(design_, values); ++r) {
      std::optional<analysis::StudyRun> run = folder_.result(point, r);
      if (run)
        note_found();
      else
        run = run_one(point, r);
      if (run) values.push_back(run->values[design_.precision->metric]);
    }
  }

  RunOptions run_options(std::size_t point, std::size_t replication) const {
    using RunFiles = StudyDesign::RunFiles;
    const StudyDesign::Point& p = design_.points[point];
    RunOptions options;
    options.cancel = options_.cancel;
    options.command_line = options_.command_line;
    options.version = options_.version;
    options.commit = options_.commit;
    options.resolved = p.resolved;
    options.unread_no_effect = p.no_effect;
    if (design_.run_files == RunFiles::all ||
        (design_.run_files == RunFiles::first && replication == 0))
      options.run_file = folder_.run_file(point, replication) + ".part";
    return options;
  }

  /// None: cancelled. A run that fails is a result, too: it would fail again.
  std::optional<analysis::StudyRun> run_one(std::size_t point, std::size_t replication) {
    Scenario scenario = design_.points[point].scenario;
    scenario.seed = design_.seed_of(point, replication);
    const RunOptions options = run_options(point, replication);
    RunResult result;
    std::string before;
    try {
      if (!stage_) stage_ = std::make_unique<Stage>(scenario);
      if (design_.warm_up > Duration::zero()) {
        // The same luck: the first part of the run to come.
        Scenario first = scenario;
        first.duration = design_.warm_up;
        RunOptions of_first;
        of_first.cancel = options_.cancel;
        before = run_json(run(first, *stage_, of_first));
      }
      result = run(scenario, *stage_, options);
    } catch (const CheckFailed& mistake) {
      stage_.reset();  // nobody knows in what state it is
      result.state = RunState::failed;
      result.failure = std::string("this is a mistake in trainyard: ") + mistake.what();
    }
    if (result.state == RunState::cancelled) {
      if (options.run_file) {
        std::error_code ignored;
        std::filesystem::remove(*options.run_file, ignored);
      }
      stop_ = true;
      return std::nullopt;
    }
    result.scenario = scenario.name;
    if (options.run_file && result.state != RunState::failed) {
      result.run_file = folder_.run_file(point, replication);
      std::filesystem::rename(*options.run_file, result.run_file);
    }
    analysis::StudyRun saved = folder_.save(point, replication, run_json(result), before,
                                            options_.version, options_.commit);
    const std::lock_guard lock(mutex_);
    ++outcome_.done;
    outcome_.events += result.events;
    if (result.state == RunState::failed) {
      ++outcome_.failed;
      if (outcome_.failures.size() < failures_told)
        outcome_.failures.push_back("replication " + std::to_string(replication) + " of point " +
                                    std::to_string(point) + ": " + result.failure);
    }
    report();
    return saved;
  }

  const StudyDesign& design_;
  const StudyBlocks& blocks_;
  const StudyFolder& folder_;
  const StudyRunOptions& options_;
  std::mutex& mutex_;  // over the outcome, and progress
  StudyOutcome& outcome_;
  std::atomic<bool>& stop_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace

StudyBlocks::StudyBlocks(const StudyDesign& design) {
  std::vector<std::vector<std::size_t>> points(design.stages);
  for (std::size_t p = 0; p < design.points.size(); ++p)
    points[design.points[p].stage].push_back(p);
  for (std::size_t stage = 0; stage < points.size(); ++stage) {
    if (design.precision) {
      for (const std::size_t p : points[stage]) blocks.push_back({stage, 0, 0, p});
      continue;
    }
    for (std::size_t r = 0; r < design.most; ++r) {
      blocks.push_back({stage, runs.size(), points[stage].size(), std::nullopt});
      for (const std::size_t p : points[stage]) runs.push_back({p, r});
    }
  }
}

std::unique_ptr<StudyWork> work_of_shard(const StudyBlocks& blocks, std::size_t shard,
                                         std::size_t shards) {
  check(shards >= 1 && shard < shards, "a shard is one of all", shard, shards);
  const std::size_t n = blocks.blocks.size();
  return std::make_unique<BlocksOfShard>(blocks, n * shard / shards, n * (shard + 1) / shards);
}

StudyOutcome run_study(const StudyDesign& design, const StudyFolder& folder,
                       const StudyRunOptions& options) {
  const StudyBlocks blocks(design);
  std::unique_ptr<StudyWork> everything;
  StudyWork* work = options.work;
  if (work == nullptr) {
    everything = work_of_shard(blocks, 0, 1);
    work = everything.get();
  }
  StudyOutcome outcome;
  std::mutex mutex;
  std::atomic<bool> stop = false;
  std::exception_ptr failure;
  const auto lane = [&] {
    try {
      Worker(design, blocks, folder, options, mutex, outcome, stop).work(*work);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      stop = true;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 1; t < options.threads; ++t) threads.emplace_back(lane);
    lane();
  }
  if (failure) std::rethrow_exception(failure);
  outcome.is_cancelled = stop;
  return outcome;
}

}  // namespace trainyard::scenarios
