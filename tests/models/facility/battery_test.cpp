#include "models/facility/battery.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;

Time at(Duration d) {
  return start_of_run + d;
}

BatterySpec plain(double peukert) {
  BatterySpec spec;
  spec.autonomy = 300s;
  spec.peukert = peukert;
  spec.fail_on_demand = 0.0;
  return spec;
}

TEST(Battery, DischargeTimesAtHalfAndFourFifths) {
  struct Row {
    double peukert;
    double half_s;
    double four_fifths_s;
  };
  for (const Row& row : {Row{1.0, 600.0, 375.0}, {1.05, 621.16, 379.21}, {1.15, 665.74, 387.76}}) {
    const BatterySpec spec = plain(row.peukert);
    EXPECT_NEAR(to_seconds(discharge_time(spec, 100_kW, 50_kW)), row.half_s, 0.005);
    EXPECT_NEAR(to_seconds(discharge_time(spec, 100_kW, 80_kW)), row.four_fifths_s, 0.005);
    Battery battery(spec, 100_kW);
    battery.set_power(at(10s), 80_kW);
    EXPECT_NEAR(to_seconds(*battery.next_event() - at(10s)), row.four_fifths_s, 0.005);
  }
}

TEST(Battery, ChargeIsAStraightLineAndEndsAtItsEmptyTime) {
  Battery battery(plain(1.15), 100_kW);
  battery.set_power(at(0s), 50_kW);
  const Time empty = *battery.next_event();
  EXPECT_NEAR(battery.charge(start_of_run + (empty - start_of_run) / 4), 0.75, 1e-9);
  battery.advance(empty - 1ns);
  EXPECT_FALSE(battery.is_empty());
  battery.advance(empty);
  EXPECT_TRUE(battery.is_empty());
  EXPECT_EQ(battery.charge(empty), 0.0);
  EXPECT_EQ(battery.power(), 0_W);
}

// A tenth of the rating at 90 %: 0.9 of the charge in 0.9 / 0.09 = 10 autonomies.
TEST(Battery, RechargesTo90PercentInTenTimesTheAutonomy) {
  BatterySpec spec = plain(1.03);
  spec.charge = 0.0;
  Battery battery(spec, 100_kW);
  EXPECT_NEAR(battery.recharge_power().value(), 10e3, 1e-9);
  battery.set_power(at(0s), -battery.recharge_power());
  EXPECT_NEAR(battery.charge(at(3000s)), 0.9, 1e-12);
  const Time full = *battery.next_event();
  EXPECT_NEAR(to_seconds(full), 3000.0 / 0.9, 1e-6);
  battery.advance(full);
  EXPECT_TRUE(battery.is_full());
  EXPECT_EQ(battery.recharge_power(), 0_W);
  EXPECT_NEAR(battery.lost(full) / battery.taken(full), 0.1, 1e-9);
}

// 200 % for 10 s: 20 rated seconds would be 6.67 %, Peukert takes 2^1.15 / 30.
TEST(Battery, LossOfPeukertsLawIsCountedFromTheRating) {
  Battery battery(plain(1.15), 100_kW);
  battery.set_power(at(0s), 200_kW);
  battery.set_power(at(10s), 0_W);
  const double used_J = 100e3 * 10.0 * std::pow(2.0, 1.15);
  EXPECT_NEAR(battery.given(at(10s)).value(), 2e6, 1e-6);
  EXPECT_NEAR(battery.lost(at(10s)).value(), used_J - 2e6, 1e-6);
  const Joules before = battery.lost(at(10s));
  battery.set_power(at(10s), 50_kW);
  battery.set_power(at(30s), 0_W);
  EXPECT_LT(battery.lost(at(30s)), before);
}

TEST(Battery, FailedStringsTakeTheirShare) {
  BatterySpec spec = plain(1.0);
  spec.strings = 4;
  Battery battery(spec, 100_kW);
  battery.set_power(at(0s), 50_kW);
  battery.fail_strings(at(0s), 2);
  // Half of the energy is left for the same load: 300 s in place of 600 s.
  EXPECT_EQ(battery.next_event(), at(300s));
  battery.fail_strings(at(100s), 2);
  EXPECT_TRUE(battery.is_empty());
  EXPECT_EQ(battery.power(), 0_W);
  battery.repair(at(200s));
  EXPECT_EQ(battery.charge(at(200s)), 0.0);
}

TEST(Battery, StringsFailOnDemandAsOftenAsTheySay) {
  BatterySpec spec = plain(1.0);
  spec.strings = 10;
  spec.fail_on_demand = 0.02;
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    sim::Stream stream(sim::Seed{seed}, "strings");
    Battery battery(spec, 100_kW);
    battery.call(at(0s), stream);
    failed += 10 - battery.working_strings();
  }
  // 20 000 strings: 400 +- 2.576 sqrt(20 000 x 0.02 x 0.98)
  EXPECT_NEAR(failed, 400, 51);
}

TEST(Battery, SplittingAnIntervalChangesNothing) {
  Battery whole(plain(1.15), 100_kW), split(plain(1.15), 100_kW);
  whole.set_power(at(0s), 37_kW);
  split.set_power(at(0s), 37_kW);
  for (int i = 1; i < 500; ++i) {
    split.advance(at(i * 700ms));
    split.set_power(at(i * 700ms), 37_kW);
  }
  EXPECT_EQ(whole.next_event(), split.next_event());
  EXPECT_EQ(whole.charge(at(400s)), split.charge(at(400s)));
}

}  // namespace
}  // namespace trainyard::models
