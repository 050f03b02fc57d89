#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/training/parallel_spec.hpp"
#include "models/training/transformer_spec.hpp"
#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

enum class SaveMode { synchronous, asynchronous };

/// How a job saves. Synchronous: training stops until the store has everything. Asynchronous:
/// training stops for `stall` (device-to-host copy), the rest drains behind it; the checkpoint
/// counts when the drain is complete.
struct CheckpointSpec {
  bool enabled = true;
  Duration interval = std::chrono::hours(1);  // training time between saves
  SaveMode mode = SaveMode::asynchronous;
  std::string store;                    // name under storage
  std::optional<Bytes> size;            // default: from the model (bytes_per_parameter)
  double bytes_per_parameter = 14;      // 2 BF16 weights + 12 FP32 master weights and Adam moments
  std::optional<Duration> stall;        // asynchronous; default: GPU state / host_copy_rate
  BytesPerSecond host_copy_rate{10e9};  // device to host, per GPU
};

template <class Visitor>
void describe(Visitor& v, CheckpointSpec& s) {
  v.optional("enabled", s.enabled, "false: never saves; a failure loses everything");
  v.optional("interval", s.interval, "training time between saves", above(0));
  v.optional("mode", s.mode,
             "synchronous: training stops for the whole save; asynchronous: for the copy to host "
             "memory only");
  v.optional("store", s.store, "store that holds the checkpoints, by its name under storage");
  v.optional("size", s.size, "bytes of one checkpoint; default: parameters * bytes_per_parameter",
             above(0));
  v.optional("bytes_per_parameter", s.bytes_per_parameter,
             "weights and optimizer state in a checkpoint, bytes per parameter", above(0));
  v.optional("stall", s.stall,
             "asynchronous: how long training stops; default: bytes per GPU / host_copy_rate",
             at_least(0));
  v.optional("host_copy_rate", s.host_copy_rate, "device to host copy of one GPU", above(0));
  v.check(!s.enabled || !s.store.empty(), "store",
          "name a store under storage, or set enabled to false");
  v.check(s.mode == SaveMode::asynchronous || !s.stall, "stall",
          "only an asynchronous save has a stall; remove it or set mode to \"asynchronous\"");
}

/// What happens between detection and the first new step.
struct RestartSpec {
  Duration replace = std::chrono::seconds(60);  // diagnose, evict, swap in a warm spare
  Duration start_up =
      std::chrono::seconds(300);  // scheduler, containers, communicators, first compilation
  bool load = true;               // read the newest checkpoint from the store
};

template <class Visitor>
void describe(Visitor& v, RestartSpec& s) {
  v.optional("replace", s.replace, "time to diagnose, evict and swap in a spare server",
             at_least(0));
  v.optional("start_up", s.start_up, "time to start processes and communicators, without loading",
             at_least(0));
  v.optional("load", s.load, "load the newest checkpoint from the store at a restart");
}

struct JobSpec {
  TransformerSpec model;
  int gpus = 0;
  int global_batch = 0;  // sequences a step
  int sequence = 0;      // tokens
  ParallelSpec parallel;
  SoftwareSpec software;
  Mechanisms mechanisms;  // all on; not read from scenarios
  CheckpointSpec checkpoint;
  RestartSpec restart;
  Duration start{};  // when it is submitted
  std::optional<std::int64_t>
      steps;  // stop after these; default: runs to the end of the simulation
  std::optional<Duration> measured_step;  // a measured step of this job: scales compute to meet it
};

template <class Visitor>
void describe(Visitor& v, JobSpec& s) {
  v.part("model", s.model, "model", "the network that is trained");
  v.required("gpus", s.gpus, "GPUs of the job", at_least(1));
  v.required("global_batch", s.global_batch, "sequences of one step, over all replicas",
             at_least(1));
  v.required("sequence", s.sequence, "tokens of one sequence", at_least(1));
  v.optional("parallel", s.parallel, "how the step is spread over GPUs");
  v.part("software", s.software, "software", "training software stack");
  v.optional("checkpoint", s.checkpoint, "how and how often the job saves");
  v.optional("restart", s.restart, "what a restart takes");
  v.optional("start", s.start, "when the job is submitted", at_least(0));
  v.optional("steps", s.steps, "stop after this many steps; default: run to the end", at_least(1));
  v.optional("measured_step", s.measured_step,
             "measured time of one step of this very job: compute is scaled to meet it", above(0));
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::SaveMode> {
  static constexpr auto all =
      names<models::SaveMode>({{models::SaveMode::synchronous, "synchronous"},
                               {models::SaveMode::asynchronous, "asynchronous"}});
};
}  // namespace trainyard
