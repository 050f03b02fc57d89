#include "scenarios/heat_buffer.hpp"

#include <gtest/gtest.h>

#include <random>

/// Drawn = told + stored, at any time and for any load; long changes are told, short ones are not.
namespace trainyard::scenarios {
namespace {

using namespace std::chrono_literals;

/// Follows the buffer through its own events up to `until`, and sums what it tells.
struct Follower {
  HeatBuffer buffer;
  Time now = start_of_run;
  std::vector<Watts> drawn;
  double told_J = 0, drawn_J = 0;
  int changes = 0;

  explicit Follower(std::vector<Watts> most) : buffer(most), drawn(most.size()) {}

  void integrate(Time to) {
    const double dt_s = to_seconds(to - now);
    for (std::size_t z = 0; z < drawn.size(); ++z) {
      told_J += buffer.told()[z].value() * dt_s;
      drawn_J += drawn[z].value() * dt_s;
    }
    now = to;
  }
  void run_to(Time until) {
    for (;;) {
      const auto next = buffer.next_event();
      if (!next || *next > until) break;
      integrate(*next);
      changes += buffer.advance(now);
    }
    integrate(until);
  }
  void draw(std::vector<Watts> watts) {
    drawn = std::move(watts);
    buffer.set(now, drawn);
    changes += buffer.advance(now);
  }
};

TEST(HeatBuffer, a_change_is_told_after_a_minute_and_the_minute_is_made_good_within_hours) {
  Follower f({Watts(1000)});
  f.draw({Watts(600)});
  f.run_to(start_of_run + 59s);
  EXPECT_EQ(f.buffer.told()[0], Watts(0));
  f.run_to(start_of_run + 61s);
  // 600 W for 60 s are 36 kJ, given back at 10 W.
  EXPECT_NEAR(f.buffer.told()[0].value(), 610, 1e-6);
  f.run_to(start_of_run + 60s + 1h + 1s);
  EXPECT_NEAR(f.buffer.told()[0].value(), 600, 1e-9);
  f.buffer.advance(f.now);
  EXPECT_NEAR(f.buffer.stored().value(), 0, 1e-3);
  EXPECT_FALSE(f.buffer.next_event().has_value());
}

TEST(HeatBuffer, a_pause_of_seconds_is_not_told_but_not_forgotten) {
  Follower f({Watts(1000)});
  f.draw({Watts(600)});
  f.run_to(start_of_run + 3h);
  const int before = f.changes;
  f.draw({Watts(200)});
  f.run_to(f.now + 5s);
  f.draw({Watts(600)});
  f.run_to(f.now + 10min);
  EXPECT_EQ(f.changes, before);
  f.buffer.advance(f.now);
  EXPECT_NEAR(f.buffer.stored().value(), -2000, 1e-3);
}

TEST(HeatBuffer, regular_pauses_cost_a_few_changes_a_day) {
  Follower f({Watts(1000)});
  for (int i = 0; i < 144; ++i) {  // a day of a save every ten minutes
    f.draw({Watts(1000)});
    f.run_to(f.now + 595s);
    f.draw({Watts(400)});
    f.run_to(f.now + 5s);
  }
  EXPECT_LT(f.changes, 30);
  f.buffer.advance(f.now);
  EXPECT_NEAR(f.drawn_J, f.told_J + f.buffer.stored().value(), 1e-9 * f.drawn_J);
}

TEST(HeatBuffer, loses_no_joule_and_stores_two_minutes_of_full_heat_at_most) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> share(0, 1);
    Follower f({Watts(1e6), Watts(3e5), Watts(5e4)});
    double most_J = 0;
    for (int i = 0; i < 500; ++i) {
      f.draw({Watts(1e6 * share(random)), Watts(3e5 * share(random)), Watts(5e4)});
      f.run_to(f.now + Duration(std::int64_t(share(random) * 400e9)));
      f.buffer.advance(f.now);
      most_J = std::max(most_J, std::abs(f.buffer.stored().value()));
      ASSERT_NEAR(f.drawn_J, f.told_J + f.buffer.stored().value(), 1e-9 * f.drawn_J + 1e-3);
    }
    EXPECT_LE(most_J, 120 * 1.35e6 * (1 + 1e-9));
    EXPECT_GT(most_J, 0);
  }
}

// Zones of one size are kept together until they part: each must do what it would do alone.
TEST(HeatBuffer, zones_that_part_do_what_each_does_alone) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> share(0, 1);
  Follower all({Watts(1e6), Watts(1e6), Watts(1e6), Watts(2e6)});
  std::vector<Follower> alone;
  for (const double most : {1e6, 1e6, 1e6, 2e6}) alone.emplace_back(std::vector{Watts(most)});
  for (int i = 0; i < 300; ++i) {
    std::vector<Watts> drawn(4, Watts(1e6 * (i % 2 ? 0.4 : 0.9)));
    if (i > 50) drawn[1] = Watts(1e6 * share(random));  // from here on, by itself
    if (i > 150 && i % 7 == 0) drawn[2] = Watts(0);
    const Duration pause(std::int64_t(share(random) * 400e9));
    all.draw(drawn);
    all.run_to(all.now + pause);
    for (std::size_t z = 0; z < 4; ++z) {
      alone[z].draw({drawn[z]});
      alone[z].run_to(alone[z].now + pause);
      // Rounding: alone, it is not brought up to date at the events of others.
      ASSERT_NEAR(all.buffer.told()[z].value(), alone[z].buffer.told()[0].value(), 1e-6) << i << z;
    }
  }
  EXPECT_GT(alone[1].changes, 10);
}

TEST(HeatBuffer, a_difference_of_rounding_makes_no_event) {
  Follower f({Watts(1e6)});
  f.draw({Watts(6e5)});
  f.run_to(start_of_run + 5h);
  f.draw({Watts(6e5 * (1 + 1e-15))});
  const auto next = f.buffer.next_event();
  EXPECT_TRUE(!next || *next > start_of_run + 24h * 365);
}

}  // namespace
}  // namespace trainyard::scenarios
