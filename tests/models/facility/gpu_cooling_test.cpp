#include "models/facility/gpu_cooling.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace trainyard::models {
namespace {

using namespace literals;
using namespace std::chrono_literals;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double tau_s = 60;

Time at_s(double s) {
  return start_of_run + seconds(s);
}

GpuPowerSpec constant(Watts idle, Watts dynamic) {
  GpuPowerSpec spec;
  spec.idle = idle;
  spec.leakage = 0_W;
  spec.leakage_slope = 0;
  spec.dynamic = dynamic;
  spec.power_limit = idle + dynamic;
  return spec;
}

/// 700 W, 400 W in the slow-down, no regulator, limits 87 and 82 degrees.
GpuPowerSpec cycling() {
  GpuPowerSpec spec = constant(100_W, 600_W);
  spec.regulator = false;
  spec.slowdown_temperature = 87;
  spec.slowdown_clock = std::sqrt(0.5);
  spec.off_temperature = 120;
  return spec;
}

void expect_balance(const GpuCooling& gpus) {
  const double in = gpus.energy().value();
  EXPECT_NEAR(in, gpus.heat().value() + gpus.stored().value(), 1e-9 * std::max(1.0, in));
}

TEST(GpuCooling, InletStepReachesTheRegulator) {
  GpuPowerSpec spec = constant(140_W, 560_W);
  spec.memory_resistance = 0;
  GpuCooling gpus(spec, tau_s / 0.065, 8, GpuLoad{.inlet = 25}, start_of_run);
  EXPECT_NEAR(gpus.temperature(), 70.5, 1e-9);
  EXPECT_FALSE(gpus.next_event());
  gpus.set(GpuLoad{.inlet = 45});  // 90.5 for ever: 60 ln(20 / 3.5)
  const Time crossing = gpus.next_event().value();
  EXPECT_NEAR(to_seconds(crossing), 104.578, 5e-4);
  EXPECT_NEAR(to_seconds(crossing), 60 * std::log(20 / 3.5), 2e-9);
  GpuCooling early = gpus;
  early.advance(crossing - 2ns);
  EXPECT_EQ(early.point().limit, GpuLimit::none);
  EXPECT_EQ(early.point().phi, 1);
  gpus.advance(crossing);
  EXPECT_EQ(gpus.point().limit, GpuLimit::regulator);
  EXPECT_EQ(gpus.temperature(), 87);
  EXPECT_NEAR(gpus.power().value(), 8 * 42 / 0.065, 1e-6);
  EXPECT_FALSE(gpus.next_event());  // a plateau, no cycle
  gpus.advance(at_s(5000));
  EXPECT_EQ(gpus.temperature(), 87);
  expect_balance(gpus);
}

TEST(GpuCooling, ColdPlatesWithoutFlow) {
  // 1000 W into 300 J/K: 30 K in 9 s.
  GpuPowerSpec spec = constant(440_W, 560_W);
  spec.memory_resistance = 0;
  GpuCooling rack(spec, 300, 72, GpuLoad{.inlet = 27, .resistance = 0.030}, start_of_run);
  EXPECT_NEAR(rack.temperature(), 57, 1e-9);
  rack.set(GpuLoad{.inlet = 27, .resistance = infinity});
  EXPECT_EQ(rack.settled_at(), Time::max());
  EXPECT_NEAR(to_seconds(rack.next_event().value()), 9.0, 3e-9);
  rack.advance(*rack.next_event());
  EXPECT_EQ(rack.point().limit, GpuLimit::regulator);
  EXPECT_EQ(rack.point().phi, 0.15);  // the lowest clock: 452.6 W still come
  const Time held = start_of_run + 9s;
  Time now = held;
  while (!rack.is_off()) rack.advance(now = rack.next_event().value());
  // 452.6 W for 2 K to the slow-down, then 440 + 560 * 0.075^2 W for 6 K.
  EXPECT_NEAR(to_seconds(now - held), 600 / 452.6 + 1800 / 443.15, 1e-8);
  EXPECT_TRUE(rack.is_off());
  EXPECT_EQ(rack.power(), 0_W);
  EXPECT_EQ(rack.point().limit, GpuLimit::shutdown);
  EXPECT_EQ(rack.heat(), Joules(0));
  expect_balance(rack);
  EXPECT_EQ(rack.temperature(), 95);
  EXPECT_FALSE(rack.next_event());
}

TEST(GpuCooling, HardwareSlowDownAsACycle) {
  GpuCooling gpus(cycling(), tau_s / 0.065, 1, GpuLoad{.inlet = 45}, start_of_run);
  ASSERT_TRUE(gpus.cycle());
  EXPECT_NEAR(gpus.cycle()->fast_s, 53.238, 5e-4);
  EXPECT_NEAR(gpus.cycle()->slow_s, 22.482, 5e-4);
  EXPECT_NEAR(gpus.cycle()->duty(), 0.70309, 5e-6);
  const double duty = gpus.point().duty;
  EXPECT_NEAR(duty * 1 + (1 - duty) * 0.75, 0.92577, 5e-6);
  EXPECT_NEAR(gpus.point().power.value(), duty * 700 + (1 - duty) * 400, 1e-9);
  EXPECT_FALSE(gpus.next_event());  // not one a period
  const double period_s = gpus.cycle()->period_s();
  gpus.advance(at_s(1000 * period_s));
  EXPECT_NEAR(gpus.temperature(), 87, 1e-4);
  EXPECT_NEAR(gpus.energy().value(), 1000 * period_s * gpus.point().power.value(), 1);
  expect_balance(gpus);
}

TEST(GpuCooling, CycleBeginsAtItsFirstCrossing) {
  GpuCooling gpus(cycling(), tau_s / 0.065, 1, GpuLoad{.inlet = 25}, start_of_run);
  gpus.set(GpuLoad{.inlet = 45});
  EXPECT_FALSE(gpus.cycle());
  const Time begins = gpus.next_event().value();
  EXPECT_NEAR(to_seconds(begins), 104.578, 5e-4);
  gpus.advance(begins);
  EXPECT_TRUE(gpus.cycle());
  EXPECT_EQ(gpus.point().limit, GpuLimit::slowdown);
  EXPECT_FALSE(gpus.next_event());
  // In small steps through some periods, and in one: the same.
  GpuCooling steps = gpus;
  for (int i = 1; i <= 4000; ++i) steps.advance(begins + i * 100ms);
  gpus.advance(begins + 400s);
  EXPECT_NEAR(steps.temperature(), gpus.temperature(), 1e-7);
  EXPECT_NEAR(steps.energy().value(), gpus.energy().value(), 1e-9 * gpus.energy().value());
  gpus.set(GpuLoad{.inlet = 25});
  EXPECT_FALSE(gpus.cycle());
}

TEST(GpuCooling, MemoryLimitIsAnEvent) {
  GpuPowerSpec spec = constant(140_W, 560_W);
  spec.memory_resistance = 0.020;
  GpuCooling gpus(spec, tau_s / 0.065, 1, GpuLoad{.inlet = 25}, start_of_run);
  EXPECT_NEAR(gpus.memory_temperature(), 84.5, 1e-9);
  gpus.set(GpuLoad{.inlet = 45});
  const Time hot = gpus.next_event().value();  // die at 81: 60 ln(20 / 9.5)
  EXPECT_NEAR(to_seconds(hot), 60 * std::log(20 / 9.5), 2e-9);
  gpus.advance(hot);
  EXPECT_EQ(gpus.point().limit, GpuLimit::memory);
  EXPECT_EQ(gpus.point().memory_speed, 0.5);
  gpus.set(GpuLoad{.inlet = 25});
  const Time cool = gpus.next_event().value();  // die at 76, from 81 to 70.5
  EXPECT_NEAR(to_seconds(cool - hot), 60 * std::log(10.5 / 5.5), 5e-8);
  gpus.advance(cool);
  EXPECT_EQ(gpus.point().limit, GpuLimit::none);
}

TEST(GpuCooling, MemoryLimitWithLeakage) {
  GpuPowerSpec spec;
  spec.memory_resistance = 0.020;
  GpuCooling gpus(spec, 800, 1, GpuLoad{.activity = 0.5, .inlet = 25}, start_of_run);
  gpus.set(GpuLoad{.activity = 0.9, .inlet = 40});
  while (gpus.point().memory_speed == 1) gpus.advance(gpus.next_event().value());
  EXPECT_NEAR(gpus.memory_temperature(), 95, 1e-6);
}

TEST(GpuCooling, TellsWhenTheClockHasMovedByAPercent) {
  GpuCooling gpus(GpuPowerSpec{}, 800, 1, GpuLoad{.inlet = 25, .cap = 500_W}, start_of_run);
  const double before = gpus.point().phi;
  gpus.set(GpuLoad{.inlet = 35, .cap = 500_W});
  gpus.advance(gpus.next_event().value());
  EXPECT_NEAR(gpus.point().phi, 0.99 * before, 1e-9);
  EXPECT_EQ(gpus.point().limit, GpuLimit::cap);
}

TEST(GpuCooling, HeatThatComesAlongIsNotOurs) {
  GpuCooling gpus(GpuPowerSpec{}, 800, 2, GpuLoad{}, start_of_run);
  gpus.set_temperature(40);
  EXPECT_EQ(gpus.stored(), Joules(0));
  gpus.advance(at_s(100));
  EXPECT_GT(gpus.stored(), Joules(0));
  expect_balance(gpus);
}

TEST(GpuCooling, RunsAgainAfterShutDown) {
  GpuPowerSpec spec = constant(140_W, 560_W);
  GpuCooling gpus(spec, 800, 4, GpuLoad{}, start_of_run);
  gpus.set(GpuLoad{.resistance = infinity});
  for (int i = 0; i < 20 && !gpus.is_off(); ++i) gpus.advance(gpus.next_event().value());
  ASSERT_TRUE(gpus.is_off());
  gpus.set(GpuLoad{});
  gpus.advance(at_s(1e4));
  EXPECT_NEAR(gpus.temperature(), 25, 1e-9);
  gpus.restart();
  gpus.advance(at_s(2e4));
  EXPECT_NEAR(gpus.temperature(), 70.5, 1e-9);
  expect_balance(gpus);
}

TEST(GpuCooling, SplitSharesTheEnergy) {
  GpuCooling gpus(GpuPowerSpec{}, 800, 32, GpuLoad{}, start_of_run);
  gpus.advance(at_s(100));
  const double before = gpus.energy().value();
  GpuCooling part = gpus.split(12);
  EXPECT_EQ(gpus.count(), 20);
  EXPECT_NEAR(gpus.energy().value() + part.energy().value(), before, 1e-6);
  part.set(GpuLoad{.inlet = 40});
  part.advance(at_s(200));
  gpus.advance(at_s(200));
  EXPECT_GT(part.temperature(), gpus.temperature());
}

struct Draw {
  std::mt19937 random;
  double operator()(double low, double high) {
    return low + (high - low) * (random() / 4294967296.0);
  }
};

GpuPowerSpec any_spec(Draw& draw, unsigned seed) {
  GpuPowerSpec spec;
  spec.leakage_slope = draw(0, 2.3);
  spec.exponent = draw(1.3, 3);
  spec.regulator = seed % 2 == 0;
  spec.memory_resistance = draw(0, 0.02);
  spec.lowest_clock = draw(0.1, 0.8);
  return spec;
}

GpuLoad any_load(Draw& draw) {
  return {.activity = draw(0, 1),
          .weight = draw(0.3, 1),
          .inlet = draw(15, 60),
          .resistance = draw(0, 1) < 0.05 ? infinity : draw(0.02, 0.2),
          .cap = Watts(draw(200, 900)),
          .ceiling = draw(0.4, 1)};
}

/// The equation of the header, in small steps, with limits looked at after each.
struct Twin {
  const GpuPowerSpec& spec;
  double capacity;
  double temperature;
  bool is_slowed = false, is_off = false;
  double energy_J = 0;

  double power_W(const GpuLoad& load, double t) const {
    if (is_off) return 0;
    const GpuPower gpu(spec);
    const double limit = std::min(spec.power_limit, load.cap.value_or(spec.power_limit)).value();
    double phi = std::min(load.ceiling, gpu.phi_at(Watts(limit), load.activity, t));
    if (spec.regulator && t > spec.regulator_temperature)
      phi = std::min(load.ceiling, spec.lowest_clock);
    if (is_slowed) phi *= spec.slowdown_clock;
    return gpu.power(load.activity * load.weight, phi, t).value();
  }
  double rate(const GpuLoad& load, double t) const {
    return (power_W(load, t) - (t - load.inlet) / load.resistance) / capacity;
  }
  void step(const GpuLoad& load, double h) {
    const double a = rate(load, temperature), b = rate(load, temperature + a * h / 2),
                 c = rate(load, temperature + b * h / 2), d = rate(load, temperature + c * h);
    const double before_W = power_W(load, temperature);
    temperature += h * (a + 2 * b + 2 * c + d) / 6;
    energy_J += h * (before_W + power_W(load, temperature)) / 2;
    if (temperature >= spec.off_temperature) is_off = true;
    if (temperature >= spec.slowdown_temperature) is_slowed = true;
    if (temperature <= spec.slowdown_temperature - spec.hysteresis) is_slowed = false;
  }
};

TEST(GpuCooling, AgreesWithSmallSteps) {
  int off = 0, slowed = 0, held = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Draw draw{std::mt19937(seed)};
    const GpuPowerSpec spec = any_spec(draw, seed);
    GpuCooling gpus(spec, 400, 1, GpuLoad{.activity = 0.2, .inlet = 20}, start_of_run);
    Twin twin{spec, 400, gpus.temperature()};
    double t = 0;
    for (int change = 0; change < 4; ++change) {
      const GpuLoad load = any_load(draw);
      gpus.set(load);
      for (int i = 0; i < 30000; ++i) twin.step(load, 0.002);
      gpus.advance(at_s(t += 60));
      // A step across a limit is found up to 2 ms late: some hundredths of a kelvin.
      ASSERT_NEAR(gpus.temperature(), twin.temperature, 0.08) << "seed " << seed;
      ASSERT_EQ(gpus.is_off(), twin.is_off) << "seed " << seed;
      ASSERT_NEAR(gpus.energy().value(), twin.energy_J, 30 + 2e-3 * twin.energy_J)
          << "seed " << seed;
      expect_balance(gpus);
      off += gpus.is_off();
      slowed += gpus.point().limit == GpuLimit::slowdown;
      held += gpus.point().limit == GpuLimit::regulator;
    }
  }
  EXPECT_GT(off, 0);
  EXPECT_GT(slowed, 0);
  EXPECT_GT(held, 0);
}

TEST(GpuCooling, ComesToRestAtTheOperatingPoint) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Draw draw{std::mt19937(seed)};
    const GpuPowerSpec spec = any_spec(draw, seed);
    GpuLoad load = any_load(draw);
    const OperatingPoint rest = GpuPower(spec).operating_point(load);
    GpuCooling gpus(spec, 400, 1, GpuLoad{.activity = 0, .inlet = 10, .resistance = 0.02},
                    start_of_run);
    gpus.set_temperature(load.inlet);
    gpus.set(load);
    for (int i = 0; gpus.next_event() && i < 200; ++i) gpus.advance(*gpus.next_event());
    gpus.advance(at_s(1e6));
    const OperatingPoint p = gpus.point();
    EXPECT_NEAR(p.phi, rest.phi, 1e-7) << "seed " << seed;
    EXPECT_NEAR(p.power.value(), rest.power.value(), 1e-5) << "seed " << seed;
    EXPECT_EQ(p.limit, rest.limit) << "seed " << seed;
    EXPECT_NEAR(p.memory_speed, rest.memory_speed, 1e-7) << "seed " << seed;
  }
}

TEST(GpuCooling, SplitIntervalsChangeNothingAndNothingHappensUntold) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Draw draw{std::mt19937(seed)};
    const GpuPowerSpec spec = any_spec(draw, seed);
    GpuCooling once(spec, 400, 3, GpuLoad{.activity = 0.2, .inlet = 20}, start_of_run);
    GpuCooling often = once, events = once;
    Time now = start_of_run;
    for (int change = 0; change < 4; ++change) {
      const GpuLoad load = any_load(draw);
      const Time began = now, until = now + seconds(draw(1, 200));
      for (GpuCooling* g : {&once, &often, &events}) g->set(load);
      OperatingPoint told = events.point();
      int count = 0;
      for (auto next = events.next_event(); next && *next < until; next = events.next_event()) {
        ASSERT_LT(++count, 300) << "seed " << seed;
        GpuCooling just_before = events;
        const Time before = std::max(now, *next - 3ns);
        just_before.advance(before);
        const OperatingPoint p = just_before.point();
        EXPECT_NEAR(p.power.value(), told.power.value(), 0.0101 * told.power.value())
            << "seed " << seed;
        EXPECT_NEAR(p.phi, told.phi, 0.0101) << "seed " << seed;
        EXPECT_EQ(p.memory_speed, told.memory_speed) << "seed " << seed;
        events.advance(*next);
        told = events.point();
        now = *next;
      }
      now = until;
      for (int i = 1; i <= 10; ++i) often.advance(began + i * ((until - began) / 10));
      for (GpuCooling* g : {&once, &often, &events}) g->advance(until);
      EXPECT_NEAR(once.temperature(), often.temperature(), 1e-6) << "seed " << seed;
      EXPECT_NEAR(once.temperature(), events.temperature(), 1e-6) << "seed " << seed;
      EXPECT_NEAR(once.energy().value(), events.energy().value(),
                  1e-9 * std::max(1.0, once.energy().value()))
          << "seed " << seed;
      EXPECT_EQ(once.is_off(), events.is_off());
      expect_balance(once);
    }
  }
}

TEST(GpuCooling, SettlesWithinTenTimeConstants) {
  GpuCooling gpus(GpuPowerSpec{}, 800, 1, GpuLoad{.activity = 0.3}, start_of_run);
  const GpuLoad load{.activity = 0.8, .inlet = 30};
  gpus.set(load);
  // tau = 52 s / (1 - 0.13)
  EXPECT_NEAR(to_seconds(gpus.settled_at()), 10 * 52 / 0.87, 1e-6);
  gpus.advance(gpus.settled_at());
  EXPECT_NEAR(gpus.temperature(), GpuPower(GpuPowerSpec{}).operating_point(load).temperature, 2e-3);
}

}  // namespace
}  // namespace trainyard::models
