#pragma once

#include <vector>

#include "models/training/step_profile.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/world.hpp"
#include "sim/recorder.hpp"

/// Power of all servers and switches as a step function of time, and its integral: exact, since
/// between two events nothing changes (never sampled).
///
///     training       mean power of the step profile         saving, loading, detecting    GPUs as
///     in a collective starting, replacing, waiting, idle servers            GPUs idle servers that
///     are down                                 nothing
///
/// The rest of a server draws its `power_overhead` whenever the server is up; the switches always
/// draw theirs.
namespace trainyard::scenarios {

class PowerMeter {
 public:
  PowerMeter(const Scenario& scenario, World& world, Watts switches, sim::Recorder& recorder);

  /// Call after every event, before time moves on: from now on the cluster draws what its state
  /// says.
  void observe(Time now);
  /// Up to the last observe().
  Joules energy() const { return energy_; }
  Watts power() const { return power_; }
  /// Of servers, without switches: those that belong to no job, then each job's.
  const std::vector<Watts>& powers() const { return powers_; }

 private:
  Watts present();

  const Scenario& scenario_;
  World& world_;
  Watts switches_;
  sim::Recorder& recorder_;
  sim::SeriesId series_;
  Time since_{};
  Watts power_{};
  std::vector<Watts> powers_;
  Joules energy_{};
  bool is_first_ = true;
};

}  // namespace trainyard::scenarios
