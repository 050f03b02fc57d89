#include "scenarios/facility_report.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <tuple>

#include "scenarios/check.hpp"

/// The plant at rest, against sums made by hand.
namespace trainyard::scenarios {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

Scenario scenario_of(const std::string& file, const std::vector<std::string>& overrides = {}) {
  const ReadResult read = load_scenario(std::string(TRAINYARD_SOURCE_DIR) + "/" + file, overrides);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return read.scenario;
}

/// Eight racks of four servers and a ninth of two, feeds a and b.
Scenario plant(const std::vector<std::string>& overrides = {}) {
  return scenario_of("tests/scenarios/plant.json", overrides);
}

const GroupLoss& loss_of(const RollUp& r, const std::string& group) {
  for (const GroupLoss& loss : r.losses)
    if (loss.group == group) return loss;
  ADD_FAILURE() << group;
  return r.losses.front();
}

NodeLoss without(const FacilityReport& r, const std::string& node) {
  for (const NodeLoss& loss : r.losses)
    if (loss.node == node) return loss;
  ADD_FAILURE() << node;
  return r.losses.front();
}

NodeLoad load_of(const FacilityReport& r, const std::string& node) {
  for (const NodeLoad& load : r.ratings)
    if (load.node == node) return load;
  ADD_FAILURE() << node;
  return r.ratings.front();
}

TEST(FacilityReport, the_sum_of_a_machine_like_frontier_is_the_one_made_by_hand) {
  const Scenario scenario = scenario_of("scenarios/library/frontier-power.json");
  const FacilityReport r = facility_report(scenario);
  // in = (out + constant) / efficiency, for each of 128 nodes and of 32 rectifiers of a rack
  const auto by_hand = [](double cpu_W, double gpu_W) {
    const double node_W = cpu_W + 4 * gpu_W + 74.26 + 4 * 20 + 30;
    const double sivoc_W = (node_W + 13) / 0.98 * 128;
    const double rack_W = (sivoc_W + 32 * 17) / 0.96;
    return std::array{128 * node_W * 74, (sivoc_W - 128 * node_W) * 74, (rack_W - sivoc_W) * 74};
  };
  const double switches_W = 74 * 32 * 250, cdus_W = 25 * 8473.47;
  for (const auto& [state, hand, site_W] : {std::tuple(&r.idle, by_hand(90, 88), 7.2819e6),
                                            std::tuple(&r.peak, by_hand(280, 560), 28.2032e6)}) {
    EXPECT_NEAR((state->gpus + state->servers).value(), hand[0], 1e-3);
    EXPECT_NEAR(loss_of(*state, "sivoc").lost.value(), hand[1], 2);
    EXPECT_NEAR(loss_of(*state, "rectifier").lost.value(), hand[2], 2);
    EXPECT_EQ(loss_of(*state, "sivoc").units, 74);
    EXPECT_THAT(state->losses, SizeIs(2));
    EXPECT_NEAR(state->switches.value(), switches_W, 1e-6);
    EXPECT_NEAR(state->pumps.value(), cdus_W, 1);
    EXPECT_NEAR(state->cooling().value(), cdus_W, 1);
    EXPECT_NEAR(state->site().value(), hand[0] + hand[1] + hand[2] + switches_W + cdus_W, 5);
    EXPECT_NEAR(state->site().value(), site_W, 100);
    EXPECT_TRUE(state->is_cooled);
  }
  EXPECT_THAT(r.violations, IsEmpty());
  EXPECT_THAT(facility_warnings(scenario), IsEmpty());
}

TEST(FacilityReport, racks_without_losses_and_cooling_draw_what_their_servers_do) {
  const FacilityReport r = facility_report(
      plant({"facility.cooling=null", "facility.racks.liquid_share=0",
             "facility.power.nodes.main.curve=none", "facility.power.nodes.ups-a.curve=none",
             "facility.power.nodes.ups-b.curve=none", "facility.power.nodes.pdu-a.curve=none",
             "facility.power.nodes.pdu-b.curve=none"}));
  const models::ServerSpec server = plant().cluster.server;
  EXPECT_EQ(r.idle.gpu, server.gpu.power_idle);
  EXPECT_EQ(r.peak.gpu, server.gpu.power_max);
  EXPECT_DOUBLE_EQ(r.peak.gpus.value(), 34 * 8 * 700.0);
  EXPECT_DOUBLE_EQ(r.peak.servers.value(), 34 * server.power_overhead.value());
  EXPECT_THAT(r.peak.losses, IsEmpty());
  EXPECT_EQ(r.peak.cooling(), Watts(0));
  EXPECT_DOUBLE_EQ(r.peak.pue(), 1.0);
  EXPECT_FALSE(r.outdoors.has_value());
  // Half of all on each path.
  EXPECT_NEAR(load_of(r, "pdu-a").load, 17 * (5600 + server.power_overhead.value()), 1e-6);
}

TEST(FacilityReport, the_site_is_the_sum_of_its_parts_and_chillers_follow_the_heat) {
  const FacilityReport r = facility_report(plant());
  for (const RollUp* state : {&r.idle, &r.peak}) {
    double sum = state->it().value() + state->cooling().value();
    for (const GroupLoss& loss : state->losses) sum += loss.lost.value();
    EXPECT_NEAR(state->site().value(), sum, 1e-6);
    EXPECT_GT(state->chillers, Watts(0));
    EXPECT_TRUE(state->is_cooled);
  }
  // What chillers take out over their COP: all racks, fans and pumps, within the swing of valves.
  const Scenario scenario = plant();
  const double cop =
      models::chiller_cop(*scenario.facility->cooling->loops.at("north").chillers, 18, *r.outdoors);
  const double heat_W = (r.peak.gpus + r.peak.servers + r.peak.fans + r.peak.pumps).value();
  EXPECT_NEAR(r.peak.chillers.value(), heat_W / cop, 0.01 * heat_W / cop);
}

TEST(FacilityReport, cooling_that_is_too_small_is_said_and_does_not_hang) {
  const FacilityReport r =
      facility_report(plant({"facility.cooling.loops.north.chillers.units=1"}));
  EXPECT_FALSE(r.peak.is_cooled);
  EXPECT_THAT(r.peak.short_loops, ElementsAre("north"));
  EXPECT_TRUE(r.idle.is_cooled);
}

TEST(FacilityReport, the_loss_of_a_path_puts_all_on_the_other) {
  const FacilityReport r = facility_report(plant());
  const NodeLoss pdu = without(r, "pdu-a");
  EXPECT_EQ(pdu.dark_racks, 0u);
  ASSERT_TRUE(pdu.worst);
  EXPECT_NEAR(pdu.worst->ratio, 2 * pdu.worst->before, 1e-9);
  const NodeLoss utility = without(r, "utility");
  EXPECT_EQ(utility.dark_racks, 9u);
  EXPECT_NEAR(utility.dark_load.value(), (r.peak.gpus + r.peak.servers).value(), 1e-6);
  // Two of each pair do the same to the other: "main" is one group, a and b are two.
  EXPECT_EQ(without(r, "main-0").alike, 2);
  EXPECT_EQ(pdu.alike, 1);
}

TEST(FacilityReport, breakers_that_carry_both_feeds_trip_and_then_all_is_dark) {
  // A rack of 4 servers: about 40 kW, 59 A on one feed at 400 V and 0.98.
  const std::vector<std::string> small = {"facility.power.racks.feeds.a.breaker.rating=\"40 A\"",
                                          "facility.power.racks.feeds.b.breaker.rating=\"40 A\""};
  const NodeLoss loss = without(facility_report(plant(small)), "pdu-a");
  EXPECT_EQ(loss.dark_racks, 0u);
  ASSERT_TRUE(loss.worst && loss.worst->trips);
  EXPECT_GT(*loss.worst->trips, Duration::zero());
  EXPECT_EQ(loss.overloaded, 8u);  // not that of the ninth rack, which is half as long
  EXPECT_EQ(loss.dark_after_trips, 8u);
  const NodeLoss held = without(facility_report(plant()), "pdu-a");
  EXPECT_EQ(held.dark_after_trips, 0u);
}

TEST(FacilityReport, warnings_name_what_is_passed_and_nothing_else) {
  EXPECT_THAT(facility_warnings(plant()), IsEmpty());  // the utility is nobody's surprise
  EXPECT_THAT(facility_warnings(plant({"facility.power.nodes.ups-b.fed_by=[\"main-0\"]"})),
              ElementsAre(HasSubstr("share main-0")));
  const auto small = facility_warnings(plant({"facility.power.nodes.pdu-a.active=\"100 kW\""}));
  EXPECT_THAT(small, ElementsAre(HasSubstr("pdu-a")));
  // Every circuit: three are named, the others counted.
  const auto all =
      facility_warnings(plant({"facility.power.racks.feeds.a.breaker.rating=\"20 A\""}));
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_THAT(all.back(), HasSubstr("more"));
  EXPECT_THAT(facility_warnings(scenario_of("scenarios/library/quickstart.json")), IsEmpty());
}

TEST(FacilityReport, training_that_swings_too_far_is_a_warning_of_the_check) {
  const StepPowers free = facility_report(plant()).steps;
  ASSERT_THAT(free.jobs, SizeIs(1));
  EXPECT_THAT(free.violations, IsEmpty());
  const double range_W = free.together.range.value();
  EXPECT_GT(range_W, 0);
  EXPECT_NEAR(range_W, (free.together.peak - free.together.low).value(), 1e-6);
  const auto limited = [&](double share) {
    return scenario_warnings(
        plant({"facility.swing.range=\"" + std::to_string(std::lround(range_W * share)) + " W\""}));
  };
  EXPECT_THAT(limited(0.99), Contains(StartsWith("facility.swing.range: ")));
  EXPECT_THAT(limited(1.01), Not(Contains(StartsWith("facility.swing"))));
}

}  // namespace
}  // namespace trainyard::scenarios
