#include "models/facility/ups.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;

Time at(Duration d) {
  return start_of_run + d;
}

UpsSpec plain() {
  UpsSpec spec;
  spec.battery.peukert = 1.0;
  spec.battery.fail_on_demand = 0.0;
  spec.battery.autonomy = 300s;
  return spec;
}

Ups make(const UpsSpec& spec) {
  Ups ups(spec, 100_kW, sim::Stream(sim::Seed{1}, "ups"));
  ups.set_load(start_of_run, 50_kW, 0_W);
  return ups;
}

TEST(Ups, CarriesItsLoadUntilTheBatteryIsEmpty) {
  Ups ups = make(plain());
  ups.set_input(at(100s), UpsInput::none);
  EXPECT_EQ(ups.state(), UpsState::on_battery);
  EXPECT_EQ(ups.autonomy(at(100s)), 600s);
  ups.advance(at(700s) - 1ns);
  EXPECT_TRUE(ups.is_live());
  ups.advance(at(700s));
  EXPECT_EQ(ups.state(), UpsState::off);
  EXPECT_EQ(ups.battery().given(at(700s)).value(), 30e6);
  ups.set_input(at(800s), UpsInput::utility);
  ups.advance(at(810s));
  EXPECT_EQ(ups.state(), UpsState::on_input);
  EXPECT_EQ(ups.recharge_power(), 10_kW);
}

TEST(Ups, ItsOwnLossesComeFromTheBatteryToo) {
  Ups ups = make(plain());
  ups.set_load(at(0s), 50_kW, 10_kW);
  ups.set_input(at(0s), UpsInput::none);
  EXPECT_EQ(ups.next_event(), at(500s));
}

TEST(Ups, WalksInAndThenRecharges) {
  Ups ups = make(plain());
  ups.set_input(at(0s), UpsInput::none);
  ups.set_input(at(60s), UpsInput::backup);
  ups.advance(at(70s) - 1ns);
  EXPECT_EQ(ups.input_share(), 0.0);
  const double shares[] = {0.2, 0.4, 0.6, 0.8, 1.0};
  for (int i = 0; i < 5; ++i) {
    ups.advance(at(70s + i * 3750ms));
    EXPECT_DOUBLE_EQ(ups.input_share(), shares[i]) << i;
  }
  EXPECT_EQ(ups.state(), UpsState::on_input);
  // 70 s alone, then half of the load on average for 15 s
  EXPECT_NEAR(ups.battery().given(at(85s)).value(), 50e3 * (70 + 7.5), 1e-3);
  EXPECT_EQ(ups.recharge_power(), 10_kW);
  ups.set_load(at(90s), 95_kW, 0_W);  // only 5 kW of its rating are left to recharge
  EXPECT_EQ(ups.recharge_power(), 5_kW);
  ups.advance(at(5h));
  EXPECT_EQ(ups.recharge_power(), 0_W);
  EXPECT_FALSE(ups.next_event());
}

TEST(Ups, EcoModeLeavesAGapOfItsTransferTime) {
  UpsSpec spec = plain();
  spec.mode = UpsMode::eco;
  Ups ups = make(spec);
  ups.set_input(at(1s), UpsInput::none);
  EXPECT_FALSE(ups.is_live());
  ups.advance(at(1s + 4ms) - 1ns);
  EXPECT_FALSE(ups.is_live());
  ups.advance(at(1s + 4ms));
  EXPECT_EQ(ups.state(), UpsState::on_battery);
}

void dips(Ups& ups, int count, Duration apart) {
  for (int i = 0; i < count; ++i) {
    ups.set_input(at(100s + i * apart), UpsInput::none);
    ups.set_input(at(100s + i * apart + 200ms), UpsInput::utility);
  }
}

TEST(Ups, TheThirdDisturbanceInAMinuteLatchesIt) {
  Ups in_a_minute = make(plain()), slower = make(plain()), two = make(plain());
  dips(in_a_minute, 3, 30s);
  EXPECT_TRUE(in_a_minute.is_latched());
  dips(slower, 3, 30s + 1ns);
  EXPECT_FALSE(slower.is_latched());
  dips(two, 2, 1s);
  EXPECT_FALSE(two.is_latched());

  in_a_minute.advance(at(400s));
  EXPECT_EQ(in_a_minute.state(), UpsState::on_battery);  // though the utility is good
  in_a_minute.set_input(at(400s), UpsInput::backup);
  in_a_minute.advance(at(430s));
  EXPECT_EQ(in_a_minute.state(), UpsState::on_input);
  in_a_minute.set_input(at(500s), UpsInput::utility);
  EXPECT_EQ(in_a_minute.state(), UpsState::on_battery);
  in_a_minute.return_by_hand(at(510s));
  in_a_minute.advance(at(600s));
  EXPECT_EQ(in_a_minute.state(), UpsState::on_input);
}

TEST(Ups, WithoutTheRuleDipsAreRiddenThrough) {
  UpsSpec spec = plain();
  spec.disturbances = 0;
  Ups ups = make(spec);
  dips(ups, 6, 16s);
  EXPECT_FALSE(ups.is_latched());
  ups.advance(at(300s));
  EXPECT_EQ(ups.state(), UpsState::on_input);
}

TEST(Ups, OverloadTimesOfTwoMakers) {
  using T = OverloadTable;
  EXPECT_EQ(overload_time(T::long_first_step, 1.02), forever);
  EXPECT_EQ(overload_time(T::long_first_step, 1.05), 30min);
  EXPECT_EQ(overload_time(T::long_first_step, 1.20), 30s);
  EXPECT_EQ(overload_time(T::long_first_step, 1.50), 10s);
  EXPECT_EQ(overload_time(T::long_first_step, 1.51), 500ms);
  EXPECT_EQ(overload_time(T::short_first_step, 1.05), 10min);
  EXPECT_EQ(overload_time(T::short_first_step, 1.20), 1min);
  EXPECT_EQ(overload_time(T::short_first_step, 1.40), 3s);
  EXPECT_EQ(overload_time(T::short_first_step, 1.51), 500ms);
}

TEST(Ups, OverloadEndsInTheBypassOrInTheDark) {
  Ups ups = make(plain());
  ups.set_load(at(10s), 120_kW, 0_W);
  ups.advance(at(70s) - 1ns);
  EXPECT_EQ(ups.state(), UpsState::on_input);
  ups.advance(at(70s));
  EXPECT_EQ(ups.state(), UpsState::on_bypass);
  ups.set_load(at(75s), 90_kW, 0_W);
  ups.advance(at(100s));
  EXPECT_EQ(ups.state(), UpsState::on_input);

  Ups on_battery = make(plain());
  on_battery.set_input(at(0s), UpsInput::none);
  on_battery.set_load(at(10s), 140_kW, 0_W);
  on_battery.advance(at(13s));
  EXPECT_EQ(on_battery.state(), UpsState::off);
}

// Half of the time at one overload, then half of the time at another.
TEST(Ups, OverloadUsesUpItsTimeInParts) {
  Ups ups = make(plain());
  ups.set_load(at(10s), 120_kW, 0_W);
  ups.set_load(at(40s), 140_kW, 0_W);
  EXPECT_EQ(ups.next_event(), at(41s + 500ms));
}

TEST(Ups, AFailedInverterGoesToBypassAndThenDependsOnTheInput) {
  Ups ups = make(plain());
  ups.fail(at(10s));
  EXPECT_EQ(ups.state(), UpsState::on_bypass);
  EXPECT_TRUE(ups.is_live());
  ups.set_input(at(20s), UpsInput::none);
  EXPECT_EQ(ups.state(), UpsState::off);
  ups.set_input(at(30s), UpsInput::utility);
  ups.advance(at(1h));
  EXPECT_EQ(ups.state(), UpsState::off);
  ups.restore(at(1h));
  ups.advance(at(1h + 10s));
  EXPECT_EQ(ups.state(), UpsState::on_input);

  UpsSpec spec = plain();
  spec.bypass = false;
  Ups bare = make(spec);
  bare.fail(at(10s));
  EXPECT_EQ(bare.state(), UpsState::off);
}

TEST(Ups, ABatteryWithoutStringsLosesTheLoad) {
  UpsSpec spec = plain();
  spec.battery.fail_on_demand = 1.0;
  Ups ups = make(spec);
  ups.set_input(at(10s), UpsInput::none);
  EXPECT_EQ(ups.state(), UpsState::off);
}

TEST(Ups, SplittingAnIntervalChangesNothing) {
  Ups whole = make(plain()), split = make(plain());
  for (Ups* ups : {&whole, &split}) {
    ups->set_load(at(5s), 105_kW, 4_kW);
    ups->set_input(at(10s), UpsInput::none);
  }
  for (int i = 0; i < 200; ++i) split.advance(at(10s + i * 500ms));
  for (Ups* ups : {&whole, &split}) ups->set_input(at(120s), UpsInput::utility);
  whole.advance(at(5h));
  for (int i = 0; i < 18000; ++i) split.advance(at(120s + i * 1s));
  split.advance(at(5h));
  EXPECT_EQ(whole.state(), split.state());
  EXPECT_EQ(whole.battery().given(at(5h)), split.battery().given(at(5h)));
  EXPECT_EQ(whole.battery().taken(at(5h)), split.battery().taken(at(5h)));
}

}  // namespace
}  // namespace trainyard::models
