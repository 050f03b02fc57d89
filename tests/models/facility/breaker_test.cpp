#include "models/facility/breaker.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;

BreakerSpec of_16_A() {
  BreakerSpec spec;
  spec.rating = 16_A;
  return spec;
}

Time at(Duration d) {
  return start_of_run + d;
}

TEST(Breaker, ColdTripTimes) {
  struct Row {
    double ratio;
    double trip_s;
  };
  for (const Row& row : {Row{1.35, 237.54}, {1.45, 156.30}, {2.00, 54.46}, {2.55, 30.00}}) {
    const auto t = trip_time(of_16_A(), 0.0, row.ratio);
    ASSERT_TRUE(t) << row.ratio;
    EXPECT_NEAR(to_seconds(*t), row.trip_s, 0.005) << row.ratio;
  }
}

// One of two feeds is lost: the other goes from x to 2x.
TEST(Breaker, TripTimesAfterThePreloadOfAPair) {
  EXPECT_FALSE(trip_time(of_16_A(), 0.60 * 0.60, 1.20));
  EXPECT_NEAR(to_seconds(*trip_time(of_16_A(), 0.70 * 0.70, 1.40)), 157.38, 0.005);
  EXPECT_NEAR(to_seconds(*trip_time(of_16_A(), 0.75 * 0.75, 1.50)), 105.03, 0.005);
  EXPECT_NEAR(to_seconds(*trip_time(of_16_A(), 0.80 * 0.80, 1.60)), 75.94, 0.005);
}

TEST(Breaker, HoldsWhatTheStandardsSayItHolds) {
  EXPECT_FALSE(trip_time(of_16_A(), 0.0, 1.00));
  EXPECT_FALSE(trip_time(of_16_A(), 0.0, 1.13));
  EXPECT_FALSE(trip_time(of_16_A(), 1.63, 1.28));
  EXPECT_TRUE(trip_time(of_16_A(), 0.0, 1.281));
}

// 5 kW on two ports of 220 V at a power factor of 0.9: 12.626 A each, 25.253 A on the one left.
TEST(Breaker, TheServerOnTwoPortsHas81Seconds) {
  Breaker breaker(of_16_A());
  const double each_A = 5000.0 / 0.9 / 220.0 / 2.0;
  EXPECT_NEAR(each_A, 12.6, 0.05);
  breaker.set_current(at(0s), Amperes(each_A));
  breaker.set_current(at(1h), Amperes(2.0 * each_A));
  ASSERT_TRUE(breaker.next_event());
  EXPECT_NEAR(to_seconds(*breaker.next_event() - at(1h)), 81.17, 0.005);
  breaker.advance(*breaker.next_event() - 1ns);
  EXPECT_TRUE(breaker.is_closed());
  breaker.advance(*breaker.next_event());
  EXPECT_FALSE(breaker.is_closed());
  EXPECT_TRUE(breaker.has_tripped());
  EXPECT_FALSE(breaker.next_event());  // reset by hand
}

TEST(Breaker, MagneticTripAtTheLimitOfItsCurve) {
  BreakerSpec spec = of_16_A();
  EXPECT_GT(*trip_time(spec, 0.0, 9.99), 20ms);
  EXPECT_EQ(*trip_time(spec, 0.0, 10.0), 20ms);
  spec.curve = MagneticCurve::b;
  EXPECT_EQ(*trip_time(spec, 0.0, 5.0), 20ms);
  spec.curve = MagneticCurve::d;
  EXPECT_GT(*trip_time(spec, 0.0, 19.9), 20ms);
  EXPECT_EQ(*trip_time(spec, 0.0, 20.0), 20ms);
  spec.curve = MagneticCurve::none;
  EXPECT_GT(*trip_time(spec, 0.0, 50.0), 20ms);

  // A change of the fault current does not begin the 20 ms again.
  Breaker breaker(of_16_A());
  breaker.set_current(at(1s), 200_A);
  breaker.set_current(at(1s + 15ms), 220_A);
  EXPECT_EQ(breaker.next_event(), at(1s + 20ms));
}

TEST(Breaker, ClosesByItselfOrByHandAndIsStillWarm) {
  BreakerSpec spec = of_16_A();
  spec.reset = BreakerReset::automatic;
  spec.reset_delay = 60s;
  Breaker breaker(spec);
  breaker.set_current(at(0s), 32_A);
  const Time trip = *breaker.next_event();
  breaker.advance(trip);
  EXPECT_EQ(breaker.next_event(), trip + 60s);
  breaker.advance(trip + 60s);
  EXPECT_TRUE(breaker.is_closed());
  EXPECT_NEAR(breaker.image(trip + 60s), 1.64 * std::exp(-60.0 / 103.222607), 1e-9);
  breaker.set_current(trip + 60s, 32_A);
  EXPECT_LT(*breaker.next_event() - (trip + 60s), trip - start_of_run);

  Breaker by_hand(of_16_A());
  by_hand.set_current(at(0s), 32_A);
  by_hand.advance(at(1h));
  EXPECT_FALSE(by_hand.is_closed());
  by_hand.close(at(1h));
  EXPECT_TRUE(by_hand.is_closed());
  EXPECT_FALSE(by_hand.next_event());
}

// Twin: fourth-order Runge-Kutta of tau d(theta)/dt = i^2 - theta with small steps.
TEST(Breaker, AgreesWithAnIntegratorOverRandomLoads) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    sim::Stream stream(sim::Seed{seed}, "loads");
    Breaker breaker(of_16_A());
    double image = 0.0;
    const double step_s = 0.01;
    double trip_s = 0.0;
    Time now = start_of_run;
    for (int period = 0; period < 20 && trip_s == 0.0; ++period) {
      const double ratio = 1.7 * stream.uniform();
      const int steps = 100 + int(stream.below(9000));
      breaker.set_current(now, 16_A * ratio);
      for (int i = 0; i < steps && trip_s == 0.0; ++i) {
        const auto slope = [&](double x) { return (ratio * ratio - x) / 103.222607; };
        const double k1 = slope(image), k2 = slope(image + 0.5 * step_s * k1);
        const double k3 = slope(image + 0.5 * step_s * k2), k4 = slope(image + step_s * k3);
        image += step_s / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4);
        if (image >= 1.64) trip_s = to_seconds(now) + (i + 1) * step_s;
      }
      const Time end = now + seconds(step_s) * steps;
      if (trip_s > 0.0) {
        ASSERT_TRUE(breaker.next_event());
        EXPECT_NEAR(to_seconds(*breaker.next_event()), trip_s, 1.01 * step_s);
      } else {
        breaker.advance(end);
        EXPECT_TRUE(breaker.is_closed());
        EXPECT_NEAR(breaker.image(end), image, 1e-9);
      }
      now = end;
    }
  }
}

TEST(Breaker, SplittingAnIntervalChangesNothing) {
  Breaker whole(of_16_A()), split(of_16_A());
  whole.set_current(at(0s), 22_A);
  split.set_current(at(0s), 22_A);
  for (int i = 1; i < 900; ++i) {
    split.advance(at(i * 100ms));
    split.set_current(at(i * 100ms), 22_A);
  }
  EXPECT_EQ(whole.next_event(), split.next_event());
  EXPECT_EQ(whole.image(at(95s)), split.image(at(95s)));
}

TEST(Breaker, MayBePlannedAt80PercentUnlessItIsFullRated) {
  BreakerSpec spec = of_16_A();
  EXPECT_DOUBLE_EQ(spec.continuous_share(), 0.8);
  spec.full_rated = true;
  EXPECT_DOUBLE_EQ(spec.continuous_share(), 1.0);
}

}  // namespace
}  // namespace trainyard::models
