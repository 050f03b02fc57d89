#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/training/ledger.hpp"
#include "models/training/step_profile.hpp"
#include "sim/id.hpp"
#include "sim/time.hpp"

/// How far a job is, between events, in exact integers. Several snapshots can be restorable at once
/// (one in host memory, an older one on a store), so all time ever spent in steps that is not lost
/// lies in a chain of boxes, divided by snapshots:
///
///     | since the beginning |s0| 2 h of work |s1| 40 min |s2| 3 min, 12 s of a step under way
///                               restore(s1): the last two boxes are lost, s2 is void
///                               forget_before(s1): the first two boxes become one, s0 is void
///
/// A step counts at its end. Between events, steps are done at the rate 1/step. A new profile in
/// the middle of a step carries the fraction that is done: what is left takes left * new / old,
/// rounded up. Going back loses the step that is under way. The end of the run is no failure: end()
/// keeps everything.
///
///     Progress p(8);                        // GPUs
///     p.set_profile(one_second);
///     p.advance(10s);
///     const SnapshotId s = p.snapshot();    // only at the end of a step
///     p.advance(2500ms);                    // steps() == 12
///     p.restore(s);                         // steps() == 10; returns 2.5 s of work
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

/// The state of training at one instant. They count up and are never used again.
using SnapshotId = Id<struct SnapshotTag>;

class Progress {
 public:
  explicit Progress(std::int64_t gpus);

  /// The profile from now on. It must outlive its use.
  void set_profile(const StepProfile& profile);
  /// Of a job that shrinks or grows, in the middle of a step too: time counts for as many GPUs as
  /// there are while it passes.
  void set_gpus(std::int64_t gpus);
  void advance(Duration d);

  /// Complete steps since the beginning of training, lost ones not counted.
  std::int64_t steps() const { return steps_; }
  bool is_between_steps() const { return done_of_step_ == Duration::zero(); }
  /// Two clocks that never go back: all time, all complete steps, lost ones too. Intervals between
  /// saves are differences of these.
  Duration trained() const { return trained_; }
  /// Training time that is not lost now, the step under way included.
  Duration time() const;
  std::int64_t trained_steps() const { return trained_steps_; }
  /// When `n` more steps will be complete, if the profile stays.
  Duration time_to(std::int64_t n) const;
  /// Steps until the first end of a step at which `missing` more training time has passed; 0: now
  /// is one (between steps, nothing missing).
  std::int64_t steps_to(Duration missing) const;
  /// Time of the step under way, which no snapshot contains.
  Duration done_of_step() const { return done_of_step_; }
  /// What the last complete step took; zero before the first.
  Duration last_step() const { return last_step_; }

  SnapshotId snapshot();
  /// Steps that were complete at a snapshot to which training can go back.
  std::int64_t steps_at(SnapshotId snapshot) const;
  /// Back to a snapshot, or to the beginning of training. Everything after it is lost and returned;
  /// later snapshots are void.
  Work restore(std::optional<SnapshotId> to);
  /// Training will never go back to a snapshot before this one, except to the beginning.
  void forget_before(SnapshotId oldest);
  /// No failure can take anything any more.
  void end();

  /// What is certain: empty before end(), everything after it.
  const Work& kept() const { return kept_; }
  /// All that is not lost now.
  Work total() const;

 private:
  struct Box {
    SnapshotId since;  // of the first box: none, the beginning
    Work work;
  };
  std::size_t box_since(SnapshotId snapshot) const;

  std::int64_t gpus_;
  const StepProfile* profile_ = nullptr;
  Duration left_{};          // of the step under way, under the profile; 1 .. step
  Duration done_of_step_{};  // time spent in it so far
  Duration last_step_{};
  Duration trained_{};
  std::int64_t trained_steps_ = 0;
  std::int64_t steps_ = 0;
  std::size_t snapshots_ = 0;      // ever taken
  std::vector<Box> boxes_{Box{}};  // oldest first, never empty
  Work kept_;
};

}  // namespace trainyard::models
