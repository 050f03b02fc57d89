#pragma once

#include <optional>

#include "models/facility/gpu_lump.hpp"
#include "sim/time.hpp"

/// A cohort of equal accelerators that are loaded and cooled alike, in time: one lump of heat
/// (gpu_lump.hpp) that steps exactly to the present.
///
///     C dT/dt = P(T) - (T - T_in) / R     per device; energy in = heat out + C (T - T_start)
///
/// While the regulator holds the die at its temperature nothing cycles and nothing happens. The
/// hardware slow-down does cycle; from its first beginning on power and clock are means over whole
/// periods, and no more events come until an input changes.
///
///     GpuCooling gpus(spec, spec.air.capacity, 32, load, now);   // at rest
///     gpus.advance(now);
///     gpus.set(hotter);                     // inlet, flow, cap, activity: at an event
///     if (auto t = gpus.next_event()) …     // limit crossed, or power or clock moved by 1 %
///
/// In normal running no transient is worth an event: `GpuPower::operating_point` is the same state
/// at rest, and a cohort is within e^-10 of it at `settled_at()`, ten time constants after the last
/// change. Page: docs/models/gpu-power.md.
namespace trainyard::models {

class GpuCooling {
 public:
  /// Devices, each of `capacity` J/K, at rest under `load`.
  GpuCooling(const GpuPowerSpec& spec, double capacity, double count, const GpuLoad& load,
             Time now);

  void advance(Time now);
  /// From now on.
  void set(const GpuLoad& load);
  /// Devices that turned themselves off run again, as hot as they are.
  void restart();
  /// The temperature of a cohort that was elsewhere before, degrees Celsius: its heat came along.
  void set_temperature(double temperature);
  /// `count` devices leave for a cohort of their own, with their state and their share of the
  /// energy.
  GpuCooling split(double count);

  /// The next crossing of a limit, or the moment when power or clock will have moved by 1 % since
  /// they were last told (at a crossing or a change of load). At that time it has happened.
  std::optional<Time> next_event() const;
  /// Ten time constants after the last change of load; never without flow.
  Time settled_at() const;

  const GpuLoad& load() const { return load_; }
  double count() const { return count_; }
  double temperature() const { return state_.temperature; }  // of the die, degrees Celsius
  double memory_temperature() const;
  /// Clock, power of one device, what limits it; means over a period of the slow-down.
  OperatingPoint point() const;
  Watts power() const { return point().power * count_; }  // of all
  bool is_off() const { return state_.is_off; }
  /// Once the slow-down has begun and will go on for ever.
  const std::optional<GpuCycle>& cycle() const { return cycle_; }

  /// Of all devices, since the start.
  Joules energy() const { return Joules(energy_J_ * count_); }
  Joules heat() const { return Joules(heat_J_ * count_); }       // to the coolant
  Joules stored() const { return Joules(stored_J() * count_); }  // in the dies, since the start

 private:
  double stored_J() const { return capacity_ * (state_.temperature - start_temperature_); }

  GpuPowerSpec spec_;
  double capacity_;
  double count_;
  GpuLoad load_;
  GpuLump lump_;
  GpuLump::State state_;
  std::optional<GpuCycle> cycle_;
  Time now_;
  Time changed_;
  double start_temperature_;
  double energy_J_ = 0;  // of one device
  double heat_J_ = 0;
};

}  // namespace trainyard::models
