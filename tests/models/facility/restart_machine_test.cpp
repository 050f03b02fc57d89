#include "models/facility/restart_machine.hpp"

#include <gtest/gtest.h>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using State = RestartMachine::State;

sim::Stream luck(std::uint64_t seed = 1) {
  return sim::Stream(sim::Seed{seed}, "chiller");
}

UnitRestartSpec sure() {
  UnitRestartSpec spec;  // 45 s, 30 s, 6 min, 5 min in 4 steps
  spec.start_failure = 0;
  return spec;
}

Time at(Duration d) {
  return start_of_run + d;
}

TEST(RestartMachine, an_ordinary_chiller_takes_eleven_minutes_after_a_sag) {
  RestartMachine machine(sure(), luck());
  machine.set_fed(at(0s), false);
  EXPECT_EQ(machine.share(), 0);
  machine.set_fed(at(1s), true);
  // Boot ends at 46 s, flow is proven at 76 s, but it may not start before 360 s; 75 s a step.
  machine.advance(at(435s - 1ns));
  EXPECT_EQ(machine.share(), 0);
  machine.advance(at(435s));
  EXPECT_EQ(machine.share(), 0.25);
  machine.advance(at(660s - 1ns));
  EXPECT_EQ(machine.share(), 0.75);
  machine.advance(at(660s));
  EXPECT_EQ(machine.share(), 1);
  EXPECT_FALSE(machine.next_event());
}

TEST(RestartMachine, after_a_long_outage_controls_and_pumps_decide) {
  RestartMachine machine(sure(), luck());
  machine.set_fed(at(0s), false);
  machine.set_fed(at(1h), true);
  machine.advance(at(1h + 45s + 30s + 75s));
  EXPECT_EQ(machine.share(), 0.25);
}

TEST(RestartMachine, a_quick_start_takes_three_minutes) {
  UnitRestartSpec spec = quick_start();
  spec.start_failure = 0;
  RestartMachine machine(spec, luck());
  machine.set_fed(at(0s), false);
  machine.set_fed(at(1s), true);
  machine.advance(at(180s - 1ns));
  EXPECT_LT(machine.share(), 1);
  machine.advance(at(180s));
  EXPECT_EQ(machine.share(), 1);
}

TEST(RestartMachine, two_failed_starts_lock_it_out_until_a_person_comes) {
  UnitRestartSpec spec = sure();
  spec.start_failure = 1;
  RestartMachine machine(spec, luck());
  machine.set_fed(at(0s), false);
  machine.set_fed(at(1s), true);
  machine.advance(at(360s));
  EXPECT_EQ(machine.failed_starts(), 1);
  EXPECT_EQ(machine.state(), State::waiting);
  machine.advance(at(720s - 1ns));
  EXPECT_EQ(machine.failed_starts(), 1);
  machine.advance(at(720s));
  EXPECT_EQ(machine.state(), State::locked);
  EXPECT_FALSE(machine.next_event());
  machine.set_fed(at(800s), false);  // power does not free it
  machine.set_fed(at(801s), true);
  EXPECT_EQ(machine.state(), State::locked);
  machine.reset(at(2000s));
  EXPECT_EQ(machine.next_event(), at(2030s));  // flow only: the person waited long enough
}

TEST(RestartMachine, without_flow_it_waits_and_loses_no_start) {
  RestartMachine machine(sure(), luck());
  machine.set_ready(at(10s), false);
  EXPECT_EQ(machine.state(), State::waiting);
  EXPECT_EQ(machine.failed_starts(), 0);
  EXPECT_FALSE(machine.next_event());
  machine.set_ready(at(1000s), true);
  EXPECT_EQ(machine.next_event(), at(1030s));
}

TEST(RestartMachine, a_second_trip_in_a_row_locks_it_but_a_full_run_forgets_the_first) {
  RestartMachine machine(sure(), luck());
  machine.trip(at(0s));
  EXPECT_EQ(machine.failed_starts(), 1);
  machine.advance(at(400s));
  machine.trip(at(400s));
  EXPECT_EQ(machine.state(), State::locked);

  RestartMachine other(sure(), luck());
  other.trip(at(0s));
  other.advance(at(660s));
  EXPECT_EQ(other.failed_starts(), 0);
  other.trip(at(700s));
  EXPECT_EQ(other.state(), State::waiting);
}

TEST(RestartMachine, intervals_may_be_cut_anywhere) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    UnitRestartSpec spec;
    spec.start_failure = 0.4;
    RestartMachine coarse(spec, luck(seed)), fine(spec, luck(seed));
    for (RestartMachine* m : {&coarse, &fine}) {
      m->set_fed(at(0s), false);
      m->set_fed(at(3s), true);
    }
    for (int s = 3; s <= 1200; s += 7) fine.advance(at(std::chrono::seconds(s)));
    coarse.advance(at(1200s));
    fine.advance(at(1200s));
    EXPECT_EQ(coarse.state(), fine.state()) << "seed " << seed;
    EXPECT_EQ(coarse.next_event(), fine.next_event()) << "seed " << seed;
  }
}

TEST(RestartMachine, locks_out_as_often_as_two_failures_in_a_row_are_likely) {
  UnitRestartSpec spec;
  spec.start_failure = 0.3;
  int locked = 0;
  constexpr int n = 20'000;
  for (std::uint64_t seed = 1; seed <= n; ++seed) {
    RestartMachine machine(spec, luck(seed));
    machine.set_fed(at(0s), false);
    machine.set_fed(at(1s), true);
    machine.advance(at(1h));
    locked += machine.state() == State::locked;
  }
  EXPECT_NEAR(double(locked) / n, 0.09, 0.008);  // four standard deviations
}

}  // namespace
}  // namespace trainyard::models
