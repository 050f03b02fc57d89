#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/storage/data_spec.hpp"
#include "models/training/checkpoint_spec.hpp"
#include "models/training/parallel_spec.hpp"
#include "models/training/transformer_spec.hpp"
#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

/// What happens between detection and the first new step.
struct RestartSpec {
  Duration replace = std::chrono::seconds(60);  // diagnose, evict, swap in a warm spare
  Duration start_up =
      std::chrono::seconds(300);          // scheduler, containers, communicators, first compilation
  bool load = true;                       // read the newest checkpoint
  Duration start_up_per_1000_gpus{};      // added to start_up
  std::optional<Duration> in_place = {};  // instead of start_up, if the servers stay the same
  DelaySpec diagnosis{};                  // before anybody is replaced
  double misdiagnosis =
      0;  // share of diagnoses that miss the broken server: it fails again at once
  Duration watchdog = std::chrono::minutes(10);  // without a path for so long, the job stops and
                                                 // lets servers off the network go
};

template <class Visitor>
void describe(Visitor& v, RestartSpec& s) {
  v.optional("replace", s.replace, "time to evict and swap in a spare server", at_least(0));
  v.optional("start_up", s.start_up, "time to start processes and communicators, without loading",
             at_least(0));
  v.optional("load", s.load, "load the newest checkpoint at a restart");
  v.optional("start_up_per_1000_gpus", s.start_up_per_1000_gpus,
             "start-up that grows with the job: added to start_up", at_least(0));
  v.optional("in_place", s.in_place, "start-up if no server changed; default: as start_up",
             at_least(0));
  v.optional("diagnosis", s.diagnosis, "time to find out which server is broken");
  v.optional("misdiagnosis", s.misdiagnosis,
             "share of diagnoses that miss the broken server, so that the job fails again",
             between(0, 0.95));
  v.optional("watchdog", s.watchdog,
             "time without a network path after which the job stops and lets servers go", above(0));
}

/// Going on with fewer replicas when servers are missing.
struct ElasticSpec {
  bool enabled = false;
  int min_data = 1;                                  // replicas below which it waits
  Duration patience{};                               // wait so long for servers before shrinking
  Duration regrow_after = std::chrono::minutes(10);  // servers must be at hand for so long
};

template <class Visitor>
void describe(Visitor& v, ElasticSpec& s) {
  v.optional("enabled", s.enabled,
             "go on with fewer replicas (and sequences a step) when servers are missing");
  v.optional("min_data", s.min_data, "replicas below which the job waits", at_least(1));
  v.optional("patience", s.patience, "how long it waits for servers before it shrinks",
             at_least(0));
  v.optional("regrow_after", s.regrow_after,
             "it grows back at the next save once servers are at hand for so long", at_least(0));
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
  ElasticSpec elastic;
  std::optional<DataSpec> data;  // none: batches are always there
  int priority = 0;              // a higher job may take servers of preemptible lower ones
  bool preemptible = false;
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
  v.optional("elastic", s.elastic, "going on with fewer replicas when servers are missing");
  v.optional("data", s.data, "where batches come from; default: they are always there");
  v.optional("priority", s.priority, "a higher job may take servers of preemptible lower ones");
  v.optional("preemptible", s.preemptible,
             "servers may be taken away for a job of higher priority");
}

}  // namespace trainyard::models
