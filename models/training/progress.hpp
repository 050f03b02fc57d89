#pragma once

#include <cstdint>

#include "models/training/ledger.hpp"
#include "models/training/step_profile.hpp"
#include "sim/time.hpp"

/// How far a job is, between events, in exact integers. Three boxes hold all the time ever spent in
/// steps:
///
///     pending  --snapshot()-->  saving  --keep()-->  kept          interrupt(): pending and saving
///     are lost
///
/// A step counts at its end. Between events, steps are done at the rate 1/step. A new profile in
/// the middle of a step carries the fraction that is done: what is left takes left * new / old,
/// rounded up. An interruption loses the step that is under way. The end of the run is no failure:
/// end() keeps everything.
///
///     Progress p(8);                        // GPUs
///     p.set_profile(one_second);
///     p.advance(10'500ms);                  // 10 steps and a half: steps() == 10
///     p.snapshot(); ... p.keep();           // only at the end of a step; kept().steps == 10
///     p.interrupt();                        // back to 10; what came after is lost
namespace trainyard::models {

/// Time spent in steps and what came of it.
struct Work {
  Ledger ledger;           // by part of a step
  Duration time{};         // of the job, not times GPUs
  std::int64_t steps = 0;  // complete ones
  double tokens = 0;
  double model_flops = 0;
  double hardware_flops = 0;

  void add(const Work& other);
};

class Progress {
 public:
  explicit Progress(std::int64_t gpus) : gpus_(gpus) {}

  /// The profile from now on. It must outlive its use.
  void set_profile(const StepProfile& profile);
  void advance(Duration d);

  /// Complete steps since the beginning of training, lost ones not counted.
  std::int64_t steps() const { return kept_.steps + saving_.steps + pending_.steps; }
  bool is_between_steps() const { return done_of_step_ == Duration::zero(); }
  /// Training time since the last snapshot, or since training went on after an interruption.
  Duration since_snapshot() const { return pending_.time; }
  /// When `n` more steps will be complete, if the profile stays.
  Duration time_to(std::int64_t n) const;
  /// Steps until the first end of a step at which `interval` has passed since the snapshot; 0: now
  /// is one.
  std::int64_t steps_to(Duration interval) const;
  /// The end of the last complete step was already a full step late for a snapshot each `interval`.
  bool is_overdue(Duration interval) const {
    return pending_.time - done_of_step_ - last_step_ >= interval;
  }

  void snapshot();
  void keep();
  /// Returns what is lost: everything since the last snapshot that was kept.
  Work interrupt();
  void end();

  const Work& kept() const { return kept_; }
  /// Time of the step under way, which no snapshot contains.
  Duration done_of_step() const { return done_of_step_; }

 private:
  std::int64_t gpus_;
  const StepProfile* profile_ = nullptr;
  Duration left_{};          // of the step under way, under the profile; 1 .. step
  Duration done_of_step_{};  // time spent in it so far
  Duration last_step_{};     // what the last complete step took
  Work pending_, saving_, kept_;
};

}  // namespace trainyard::models
