#include "models/facility/first_crossing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;

double at_s(const std::optional<Duration>& t) {
  return t ? to_seconds(*t) : -1.0;
}

// T = a + sum b_i e^(r_i t), as slopes b_i r_i.
ExponentialCourse sum_of(double a, std::vector<double> b, std::vector<double> r) {
  ExponentialSum sum{.value = a};
  for (std::size_t i = 0; i < b.size(); ++i) {
    sum.value += b[i];
    sum.slopes.push_back(b[i] * r[i]);
    sum.rates.push_back(r[i]);
  }
  return ExponentialCourse(sum);
}

struct Case {
  const char* name;
  double constant;
  std::vector<double> factors, rates;
  double drift;
  double limit;
  Direction direction;
  double seconds;  // negative: never
};

class FirstCrossing : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    ByHand, FirstCrossing,
    testing::Values(
        // 20 + 0.1 t
        Case{"linear", 20, {}, {}, 0.1, 30, Direction::rising, 100.0},
        Case{"linear_down", 20, {}, {}, -0.1, 10, Direction::falling, 100.0},
        Case{"linear_away", 20, {}, {}, -0.1, 30, Direction::rising, -1},
        // 50 - 30 e^(-0.01 t) = 45 at ln(6) / 0.01
        Case{"charging", 50, {-30}, {-0.01}, 0, 45, Direction::rising, 100.0 * std::log(6.0)},
        Case{"charging_never", 50, {-30}, {-0.01}, 0, 50.1, Direction::rising, -1},
        // 40 - 20 x + 10 x^4, x = e^(-0.01 t): from 30 down to its lowest 40 - 15 * 2^(-1/3) =
        // 28.094 at x = 2^(-1/3), then up. It passes 39 where 10 x^4 - 20 x + 1 = 0.
        Case{"dips_first", 40, {-20, 10}, {-0.01, -0.04}, 0, 39, Direction::rising, 299.5730},
        // 20 + 40 (x - x^2), x = e^(-t / 100), starts at 20, has its peak 30 at x = 1/2 and falls
        // back to 20.
        Case{"below_the_peak",
             20,
             {40, -40},
             {-0.01, -0.02},
             0,
             29.1,
             Direction::rising,
             -100.0 * std::log(0.5 + std::sqrt(0.25 - 9.1 / 40.0))},
        Case{"over_the_peak", 20, {40, -40}, {-0.01, -0.02}, 0, 30.0001, Direction::rising, -1},
        Case{"a_hair_over_the_peak",
             20,
             {40, -40},
             {-0.01, -0.02},
             0,
             30.0 + 1e-8,
             Direction::rising,
             -1},
        Case{"a_hair_under_the_peak",
             20,
             {40, -40},
             {-0.01, -0.02},
             0,
             30.0 - 1e-8,
             Direction::rising,
             -100.0 * std::log(0.5 + std::sqrt(1e-8 / 40.0))},
        Case{"never_below_its_end", 20, {40, -40}, {-0.01, -0.02}, 0, 19.9, Direction::falling, -1},
        Case{"starts_beyond", 35, {}, {}, 0.0, 30, Direction::rising, 0.0},
        Case{"starts_at_it", 30, {}, {}, -1.0, 30, Direction::rising, 0.0},
        // A drift of a microkelvin a second needs 116 days for 10 K.
        Case{"slow_drift", 20, {}, {}, 1e-6, 30, Direction::rising, 1e7},
        // A peak a millisecond wide on a slow fall: 20 + 40 (x - x^2), x = e^(-5000 t).
        Case{"narrow_peak",
             20,
             {40, -40},
             {-5000, -10000},
             -0.01,
             29.9,
             Direction::rising,
             1.1957e-4},
        // Runaway: 20 + e^(0.01 t) = 120 at ln(100) / 0.01.
        Case{"growing", 20, {1}, {0.01}, 0, 120, Direction::rising, 100.0 * std::log(100.0)},
        Case{"growing_away", 20, {-1}, {0.01}, 0, 120, Direction::rising, -1},
        Case{"dies_before_it_grows",
             20,
             {10, 1},
             {-0.1, 0.001},
             0,
             32,
             Direction::rising,
             1000.0 * std::log(12.0)}),
    [](const auto& of) { return of.param.name; });

TEST_P(FirstCrossing, IsWhereItWasComputed) {
  const Case& c = GetParam();
  ExponentialSum sum{.value = c.constant};
  for (std::size_t i = 0; i < c.factors.size(); ++i) {
    sum.value += c.factors[i];
    sum.slopes.push_back(c.factors[i] * c.rates[i]);
    sum.rates.push_back(c.rates[i]);
  }
  sum.slopes.push_back(c.drift);
  sum.rates.push_back(0.0);
  ExponentialCourse course(sum);
  const auto when = first_crossing(course, c.limit, c.direction);
  if (c.seconds < 0.0) {
    EXPECT_EQ(when, std::nullopt);
    return;
  }
  ASSERT_TRUE(when);
  EXPECT_NEAR(to_seconds(*when), c.seconds, 1e-4 * c.seconds + 1e-5);
  if (c.seconds == 0.0) return;
  const double sign = c.direction == Direction::rising ? 1.0 : -1.0;
  EXPECT_GE(sign * (course.value(*when) - c.limit), -touch_K);
  EXPECT_LT(sign * (course.value(*when - 1us) - c.limit), 0.0);
}

TEST(FirstCrossingOfATouch, CountsWithinANanokelvin) {
  // The peak is 30 at ln 2 / 0.01 exactly.
  ExponentialCourse course = sum_of(20, {40, -40}, {-0.01, -0.02});
  EXPECT_NEAR(at_s(first_crossing(course, 30.0, Direction::rising)), 69.3147, 1.0);
  EXPECT_NEAR(at_s(first_crossing(course, 30.0 + 0.5e-9, Direction::rising)), 69.3147, 1.0);
  EXPECT_EQ(first_crossing(course, 30.0 + 2e-9, Direction::rising), std::nullopt);
}

TEST(FirstCrossingOfAnEnd, IsNotReachedButComeNear) {
  // It tends to 50 from below and gets there only as far as a nanokelvin counts.
  ExponentialCourse course = sum_of(50, {-30}, {-0.01});
  EXPECT_EQ(first_crossing(course, 50.0 + 2e-9, Direction::rising), std::nullopt);
  EXPECT_NEAR(at_s(first_crossing(course, 50.0, Direction::rising)), std::log(30e9) / 0.01, 1.0);
}

TEST(FirstCrossingBeforeAHorizon, BothSides) {
  ExponentialCourse course = sum_of(50, {-30}, {-0.01});
  const Duration when = *first_crossing(course, 45.0, Direction::rising);
  EXPECT_EQ(first_crossing(course, 45.0, Direction::rising, when), when);
  EXPECT_EQ(first_crossing(course, 45.0, Direction::rising, when - 1ns), std::nullopt);
}

TEST(NextArrival, HasToLeaveFirst) {
  // 20 + 40 (x - x^2) starts at 20, peaks at 30; down it falls back to 20 for ever.
  ExponentialCourse hill = sum_of(20, {40, -40}, {-0.01, -0.02});
  EXPECT_NEAR(at_s(next_arrival(hill, 25.0, Direction::falling)),
              -100.0 * std::log(0.5 - std::sqrt(0.125)), 1e-5);
  EXPECT_EQ(next_arrival(hill, 15.0, Direction::rising), std::nullopt);
  // A valley: 30 - 40 (x - x^2) is above 25 at first, comes back after it has been below.
  ExponentialCourse valley = sum_of(30, {-40, 40}, {-0.01, -0.02});
  EXPECT_NEAR(at_s(next_arrival(valley, 25.0, Direction::rising)),
              -100.0 * std::log(0.5 - std::sqrt(0.125)), 1e-5);
  EXPECT_EQ(first_crossing(valley, 25.0, Direction::rising), Duration::zero());
}

class RandomCourse : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomCourse, testing::Range(1, 151));

// Against a dense scan: the march finds the first scanned sign change, or an earlier excursion that
// the scan's grid missed.
TEST_P(RandomCourse, AgreesWithADenseScan) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * double(random() >> 11) * 0x1p-53;
  };
  ExponentialSum sum{.value = uniform(20, 40)};
  const int terms = 1 + int(random() % 6);
  for (int i = 0; i < terms; ++i) {
    const double rate = -std::pow(10.0, uniform(-4, 0.5));
    sum.rates.push_back(random() % 7 == 0 ? 0.0 : random() % 11 == 0 ? -rate * 1e-3 : rate);
    sum.slopes.push_back(uniform(-15, 15) * std::min(std::abs(rate), 0.1));
  }
  const double limit = sum.value + uniform(-8, 8);
  const Direction direction = random() % 2 ? Direction::rising : Direction::falling;
  const double sign = direction == Direction::rising ? 1.0 : -1.0;
  ExponentialCourse course(sum);
  const Duration horizon = 2000s;
  const auto found = first_crossing(course, limit, direction, horizon);
  std::optional<Duration> scanned;
  for (Duration t{}; t <= horizon && !scanned; t += 40ms)
    if (sign * (course.value(t) - limit) >= 0.0) scanned = t;
  if (scanned) {
    ASSERT_TRUE(found);
    EXPECT_LE(*found, *scanned);
  }
  if (found && *found > Duration::zero()) {
    EXPECT_GE(sign * (course.value(*found) - limit), -touch_K);
    EXPECT_LT(sign * (course.value(*found - 1us) - limit), touch_K);
    if (!scanned || *scanned - *found > 40ms) {
      // Only an excursion too short for the grid may be news.
      EXPECT_LT(sign * (course.value(*found + 40ms) - limit), 0.0);
    }
  }
}

// What the march relies on: within reach the slope changes by no more than the bound says, and no
// value leaves the band of the rises and falls that are left.
TEST_P(RandomCourse, KeepsItsBounds) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * double(random() >> 11) * 0x1p-53;
  };
  ExponentialSum sum{.value = 30.0};
  const int terms = 1 + GetParam() % 4;  // with one term the bounds are met exactly
  for (int i = 0; i < terms; ++i) {
    sum.rates.push_back(uniform(-0.1, GetParam() % 5 == 0 ? 0.02 : 0.0));
    sum.slopes.push_back(uniform(-1, 1));
  }
  ExponentialCourse course(sum);
  const Course::Sight now = course.at(5s);
  const Duration reach = now.reach == forever ? Duration(100s) : now.reach;
  double bend = 0.0;
  for (int i = 1; i <= 1000; ++i) {
    const Duration before = 5s + reach * (i - 1) / 1000, t = 5s + reach * i / 1000;
    const Course::Sight then = course.at(t);
    bend = std::max(bend, std::abs(then.slope - course.at(before).slope) / to_seconds(t - before));
    ASSERT_LE(then.value, now.value + now.rise_left + 1e-9);
    ASSERT_GE(then.value, now.value - now.fall_left - 1e-9);
  }
  EXPECT_LE(bend, now.curvature * (1.0 + 1e-6));
  if (terms == 1) {
    EXPECT_GE(bend, 0.99 * now.curvature);
  }
}

}  // namespace
}  // namespace trainyard::models
