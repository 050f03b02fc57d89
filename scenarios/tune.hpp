#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/paired_statistics.hpp"
#include "scenarios/scenario.hpp"
#include "sim/time.hpp"

/// How often to save, and how many spares to keep: goodput by simulation with common random
/// numbers (replicate.hpp), with what theory says beside it.
///
///     CheckpointTune t = tune_checkpoint(scenario, {.job = "llama"});
///     t.points[t.best].interval_s         the interval with the highest mean goodput
///     t.points[i].ranked.is_tied          cannot be told from it (paired_statistics.hpp)
///     t.optimum->low, ->high              interval of the top of a parabola in log(interval)
///     t.exact_s                           M (1 + W0(-e^(-1 - C/M)))
///
/// Replications are added until the paired differences that matter are known to `precision`, or
/// `most` are reached. Page: docs/guide/tune.md.
namespace trainyard::scenarios {

/// The scenario has nothing to tune, or options do not fit it: what was found, what would be right.
struct TuneRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct TuneOptions {
  std::string job;           // default: the only one
  std::size_t most = 20;     // replications of a point
  double precision = 0.001;  // half width of a paired difference of goodput
  double confidence = 0.95;
  int threads = 1;  // the result does not depend on it
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(double done, Time simulated, std::uint64_t events)> progress;
};

/// Where the wall time of a job goes besides kept steps, in shares of it.
struct Losses {
  double save = 0;       // training stands still for saves
  double lost = 0;       // steps that failures made void
  double detection = 0;  // broken, and nobody knows
  double restart = 0;    // diagnose, replace, start up, load
  double waiting = 0;    // for servers
  double other = 0;      // without network path; servers that it lacked
};

struct IntervalPoint {
  double interval_s = 0;
  bool is_now = false;  // what the scenario has
  analysis::Ranked ranked;
  Losses losses;
  double saves = 0;       // of one run
  double saves_lost = 0;  // of them, interrupted
  double interruptions = 0;
  double theory = 0;  // goodput by the exponential model, models::expected_efficiency
};

struct CheckpointTuneOptions {
  TuneOptions common;
  std::string level;                 // default: the one on a store, or the only one
  std::vector<Duration> intervals;   // default: a grid
  std::optional<Duration> from, to;  // of the grid; default: a quarter and four times the optimum
  std::size_t points = 11;
};

struct CheckpointTune {
  std::string job, level;
  std::int64_t gpus = 0;
  double simulated_s = 0;  // of one run
  std::uint64_t seed = 0;
  double confidence = 0;
  std::size_t replications = 0, runs = 0;
  bool is_precise = false;  // `precision` was reached
  bool is_cancelled = false;
  std::vector<IntervalPoint> points;  // ascending
  std::size_t best = 0;
  std::optional<std::size_t> now;
  // Measured in the runs, for the formulas.
  double step_s = 0, save_s = 0, mtbi_s = 0, recovery_s = 0;
  double young_s = 0, daly_s = 0, exact_s = 0;
  double young_goodput = 0, daly_goodput = 0, exact_goodput = 0;  // by the formula
  std::optional<analysis::Optimum> optimum;  // in seconds; of the points near the best
  std::vector<std::string> notes;
};

/// The scenario must have passed check_scenario(). Throws TuneRefused.
CheckpointTune tune_checkpoint(const Scenario& scenario, const CheckpointTuneOptions& options);

struct SparesPoint {
  int spares = 0;
  int crews = 0;  // 0: one for every broken server
  bool is_now = false;
  analysis::Ranked ranked;
  Losses losses;
  double of_all_gpus = 0;   // kept GPU time over that of the whole cluster, spares included
  double down_servers = 0;  // on average
  double interruptions = 0;
};

struct SparesTuneOptions {
  TuneOptions common;
  std::vector<int> spares;  // default: from none to more than the binomial rule
  std::vector<int> crews;   // default: the scenario's
};

/// Of one number of crews.
struct SparesVerdict {
  int crews = 0;
  /// Fewest spares that cannot be told from the most, the difference known to half a point.
  int suffice = 0;
  int best_of_all_gpus = 0;  // spares with the most kept time for all GPUs that are there
  double down_servers = 0;   // on average, with the most spares
  std::int64_t p99 = 0;      // 99th percentile of Binomial(servers, share that is down)
};

struct SparesTune {
  std::string job;
  std::int64_t gpus = 0;
  int working_servers = 0;  // of all jobs
  double simulated_s = 0;
  std::uint64_t seed = 0;
  double confidence = 0;
  std::size_t replications = 0, runs = 0;
  bool is_precise = false;
  bool is_cancelled = false;
  std::vector<SparesPoint> points;  // by crews, then spares, ascending
  std::size_t best = 0;
  std::vector<SparesVerdict> verdicts;
  std::vector<std::string> notes;
};

/// The cluster has as many servers as all jobs together, and the spares: both change together.
SparesTune tune_spares(const Scenario& scenario, const SparesTuneOptions& options);

}  // namespace trainyard::scenarios
