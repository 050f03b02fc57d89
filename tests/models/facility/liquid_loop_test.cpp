#include "models/facility/liquid_loop.hpp"

#include <gtest/gtest.h>

namespace trainyard::models {
namespace {

using namespace literals;

TEST(BufferTime, tank_loop_and_plates) {
  EXPECT_NEAR(to_seconds(buffer_time(loop_capacity(100), 6, 5_MW)), 500, 0.2);
  EXPECT_NEAR(to_seconds(buffer_time(loop_capacity(0.1), 15, 120_kW)), 52, 0.2);
  EXPECT_NEAR(to_seconds(buffer_time(72 * 300.0, 30, 72_kW)), 9.0, 1e-9);
  EXPECT_EQ(buffer_time(1e6, 6, 0_W), forever);
}

TEST(Immersion, a_tank_rides_through_minutes) {
  // 1.5 t at 2 kJ/kg/K: 3 MJ/K, so 100 kW warm it by 2 K a minute.
  EXPECT_NEAR(to_seconds(buffer_time(tank_capacity(1500, 2000), 10, 100_kW)), 300, 1e-9);
}

TEST(Water, a_tower_evaporates_what_it_rejects) {
  // 2.45 MJ/kg: 1 kWh takes 1.469 kg, with 4 cycles of concentration 1.959 kg.
  EXPECT_NEAR(evaporated_kg(Joules(3.6e6)), 1.46939, 1e-5);
  EXPECT_NEAR(make_up_kg(evaporated_kg(Joules(3.6e6)), 4), 1.95918, 1e-5);
}

TEST(DewPointGuard, stays_two_kelvin_above) {
  EXPECT_EQ(least_coolant(15), 17);
}

}  // namespace
}  // namespace trainyard::models
