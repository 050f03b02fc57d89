#include "models/facility/power_plant.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/facility/power_plant_rig.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;

PowerPolicySpec hands_off() {
  PowerPolicySpec policy;
  policy.cap = policy.brake = policy.suspend = policy.cut = false;
  return policy;
}

/// 5 kW with a power factor of 0.9 on two 16 A ports of 220 V, each behind a UPS of its own.
std::vector<PlantNode> server_on_two_ports() {
  return {utility("utility-a"),
          utility("utility-b"),
          ups("ups-a", "utility-a", 20_kW),
          ups("ups-b", "utility-b", 20_kW),
          breaker("port-a", "ups-a", 16_A, 220_V, 1),
          breaker("port-b", "ups-b", 16_A, 220_V, 1),
          rack("server", {"port-a", "port-b"})};
}

void load_server(PlantRig& rig) {
  rig.load("server", 5_kW, VoltAmperes(5000.0 * std::tan(std::acos(0.9))));
}

TEST(PowerPlant, OneUpsLostTheOtherPortTripsAfter81Seconds) {
  PlantRig rig(server_on_two_ports(), hands_off());
  load_server(rig);
  EXPECT_NEAR(rig.plant->flow(rig.node("port-a")).current.value(), 12.6, 0.05);
  rig.engine.at(start_of_run + 1h, sim::Phase::failure, [&] {
    auto nodes = rig.node("ups-a");
    rig.plant->disturb(rig.node("utility-a"), 0.0, 10h);
    rig.plant->fail(nodes);
  });
  rig.run(2h);
  ASSERT_EQ(rig.fed.size(), 1u);
  // The supplies hold for 12 ms more than the breaker.
  EXPECT_NEAR(to_seconds(rig.fed[0].when - (start_of_run + 1h)), 81.17 + 0.012, 0.005);
  EXPECT_THAT(rig.chain(rig.fed[0].cause),
              testing::StartsWith("rack unfed <- breaker tripped <- ups off <- power node failed"));
  ASSERT_FALSE(rig.warnings.empty());
  EXPECT_NEAR(to_seconds(rig.warnings[0].window), 81.17, 0.005);
}

TEST(PowerPlant, ACapToHalfIn5SecondsSavesTheServer) {
  PowerPolicySpec policy;
  policy.cap_delay = 5s;
  policy.target = 0.79;  // 25.3 A to 12.6 A
  PlantRig rig(server_on_two_ports(), policy);
  load_server(rig);
  rig.plant->set_rack_limits(rig.node("server"), 2_kW, 1_kW, 0);
  rig.engine.at(start_of_run + 1h, sim::Phase::failure, [&] {
    rig.plant->disturb(rig.node("utility-a"), 0.0, 10h);
    rig.plant->fail(rig.node("ups-a"));
  });
  rig.run(1h + 5s - 1ns);
  EXPECT_EQ(rig.plant->order(rig.node("server")), RackOrder::none);
  rig.run(1h + 5s);
  EXPECT_EQ(rig.plant->order(rig.node("server")), RackOrder::cap);
  EXPECT_NEAR(rig.plant->flow(rig.node("port-b")).current.value(), 12.64, 0.05);
  rig.run(24h);
  EXPECT_TRUE(rig.fed.empty());
  EXPECT_EQ(rig.recorder.count("breaker tripped"), 0u);
  EXPECT_EQ(rig.warnings.back().window, forever);  // the danger is over

  rig.plant->restore(rig.node("ups-a"));
  rig.run(48h);
  EXPECT_EQ(rig.plant->order(rig.node("server")), RackOrder::none);
  EXPECT_NEAR(rig.plant->flow(rig.node("port-a")).current.value(), 12.6, 0.05);
}

struct Preload {
  double each;
  double trip_s;  // 0: never
};

TEST(PowerPlant, APairOfFeedsAfterTheLossOfOne) {
  for (const Preload& row : {Preload{0.60, 0.0}, {0.70, 157.38}, {0.75, 105.03}, {0.80, 75.94}}) {
    for (const bool is_capped : {false, true}) {
      SCOPED_TRACE(testing::Message() << row.each << (is_capped ? " capped" : ""));
      const std::vector<PlantNode> nodes = {utility("a"),
                                            utility("b"),
                                            breaker("main-a", "a", 1000_A, 400_V, 3),
                                            breaker("main-b", "b", 1000_A, 400_V, 3),
                                            rack("rack-1", {"main-a", "main-b"}),
                                            rack("rack-2", {"main-a", "main-b"})};
      PlantRig rig(nodes, is_capped ? PowerPolicySpec{} : hands_off());
      const Watts each = Watts(row.each * 1000.0 * 400.0 * std::sqrt(3.0));
      for (const char* name : {"rack-1", "rack-2"}) {
        rig.load(name, each);
        rig.plant->set_rack_limits(rig.node(name), each * 0.3, each * 0.1, 0);
      }
      rig.run(10h);
      rig.plant->fail(rig.node("main-a"));
      rig.run(20h);
      if (row.trip_s == 0.0 || is_capped) {
        EXPECT_TRUE(rig.fed.empty());
        EXPECT_EQ(rig.orders.empty(), row.trip_s == 0.0);
        continue;
      }
      ASSERT_EQ(rig.fed.size(), 2u);  // both feeds are gone: everything is dark
      EXPECT_NEAR(to_seconds(rig.time_of("breaker tripped") - (start_of_run + 10h)), row.trip_s,
                  0.006);
      EXPECT_THAT(rig.chain(rig.fed[1].cause),
                  "rack unfed <- breaker tripped <- power node failed");
    }
  }
}

/// A rack of 132 kW on two feeds of 415 V: 183.6 A. Each breaker of 125 A carries 92 A, or all.
TEST(PowerPlant, ARackOf132kWWithOneOfTwoFeeds) {
  for (const bool is_capped : {false, true}) {
    PlantRig rig({utility("grid"), breaker("a", "grid", 125_A, 415_V, 3),
                  breaker("b", "grid", 125_A, 415_V, 3), rack("rack", {"a", "b"})},
                 is_capped ? PowerPolicySpec{} : hands_off());
    rig.load("rack", 132_kW);
    rig.plant->set_rack_limits(rig.node("rack"), 60_kW, 30_kW, 0);
    rig.run(10h);
    rig.plant->fail(rig.node("a"));
    const double ratio = 132e3 / (std::sqrt(3.0) * 415.0) / 125.0;
    const double trip_s = to_seconds(
        *trip_time(rig.plant->breaker(rig.node("b")).spec(), ratio * ratio / 4.0, ratio));
    rig.run(20h);
    EXPECT_EQ(rig.plant->is_fed(rig.node("rack")), is_capped);
    if (is_capped)
      // 95 % of 125 A
      EXPECT_NEAR(rig.plant->flow(rig.node("b")).current.value(), 118.75, 1e-6);
    else
      EXPECT_NEAR(to_seconds(rig.time_of("breaker tripped") - (start_of_run + 10h)), trip_s, 1e-6);
  }
}

TEST(PowerPlant, CapsThatAreNotEnoughAreFollowedBySuspensionAndCutsByPriority) {
  PlantRig rig({utility("grid"), breaker("a", "grid", 100_A, 400_V, 3),
                breaker("b", "grid", 100_A, 400_V, 3), rack("low", {"a", "b"}),
                rack("high", {"a", "b"})});
  for (const char* name : {"low", "high"}) rig.load(name, 50_kW);
  rig.plant->set_rack_limits(rig.node("low"), 48_kW, 40_kW, 1);
  rig.plant->set_rack_limits(rig.node("high"), 48_kW, 40_kW, 2);
  rig.plant->fail(rig.node("a"));  // 144 A: 146 s to the trip
  rig.run(3s);
  EXPECT_EQ(rig.plant->order(rig.node("low")), RackOrder::cap);
  rig.run(13s);
  EXPECT_EQ(rig.plant->order(rig.node("low")), RackOrder::suspend);
  EXPECT_TRUE(rig.plant->is_fed(rig.node("low")));
  rig.run(10h);
  EXPECT_EQ(rig.recorder.count("breaker tripped"), 0u);
  EXPECT_TRUE(rig.plant->is_fed(rig.node("high")));
  rig.plant->restore(rig.node("a"));
  rig.run(20h);
  EXPECT_TRUE(rig.plant->is_fed(rig.node("low")));
  EXPECT_EQ(rig.plant->order(rig.node("high")), RackOrder::none);
}

TEST(PowerPlant, RacksAreCutWhenNothingElseIsEnough) {
  PlantRig rig({utility("grid"), breaker("a", "grid", 100_A, 400_V, 3),
                breaker("b", "grid", 100_A, 400_V, 3), rack("low", {"a", "b"}),
                rack("high", {"a", "b"})});
  rig.obeys = false;  // jobs do not react
  for (const char* name : {"low", "high"}) rig.load(name, 50_kW);
  rig.plant->set_rack_limits(rig.node("high"), {}, {}, 1);
  rig.plant->fail(rig.node("a"));
  rig.run(28s - 1ns);
  EXPECT_TRUE(rig.plant->is_fed(rig.node("low")));
  rig.run(28s);
  EXPECT_FALSE(rig.plant->is_fed(rig.node("low")));
  rig.run(1h);
  EXPECT_TRUE(rig.plant->is_fed(rig.node("high")));
}

/// 1.7 times the rating of a UPS: half a second until it gives up, and the cap takes 3 s.
TEST(PowerPlant, TheBrakeComesFirstWhenTheCapWouldComeTooLate) {
  for (const bool has_brake : {true, false}) {
    PowerPolicySpec policy;
    policy.brake = has_brake;
    std::vector<PlantNode> nodes = {utility("a"), utility("b"), ups("ups-a", "a", 100_kW),
                                    ups("ups-b", "b", 100_kW), rack("rack", {"ups-a", "ups-b"})};
    for (PlantNode& node : nodes) node.ups.bypass = false;
    PlantRig rig(nodes, policy);
    rig.load("rack", 170_kW);
    rig.plant->set_rack_limits(rig.node("rack"), 50_kW, 20_kW, 0);
    rig.run(1h);
    rig.plant->fail(rig.node("ups-a"));
    rig.run(1h + 10ms);
    EXPECT_EQ(rig.plant->order(rig.node("rack")), has_brake ? RackOrder::brake : RackOrder::none);
    rig.run(1h + 3s);
    EXPECT_EQ(rig.plant->is_fed(rig.node("rack")), has_brake);
    if (!has_brake) continue;
    EXPECT_EQ(rig.plant->order(rig.node("rack")), RackOrder::cap);
    EXPECT_NEAR(rig.plant->flow(rig.node("ups-b")).out_W, 95e3, 1e-6);
  }
}

TEST(PowerPlant, AGapShorterThanTheHoldUpDoesNothing) {
  for (const bool is_short : {true, false}) {
    PlantRig rig({utility("grid"), rack("rack", {"grid"})});
    rig.load("rack", 10_kW);
    rig.run(1s);
    rig.plant->disturb(rig.node("grid"), 0.0, is_short ? 12ms - 1ns : 12ms + 1ns);
    rig.run(1min);
    EXPECT_EQ(rig.fed.size(), is_short ? 0u : 2u);
    EXPECT_TRUE(rig.plant->is_fed(rig.node("rack")));
  }
}

TEST(PowerPlant, AShallowSagDoesNothing) {
  PlantRig rig({utility("grid"), ups("ups", "grid", 100_kW), rack("rack", {"ups"})});
  rig.load("rack", 10_kW);
  rig.plant->disturb(rig.node("grid"), 0.85, 10s);
  EXPECT_EQ(rig.plant->ups(rig.node("ups")).state(), UpsState::on_input);
  rig.plant->disturb(rig.node("grid"), 0.84, 10s);
  EXPECT_EQ(rig.plant->ups(rig.node("ups")).state(), UpsState::on_battery);
}

TEST(PowerPlant, RacksComeBackInGroups) {
  PowerPolicySpec policy;
  policy.restart_group = 2;
  policy.restart_delay = 30s;
  std::vector<PlantNode> nodes = {utility("grid")};
  for (int i = 0; i < 5; ++i) nodes.push_back(rack("rack-" + std::to_string(i), {"grid"}));
  PlantRig rig(nodes, policy);
  for (int i = 0; i < 5; ++i) rig.load("rack-" + std::to_string(i), 10_kW);
  rig.plant->disturb(rig.node("grid"), 0.0, 100s);
  rig.run(100s);
  EXPECT_DOUBLE_EQ(rig.plant->flow(rig.node("grid")).out_W, 20e3);
  rig.run(130s);
  EXPECT_DOUBLE_EQ(rig.plant->flow(rig.node("grid")).out_W, 40e3);
  rig.run(160s);
  EXPECT_DOUBLE_EQ(rig.plant->flow(rig.node("grid")).out_W, 50e3);
}

}  // namespace
}  // namespace trainyard::models
