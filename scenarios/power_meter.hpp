#pragma once

#include <optional>
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
/// With a facility the power of servers is what the plant says: warm GPUs leak, slow ones draw
/// less, racks without feed draw nothing; the site draws the losses and the cooling beside it.
///
/// The rest of a server draws its `power_overhead` whenever the server is up; the switches always
/// draw theirs.
namespace trainyard::scenarios {

/// What the switches of a fabric draw, whatever they carry.
Watts power_of_switches(const topologies::Fabric& fabric);

class PowerMeter {
 public:
  PowerMeter(const Scenario& scenario, World& world, Watts switches, sim::Recorder& recorder);

  /// Call after every event, before time moves on: from now on the cluster draws what its state
  /// says.
  void observe(Time now);
  /// Up to the last observe().
  Joules energy() const { return energy_; }
  Watts power() const { return power_; }
  /// With losses and cooling, if there is a facility.
  Watts site() const { return site_; }
  Joules switch_energy() const { return switch_energy_; }
  Watts site_peak() const { return site_peak_; }
  Time site_peak_at() const { return site_peak_at_; }
  /// Of servers, without switches: those that belong to no job, then each job's.
  const std::vector<Watts>& powers() const { return powers_; }

 private:
  Watts present();
  Watts of_states();

  const Scenario& scenario_;
  World& world_;
  Watts switches_;
  sim::Recorder& recorder_;
  sim::SeriesId series_;
  Time since_{};
  Watts power_{}, site_{}, site_peak_{};
  Time site_peak_at_{};
  Joules switch_energy_{};
  std::optional<sim::SeriesId> site_series_ = {};
  std::vector<Watts> powers_;
  Joules energy_{};
  bool is_first_ = true;
};

}  // namespace trainyard::scenarios
