#include "models/facility/step_power.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "models/facility/power_swing.hpp"

namespace trainyard::models {
namespace {

using namespace literals;
using namespace std::chrono_literals;

constexpr Duration edge = StepPower::default_edge;

/// 4 s at 16,384 x 700 W, 1 s at 16,384 x 250 W.
std::vector<PowerPhase> llama() {
  return {{4s, 700_W * 16384}, {1s, 250_W * 16384}};
}

TEST(StepPower, ComputeAndCommunication) {
  const StepPower wave(llama());
  EXPECT_EQ(wave.step(), 5s);
  EXPECT_DOUBLE_EQ(wave.frequency(), 0.2);
  EXPECT_NEAR(wave.swing().value() / 1e6, 7.37, 5e-3);
  EXPECT_NEAR(wave.peak().value(), 16384 * 700, 1e-3);
  EXPECT_NEAR(wave.low().value(), 16384 * 250, 1e-3);
  EXPECT_NEAR(wave.mean().value(), 16384 * (4 * 700 + 250) / 5.0, 1e-6);
  EXPECT_DOUBLE_EQ(wave.energy().value(), 16384 * (4 * 700 + 250.0));
  EXPECT_NEAR(wave.steepest_ramp(), 16384 * 450 / 3e-3, 1e-6 * 16384 * 450 / 3e-3);
  EXPECT_NEAR(wave.steepest_ramp(500ms), 16384 * 450 / 0.5, 1);
  EXPECT_NEAR(wave.largest_rise(1ms).value(), 16384 * 450 / 3.0, 1);
  EXPECT_NEAR(wave.largest_fall(1h).value(), wave.swing().value(), 1e-3);
}

TEST(StepPower, PublishedSwings) {
  // Whole servers that stop, 1275 to 350 W per GPU: 15.2 MW with 16,384; 875 W of each of 100,000.
  const auto swing_MW = [](double gpus, Watts from, Watts to) {
    const std::vector<PowerPhase> phases{{3s, from * gpus}, {3s, to * gpus}};
    return StepPower(phases).swing().value() / 1e6;
  };
  EXPECT_NEAR(swing_MW(16384, 1275_W, 350_W), 15.2, 0.05);
  EXPECT_NEAR(swing_MW(100000, 1225_W, 350_W), 87.5, 0.01);
}

TEST(StepPower, EdgesAreStraightAboutTheirMoment) {
  const StepPower wave(llama());
  const double high = 16384 * 700.0, low = 16384 * 250.0;
  EXPECT_NEAR(wave.at(4s - edge / 2).value(), high, 1e-2);
  EXPECT_NEAR(wave.at(4s).value(), (high + low) / 2, 1e-2);
  EXPECT_NEAR(wave.at(4s + edge / 2).value(), low, 1e-2);
  EXPECT_NEAR(wave.at(0s).value(), (high + low) / 2, 1e-2);
  EXPECT_NEAR(wave.at(12500ms).value(), high, 1e-2);  // the third step
}

TEST(StepPower, PhaseShorterThanAnEdgeDoesNotReachItsPower) {
  const std::vector<PowerPhase> phases{{1s, 1_MW}, {1ms, 4_MW}, {1s, 1_MW}};
  const StepPower wave(phases);
  EXPECT_NEAR(wave.peak().value(), 2e6, 1e-2);  // a third of 3 MW more
  EXPECT_NEAR(wave.mean().value() * 2.001, 2.004e6, 1e-3);
}

TEST(StepPower, LargestRiseMayBeginWithinAnEdge) {
  // Edges that overlap: 1, 4/3, 1/3 MW/ms for 1.5 ms each. In 2 ms to the end of the steepest part.
  const std::vector<PowerPhase> phases{{1s, 1_MW}, {1500us, 4_MW}, {1s, 5_MW}};
  const StepPower wave(phases);
  EXPECT_NEAR(wave.largest_rise(2ms).value(), 2.5e6, 1e-2);
  EXPECT_NEAR(wave.steepest_ramp(), 4e9 / 3, 1e3);
}

TEST(StepPower, LinesOfASquareWave) {
  // 4 / (pi n) of half the swing, odd lines only; the edge takes sinc(n f e) of it.
  const std::vector<PowerPhase> phases{{500ms, 2_MW}, {500ms, 0_MW}};
  const StepPower wave(phases);
  for (const int n : {1, 3, 5, 21}) {
    const double x = std::numbers::pi * n * 3e-3;
    EXPECT_NEAR(wave.amplitude(n).value(), 4e6 / (std::numbers::pi * n) * std::sin(x) / x, 1e-3)
        << n;
  }
  EXPECT_NEAR(wave.amplitude(2).value(), 0, 1e-6);
  const PowerBand band = wave.band(0.1, 20);
  EXPECT_EQ(band.frequency, 1);
  EXPECT_EQ(band.strongest, wave.amplitude(1));
  EXPECT_EQ(wave.band(1.5, 1.6).strongest, 0_W);
  EXPECT_EQ(wave.band(1.5, 1.6).frequency, 0);
  EXPECT_EQ(wave.band(3, 3).frequency, 3);  // both ends belong to it
}

struct Draw {
  std::mt19937 random;
  double operator()(double low, double high) {
    return low + (high - low) * (random() / 4294967296.0);
  }
};

std::vector<PowerPhase> any_step(Draw& draw) {
  std::vector<PowerPhase> phases;
  const int count = 1 + int(draw(0, 8));
  for (int i = 0; i < count; ++i)
    phases.push_back(
        {seconds(draw(0, 1) < 0.2 ? draw(0, 0.004) : draw(0.01, 1.5)), Watts(draw(1e6, 2e7))});
  phases.push_back({50ms, 5_MW});
  return phases;
}

TEST(StepPower, AgreesWithSamples) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Draw draw{std::mt19937(seed)};
    const std::vector<PowerPhase> phases = any_step(draw);
    const StepPower wave(phases);
    double energy = 0;
    for (const PowerPhase& p : phases) energy += p.power.value() * to_seconds(p.duration);
    EXPECT_NEAR(wave.mean().value() * to_seconds(wave.step()), energy, 1e-9 * energy);

    constexpr int samples = 1 << 14;
    const double step_s = to_seconds(wave.step()), h = step_s / samples;
    std::vector<double> power(samples);
    double sum = 0, squares = 0, high = 0, low = 1e12;
    for (int i = 0; i < samples; ++i) {
      power[std::size_t(i)] = wave.at(seconds((i + 0.5) * h)).value();
      sum += power[std::size_t(i)];
      high = std::max(high, power[std::size_t(i)]);
      low = std::min(low, power[std::size_t(i)]);
    }
    const double mean = sum / samples;
    EXPECT_NEAR(mean, wave.mean().value(), 1e-5 * mean) << "seed " << seed;
    for (const double p : power) squares += (p - mean) * (p - mean);
    EXPECT_NEAR(std::sqrt(squares / samples), wave.deviation().value(), 1e-3 * mean)
        << "seed " << seed;
    EXPECT_LE(high, wave.peak().value() * (1 + 1e-9));
    EXPECT_GE(low, wave.low().value() * (1 - 1e-9));
    EXPECT_NEAR(high, wave.peak().value(), h / 3e-3 * 2e7 + 1);
    for (const int n : {1, 2, 3, 7, 20}) {
      double real = 0, imaginary = 0;
      for (int i = 0; i < samples; ++i) {
        const double angle = 2 * std::numbers::pi * n * (i + 0.5) / samples;
        real += power[std::size_t(i)] * std::cos(angle);
        imaginary += power[std::size_t(i)] * std::sin(angle);
      }
      EXPECT_NEAR(2 * std::hypot(real, imaginary) / samples, wave.amplitude(n).value(), 2e-5 * mean)
          << "seed " << seed << " line " << n;
    }
    // Largest rise within 0.2 s, over all pairs of samples.
    const int window = int(0.2 / h);
    double rise = 0;
    for (int i = 0; i < samples; i += 8)
      for (int k = 0; k <= std::min(window, samples); k += 8)
        rise = std::max(rise, power[std::size_t((i + k) % samples)] - power[std::size_t(i)]);
    EXPECT_LE(rise, wave.largest_rise(200ms).value() + 1);
    EXPECT_NEAR(rise, wave.largest_rise(200ms).value(), 16 * h / 3e-3 * 2e7 + 1) << "seed " << seed;
    // Parseval: all lines together are the deviation.
    double lines = 0;
    const int most = int(3000 * step_s);  // up to the ninth zero of the edge
    for (int n = 1; n < most; ++n) lines += std::pow(wave.amplitude(n).value(), 2) / 2;
    EXPECT_NEAR(std::sqrt(lines), wave.deviation().value(), 1e-4 * mean) << "seed " << seed;
  }
}

TEST(StepPower, ActivitiesGiveThePowersBack) {
  const GpuPower gpu{GpuPowerSpec{}};
  const JobPowerParts job{.gpus = 16384, .servers = 4_MW};
  const std::vector<PowerPhase> phases{{4s, 700_W * 16384 + 4_MW}, {1s, 250_W * 16384 + 4_MW}};
  const std::vector<ActivityPhase> activities = activities_of(phases, gpu, job);
  EXPECT_DOUBLE_EQ(activities[0].activity, 1);
  EXPECT_NEAR(activities[1].activity, gpu.spec().communicating, 1e-12);
  const std::vector<PowerPhase> back = powers_of(activities, gpu, job, 1, 60);
  EXPECT_NEAR(back[0].power.value(), phases[0].power.value(), 1e-3);
  EXPECT_NEAR(back[1].power.value(), phases[1].power.value(), 1e-3);
  // At 0.8 of the clock and 70 degrees: 160 + 560 * 0.64 W each.
  EXPECT_NEAR(powers_of(activities, gpu, job, 0.8, 70)[0].power.value(),
              4e6 + 16384 * (160 + 560 * 0.64), 1e-3);
  const GpuLoad load = load_of(activities);
  EXPECT_DOUBLE_EQ(load.activity, 1);
  EXPECT_NEAR(load.weight, (4 + gpu.spec().communicating) / 5, 1e-12);
}

TEST(PowerSwing, JobsThatDoNotKnowEachOther) {
  const StepPower a(llama());
  const std::vector<PowerPhase> small{{2s, 3_MW}, {1s, 1_MW}};
  const std::vector<StepPower> jobs{a, StepPower(small)};
  const PowerSwing sum = swing_of(jobs, SwingLimitsSpec{}, 1_MW);
  EXPECT_NEAR(sum.peak.value(), 16384 * 700 + 4e6, 1e-2);
  EXPECT_NEAR(sum.low.value(), 16384 * 250 + 2e6, 1e-2);
  EXPECT_NEAR(sum.range.value(), 16384 * 450 + 2e6, 1e-2);
  EXPECT_NEAR(sum.mean.value(), a.mean().value() + (7.0 / 3 + 1) * 1e6, 1e-3);
  EXPECT_NEAR(sum.deviation.value(),
              std::hypot(jobs[0].deviation().value(), jobs[1].deviation().value()), 1e-6);
  EXPECT_DOUBLE_EQ(sum.frequency, 0.2);
  EXPECT_DOUBLE_EQ(sum.amplitude.value(),
                   (jobs[0].band(0.1, 20).strongest + jobs[1].band(0.1, 20).strongest).value());
}

TEST(PowerSwing, RisesAreNotFalls) {
  // Up at once, down in steps of 1 MW each 2 s.
  const std::vector<PowerPhase> phases{{2s, 4_MW}, {2s, 3_MW}, {2s, 2_MW}, {2s, 1_MW}};
  const StepPower wave(phases);
  const std::vector<StepPower> jobs{wave, wave};
  const PowerSwing sum = swing_of(jobs, SwingLimitsSpec{});
  EXPECT_NEAR(sum.rise.value(), 6e6, 1e-2);
  EXPECT_NEAR(wave.largest_fall(1s).value(), 1e6, 1e-2);
  EXPECT_NEAR(sum.ramp_W_per_s, 6e6, 1e-2);
  const Watts lines = wave.band(0.1, 20).rms;
  EXPECT_NEAR(sum.amplitude_rms.value(), std::sqrt(2) * lines.value(), 1e-6);
  EXPECT_NEAR(lines.value(), wave.deviation().value(), 0.01 * lines.value());
}

/// Three jobs in any alignment: within the worst case, and on the mean of squares.
TEST(PowerSwing, BoundsHoldForEveryAlignment) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Draw draw{std::mt19937(seed)};
    std::vector<StepPower> jobs;
    for (int i = 0; i < 3; ++i) jobs.emplace_back(any_step(draw));
    const PowerSwing sum = swing_of(jobs, SwingLimitsSpec{});
    double squares = 0;
    constexpr int count = 40000;
    for (int i = 0; i < count; ++i) {
      double power = 0;
      for (const StepPower& job : jobs)
        power += job.at(seconds(draw(0, to_seconds(job.step())))).value();
      EXPECT_LE(power, sum.peak.value() * (1 + 1e-9)) << "seed " << seed;
      EXPECT_GE(power, sum.low.value() * (1 - 1e-9)) << "seed " << seed;
      squares += std::pow(power - sum.mean.value(), 2);
    }
    EXPECT_NEAR(std::sqrt(squares / count), sum.deviation.value(), 0.02 * sum.deviation.value())
        << "seed " << seed;
  }
}

TEST(PowerSwing, ViolationsHaveNamesValuesAndUnits) {
  const std::vector<PowerPhase> phases{{4s, 10_MW}, {1s, 4_MW}};
  const std::vector<StepPower> jobs{StepPower(phases)};
  SwingLimitsSpec limits;
  EXPECT_TRUE(violations(swing_of(jobs, limits), limits).empty());
  limits.breaker = 10_MW;  // exactly at all of them: allowed
  limits.generator_step = 6_MW;
  limits.ramp = 6;
  limits.range = 6_MW;
  limits.amplitude = jobs[0].band(0.1, 20).strongest;
  EXPECT_TRUE(violations(swing_of(jobs, limits), limits).empty());
  limits.breaker = 9.999_MW;
  limits.generator_step = 5.999_MW;
  limits.ramp = 5.999;
  limits.range = 5.999_MW;
  limits.amplitude = jobs[0].band(0.1, 20).strongest * 0.999;
  const std::vector<SwingViolation> found = violations(swing_of(jobs, limits), limits);
  ASSERT_EQ(found.size(), 5);
  EXPECT_EQ(found[0].what, "breaker");
  EXPECT_NEAR(found[0].value, 10e6, 1e-2);
  EXPECT_EQ(found[0].unit, "W");
  EXPECT_EQ(found[1].what, "generator_step");
  EXPECT_EQ(found[2].what, "ramp");
  EXPECT_NEAR(found[2].value, 6, 1e-6);
  EXPECT_EQ(found[2].limit, 5.999);
  EXPECT_EQ(found[2].unit, "MW/s");
  EXPECT_EQ(found[3].what, "range");
  EXPECT_EQ(found[4].what, "amplitude");
}

}  // namespace
}  // namespace trainyard::models
