#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/facility/power_layout.hpp"
#include "models/facility/power_plant.hpp"
#include "tests/models/facility/power_plant_rig.hpp"

/// Many loads at once, loads beside racks, losses by kind, lines at run time.
namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;
using testing::ElementsAre;

PlantNode pumps(std::vector<std::string> from) {
  return {.name = "pumps", .kind = PlantKind::load, .from = std::move(from)};
}

/// Each alone would pass the rating of the UPS by far, were the two not changed together.
TEST(RackLoads, change_at_once) {
  for (const bool tells_all : {true, false}) {
    PlantRig rig(
        {utility("grid"), ups("ups", "grid", 100_kW), rack("one", {"ups"}), rack("two", {"ups"})});
    if (tells_all) rig.plant->tell_all_devices();
    const auto set = [&](Watts one, Watts two) {
      rig.loads[rig.node("one")] = one;
      rig.loads[rig.node("two")] = two;
      const PowerPlant::RackLoad loads[] = {{rig.node("one"), one, {}}, {rig.node("two"), two, {}}};
      rig.plant->set_rack_loads(loads);
    };
    set(90_kW, 10_kW);
    set(10_kW, 90_kW);
    rig.run(1min);
    EXPECT_TRUE(rig.orders.empty());
    EXPECT_EQ(rig.recorder.events().size(), 0u);
    rig.load("one", 90_kW);  // one by one: 180 kW meanwhile
    rig.run(2min);
    EXPECT_FALSE(rig.orders.empty());
  }
}

TEST(RackLoads, inside_a_callback_they_are_one_change) {
  sim::Engine engine(sim::Seed{1});
  sim::MemoryRecorder recorder;
  const std::vector<PlantNode> nodes = {
      utility("grid"),       utility("other"),     ups("ups", "other", 100_kW),
      rack("one", {"grid"}), rack("two", {"ups"}), rack("three", {"ups"})};
  std::unique_ptr<PowerPlant> plant;
  PowerPlant::Callbacks calls;
  calls.on_fed = [&](std::size_t, bool, sim::EventIndex) {
    const PowerPlant::RackLoad loads[] = {{4, 80_kW, {}}, {5, 20_kW, {}}};
    plant->set_rack_loads(loads);
  };
  plant = std::make_unique<PowerPlant>(engine, recorder, nodes, PowerPolicySpec{}, calls);
  plant->set_rack_load(5, 80_kW, {});
  plant->disturb(0, 0.0, 1h);
  engine.run_until(start_of_run + 1min);
  EXPECT_DOUBLE_EQ(plant->flow(2).out_W, 100e3);
  EXPECT_EQ(plant->order(4), RackOrder::none);
}

TEST(Loads, are_told_at_once_and_start_at_once) {
  PowerPolicySpec policy;
  policy.restart_group = 1;
  PlantRig rig({utility("grid"), rack("one", {"grid"}), rack("two", {"grid"}), pumps({"grid"})},
               policy);
  for (const char* name : {"one", "two", "pumps"}) rig.load(name, 10_kW);
  rig.run(1min);
  const auto lost = rig.plant->disturb(rig.node("grid"), 0.0, 5ms);  // racks ride through
  EXPECT_FALSE(rig.plant->is_fed(rig.node("pumps")));
  EXPECT_TRUE(rig.plant->is_fed(rig.node("one")));
  rig.run(2min);
  ASSERT_EQ(rig.fed.size(), 2u);
  EXPECT_EQ(rig.fed[0].rack, "pumps");
  EXPECT_EQ(rig.fed[0].when, start_of_run + 1min);
  EXPECT_EQ(rig.chain(rig.fed[0].cause), "load unfed <- utility lost");
  EXPECT_EQ(rig.recorder.events()[rig.fed[0].cause.index()].cause, lost);
  EXPECT_TRUE(rig.fed[1].is_fed);
  EXPECT_EQ(rig.fed[1].when, start_of_run + 1min + 5ms);

  rig.plant->disturb(rig.node("grid"), 0.0, 1min);
  rig.run(3min);
  EXPECT_DOUBLE_EQ(rig.plant->flow(0).out_W, 20e3);  // the pumps and the first rack
  const PowerPlant::Energy e = rig.plant->energy();
  EXPECT_NEAR(e.to_loads.value(), 10e3 * (120 - 0.005), 1e-3);
  EXPECT_NEAR(e.imbalance().value(), 0, 1e-3);
}

TEST(Loads, take_the_same_from_each_live_feed) {
  PlantRig rig({utility("a"), utility("b"), rack("rack", {"a"}), pumps({"a", "b"})});
  rig.load("rack", 10_kW);
  rig.load("pumps", 6_kW, VoltAmperes(2e3));
  EXPECT_DOUBLE_EQ(rig.plant->flow(0).out_W, 13e3);
  EXPECT_DOUBLE_EQ(rig.plant->flow(1).out_var, 1e3);
  rig.plant->fail(0);
  EXPECT_DOUBLE_EQ(rig.plant->flow(1).out_W, 6e3);
  EXPECT_TRUE(rig.plant->is_fed(3));
}

/// 100 kW and 30 kW on one UPS of 100 kW: racks give 35 kW of their 100, to leave 95 in all.
TEST(Loads, are_not_capped_and_racks_give_for_them) {
  PlantRig rig({utility("grid"), ups("ups", "grid", 100_kW), rack("one", {"ups"}),
                rack("two", {"ups"}), pumps({"ups"})});
  for (const char* name : {"one", "two"}) {
    rig.load(name, 50_kW);
    rig.plant->set_rack_limits(rig.node(name), 10_kW, 5_kW, 0);
  }
  rig.load("pumps", 30_kW);
  rig.run(5s);
  EXPECT_EQ(rig.plant->order(rig.node("one")), RackOrder::cap);
  EXPECT_EQ(rig.plant->order(rig.node("pumps")), RackOrder::none);
  EXPECT_NEAR(rig.plant->flow(rig.node("one")).out_W, 32.5e3, 1e-6);
  EXPECT_NEAR(rig.plant->flow(rig.node("ups")).out_W, 95e3, 1e-6);
}

/// A rack on both sides counts half of what it draws, a load on one side all of it: the breaker of
/// 100 A (69.3 kW) is to carry 40 + 60 kW; 65.8 kW are 95 %, so the rack comes down from 80 to 11.6
/// kW.
TEST(Loads, count_by_what_comes_through_the_part) {
  PowerPolicySpec policy;
  policy.brake = false;
  PlantRig rig({utility("a"), utility("b"), breaker("cb", "a", 100_A, 400_V, 3),
                rack("rack", {"cb", "b"}), pumps({"cb"})},
               policy);
  rig.plant->set_rack_limits(rig.node("rack"), 10_kW, 5_kW, 0);
  rig.load("rack", 80_kW);
  rig.load("pumps", 40_kW);
  EXPECT_TRUE(rig.orders.empty());  // 115 A are below the pick-up
  rig.load("pumps", 60_kW);
  rig.run(5s);
  const double limit_W = 0.95 * 100 * 400 * std::sqrt(3.0);
  EXPECT_NEAR(rig.plant->flow(rig.node("cb")).out_W, limit_W, 1e-6);
  EXPECT_NEAR(rig.plant->flow(rig.node("rack")).out_W, 2 * (limit_W - 60e3), 1e-6);
}

TEST(Losses, by_kind_add_up) {
  PlantNode trafo{.name = "trafo", .kind = PlantKind::transformer, .from = {"grid"}};
  trafo.rating = 200_kW;
  trafo.a0 = 0.01;
  PlantNode supply = ups("ups", "trafo", 100_kW);
  supply.a2 = 0.04;
  PlantNode pdu{.name = "pdu", .kind = PlantKind::pdu, .from = {"ups"}};
  pdu.rating = 100_kW;
  pdu.a1 = 0.02;
  PlantRig rig({utility("grid"), trafo, supply, pdu, rack("rack", {"pdu"})});
  rig.load("rack", 50_kW);
  rig.run(1h);
  rig.load("rack", 0_kW);
  rig.run(2h);
  const auto lost = rig.plant->losses_by_kind();
  EXPECT_EQ(lost.size(), 3u);
  EXPECT_NEAR(lost.at(PlantKind::pdu).value(), 1e3 * 3600, 1e-3);
  EXPECT_NEAR(lost.at(PlantKind::ups).value(), 100e3 * 0.04 * 0.51 * 0.51 * 3600, 1e-3);
  EXPECT_NEAR(lost.at(PlantKind::transformer).value(), 2e3 * 7200, 1e-3);
  double sum = 0;
  for (const auto& [kind, joules] : lost) sum += joules.value();
  EXPECT_NEAR(sum, rig.plant->energy().losses.value(), 1e-9 * sum);
}

/// Three single-phase circuits on lines a, a and b of a breaker of 40 A: 60 A on a, 30 A on b. The
/// mean of 30 A would hold for ever.
TEST(LinesAtRunTime, a_breaker_sees_the_line_that_carries_most) {
  std::vector<PlantNode> nodes = {utility("grid"), breaker("main", "grid", 40_A, 400_V, 3)};
  const Lines lines[] = {Lines::a, Lines::a, Lines::b};
  for (int i = 0; i < 3; ++i) {
    PlantNode circuit{.name = "c" + std::to_string(i), .from = {"main"}};
    circuit.voltage = Volts(400 / std::sqrt(3.0));
    circuit.phases = 1;
    circuit.lines = lines[i];
    nodes.push_back(circuit);
    nodes.push_back(rack("rack-" + std::to_string(i), {circuit.name}));
  }
  PowerPolicySpec policy;
  policy.cap = policy.brake = policy.suspend = policy.cut = false;
  PlantRig rig(nodes, policy);
  for (int i = 0; i < 3; ++i)
    rig.load("rack-" + std::to_string(i), Watts(30 * 400 / std::sqrt(3.0)));
  EXPECT_NEAR(rig.plant->flow(1).current.value(), 60, 1e-9);
  ASSERT_TRUE(rig.plant->breaker(1).next_event());
  EXPECT_EQ(*rig.plant->breaker(1).next_event(),
            start_of_run + *trip_time(nodes[1].breaker, 0.0, 1.5));
}

}  // namespace
}  // namespace trainyard::models
