#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/failures/failure_clocks.hpp"
#include "models/scheduling/servers.hpp"
#include "models/storage/store_spec.hpp"
#include "models/training/checkpoint_spec.hpp"
#include "models/training/job_spec.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// The run level alone: a job with a step of fixed length on a pool of servers that fail. What
/// published figures of reliability need: failures, restart, saves in, share of useful time out.
///
///     profile + GPUs + how it saves + what a restart takes
///         -> mean over seeds of  effective time = time in kept steps / wall time
///            and its 99 % interval, 2.58 standard errors to each side
///
/// Nothing is computed in closed form: the job, the pool, the failure clocks and the store are
/// those of every other run (models/training/job.hpp). A step of fixed length stands for the step
/// level, since these figures are ratios of times.
///
///     ReliabilityRun run;
///     run.gpus = 16384;
///     run.failures = *failures_of("rsc-1");
///     run.checkpoint = saves_every(60min, 0s);
///     run.restart = {.replace = 0s, .start_up = 5min, .load = false};
///     estimate(run, 40).effective.mean;                                 // 0.714
///
/// Terms: docs/models/reliability.md; the closed form: kokolis_ettr
/// (models/training/checkpoints.hpp).
namespace trainyard::scenarios {

struct ReliabilityRun {
  std::int64_t gpus = 0;
  std::int64_t gpus_per_server = 8;
  std::optional<std::int64_t> spares = {};  // default: enough that nobody waits for a repair
  models::FailureInputs failures;
  models::CheckpointSpec checkpoint;  // levels on a store: of the name in saves_every()
  Bytes checkpoint_size{1e12};
  models::StoreSpec store{.write_rate = BytesPerSecond(1e15),
                          .read_rate = BytesPerSecond(1e15),
                          .client_rate = BytesPerSecond(1e15)};
  models::RestartSpec restart;
  Duration duration = std::chrono::hours(24 * 30);
  Duration step = std::chrono::seconds(10);
};

/// Of one seed.
struct ReliabilityOutcome {
  double effective = 0;            // time in kept steps / wall time from the first start
  std::int64_t interruptions = 0;  // unplanned
  double wall_s = 0;
  std::int64_t planned = 0;
  std::map<std::string, std::int64_t> by_class;
  std::vector<std::int64_t> failures_of_server;  // of its own parts
  double down_server_s = 0;                      // sum over servers of the time in repair
  std::int64_t servers = 0;                      // spares included
  std::vector<double> at_s;                      // when the job was struck
};
ReliabilityOutcome run_once(const ReliabilityRun& run, std::uint64_t seed);

struct MeanWithInterval {
  double mean = 0;
  double half_width = 0;  // of the 99 % interval
};
/// Of values that are independent and alike; two or more.
MeanWithInterval mean_of(const std::vector<double>& values);

struct ReliabilityEstimate {
  MeanWithInterval effective;
  /// Wall time over interruptions, of all seeds together; interval of a Poisson count.
  MeanWithInterval between_interruptions_s;
  MeanWithInterval interruptions;        // of one run
  std::vector<ReliabilityOutcome> runs;  // of seeds 1, 2, ...
};
ReliabilityEstimate estimate(const ReliabilityRun& run, int seeds);

/// The classes and lemons of a part of kind "failures"; none if the catalog has no such part.
std::optional<models::FailureInputs> failures_of(std::string_view profile);

/// One class that strikes servers at a published rate (per 1000 servers and day), found at once.
models::FailureInputs server_failures(double per_1000_server_days);
/// The same so that a job of `servers` servers is struck once in `mean` on average.
models::FailureInputs failures_every(Duration mean, std::int64_t servers);

/// Saves to a store without limit: training stops for `stall` and the checkpoint is good from then
/// on.
models::CheckpointSpec saves_every(Duration interval, Duration stall);

}  // namespace trainyard::scenarios
