#pragma once

#include <string>

#include "models/compute/gpu_spec.hpp"
#include "sim/describe.hpp"
#include "sim/units.hpp"

/// Plain inputs for the power, clock and temperature of one accelerator. The defaults are those of
/// an H100-class board. Where no source is named, the figure is a typical one, not a published
/// one. What they mean: docs/models/gpu-power.md.
namespace trainyard::models {

/// What carries the heat of one device away.
struct GpuCoolerSpec {
  /// K/W from the inlet (air of the server, liquid of the cold plate) to the die, at design flow.
  /// Typical: 0.065 for an air sink at full fan speed, 0.04 to 0.10.
  double resistance = 0.065;
  /// J/K of die, lid and sink. Typical: with 0.065 K/W a time constant of 52 s; a public log of a
  /// V100 server shows the plateau within 60 s.
  double capacity = 800;
  /// Part of the resistance that no flow changes: die, paste, base of the sink. Typical.
  double conduction = 0.5;
  /// The rest goes with flow^-n; 0.8 is the law of Dittus and Boelter for turbulent flow.
  double flow_exponent = 0.8;
};

template <class Visitor>
void describe(Visitor& v, GpuCoolerSpec& s) {
  v.optional("resistance", s.resistance, "from inlet to die at design flow, K/W",
             between(0.001, 10));
  v.optional("capacity", s.capacity, "heat capacity of die and sink, J/K", between(1, 1e5));
  v.optional("conduction", s.conduction, "share of the resistance that does not depend on the flow",
             between(0, 1));
  v.optional("flow_exponent", s.flow_exponent, "the rest goes with the flow to minus this",
             between(0.1, 2));
}

struct GpuPowerSpec {
  std::string name;
  /// Board without the leakage of the die. A reading in NVIDIA's power-capping manual is 64.4 W for
  /// an idle H100; typical 64 to 75.
  Watts idle{70};
  Watts leakage{70};                   // at `reference`; typical for a 5 nm die at 700 W
  double reference = 60;               // degrees Celsius
  double leakage_slope = 2;            // W/K; typical 1 to 4
  Watts dynamic{560};                  // at full activity and clock: 700 W in all at `reference`
  double exponent = 2;                 // of the clock in dynamic power; typical 1.3 to 3
  Watts power_limit{700};              // of the board: NVIDIA H100 data sheet
  double lowest_clock = 0.15;          // of the highest; 210 of 1410 MHz on an A100 (nvidia-smi)
  double communicating = 110.0 / 560;  // activity in a collective: 250 W at `reference`
  double compute_bound = 0.85;  // share of kernel time that follows the clock; typical 0.6 to 1

  /// The driver lowers the clock to hold the die at `regulator_temperature`. NVIDIA reports the
  /// margin to it; an idle H100 at 30 degrees with a margin of 56 K gives 86 to 88.
  bool regulator = true;
  double regulator_temperature = 87;
  /// At `slowdown_temperature` the hardware multiplies the clock by `slowdown_clock` until the die
  /// is `hysteresis` cooler. NVML: clocks are reduced by a factor of 2 or more; NVIDIA NVSentinel
  /// watches a margin of -2 K.
  double slowdown_temperature = 89;
  double slowdown_clock = 0.5;
  double hysteresis = 5;        // K; typical
  double off_temperature = 95;  // margin of -8 K on Hopper; V100 and A100: typical 90 to 92

  /// HBM has a limit of its own that the die temperature does not show. Typical: 95 degrees, 5 to
  /// 15 K above the die at full power.
  double memory_temperature = 95;
  double memory_resistance = 0.010;  // K/W above the die, with the power of the board
  double memory_clock = 0.5;         // of its bandwidth while it is too hot; typical

  GpuCoolerSpec air{};
  /// Typical: 0.025 to 0.035 K/W, 300 J/K: a time constant of 8 to 10 s.
  GpuCoolerSpec cold_plate{0.030, 300, 0.5, 0.8};
};

template <class Visitor>
void describe(Visitor& v, GpuPowerSpec& s) {
  v.optional("name", s.name, "name shown in reports");
  v.optional("idle", s.idle, "board power when idle, without leakage", at_least(0));
  v.optional("leakage", s.leakage, "leakage power at the reference temperature", at_least(0));
  v.optional("reference", s.reference, "reference temperature of the die, degrees Celsius",
             between(0, 120));
  v.optional("leakage_slope", s.leakage_slope, "leakage power per kelvin, W/K", between(0, 50));
  v.optional("dynamic", s.dynamic, "dynamic power at full activity and clock", at_least(0));
  v.optional("exponent", s.exponent, "exponent of the clock in dynamic power", between(1, 4));
  v.optional("power_limit", s.power_limit, "power limit of the board", above(0));
  v.optional("lowest_clock", s.lowest_clock, "lowest clock over the highest", between(0.01, 1));
  v.optional("communicating", s.communicating, "activity while in a collective", between(0, 1));
  v.optional("compute_bound", s.compute_bound, "share of kernel time that follows the clock",
             between(0, 1));
  v.optional("regulator", s.regulator, "the driver holds the die at regulator_temperature");
  v.optional("regulator_temperature", s.regulator_temperature,
             "temperature of the die held by lower clocks, degrees Celsius", between(30, 150));
  v.optional("slowdown_temperature", s.slowdown_temperature,
             "die temperature at which the hardware slows down, degrees Celsius", between(30, 150));
  v.optional("slowdown_clock", s.slowdown_clock, "clock factor of the hardware slow-down",
             between(0.01, 1));
  v.optional("hysteresis", s.hysteresis, "the slow-down ends this much below its start, K",
             between(0.01, 50));
  v.optional("off_temperature", s.off_temperature,
             "die temperature at which the device turns itself off, degrees Celsius",
             between(30, 200));
  v.optional("memory_temperature", s.memory_temperature,
             "memory temperature above which its bandwidth is reduced, degrees Celsius",
             between(30, 150));
  v.optional("memory_resistance", s.memory_resistance,
             "memory above the die for each watt of the board, K/W", between(0, 1));
  v.optional("memory_clock", s.memory_clock, "bandwidth factor while the memory is too hot",
             between(0.01, 1));
  v.optional("air", s.air, "cooled by air");
  v.optional("cold_plate", s.cold_plate, "cooled by a cold plate");
  v.check(s.idle + s.leakage >= Watts(s.leakage_slope * s.reference), "leakage_slope",
          "a device at 0 degrees Celsius still draws power: idle + leakage must be at least "
          "leakage_slope * reference");
  v.check(!s.regulator || s.regulator_temperature < s.slowdown_temperature, "regulator_temperature",
          "must be below slowdown_temperature");
  v.check(s.slowdown_temperature < s.off_temperature, "slowdown_temperature",
          "must be below off_temperature");
}

/// What a data sheet says, as inputs of this model: `power_idle` is that of a die at 25 degrees, a
/// tenth of `power_max` leaks at 60 degrees (nothing at 25), and a collective and full activity at
/// 60 degrees draw what the sheet says. For an H100 SXM these are the defaults above.
GpuPowerSpec gpu_power_of(const GpuSpec& gpu);

}  // namespace trainyard::models
