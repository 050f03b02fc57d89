#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/facility/cooling_plant_rig.hpp"

namespace trainyard::models {
namespace {

using namespace literals;
using namespace std::chrono_literals;

CoolingPlantSpec mixed_site() {
  CoolingPlantSpec spec = CoolingRig::with_cdu();
  spec.weather = {.mean = 22, .day_swing = 9, .year_swing = 0};
  spec.weather.heat_waves["one"] = {.first_day = 10, .days = 4, .amplitude = 11};
  spec.loops["north"].coolers = CoolersSpec{.units = 2, .capacity = Watts(400e3)};
  spec.loops["north"].chillers->restart.start_failure = 0.2;
  spec.loops["north"].chillers->capacity = Watts(170e3);
  return spec;
}

std::vector<CooledRack> mixed_racks() {
  return {{"row", {.room = "hall", .count = 8}},
          {"door", {.room = "hall", .count = 2, .rear_door = 0.6}},
          {"liquid", {.room = "hall", .cdu = "cdu", .count = 1, .liquid_share = 0.8}}};
}

/// Random loads, faults, repairs and sags; `slices`: the run is looked at in between.
void play(CoolingRig& rig, std::uint64_t seed, Duration length, int slices) {
  sim::Stream luck(sim::Seed{seed}, "play");
  const std::vector<std::string> names = rig.plant->unit_names();
  Time t = start_of_run;
  while (t < start_of_run + length) {
    const Duration pause = seconds(luck.exponential(3 * 3600.0));
    for (int i = 1; i <= slices; ++i) {
      rig.engine.run_until(t + pause * i / slices);
      rig.plant->energy();
    }
    t += pause;
    const std::string& unit = names[luck.below(names.size())];
    const std::size_t rack = luck.below(3);
    const double heat = 40e3 * luck.uniform();
    switch (luck.below(5)) {
      case 0:
        rig.plant->fail(unit);
        break;
      case 1:
      case 2:
        for (const std::string& name : names) rig.plant->restore(name);
        break;
      case 3:
        rig.plant->set_fed(unit, false);
        rig.plant->set_fed(unit, true);
        break;
      default:
        rig.plant->set_rack_heat(rack, Watts(heat));
    }
  }
}

TEST(CoolingPlantBalance, heat_in_is_heat_out_and_stored_over_a_month_of_failures) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CoolingRig rig(mixed_site(), mixed_racks(), {}, seed);
    for (std::size_t i = 0; i < 3; ++i) rig.plant->set_rack_heat(i, 35_kW);
    play(rig, seed, 30 * 24h, 1);
    EXPECT_LT(std::abs(rig.imbalance()), 1e-9) << "seed " << seed;
    EXPECT_GT(rig.recorder.count("cooling unit failed"), 10u) << "seed " << seed;
    EXPECT_LT(std::abs(rig.plant->balance().residual.value() / rig.plant->energy().racks.value()),
              1e-9)
        << "seed " << seed;
  }
}

TEST(CoolingPlantBalance, looking_more_often_changes_nothing) {
  CoolingRig once(mixed_site(), mixed_racks()), often(mixed_site(), mixed_racks());
  for (CoolingRig* rig : {&once, &often}) {
    for (std::size_t i = 0; i < 3; ++i) rig->plant->set_rack_heat(i, 35_kW);
    play(*rig, 5, 10 * 24h, rig == &once ? 1 : 7);
  }
  const auto a = once.plant->energy(), b = often.plant->energy();
  EXPECT_NEAR(a.chillers / b.chillers, 1, 1e-9);
  EXPECT_NEAR(a.make_up_kg / b.make_up_kg, 1, 1e-9);
  EXPECT_NEAR(once.plant->condition(0).air_C, often.plant->condition(0).air_C, 1e-6);
  EXPECT_EQ(once.recorder.events().size(), often.recorder.events().size());
}

}  // namespace
}  // namespace trainyard::models
