#include "models/facility/leaks.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;

TEST(Leaks, come_at_their_rate_and_are_isolated_by_the_valve) {
  const LeakSpec spec{.per_rack_year = 2};
  Leaks leaks(spec, 100, sim::Stream(sim::Seed{1}, "leaks"));
  const Time year = start_of_run + 8766h;
  int count = 0, detected = 0;
  while (leaks.next_event() && *leaks.next_event() <= year) {
    const Time begin = *leaks.next_event();
    EXPECT_FALSE(leaks.take(begin - 1ns));
    const auto leak = leaks.take(begin);
    ASSERT_TRUE(leak);
    EXPECT_GE(leak->rack, 0);
    EXPECT_LT(leak->rack, 100);
    ++count;
    detected += leak->was_detected;
    EXPECT_EQ(leak->isolated - leak->at, leak->was_detected ? Duration(20s) : Duration(30min));
    EXPECT_EQ(leak->neighbours.size(), leak->was_detected ? 0u : 2u);
  }
  EXPECT_NEAR(count, 200, 4 * std::sqrt(200.0));
  EXPECT_NEAR(double(detected) / count, 0.95, 4 * std::sqrt(0.95 * 0.05 / count));
}

TEST(Leaks, neighbours_are_the_nearest_and_there) {
  const LeakSpec spec{.per_rack_year = 100, .detected = 0, .neighbours = 2};
  Leaks leaks(spec, 3, sim::Stream(sim::Seed{7}, "leaks"));
  for (int i = 0; i < 50; ++i) {
    const auto leak = leaks.take(*leaks.next_event());
    ASSERT_EQ(leak->neighbours.size(), 2u);
    for (const int n : leak->neighbours) {
      EXPECT_TRUE(n >= 0 && n < 3);
      EXPECT_NE(n, leak->rack);
    }
  }
}

TEST(Leaks, none_without_a_rate) {
  EXPECT_FALSE(Leaks({.per_rack_year = 0}, 10, sim::Stream(sim::Seed{1}, "x")).next_event());
}

}  // namespace
}  // namespace trainyard::models
