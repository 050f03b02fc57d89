#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/models/facility/cooling_plant_rig.hpp"

/// CDUs that run alike are one branch of the network: against the plant in which each is by itself.
namespace trainyard::models {
namespace {

using namespace literals;
using namespace std::chrono_literals;

constexpr std::size_t cdus = 8, entries = 11;  // eight rows on plates, three on air

CoolingPlantSpec site(double day_swing = 8) {
  CoolingPlantSpec spec = CoolingRig::hall();
  spec.weather = {.mean = 18, .day_swing = day_swing, .year_swing = 0};
  WaterLoopSpec& loop = spec.loops["north"];
  loop.design_heat = Watts(1.2e6);
  loop.chillers->capacity = Watts(400e3);
  loop.coolers = CoolersSpec{.units = 2, .capacity = Watts(700e3)};
  spec.cdus["cdu"] = {.loop = "north", .count = int(cdus), .capacity = Watts(150e3), .volume = 0.3};
  return spec;
}

/// `each_by_itself`: specs differ in what no law asks for (a door's capacity without a door).
std::vector<CooledRack> rows(bool each_by_itself = false) {
  std::vector<CooledRack> racks;
  for (std::size_t i = 0; i < entries; ++i) {
    RackCoolingSpec s{.room = "hall", .count = 2};
    if (i < cdus) {
      s.cdu = "cdu-" + std::to_string(i + 1);
      s.liquid_share = 0.8;
    }
    if (each_by_itself) s.rear_door_capacity = Watts(30e3 + double(i));
    racks.push_back({"row-" + std::to_string(i), s});
  }
  return racks;
}

/// Heats of all, of one, faults and repairs of pumps and air units.
void play(CoolingRig& rig, std::uint64_t seed, Duration length) {
  sim::Stream luck(sim::Seed{seed}, "play");
  rig.plant->set_rack_heats(std::vector<Watts>(entries, 30_kW));
  std::set<std::string> broken;
  for (Time t = start_of_run;;) {
    t += seconds(luck.exponential(4 * 3600.0));
    if (t >= start_of_run + length) break;
    rig.engine.run_until(t);
    const Watts heat(10e3 * double(1 + luck.below(4)));
    const std::string pump = "cdu-" + std::to_string(1 + luck.below(cdus)) + "/pump-" +
                             std::to_string(1 + luck.below(2));
    const std::size_t row = luck.below(entries);
    switch (luck.below(7)) {
      case 0:
      case 1:
        rig.plant->set_rack_heats(std::vector<Watts>(entries, heat));
        break;
      case 2:
        rig.plant->set_rack_heat(row, heat);
        break;
      case 3:
        rig.plant->fail(pump);
        broken.insert(pump);
        break;
      case 4:
        rig.plant->fail("hall/crah-2");
        broken.insert("hall/crah-2");
        break;
      default:
        for (const std::string& unit : broken) rig.plant->restore(unit);
        broken.clear();
    }
  }
  rig.engine.run_until(start_of_run + length);
}

TEST(CoolingPlantBranches, a_month_is_that_of_the_plant_without_them) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    CoolingRig joined(site(), rows()), apart(site(), rows(true));
    joined.stops_when_hot = apart.stops_when_hot = false;
    play(joined, seed, 30 * 24h);
    play(apart, seed, 30 * 24h);
    EXPECT_LT(joined.plant->branches(), entries);
    EXPECT_EQ(apart.plant->branches(), entries);
    EXPECT_LT(std::abs(joined.imbalance()), 1e-9) << seed;
    const auto a = joined.plant->energy(), b = apart.plant->energy();
    EXPECT_NEAR(a.racks / b.racks, 1, 1e-12) << seed;
    EXPECT_NEAR(a.fans / b.fans, 1, 1e-9) << seed;
    EXPECT_NEAR(a.pumps / b.pumps, 1, 1e-9) << seed;
    EXPECT_NEAR(a.chillers / b.chillers, 1, 1e-9) << seed;
    EXPECT_NEAR(a.rejected / b.rejected, 1, 1e-9) << seed;
    EXPECT_NEAR(a.make_up_kg / b.make_up_kg, 1, 1e-9) << seed;
    for (std::size_t i = 0; i < entries; ++i) {
      EXPECT_NEAR(joined.plant->condition(i).air_C, apart.plant->condition(i).air_C, 1e-6) << i;
      EXPECT_NEAR(joined.plant->condition(i).coolant_C, apart.plant->condition(i).coolant_C, 1e-6);
      EXPECT_EQ(joined.plant->condition(i).flow, apart.plant->condition(i).flow);
    }
    // What each row was told, in its order, and when: at 1e-7 K/s touch_K is 10 ms.
    for (std::size_t i = 0; i < entries; ++i) {
      const auto of_row = [&](const CoolingRig& rig) {
        std::vector<CoolingRig::Told> told;
        std::copy_if(rig.told.begin(), rig.told.end(), std::back_inserter(told),
                     [&](const CoolingRig::Told& t) { return t.rack == i; });
        return told;
      };
      const auto x = of_row(joined), y = of_row(apart);
      ASSERT_EQ(x.size(), y.size()) << "seed " << seed << " row " << i;
      EXPECT_GT(x.size(), 20u);
      for (std::size_t k = 0; k < x.size(); ++k) {
        EXPECT_LT(std::abs(to_seconds(x[k].when - y[k].when)), 5e-2) << "seed " << seed;
        EXPECT_NEAR(x[k].condition.air_C, y[k].condition.air_C, 1e-6);
        EXPECT_NEAR(x[k].condition.coolant_C, y[k].condition.coolant_C, 1e-6);
      }
    }
    const auto &events = joined.recorder.events(), &others = apart.recorder.events();
    ASSERT_EQ(events.size(), others.size()) << seed;
    for (std::size_t k = 0; k < events.size(); ++k) {
      EXPECT_EQ(events[k].kind, others[k].kind) << k;
      EXPECT_EQ(events[k].subject, others[k].subject) << k;
      EXPECT_LT(std::abs(to_seconds(events[k].when - others[k].when)), 5e-2) << k;
    }
  }
}

TEST(CoolingPlantBranches, a_fault_leaves_the_branch_and_a_repair_joins_it) {
  CoolingRig rig(site(0), rows());
  rig.plant->set_rack_heats(std::vector<Watts>(entries, 30_kW));
  rig.run(24h);
  EXPECT_EQ(rig.plant->branches(), 2u);  // eight CDUs, three rows on air
  rig.plant->fail("cdu-3/pump-1");
  EXPECT_EQ(rig.plant->branches(), 3u);
  rig.run(24h + 10s);
  rig.plant->fail("cdu-5/pump-2");
  EXPECT_EQ(rig.plant->branches(), 4u);  // it is warmer already where one pump was lost first
  rig.run(25h);
  EXPECT_EQ(rig.plant->condition(2).flow, rig.plant->condition(4).flow);
  EXPECT_NE(rig.plant->condition(2).flow, rig.plant->condition(3).flow);
  rig.plant->restore("cdu-3/pump-1");
  rig.plant->restore("cdu-5/pump-2");
  rig.run(26h);
  rig.plant->set_rack_heats(std::vector<Watts>(entries, 29_kW));
  rig.run(48h);
  EXPECT_EQ(rig.plant->branches(), 2u);
  EXPECT_LT(std::abs(rig.imbalance()), 1e-9);
}

TEST(CoolingPlantBranches, heat_by_heat_is_as_all_heats_at_once) {
  CoolingRig once(site(0), rows()), each(site(0), rows());
  std::vector<Watts> heats(entries, 30_kW);
  heats[4] = 10_kW;
  once.plant->set_rack_heats(heats);
  for (std::size_t i = 0; i < entries; ++i) each.plant->set_rack_heat(i, heats[i]);
  EXPECT_EQ(once.plant->branches(), 3u);
  EXPECT_EQ(each.plant->branches(), 3u);
  once.run(24h);
  each.run(24h);
  for (std::size_t i = 0; i < entries; ++i)
    EXPECT_NEAR(once.plant->condition(i).air_C, each.plant->condition(i).air_C, 1e-9);
}

TEST(CoolingPlantBranches, the_same_heats_again_change_nothing) {
  CoolingRig rig(site(), rows());
  const std::vector<Watts> heats(entries, 30_kW);
  rig.plant->set_rack_heats(heats);
  rig.run(30h + 1s);
  const auto made = rig.plant->modes().decompositions();
  const auto told = rig.told.size();
  rig.plant->set_rack_heats(heats);
  EXPECT_EQ(rig.plant->modes().decompositions(), made);
  EXPECT_EQ(rig.told.size(), told);
}

TEST(CoolingPlantBranches, days_of_weather_within_the_band_of_the_loop_make_no_mode) {
  CoolingRig rig(site(), rows());
  rig.plant->set_rack_heats(std::vector<Watts>(entries, 20_kW));
  rig.run(10 * 24h);
  const auto made = rig.plant->modes().decompositions();
  rig.run(20 * 24h);
  EXPECT_EQ(rig.plant->modes().decompositions(), made);
}

TEST(CoolingPlantBranches, the_worst_hour_is_kept_with_what_limits) {
  CoolingPlantSpec spec = site(0);
  CoolingRig rig(spec, rows());
  rig.plant->set_rack_heats(std::vector<Watts>(entries, 20_kW));
  rig.run(24h);
  std::vector<Watts> heats(entries, 20_kW);
  heats[6] = 90_kW;  // 2 · 90 · 0.8 = 144 of 150 kW at 4 K, and 11 K are there
  rig.plant->set_rack_heats(heats);
  const CoolingLimit hot = rig.plant->worst();
  EXPECT_EQ(hot.at, start_of_run + 24h);
  rig.run(30h);
  heats[6] = 20_kW;
  rig.plant->set_rack_heats(heats);
  rig.run(48h);
  const CoolingLimit worst = rig.plant->worst();
  EXPECT_GE(worst.utilisation, hot.utilisation);
  EXPECT_GE(worst.utilisation, rig.plant->limit().utilisation);
  EXPECT_GE(worst.at, start_of_run + 24h);
  EXPECT_LE(worst.at, start_of_run + 30h);
  for (int i = 1; i <= 2; ++i) rig.plant->fail("cdu-2/pump-" + std::to_string(i));
  EXPECT_EQ(rig.plant->worst().part, "cdu-2");
  EXPECT_EQ(rig.plant->worst().at, start_of_run + 48h);
}

}  // namespace
}  // namespace trainyard::models
