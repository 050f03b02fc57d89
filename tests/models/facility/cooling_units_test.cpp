#include "models/facility/cooling_units.hpp"

#include <gtest/gtest.h>

namespace trainyard::models {
namespace {

using namespace literals;

TEST(PumpFlow, falls_by_the_rule_of_parallel_pumps_and_not_to_zero) {
  EXPECT_NEAR(pump_flow(1, 2), 0.659754, 1e-6);  // 0.5^0.6
  EXPECT_NEAR(pump_flow(3, 4), 0.841466, 1e-6);  // 0.75^0.6
  EXPECT_EQ(pump_flow(2, 2), 1);
  EXPECT_EQ(pump_flow(3, 2), 1);  // the third stands by
  EXPECT_EQ(pump_flow(0, 2), 0);
}

TEST(Fans, half_speed_takes_an_eighth) {
  EXPECT_EQ(fan_power(4_kW, 0.5), 500_W);
  // 30 kW/K for 8 fans of 5 kW/K: three quarters; one lost: 30/35; below the least speed: that.
  EXPECT_NEAR(fan_speed(30e3, 8, 5e3, 0.4), 0.75, 1e-12);
  EXPECT_NEAR(fan_speed(30e3, 7, 5e3, 0.4), 30.0 / 35.0, 1e-12);
  EXPECT_EQ(fan_speed(30e3, 5, 5e3, 0.4), 1);
  EXPECT_EQ(fan_speed(1e3, 8, 5e3, 0.4), 0.4);
  EXPECT_EQ(fan_speed(1e3, 0, 5e3, 0.4), 0);
}

TEST(Recirculation, is_what_supply_does_not_bring) {
  EXPECT_EQ(recirculation(0.05, 40e3, 30e3), 0.05);
  EXPECT_NEAR(recirculation(0.05, 24e3, 30e3), 0.2, 1e-12);
  EXPECT_EQ(recirculation(0.05, 0, 30e3), 0.98);
}

TEST(Recirculation, link_gives_the_rise_of_the_inlet) {
  // 40 kW at 12 K through the servers; a fifth comes round: 12 · 0.2 / 0.8 = 3 K.
  EXPECT_NEAR(40e3 / inlet_link(0.2, 40e3 / 12), 3.0, 1e-12);
}

TEST(Valve, opens_to_what_flows_in) {
  // 10 kW/K and 6 K: 60 kW open.
  EXPECT_NEAR(valve_opening(45_kW, 10e3, 24, 18), 0.75, 1e-12);
  EXPECT_EQ(valve_opening(60_kW, 10e3, 24, 18), 1);
  EXPECT_EQ(valve_opening(80_kW, 10e3, 24, 18), 1);
  EXPECT_EQ(valve_opening(1_kW, 10e3, 24, 25), 1);  // water too warm to ever hold it
  EXPECT_EQ(valve_opening(0_W, 10e3, 24, 18), 0);
}

TEST(RearDoor, takes_its_share_of_what_leaves_the_rack_above_the_water) {
  // 30 kW in 3 kW/K: outlet 24 + 10 = 34; effectiveness 0.6 of 3 kW/K · (34 - 18) = 28.8 kW.
  const RearDoor door = rear_door(0.6, 40_kW, 3e3, 30_kW, 24, 18);
  EXPECT_NEAR(door.heat_share * 30e3 + door.link_W_per_K * 6, 28.8e3, 1e-9);
  const RearDoor small = rear_door(0.6, 20_kW, 3e3, 30_kW, 24, 18);
  EXPECT_NEAR(small.heat_share * 30e3 + small.link_W_per_K * 6, 20e3, 1e-9);
  // Water warmer than the outlet: shut.
  EXPECT_EQ(rear_door(0.6, 40_kW, 3e3, 30_kW, 24, 40).link_W_per_K, 0);
}

}  // namespace
}  // namespace trainyard::models
