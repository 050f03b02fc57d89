#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/explain_chain.hpp"
#include "analysis/explain_levers.hpp"
#include "analysis/explain_rows.hpp"

/// Why a job did not train all the time, from the rows of its run file alone: what cost most, and
/// what would help.
///
///     const CauseLog log(run);
///     const Explanation why = explain(run, "llama", log);
///     why.goodput;                  // 0.923
///     why.outside.front();          // {"restarts", 191'000 s, 0.041}
///     why.levers.front();           // {"halve start-up", …, 2.0 points}
///
/// Every second between the first start and the end is in exactly one place. With the segments of
/// the job and the lost work of its interruptions:
///
///     wall = training + saves + detection + restarts + waiting + without network
///     kept = training - lost work          goodput = kept / wall
///
/// so the shares in `outside` add up to 1 - goodput. What makes kept steps longer (a slow member, a
/// failed link, waiting for data) is not in them: goodput counts a slow step as a step. Those costs
/// stand beside it, as shares of the same wall time.
///
/// GPU-hours are times multiplied by the GPUs of the job.
namespace trainyard::analysis {

struct TimeShare {
  std::string name;
  double s = 0;
  double share = 0;  // of the wall time
};

struct ClassCost {
  std::string cls;
  std::string effect;  // "" if the file does not say; the most frequent one
  std::int64_t count = 0;
  double detection_s = 0;
  double lost_s = 0;
  double restart_s = 0;
  double waiting_s = 0;  // for servers, or without network
  double slow_s = 0;     // slower steps until it was found
  double total_s() const { return detection_s + lost_s + restart_s + waiting_s + slow_s; }
};

struct ServerCost {
  std::string server;
  std::int64_t count = 0;
  double s = 0;
};

/// Steps under one profile that take longer than under the best one, waiting for data not counted.
struct SlowSteps {
  std::int64_t profile = 0;
  std::int64_t steps = 0;
  std::int64_t first_ns = 0;
  double excess_s = 0;  // of one step
  double s = 0;         // of all of them
  std::string part;     // what grew most: "exposed_dp"
  double part_s = 0;    // by how much, in one step
  std::string cause;
};

struct DataWaitCost {
  std::string limit;  // "read bandwidth of scratch; neighbour etl takes 71 %"
  std::int64_t first_ns = 0;
  double training_s = 0;  // under this limit
  double s = 0;           // of it spent waiting
};

struct StoreCost {
  std::string store;
  std::string user;
  bool is_write = false;
  bool is_neighbour = false;
  std::int64_t uses = 0;
  double s = 0;
  double bytes = 0;
};

struct RepairCost {
  std::int64_t count = 0;
  double down_s = 0;    // from failure to return, sum of those that returned
  double waited_s = 0;  // of it for a crew
};

struct Explanation {
  JobRows rows;
  double queued_s = 0;  // before the first start: not part of the wall time
  double wall_s = 0;
  double training_s = 0;
  double kept_s = 0;
  double goodput = 0;
  std::vector<TimeShare> outside;     // of kept steps; most first
  std::vector<ClassCost> classes;     // this and all below: most first
  std::vector<ServerCost> offenders;  // servers with two interruptions or more
  std::vector<SlowSteps> slow_steps;
  std::vector<DataWaitCost> data_waits;
  double data_wait_s = 0;
  std::vector<SaveCost> saves;  // by level
  std::vector<StoreCost> stores;
  RepairCost repairs;
  std::vector<Lever> levers;
  std::vector<std::string> notes;  // what the file lacks, what does not add up

  double gpu_hours(double s) const { return s * static_cast<double>(rows.gpus) / 3600; }
  double share(double s) const { return wall_s > 0 ? s / wall_s : 0; }
};

/// Throws RunFileError if a table of the file does not add up.
Explanation explain(const RunReader& run, const std::string& job, const CauseLog& log);

/// Of a state of the job: "restarts"; empty for training and for "done".
std::string account_of_state(const std::string& state);

}  // namespace trainyard::analysis
