#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "models/failures/failure_clocks.hpp"
#include "sim/recorder.hpp"
#include "sim/time.hpp"
#include "topologies/fabric.hpp"

/// What a job writes down of its life, and what it sums up at the end.
namespace trainyard::models {

enum class JobState : std::uint8_t {
  queued,
  starting,
  loading,
  training,
  saving,
  detecting,
  diagnosing,
  replacing,
  waiting,
  rerouting,
  cut_off,
  done
};
std::string_view name_of(JobState state);

/// A stretch of the job's life in one state under one profile.
struct SegmentRow {
  Time start, end;
  JobState state = JobState::queued;
  std::uint32_t profile = 0;  // of Job::profiles(), when training
  std::int64_t steps = 0;     // completed in it, whatever became of them later
  std::int64_t servers = 0;   // held at its end
};

/// How long each phase of a recovery took, the job standing still.
struct RecoveryPhases {
  Duration detection{}, diagnosis{}, replace{}, waiting{}, start_up{}, load{};
};

/// A failure that struck servers of the job, or another reason to stop.
struct InterruptionRow {
  Time when;
  const FailureClass* cls = nullptr;  // null: preempted, or given up by the watchdog
  std::string why;                    // name of the class, "preempted", "cut off"
  Effect effect = Effect::crash;
  std::string unit;           // what failed
  topologies::HostId server;  // the first that was struck
  std::int64_t servers = 1;
  std::optional<Time> found;    // somebody knows
  std::optional<Time> resumed;  // training goes on without it
  std::int64_t lost_steps = 0;  // made void by it
  Duration lost_time{};         // time of the job spent in them, and in the step under way
  RecoveryPhases phases;  // of a recovery that several share: with the one that stopped the job
  std::string restored_level;  // where training went on from; empty: from the beginning, or not yet
  std::int64_t restored_step = 0;
  sim::EventIndex event;
};

/// A stretch in which steps waited for their batch.
struct DataWaitRow {
  Time start, end;
  double share = 0;   // of the step
  std::string limit;  // what limits the supply, and who is in the way
};

struct JobStats {
  std::string state;     // "running", "done", "waiting: ...", "stalled: ..."
  Duration queued{};     // submission to first start
  Duration wall{};       // first start to end
  Duration step_time{};  // spent in steps that were kept
  Duration lost_time{};  // spent in steps that were not
  std::int64_t steps_kept = 0;
  double step_s = 0;                                       // mean of the complete kept steps
  double tokens = 0, model_flops = 0, hardware_flops = 0;  // of complete kept steps
  double goodput = 0;                                      // step_time / wall
  double ettr = 0;                                         // step_time / (queued + wall)
  std::int64_t interruptions = 0;  // unplanned: without maintenance and preemption
  std::int64_t planned = 0;        // maintenance and preemption
  double mtbi_s = 0;               // wall / interruptions; 0 if none
  std::map<std::string, std::int64_t> interruptions_by_class;  // unplanned
  std::map<std::string, std::int64_t> planned_by_class;
  std::map<std::string, std::int64_t> restores_by_level;  // "": from the beginning
  std::int64_t checkpoints = 0;                           // complete
  std::int64_t saves_lost = 0;                            // interrupted
  std::int64_t saves_late = 0;     // waited for the one before them: saves pile up
  std::int64_t saves_refused = 0;  // the store was full
  std::int64_t reroutes = 0;       // times that traffic of the job moved to other paths
  std::int64_t cuts = 0;           // times that it had no path
  std::int64_t watchdogs = 0;      // times that it gave servers without a path up
  std::int64_t misdiagnoses = 0;
  std::int64_t idle_strikes = 0;  // of servers that a shrunk job held and did not use
  std::int64_t shrinks = 0;       // times that it went on with fewer replicas
  Duration shrunk{};              // time spent so
  double data_wait = 0;           // share of the time in kept steps spent waiting for batches
  std::string data_limit;         // what limited the supply for the longest time
  std::string last_cut;           // who had none the last time, and which failed links cut it
};

}  // namespace trainyard::models
