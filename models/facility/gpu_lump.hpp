#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>

#include "models/facility/gpu_power.hpp"

/// One lump of heat whose power depends on its temperature, in closed form.
///
///     C dT/dt = P(T) - (T - T_in) / R
///
/// P(T) is linear in stretches: leakage alone, constant at a power cap, the lowest clock above it;
/// at the regulator's temperature it falls, and the lump stays there as long as the flow on both
/// sides leads there (a plateau; the clock is what makes heat and cooling equal). On a stretch
///
///     dT/dt = r e^(b t),   b = (slope - 1/R) / C,   T(t) = T + r (e^(bt) - 1) / b
///     T = X at t = ln(1 + b (X - T) / r) / b,   never if the logarithm does not exist
///
/// which holds for b < 0 (settles), b = 0 and b > 0 (runs away) alike. Two states switch with
/// hysteresis: the slow-down of the hardware and that of the memory.
///
///     GpuLump lump(spec, 800, load);
///     GpuLump::Leg leg = lump.leg({.temperature = 25}, 0);
///     double t = leg.end_s;              // until leg.crossing happens
///     lump.cross(state, leg);            // the state just after
///
/// Filippov, "Differential Equations with Discontinuous Righthand Sides", for the plateau.
namespace trainyard::models {

/// A period of the hardware slow-down: off at full clock, on until the hysteresis is passed.
struct GpuCycle {
  double fast_s = 0;
  double slow_s = 0;
  double energy_J = 0;
  double heat_J = 0;
  double kelvin_s = 0;       // time integral of the temperature
  double memory_slow_s = 0;  // with the memory slowed down, too
  double fast_phi = 1;       // at the middle temperature
  double slow_phi = 1;
  double period_s() const { return fast_s + slow_s; }
  double duty() const { return fast_s / period_s(); }
};

class GpuLump {
 public:
  struct State {
    double temperature = 25;
    bool is_slowed = false;
    bool is_memory_slowed = false;
    bool is_off = false;
    double mark = 25;  // temperature when power and clock were last told
  };
  enum class Crossing { none, law, drift, memory, slow_on, slow_off, off };
  enum class Law { free, capped, lowest, plateau, off };

  struct Leg {
    Law law = Law::free;
    double base_W = 0, slope_W_per_K = 0;  // P = base + slope T
    double from = 0;                       // temperature at its start
    double rate = 0, pace = 0;             // dT/dt = rate e^(pace t)
    double end_s = std::numeric_limits<double>::infinity();
    double end = 0;  // temperature at the crossing
    Crossing crossing = Crossing::none;

    double power_W(double temperature) const { return base_W + slope_W_per_K * temperature; }
    double temperature_after(double t) const;
    /// Time integral of the temperature.
    double kelvin_s(double t) const;
    double energy_J(double t) const { return base_W * t + slope_W_per_K * kelvin_s(t); }
    /// Where it settles if nothing is crossed.
    double settled() const { return rate == 0 ? from : from - rate / pace; }
  };

  /// Both must be sound: a capacity above zero, a resistance above zero.
  GpuLump(const GpuPowerSpec& spec, double capacity, const GpuLoad& load);

  /// From this state on. `tolerance`: the leg ends where power or clock have moved by this share
  /// since the mark; 0: it does not.
  Leg leg(const State& state, double tolerance) const;
  /// At the end of the leg.
  void cross(State& state, const Leg& leg) const;
  double heat_J(const Leg& leg, double t) const;

  double phi(const State& state, const Leg& leg, double temperature) const;
  double memory_temperature(const Leg& leg, double temperature) const {
    return temperature + spec_.memory_resistance * leg.power_W(temperature);
  }
  GpuLimit limit(const State& state, const Leg& leg) const;
  bool cap_is_met(const State& state, const Leg& leg) const;
  /// What the slow-down does for ever once it has begun; none: it comes to rest.
  std::optional<GpuCycle> cycle() const;
  OperatingPoint point(const State& state, const Leg& leg, double temperature) const;
  OperatingPoint point(const GpuCycle& cycle) const;
  /// Where a cold device comes to rest.
  OperatingPoint rest() const;
  /// The same as a state. In a cycle: at its hottest moment.
  State rest_state() const;

 private:
  double static_W(double temperature) const {
    return static_W_ + spec_.leakage_slope * (temperature - spec_.reference);
  }
  /// Just above or just below a temperature, with the clock in a slow-down or not.
  Leg law_at(double temperature, bool above, bool is_slowed) const;
  void end_at(Leg& leg, double temperature, Crossing crossing) const;
  void end_at_drift(Leg& leg, const State& state, double tolerance) const;

  GpuPowerSpec spec_;
  GpuLoad load_;
  double capacity_;
  double limit_W_;            // of busy phases
  double static_W_;           // at the reference temperature
  double free_W_, lowest_W_;  // dynamic power of busy phases at the highest and lowest clock
  double lowest_phi_;
  double slow_factor_;           // of dynamic power in a slow-down
  std::array<double, 3> bends_;  // temperatures at which the law changes, ascending
  std::size_t bend_count_ = 0;
};

}  // namespace trainyard::models
