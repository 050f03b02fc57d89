#include "models/facility/gpu_power.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace trainyard::models {
namespace {

using namespace literals;

/// 120 W that do not depend on temperature, 700 W at full clock.
GpuPowerSpec plain() {
  GpuPowerSpec spec;
  spec.idle = 120_W;
  spec.leakage = 0_W;
  spec.leakage_slope = 0;
  spec.dynamic = 580_W;
  return spec;
}

/// Notes the keys whose value or rule is broken.
struct Rules {
  std::vector<std::string> broken = {};
  template <class T>
  void optional(const char* key, T& member, const char*, Range range = {}) {
    double value = range.low;
    if constexpr (std::is_arithmetic_v<T>)
      value = double(member);
    else if constexpr (requires { member.value(); })
      value = member.value();
    else if constexpr (requires { describe(*this, member); })
      describe(*this, member);
    if (value < range.low || value > range.high) broken.push_back(key);
  }
  void check(bool holds, const char* key, const char*) {
    if (!holds) broken.push_back(key);
  }
};

std::vector<std::string> broken(GpuPowerSpec spec) {
  Rules rules;
  describe(rules, spec);
  return rules.broken;
}

TEST(GpuPowerSpec, Rules) {
  using Keys = std::vector<std::string>;
  EXPECT_EQ(broken({}), Keys());
  EXPECT_EQ(broken(plain()), Keys());
  GpuPowerSpec spec;
  spec.leakage_slope = 140.0 / 60 + 1e-9;
  EXPECT_EQ(broken(spec), Keys{"leakage_slope"});
  spec = {};
  spec.regulator_temperature = 89;
  EXPECT_EQ(broken(spec), Keys{"regulator_temperature"});
  spec.regulator = false;
  EXPECT_EQ(broken(spec), Keys());
  spec.slowdown_temperature = 95;
  EXPECT_EQ(broken(spec), Keys{"slowdown_temperature"});
  spec = {};
  spec.air.capacity = 0;
  EXPECT_EQ(broken(spec), Keys{"capacity"});
}

TEST(GpuPower, LeakageFixedPoint) {
  GpuPowerSpec spec;
  spec.idle = 0_W;
  spec.leakage = 80_W;
  spec.leakage_slope = 1.5;
  spec.dynamic = 580_W;
  const LeakagePoint p = GpuPower(spec).settled(1, 1, 30, 0.065);
  EXPECT_FALSE(p.runs_away);
  EXPECT_NEAR(p.temperature, 74.2936, 5e-5);
  EXPECT_NEAR(p.power.value(), 681.440, 5e-4);
  // The same at rest, below every limit.
  const OperatingPoint o = GpuPower(spec).operating_point(1, 30, 0.065);
  EXPECT_NEAR(o.temperature, p.temperature, 1e-9);
  EXPECT_EQ(o.limit, GpuLimit::none);
  EXPECT_EQ(o.phi, 1);
  EXPECT_FALSE(o.can_run_away);
}

TEST(GpuPower, RunsAwayWhenALeakedKelvinMakesAnother) {
  const GpuPower gpu{GpuPowerSpec{}};  // 2 W/K
  EXPECT_FALSE(gpu.settled(0, 1, 25, 0.4999).runs_away);
  EXPECT_TRUE(gpu.settled(0, 1, 25, 0.5).runs_away);
  EXPECT_TRUE(std::isinf(gpu.settled(0, 1, 25, 0.5).temperature));
  // Busy: the regulator, the lowest clock, the slow-down, none can hold it.
  const OperatingPoint p = gpu.operating_point(1, 25, 0.5);
  EXPECT_TRUE(p.can_run_away);
  EXPECT_EQ(p.limit, GpuLimit::shutdown);
  EXPECT_EQ(p.power, 0_W);
  EXPECT_EQ(p.temperature, 25);
}

TEST(GpuPower, RegulatorHoldsTheDie) {
  // (87 - 45) / 0.065 = 646.154 W; sqrt(526.154 / 580) = 0.95245.
  OperatingPoint p = GpuPower(plain()).operating_point(1, 45, 0.065);
  EXPECT_EQ(p.limit, GpuLimit::regulator);
  EXPECT_NEAR(p.power.value(), 646.154, 5e-4);
  EXPECT_NEAR(p.phi, 0.95245, 5e-6);
  EXPECT_EQ(p.temperature, 87);
  // With leakage, 140 + 2 * 27 = 194 W of the same are static: sqrt(452.154 / 560).
  p = GpuPower(GpuPowerSpec{}).operating_point(1, 45, 0.065);
  EXPECT_NEAR(p.power.value(), 646.154, 5e-4);
  EXPECT_NEAR(p.phi, std::sqrt(452.153846 / 560), 1e-8);
}

TEST(GpuPower, CapLowersTheClock) {
  const GpuPower gpu(plain());
  for (const auto& [cap, phi] :
       {std::pair{600_W, 0.9097}, std::pair{500_W, 0.8094}, std::pair{400_W, 0.6948}}) {
    const OperatingPoint p = gpu.operating_point(1, 25, 0.065, cap);
    EXPECT_EQ(p.limit, GpuLimit::cap);
    EXPECT_NEAR(p.phi, phi, 5e-5);
    EXPECT_NEAR(p.power.value(), cap.value(), 1e-9);
    EXPECT_NEAR(gpu.phi_at(cap, 1, 60), phi, 5e-5);
    EXPECT_TRUE(p.cap_is_met);
  }
  EXPECT_EQ(gpu.operating_point(1, 25, 0.065, 700_W).limit, GpuLimit::none);  // just at it
  // 120 + 580 * 0.15^2 = 133.05 W is the least that a busy device draws.
  const OperatingPoint low = gpu.operating_point(1, 25, 0.065, 133_W);
  EXPECT_FALSE(low.cap_is_met);
  EXPECT_EQ(low.phi, 0.15);
  EXPECT_NEAR(low.power.value(), 133.05, 1e-9);
  EXPECT_TRUE(gpu.operating_point(1, 25, 0.065, 134_W).cap_is_met);
}

TEST(GpuPower, PublishedLossAtACapLiesBetweenExponents) {
  // 600 W of 700 is said to cost 10 to 15 %; a = 2 gives 9 % of the clock, a = 1.4 12.6 %.
  GpuPowerSpec spec = plain();
  EXPECT_NEAR(1 - GpuPower(spec).operating_point(1, 25, 0.065, 600_W).phi, 0.0903, 5e-5);
  spec.exponent = 1.4;
  EXPECT_NEAR(1 - GpuPower(spec).operating_point(1, 25, 0.065, 600_W).phi, 0.1264, 5e-5);
}

TEST(GpuPower, WarmerAfternoonAtTheBoardLimit) {
  // d ln phi = slope dT / (a dynamic): 8 K cost 1.43 % (a = 2), 1.14 % (a = 2.5), to first order.
  for (const auto& [exponent, loss] : {std::pair{2.0, 0.0142857}, std::pair{2.5, 0.0114286}}) {
    GpuPowerSpec spec;
    spec.exponent = exponent;
    const GpuPower gpu(spec);
    const double inlet = 60 - 0.065 * 700;
    const OperatingPoint before = gpu.operating_point(1, inlet + 1e-9, 0.065);
    EXPECT_EQ(before.limit, GpuLimit::board);
    const OperatingPoint little = gpu.operating_point(1, inlet + 0.008, 0.065);
    EXPECT_NEAR(1000 * std::log(before.phi / little.phi), loss, 1e-5);
    const OperatingPoint day = gpu.operating_point(1, inlet + 8, 0.065);
    EXPECT_NEAR(std::log(before.phi / day.phi), loss, 3e-4);
  }
}

TEST(GpuPower, DataSheetOfAnH100GivesTheDefaults) {
  GpuSpec h100;
  h100.power_max = 700_W;
  h100.power_idle = 70_W;
  h100.power_communicating = 250_W;
  const GpuPowerSpec spec = gpu_power_of(h100), defaults;
  EXPECT_EQ(spec.idle, defaults.idle);
  EXPECT_EQ(spec.leakage, defaults.leakage);
  EXPECT_DOUBLE_EQ(spec.leakage_slope, defaults.leakage_slope);
  EXPECT_EQ(spec.dynamic, defaults.dynamic);
  EXPECT_DOUBLE_EQ(spec.communicating, defaults.communicating);
  const GpuPower gpu(spec);
  EXPECT_NEAR(gpu.power(1, 1, 60).value(), 700, 1e-9);
  EXPECT_NEAR(gpu.power(0, 1, 25).value(), 70, 1e-9);
  EXPECT_NEAR(gpu.power(spec.communicating, 1, 60).value(), 250, 1e-9);
}

TEST(GpuPower, OddDataSheetsDoNotDrawLessThanNothing) {
  for (const Watts idle : {0_W, 30_W, 120_W, 500_W, 600_W}) {
    GpuSpec sheet;
    sheet.power_max = 500_W;
    sheet.power_idle = idle;
    const GpuPowerSpec spec = gpu_power_of(sheet);
    const GpuPower gpu(spec);
    EXPECT_GE(gpu.static_power(0).value(), -1e-9) << idle.value();
    EXPECT_GE(spec.dynamic, 0_W);
    EXPECT_GE(gpu.operating_point(1, 25, 0.065).power, 0_W);
  }
}

TEST(GpuPower, BusyPhasesMeetTheCapWhileTheMeanIsBelow) {
  // Busy 80 % of the time, resting else: 140 + 0.8 * 460 W; the clock is that of 600 W.
  GpuPowerSpec spec = plain();
  spec.idle = 140_W;
  spec.dynamic = 560_W;
  const OperatingPoint p = GpuPower(spec).operating_point(GpuLoad{.weight = 0.8, .cap = 600_W});
  EXPECT_NEAR(p.power.value(), 140 + 0.8 * 460, 1e-9);
  EXPECT_NEAR(p.phi, std::sqrt(460.0 / 560), 1e-12);
}

TEST(GpuPower, BrakeAndIdle) {
  const GpuPower gpu{GpuPowerSpec{}};
  OperatingPoint p = gpu.operating_point(GpuLoad{.ceiling = 0.5});
  EXPECT_EQ(p.limit, GpuLimit::brake);
  EXPECT_EQ(p.phi, 0.5);
  p = gpu.operating_point(0, 25, 0.065);
  EXPECT_EQ(p.limit, GpuLimit::none);
  EXPECT_EQ(p.phi, 1);
  EXPECT_NEAR(p.temperature, (25 + 0.065 * 20) / 0.87, 1e-9);  // 20 W at 0 degrees, 2 W/K
}

TEST(GpuPower, MemoryIsHotterThanTheDie) {
  GpuPowerSpec spec = plain();
  spec.memory_resistance = 0.020;  // 700 W: 14 K above the die
  const GpuPower gpu(spec);
  const double limit = 95 - 14 - 0.065 * 700;  // inlet at which it is reached
  EXPECT_EQ(gpu.operating_point(1, limit - 1e-6, 0.065).limit, GpuLimit::none);
  const OperatingPoint p = gpu.operating_point(1, limit + 1e-6, 0.065);
  EXPECT_EQ(p.limit, GpuLimit::memory);
  EXPECT_EQ(p.memory_speed, 0.5);
  EXPECT_EQ(p.phi, 1);
  EXPECT_NEAR(gpu_speed(p, 0.8), 1 / (0.8 + 0.2 / 0.5), 1e-12);
}

TEST(GpuPower, SpeedOfAPhase) {
  EXPECT_DOUBLE_EQ(time_factor(0.5, 1), 2);
  EXPECT_DOUBLE_EQ(time_factor(0.5, 0), 1);
  EXPECT_DOUBLE_EQ(time_factor(0.8, 0.6), 0.6 / 0.8 + 0.4);
  EXPECT_DOUBLE_EQ(time_factor(1, 0.6, 0.5), 0.6 + 0.8);
  OperatingPoint p{.duty = 0.7, .fast_phi = 1, .slow_phi = 0.5};
  EXPECT_DOUBLE_EQ(gpu_speed(p, 1), 0.7 + 0.3 * 0.5);
  EXPECT_DOUBLE_EQ(group_speed(p, 1, 2), 0.49 + 0.51 * 0.5);
  EXPECT_NEAR(group_speed(p, 1, 1000), 0.5, 1e-12);
  p.limit = GpuLimit::shutdown;
  EXPECT_EQ(gpu_speed(p, 1), 0);
}

TEST(GpuPower, LessFlowMeansMoreResistance) {
  const GpuCoolerSpec air;
  EXPECT_DOUBLE_EQ(resistance_at(air, 1), 0.065);
  EXPECT_NEAR(resistance_at(air, 0.5), 0.065 * (0.5 + 0.5 * std::pow(2, 0.8)), 1e-15);
  EXPECT_TRUE(std::isinf(resistance_at(air, 0)));
}

/// Whatever makes it hotter, busier or poorer in power never makes its clock faster. (A lower cap
/// does, where the hardware alternates: below. Memory that draws less may be faster.)
TEST(GpuPower, MonotoneInEverything) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](double low, double high) {
      return low + (high - low) * (random() / 4294967296.0);
    };
    GpuPowerSpec spec;
    spec.leakage_slope = draw(0, 2.3);
    spec.exponent = draw(1.3, 3);
    spec.regulator = seed % 3 != 0;
    spec.memory_resistance = draw(0, 0.03);
    const GpuPower gpu(spec);
    const GpuLoad base{.activity = draw(0.2, 1),
                       .inlet = draw(15, 60),
                       .resistance = draw(0.02, 0.15),
                       .cap = Watts(draw(250, 800))};
    const auto clocks = [&](auto&& change) {
      double before = 2;
      for (int i = 0; i <= 12; ++i) {
        GpuLoad load = base;
        change(load, i / 12.0);
        const OperatingPoint p = gpu.operating_point(load);
        EXPECT_LE(p.phi, before + 1e-9) << "seed " << seed << " step " << i;
        EXPECT_LE(p.power.value(), 700 + 1e-9) << "seed " << seed;
        EXPECT_GE(p.power.value(), 0) << "seed " << seed;
        before = p.phi;
      }
    };
    clocks([](GpuLoad& l, double x) { l.inlet += 50 * x; });
    clocks([](GpuLoad& l, double x) { l.resistance *= 1 + 5 * x; });
    clocks([](GpuLoad& l, double x) { l.activity += (1 - l.activity) * x; });
    if (!spec.regulator) continue;
    clocks([](GpuLoad& l, double x) { l.cap = *l.cap * (1 - 0.7 * x); });
    clocks([](GpuLoad& l, double x) { l.ceiling = 1 - 0.8 * x; });
  }
}

TEST(GpuPower, SteadyClockBeatsAlternation) {
  // At 45 degrees without a regulator: 700 W in a cycle against 646 W, which the sink can carry.
  GpuPowerSpec spec = plain();
  spec.regulator = false;
  spec.slowdown_temperature = 87;
  const GpuPower gpu(spec);
  const OperatingPoint cycle = gpu.operating_point(1, 45, 0.065);
  const OperatingPoint steady = gpu.operating_point(1, 45, 0.065, 646_W);
  EXPECT_EQ(cycle.limit, GpuLimit::slowdown);
  EXPECT_EQ(steady.limit, GpuLimit::cap);
  // 120 + 580 / 4 = 265 W when slow: towards 62.225 and 90.5 degrees.
  const double fast = std::log(8.5 / 3.5), slow = std::log(24.775 / 19.775);
  EXPECT_NEAR(cycle.duty, fast / (fast + slow), 1e-9);
  EXPECT_LT(cycle.phi + 0.05, steady.phi);
}

}  // namespace
}  // namespace trainyard::models
