#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/training/ledger.hpp"
#include "scenarios/run.hpp"
#include "scenarios/stage.hpp"

/// Many runs of variants of one scenario with common random numbers: replication r of every variant
/// has the seed base + r, so that what one variant does better is seen on equal luck.
///
///     Replicator runs({scenario}, {.job = "llama", .seed = 1, .threads = 2});
///     runs.add({as_it_is, 0});  runs.add({with_longer_intervals, 0});
///     runs.run_to(10);
///     runs.of(1)[3].goodput            // of the second variant, with the seed base + 3
///
/// Each thread has its own Stage, which all its runs use one after the other. What a run gives does
/// not depend on the stage's past, so nothing depends on the number of threads.
namespace trainyard::scenarios {

/// What a run says about one job.
struct Replication {
  double goodput = 0;   // time in kept steps / wall time
  double wall_s = 0;    // first start to end
  double step_s = 0;    // of kept steps
  double up_share = 0;  // kept GPU time / GPU time of the whole cluster
  double interruptions = 0;
  double saves = 0;                              // begun: complete or lost
  double saves_lost = 0;                         // interrupted
  double down_servers = 0;                       // of the cluster, on average
  std::array<double, models::accounts> share{};  // of wall time times GPUs, by account
  bool is_failed = false;                        // it stalled
  double events = 0;
};

/// Of the job called `job`.
Replication replication_of(const RunResult& result, const std::string& job);

struct ReplicateOptions {
  std::string job;
  std::uint64_t seed = 1;  // of replication 0
  int threads = 1;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(std::size_t runs_done, Time simulated, std::uint64_t events)> progress;
};

class Replicator {
 public:
  struct Variant {
    Scenario scenario;
    std::size_t stage = 0;  // which stage it runs on
  };
  /// One stage for each of these scenarios, and thread.
  Replicator(std::vector<Scenario> stages, ReplicateOptions options);
  ~Replicator();
  Replicator(const Replicator&) = delete;
  Replicator& operator=(const Replicator&) = delete;

  /// Before the next run_to(); returns its number.
  std::size_t add(Variant variant);
  /// Runs what is missing until every variant has `replications`. False: cancelled.
  bool run_to(std::size_t replications);

  /// Those to come have the stages as they are.
  void forget_variants() {
    variants_.clear();
    done_.clear();
  }

  std::size_t variants() const { return variants_.size(); }
  const std::vector<Replication>& of(std::size_t variant) const { return done_[variant]; }
  /// One figure of every replication.
  template <class F>
  std::vector<double> values(std::size_t variant, F&& f) const {
    std::vector<double> out;
    for (const Replication& r : done_[variant]) out.push_back(f(r));
    return out;
  }
  std::vector<double> goodputs(std::size_t variant) const {
    return values(variant, [](const Replication& r) { return r.goodput; });
  }
  std::size_t runs() const { return runs_; }
  std::uint64_t events() const { return events_; }

 private:
  std::vector<Scenario> stage_scenarios_;
  ReplicateOptions options_;
  std::vector<std::vector<std::unique_ptr<Stage>>> stages_;  // [thread][stage], made when needed
  std::vector<Variant> variants_;
  std::vector<std::vector<Replication>> done_;
  std::size_t runs_ = 0;
  double simulated_s_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace trainyard::scenarios
