#include "models/facility/cooling_plant.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "models/facility/cooling_units.hpp"
#include "models/facility/liquid_loop.hpp"
#include "tests/models/facility/cooling_plant_rig.hpp"

namespace trainyard::models {
namespace {

using namespace literals;
using namespace std::chrono_literals;
using State = RestartMachine::State;

TEST(CoolingPlant, at_rest_every_number_follows_by_hand) {
  CoolingRig rig(CoolingRig::hall(), CoolingRig::ten_racks());
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(10 * 24h);
  // Ten racks draw 33.3 kW/K; eight units move 6.67 kW/K each: speed 0.625, power 0.625^3 of
  // 8 · 80 kW · 4 %.
  const double fans = 25.6e3 * 0.625 * 0.625 * 0.625;
  const double pumps = 12e3;
  const double cop = 0.4 * 286.15 / (25 + 12 - 13);
  EXPECT_NEAR(rig.plant->power("hall/crah-3").value(), fans / 8, 1e-6);
  EXPECT_NEAR(rig.plant->power("north/pump-1").value(), pumps / 2, 1e-6);
  EXPECT_NEAR(rig.plant->power("north/chiller-2").value(), (400e3 + fans + pumps) / cop / 4, 5);
  // The loop stands at the share of its band; supply air near its set-point; inlets 0.05/0.95 of
  // 12 K above.
  EXPECT_NEAR(rig.plant->loop_temperature("north"), 18 + (400e3 + fans + pumps) / 600e3, 1e-3);
  EXPECT_NEAR(rig.plant->room_temperature("hall"), 24, 0.5);
  EXPECT_NEAR(rig.plant->condition(0).air_C - rig.plant->room_temperature("hall"), 12 * 0.05 / 0.95,
              1e-3);
  EXPECT_LT(std::abs(rig.imbalance()), 1e-9);
  EXPECT_FALSE(rig.plant->is_short("north"));
}

TEST(CoolingPlant, pue_of_a_summer_week_is_the_sum_over_its_hours) {
  WeatherSeries week;
  for (int h = 0; h < 168; ++h) {
    week.dry.push_back(24 + 9 * std::sin(h * 0.2618) + 0.01 * h);
    week.wet.push_back(week.dry.back() - 6);
  }
  CoolingRig rig(CoolingRig::hall(), CoolingRig::ten_racks(), week);
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(168h);
  const auto before = rig.plant->energy();
  rig.run(336h);
  const auto after = rig.plant->energy();
  const double fans = 25.6e3 * 0.625 * 0.625 * 0.625, pumps = 12e3;
  double sum = 0;
  for (const double dry : week.dry)
    sum += 3600 * (400e3 + fans + pumps) * (dry + 12 - 13) / (0.4 * 286.15);
  EXPECT_NEAR((after.chillers - before.chillers).value() / sum, 1, 1e-4);
  const double it = 400e3 * 168 * 3600;
  EXPECT_NEAR((after.racks - before.racks).value() / it, 1, 1e-12);
  const double by_hand = 1 + (sum + (fans + pumps) * 168 * 3600) / it;
  EXPECT_NEAR(1 + (after.cooling() - before.cooling()) / (after.racks - before.racks), by_hand,
              3e-5);
}

TEST(CoolingPlant, chillers_lost_the_loop_buffers_then_the_air_rises) {
  CoolingRig rig(CoolingRig::hall(), CoolingRig::ten_racks());
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(48h);
  const double loop = rig.plant->loop_temperature("north");
  const auto root = rig.plant->fail("north/chiller-1");
  for (const char* other : {"2", "3", "4"})
    rig.plant->fail(std::string("north/chiller-") + other, root);
  rig.run(48h + 120s);
  // 418 kW into 20 m3: 5.0 mK/s.
  const double rate = 418.25e3 / loop_capacity(20);
  EXPECT_NEAR(rig.plant->loop_temperature("north") - loop, 120 * rate, 0.02 * 120 * rate);
  EXPECT_NEAR(rig.plant->room_temperature("hall"), 24, 0.7);
  ASSERT_FALSE(rig.warnings.empty());
  EXPECT_LT(rig.warnings.back().window, 3h);
  rig.run(54h);
  ASSERT_FALSE(rig.cooled.empty());
  EXPECT_FALSE(rig.cooled[0].is_cooled);
  EXPECT_GT(*rig.time_of("rack is warm"), *rig.time_of("cooling falls short"));
  EXPECT_GT(*rig.time_of("rack too hot"), *rig.time_of("rack is warm"));
  EXPECT_EQ(rig.chain(rig.cooled[0].cause),
            "rack too hot <- rack is warm <- cooling unit failed <- cooling unit failed");
  EXPECT_EQ(rig.warnings.back().window, forever);  // stopped: nothing is left to lose
  EXPECT_LT(std::abs(rig.imbalance()), 1e-9);
}

TEST(CoolingPlant, the_warning_comes_true) {
  CoolingRig rig(CoolingRig::hall(), CoolingRig::ten_racks());
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(48h);
  for (int i = 1; i <= 8; ++i) rig.plant->set_fed("hall/crah-" + std::to_string(i), false);
  // No fans: each rack warms its own air and steel, and what little leaks into the room.
  ASSERT_FALSE(rig.warnings.empty());
  const Time foreseen = rig.warnings.back().when + rig.warnings.back().window;
  rig.run(49h);
  ASSERT_FALSE(rig.cooled.empty());
  EXPECT_LT(rig.cooled[0].when - (start_of_run + 48h), 60s);  // as published for 10 kW and more
  EXPECT_NEAR(to_seconds(rig.cooled[0].when - foreseen), 0, 1e-3);
}

TEST(CoolingPlant, n_plus_one_air_units_the_others_speed_up) {
  CoolingRig rig(CoolingRig::hall(), CoolingRig::ten_racks());
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(24h);
  rig.plant->fail("hall/crah-1");
  EXPECT_EQ(rig.plant->power("hall/crah-1"), 0_W);
  EXPECT_NEAR(rig.plant->power("hall/crah-2").value(), 3.2e3 * std::pow(5.0 / 7.0, 3), 1e-6);
  rig.run(48h);
  EXPECT_TRUE(rig.cooled.empty());
  EXPECT_NEAR(rig.plant->room_temperature("hall"), 24, 0.7);
}

TEST(CoolingPlant, one_of_two_cdu_pumps_lost_leaves_two_thirds_of_the_flow) {
  CoolingRig rig(CoolingRig::with_cdu(), CoolingRig::liquid_rack());
  rig.plant->set_rack_heat(0, 72_kW);
  rig.run(24h);
  EXPECT_NEAR(rig.plant->condition(0).coolant_C, 30, 0.6);
  EXPECT_EQ(rig.plant->condition(0).flow, 1);
  rig.told.clear();
  const auto fault = rig.plant->fail("cdu/pump-2");
  ASSERT_EQ(rig.told.size(), 1u);
  EXPECT_NEAR(rig.told[0].condition.flow, 0.659754, 1e-6);
  EXPECT_EQ(rig.told[0].cause, fault);
  rig.run(25h);
  // Plates: 72 kW through 2400 W/K · flow^0.8.
  EXPECT_NEAR(rig.plant->plate_temperature(0) - rig.plant->condition(0).coolant_C,
              30 / std::pow(0.659754, 0.8), 0.01);
  EXPECT_TRUE(rig.cooled.empty());
}

TEST(CoolingPlant, without_flow_only_dies_and_plates_are_left) {
  CoolingRig rig(CoolingRig::with_cdu(), CoolingRig::liquid_rack());
  rig.stops_when_hot = false;
  rig.plant->set_rack_heat(0, 72_kW);
  rig.run(24h);
  const double plate = rig.plant->plate_temperature(0);
  rig.plant->fail("cdu/pump-1");
  rig.plant->fail("cdu/pump-2");
  rig.run(24h + 9s);
  EXPECT_NEAR(rig.plant->plate_temperature(0) - plate, 30.0, 1e-6);  // 72 · 300 J/K, 9 s
  // From about 60 to 95 degrees: 3.33 K/s.
  rig.run(24h + 60s);
  ASSERT_EQ(rig.cooled.size(), 1u);
  EXPECT_NEAR(to_seconds(rig.cooled[0].when - (start_of_run + 24h)), (95 - plate) / (72e3 / 21.6e3),
              1e-3);
}

TEST(CoolingPlant, an_immersion_tank_rides_through_lost_pumps) {
  CoolingPlantSpec spec = CoolingRig::with_cdu();
  spec.cdus["cdu"].tank = tank_capacity(1500, 2000);
  CoolingRig rig(spec, CoolingRig::liquid_rack());
  rig.plant->set_rack_heat(0, 72_kW);
  rig.run(24h);
  const double fluid = rig.plant->coolant_temperature("cdu");
  rig.plant->fail("cdu/pump-1");
  rig.plant->fail("cdu/pump-2");
  rig.run(24h + 5min);
  // 72 kW into 3 MJ/K of fluid, 0.83 of coolant and 0.02 of plates: 18.7 mK/s.
  const double rate = 72e3 / (3e6 + loop_capacity(0.2) + 21.6e3);
  EXPECT_NEAR(rig.plant->coolant_temperature("cdu") - fluid, 300 * rate, 0.005 * 300 * rate);
  EXPECT_TRUE(rig.cooled.empty());
  EXPECT_EQ(rig.warnings.back().racks, 1u);
}

TEST(CoolingPlant, a_rear_door_takes_heat_to_the_loop_before_the_room) {
  std::vector<CooledRack> racks = CoolingRig::ten_racks();
  racks[0].spec.rear_door = 0.6;
  CoolingRig rig(CoolingRig::hall(), racks);
  rig.plant->set_rack_heat(0, 25_kW);
  rig.run(240h);
  // 3.33 kW/K, outlets 7.5 K above inlets at 24: 0.6 (24 + 7.5 - 18.5) 3.33 = 26 kW each, so the
  // door alone does it and inlets settle a little below the set-point.
  EXPECT_LT(rig.plant->condition(0).air_C, 24.1);
  EXPECT_NEAR(rig.plant->condition(0).air_C, 23.6, 0.6);
  EXPECT_LT(std::abs(rig.imbalance()), 1e-9);
}

TEST(CoolingPlant, a_heat_wave_takes_from_all_chillers_and_the_hottest_hour_names_the_loop) {
  CoolingPlantSpec spec = CoolingRig::hall();
  spec.loops["north"].chillers->capacity = Watts(110e3);
  WeatherSeries day{.dry = std::vector<double>(24, 33.0), .wet = std::vector<double>(24, 20.0)};
  for (int h = 10; h < 18; ++h) day.dry[std::size_t(h)] = 38 + (h < 14 ? h - 10 : 17 - h);
  CoolingRig rig(spec, CoolingRig::ten_racks(), day);
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(9h);
  // 418 of 440 kW.
  EXPECT_EQ(rig.plant->limit().part, "north");
  EXPECT_NEAR(rig.plant->limit().utilisation, 0.95, 0.03);
  rig.run(14h - 1ns);
  EXPECT_EQ(rig.plant->weather().hottest(start_of_run, start_of_run + 24h), start_of_run + 13h);
  // 41 degrees: 9 % less, 400 kW.
  EXPECT_TRUE(rig.plant->is_short("north"));
  EXPECT_EQ(rig.plant->limit().part, "north");
  EXPECT_GT(rig.plant->limit().utilisation, 1);
  for (int i = 1; i <= 4; ++i)
    EXPECT_EQ(rig.plant->state("north/chiller-" + std::to_string(i)), State::running);
  EXPECT_GT(rig.plant->loop_temperature("north"), 19);
  bool is_named = false;
  for (const auto& e : rig.recorder.events())
    if (rig.recorder.kinds()[e.kind.index()].name == "cooling falls short")
      is_named = rig.chain(e.cause) == "hotter than the chillers are rated for";
  EXPECT_TRUE(is_named);
  rig.run(23h);
  EXPECT_FALSE(rig.plant->is_short("north"));
}

TEST(CoolingPlant, heat_trips_chillers_twice_and_people_wait_for_the_evening) {
  WeatherSeries day{.dry = std::vector<double>(24, 30.0), .wet = std::vector<double>(24, 20.0)};
  for (std::size_t h = 12; h < 15; ++h) day.dry[h] = 45;
  CoolingRig rig(CoolingRig::hall(), CoolingRig::ten_racks(), day);
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(12h);
  EXPECT_EQ(rig.recorder.count("chiller tripped by heat"), 4u);
  rig.run(13h);
  // Six minutes later each starts, at its first step of capacity it trips again.
  EXPECT_EQ(rig.recorder.count("chiller tripped by heat"), 8u);
  EXPECT_EQ(rig.recorder.count("cooling unit locked out"), 4u);
  rig.run(15h - 1ns);
  EXPECT_EQ(rig.recorder.count("cooling unit reset by hand"), 0u);
  rig.run(15h + 15min);
  EXPECT_EQ(rig.recorder.count("cooling unit reset by hand"), 2u);  // two people
  rig.run(15h + 30min);
  EXPECT_EQ(rig.recorder.count("cooling unit reset by hand"), 4u);
  rig.run(16h);
  EXPECT_EQ(rig.plant->state("north/chiller-4"), State::running);
}

TEST(CoolingPlant, after_a_sag_a_chiller_that_will_not_start_waits_for_the_crew) {
  CoolingPlantSpec spec = CoolingRig::hall();
  spec.loops["north"].chillers->restart.start_failure = 1;
  CoolingRig rig(spec, CoolingRig::ten_racks());
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(24h);
  const auto sag = rig.recorder.event(rig.engine.now(), sim::Phase::failure,
                                      rig.recorder.kind("utility sag", ""),
                                      rig.recorder.subject("utility"), {}, 0);
  rig.plant->set_fed("north/chiller-1", false, sag);
  rig.plant->set_fed("north/chiller-1", true, sag);
  rig.run(24h + 720s - 1ns);
  EXPECT_EQ(rig.plant->state("north/chiller-1"), State::waiting);
  rig.run(24h + 720s);
  EXPECT_EQ(rig.plant->state("north/chiller-1"), State::locked);
  // Ten minutes until they are there, fifteen for the reset.
  rig.run(24h + 720s + 25min - 1ns);
  EXPECT_EQ(rig.plant->state("north/chiller-1"), State::locked);
  rig.run(24h + 720s + 25min);
  EXPECT_EQ(rig.plant->state("north/chiller-1"), State::waiting);
  std::string chain;
  for (std::size_t i = 0; i < rig.recorder.events().size(); ++i) {
    const auto& event = rig.recorder.events()[i];
    if (rig.recorder.kinds()[event.kind.index()].name == "cooling unit locked out")
      chain = rig.chain(sim::EventIndex(i));
  }
  EXPECT_EQ(chain,
            "cooling unit locked out <- cooling unit did not start <- cooling unit did not "
            "start <- cooling unit stopped <- utility sag");
}

TEST(CoolingPlant, a_group_control_locks_sound_chillers_too) {
  CoolingPlantSpec spec = CoolingRig::hall();
  spec.loops["north"].chillers->group_lock = 2;
  CoolingRig rig(spec, CoolingRig::ten_racks());
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(1h);
  const auto air = rig.plant->trip("north/chiller-1");
  rig.plant->trip("north/chiller-2", air);
  rig.plant->trip("north/chiller-3", air);
  rig.run(1h + 500s);  // all three ramp again
  rig.plant->trip("north/chiller-1");
  EXPECT_EQ(rig.plant->state("north/chiller-3"), State::ramping);
  rig.plant->trip("north/chiller-2");
  EXPECT_EQ(rig.plant->state("north/chiller-3"), State::locked);
  EXPECT_EQ(rig.plant->state("north/chiller-4"), State::running);
  // People reset them one after the other; the group does not lock again what they have just freed.
  rig.run(12h);
  int locked = 0, reset = 0;
  for (const auto& event : rig.recorder.events()) {
    const std::string& kind = rig.recorder.kinds()[event.kind.index()].name;
    locked += kind == "cooling unit locked out";
    reset += kind == "cooling unit reset by hand";
  }
  EXPECT_EQ(locked, 3);
  EXPECT_EQ(reset, 3);
  for (const char* unit : {"north/chiller-1", "north/chiller-2", "north/chiller-3"})
    EXPECT_EQ(rig.plant->state(unit), State::running) << unit;
}

TEST(CoolingPlant, cold_weather_needs_no_chillers_and_towers_take_water) {
  CoolingPlantSpec spec = CoolingRig::hall();
  spec.loops["north"].coolers = CoolersSpec{.units = 2, .capacity = Watts(400e3)};
  const WeatherSeries cold{.dry = {8}, .wet = {5}};
  CoolingRig rig(spec, CoolingRig::ten_racks(), cold);
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(240h);
  const auto e = rig.plant->energy();
  EXPECT_EQ(e.chillers, 0_J);
  EXPECT_NEAR(e.coolers / e.rejected, 0.015, 1e-12);
  EXPECT_NEAR(e.evaporated_kg, e.rejected.value() / 2.45e6, 1e-6 * e.evaporated_kg);
  EXPECT_NEAR(e.make_up_kg / e.evaporated_kg, 4.0 / 3.0, 1e-12);
  EXPECT_NEAR(e.wue(), 2.05, 0.05);  // 1.46939 · 4/3 · 418/400
}

TEST(CoolingPlant, partial_economizer_shares_the_heat) {
  CoolingPlantSpec spec = CoolingRig::hall();
  spec.loops["north"].coolers = CoolersSpec{.units = 2, .capacity = Watts(400e3)};
  CoolingRig rig(spec, CoolingRig::ten_racks(), WeatherSeries{.dry = {22}, .wet = {17}});
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(240h);
  // Free: 800 kW at 5 K, so 160 kW/K above 17 degrees.
  const double T = rig.plant->loop_temperature("north");
  const double all = 400e3 + 25.6e3 * 0.625 * 0.625 * 0.625 + 12e3;
  const double chilled = all - 160e3 * (T - 17);
  EXPECT_NEAR(T, 18 + all / 600e3, 1e-3);
  EXPECT_NEAR(rig.plant->power("north/chiller-1").value(),
              chilled / 4 / (0.4 * 286.15 / (22 + 12 - 13)), 5);
}

TEST(CoolingPlant, a_loop_that_cools_down_leaves_its_chillers_to_coolers) {
  CoolingPlantSpec spec = CoolingRig::hall();
  spec.loops["north"].coolers = CoolersSpec{.units = 2, .capacity = Watts(400e3)};
  CoolingRig rig(spec, CoolingRig::ten_racks(), WeatherSeries{.dry = {22}, .wet = {17}});
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(48h);
  EXPECT_GT(rig.plant->power("north/chiller-1").value(), 0);
  rig.plant->set_rack_heat(0, 5_kW);
  for (int minute = 1; minute < 60; ++minute) {
    rig.run(48h + std::chrono::minutes(minute));
    EXPECT_GE(rig.plant->power("north/chiller-1").value(), 0) << minute;
  }
  // Asked is more than free above 17 + 1 / (1 - 160 / 600) = 18.3636 degrees only.
  EXPECT_LT(rig.plant->loop_temperature("north"), 18.3636);
  EXPECT_EQ(rig.plant->power("north/chiller-1"), 0_W);
}

TEST(CoolingPlant, valves_follow_until_steel_and_walls_are_warm) {
  CoolingRig rig(CoolingRig::hall(), CoolingRig::ten_racks());
  rig.plant->set_rack_heat(0, 10_kW);
  rig.run(24h);
  for (const Watts heat : {40_kW, 3_kW}) {
    rig.plant->set_rack_heat(0, heat);
    const Time start = rig.engine.now();
    for (int minute = 1; minute < 600; ++minute) {
      rig.engine.run_until(start + std::chrono::minutes(minute));
      EXPECT_NEAR(rig.plant->room_temperature("hall"), 24, 0.51) << minute;
    }
  }
}

TEST(CoolingPlant, pumps_lost_stop_chillers_and_they_come_back_later) {
  CoolingRig rig(CoolingRig::hall(), CoolingRig::ten_racks());
  rig.plant->set_rack_heat(0, 40_kW);
  rig.run(24h);
  const auto root = rig.plant->fail("north/pump-1");
  rig.plant->fail("north/pump-2", root);
  EXPECT_EQ(rig.plant->state("north/chiller-1"), State::waiting);
  rig.run(24h + 60s);
  rig.plant->restore("north/pump-1");
  rig.run(24h + 60s + 20s + 30s);
  EXPECT_EQ(rig.plant->state("north/chiller-1"), State::waiting);  // anti-recycle
  rig.run(24h + 660s);
  EXPECT_EQ(rig.plant->state("north/chiller-1"), State::running);
  EXPECT_LT(std::abs(rig.imbalance()), 1e-9);
}

TEST(CoolingPlant, coolant_stays_above_the_dew_point) {
  CoolingPlantSpec spec = CoolingRig::with_cdu();
  spec.cdus["cdu"].set_point = 14;
  spec.loops["north"].set_point = 7;
  const WeatherSeries damp{.dry = {24}, .wet = {23}};
  CoolingRig rig(spec, CoolingRig::liquid_rack(), damp);
  rig.plant->set_rack_heat(0, 72_kW);
  rig.run(24h);
  // Outdoor dew point is 22.6, the room is dried to 15: 17 degrees, within the dead band.
  EXPECT_NEAR(rig.plant->coolant_temperature("cdu"), 17, 0.51);
}

TEST(CoolingPlant, leaks_are_told_with_their_rack) {
  CoolingPlantSpec spec = CoolingRig::with_cdu();
  spec.leaks = LeakSpec{.per_rack_year = 30};
  CoolingRig rig(spec, CoolingRig::liquid_rack());
  rig.run(24h * 365);
  EXPECT_GT(rig.leaks.size(), 8u);
  EXPECT_EQ(rig.recorder.count("coolant leak"), rig.leaks.size());
  EXPECT_EQ(rig.recorder.count("leaking rack isolated"), rig.leaks.size());
}

}  // namespace
}  // namespace trainyard::models
