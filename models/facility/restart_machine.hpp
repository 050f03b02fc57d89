#pragma once

#include <optional>

#include "models/facility/restart_spec.hpp"
#include "sim/random.hpp"
#include "sim/time.hpp"

/// What a chiller, a pump or a fan does when power comes back: it does not simply run.
///
///     power back -> controls boot -> flow is proven -> not before `anti_recycle` after the last
///     stop -> start, which may fail -> ramp in steps -> full
///
/// After `attempts` starts that failed one after another it locks out and waits for a person to
/// reset it. That is what turned voltage sags of a second into hours without cooling (public
/// post-incident reviews: Azure Australia East, August 2023; Alibaba Cloud Hong Kong, December
/// 2022).
///
///     RestartMachine chiller(spec, engine.random("cooling/chiller-1"));
///     chiller.set_fed(sag, false);  chiller.set_fed(sag + 1s, true);
///     while (auto t = chiller.next_event()) chiller.advance(*t);
///     chiller.share();                                // 1, or 0 and state() == State::locked
///
/// Passive, and without a clock of its own: every call says when it is.
namespace trainyard::models {

class RestartMachine {
 public:
  enum class State { off, booting, waiting, ramping, running, locked, failed };

  /// Runs at the start, at full capacity.
  RestartMachine(const UnitRestartSpec& spec, sim::Stream luck) : spec_(spec), luck_(luck) {}

  void advance(Time now);
  void set_fed(Time now, bool is_fed);
  /// Pumps run and prove flow. Without flow it stops, which counts as no failed start.
  void set_ready(Time now, bool is_ready);
  /// Protection stops it; counts as a failed start.
  void trip(Time now);
  /// Out of order until restore(); then it starts like after a loss of power.
  void fail(Time now);
  void restore(Time now);
  /// As a group control does with units that were sound.
  void lock(Time now);
  /// A person frees it: it may start at once.
  void reset(Time now);

  std::optional<Time> next_event() const { return next_; }
  State state() const { return state_; }
  /// Of its capacity.
  double share() const;
  int failed_starts() const { return failed_starts_; }

 private:
  void stop(Time now, State state);
  void wait(Time now);
  void try_start(Time now);

  UnitRestartSpec spec_;
  sim::Stream luck_;
  State state_ = State::running;
  bool is_fed_ = true;
  bool is_ready_ = true;
  int failed_starts_ = 0;
  int step_ = 0;
  std::optional<Time> stopped_;  // no start before anti_recycle after it
  std::optional<Time> next_;
};

}  // namespace trainyard::models
