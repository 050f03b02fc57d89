#include "models/facility/power_layout.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "sim/check.hpp"
#include "tests/models/facility/spec_mistakes.hpp"

namespace trainyard::models {
namespace {

using namespace literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PowerNodeSpec node(PowerKind kind, std::vector<std::string> fed_by = {}, int count = 1) {
  PowerNodeSpec spec;
  spec.kind = kind;
  spec.fed_by = std::move(fed_by);
  spec.count = count;
  spec.curve = LossCurve::none;
  return spec;
}

PowerSpec two_feeds() {
  PowerSpec spec;
  spec.nodes["utility"] = node(PowerKind::utility);
  spec.nodes["ups"] = node(PowerKind::ups, {"utility"}, 2);
  spec.nodes["ups"].apparent = 100_kVA;
  spec.nodes["pdu"] = node(PowerKind::pdu, {"ups"}, 4);
  spec.racks.feeds["a"].from = "pdu-0";
  spec.racks.feeds["b"].from = "pdu-1";
  return spec;
}

const PlantNode& find(const PowerLayout& layout, const std::string& name) {
  const auto at = std::find_if(layout.nodes.begin(), layout.nodes.end(),
                               [&](const PlantNode& n) { return n.name == name; });
  check(at != layout.nodes.end(), "a node has this name");
  return *at;
}

const NodeLimits& limits(const PowerLayout& layout, const std::string& name) {
  return layout.limits[std::size_t(&find(layout, name) - layout.nodes.data())];
}

TEST(PowerLayout, groups_become_units_and_racks_circuits) {
  const PowerSpec spec = two_feeds();
  ASSERT_THAT(check_power(spec), IsEmpty());
  const PowerLayout layout = lay_out_power(spec, 2);
  std::vector<std::string> names;
  for (const PlantNode& n : layout.nodes) names.push_back(n.name);
  EXPECT_THAT(names,
              ElementsAre("utility", "ups-0", "ups-1", "pdu-0", "pdu-1", "pdu-2", "pdu-3",
                          "rack-0/a", "rack-0/b", "rack-0", "rack-1/a", "rack-1/b", "rack-1"));
  EXPECT_THAT(layout.racks, ElementsAre(9, 12));
  EXPECT_THAT(layout.feeds, ElementsAre("a", "b"));
  EXPECT_THAT(find(layout, "rack-1").from, ElementsAre("rack-1/a", "rack-1/b"));
  EXPECT_THAT(find(layout, "rack-1/b").from, ElementsAre("pdu-1"));
  EXPECT_EQ(find(layout, "ups-1").kind, PlantKind::ups);
  EXPECT_EQ(find(layout, "ups-1").rating.value(), 100e3);
  EXPECT_EQ(find(layout, "rack-0").kind, PlantKind::rack);
  PowerPaths paths(layout.nodes);  // accepts them
  EXPECT_EQ(paths.size(), 13u);
}

TEST(PowerLayout, the_larger_group_is_dealt_to_the_smaller) {
  PowerSpec spec = two_feeds();
  spec.nodes["bus"] = node(PowerKind::switchgear, {"pdu"}, 2);
  const PowerLayout layout = lay_out_power(spec, 0);
  EXPECT_THAT(find(layout, "pdu-2").from, ElementsAre("ups-0"));
  EXPECT_THAT(find(layout, "pdu-3").from, ElementsAre("ups-1"));
  EXPECT_THAT(find(layout, "bus-0").from, ElementsAre("pdu-0", "pdu-2"));
  EXPECT_THAT(find(layout, "bus-1").from, ElementsAre("pdu-1", "pdu-3"));
}

/// Units of feed b, with feed a in turn.
std::vector<std::string> units(Attach attach, int offset, int racks, int count) {
  PowerSpec spec = two_feeds();
  spec.nodes["pdu"].count = count;
  spec.racks.feeds["b"] = {.from = "pdu", .attach = attach, .offset = offset};
  const PowerLayout layout = lay_out_power(spec, racks);
  std::vector<std::string> from;
  for (int r = 0; r < racks; ++r)
    from.push_back(find(layout, "rack-" + std::to_string(r) + "/b").from[0].substr(4));
  return from;
}

TEST(PowerLayout, racks_hang_in_turn_in_blocks_or_in_pairs) {
  EXPECT_THAT(units(Attach::in_turn, 1, 6, 3), ElementsAre("1", "2", "0", "1", "2", "0"));
  EXPECT_THAT(units(Attach::in_blocks, 0, 6, 3), ElementsAre("0", "0", "1", "1", "2", "2"));
  // Partners of 0 1 2 0 1 2: one further, then two further.
  // And again: one further.
  EXPECT_THAT(units(Attach::in_pairs, 1, 9, 3),
              ElementsAre("1", "2", "0", "2", "0", "1", "1", "2", "0"));
  EXPECT_THAT(units(Attach::in_pairs, 1, 2, 2), ElementsAre("1", "0"));
}

TEST(PowerLayout, several_circuits_of_a_feed) {
  PowerSpec spec = two_feeds();
  spec.racks.feeds["a"].circuits = 2;
  spec.racks.feeds["a"].breaker = BreakerSpec{.rating = 63_A, .full_rated = true};
  const PowerLayout layout = lay_out_power(spec, 1);
  EXPECT_THAT(find(layout, "rack-0").from, ElementsAre("rack-0/a-0", "rack-0/a-1", "rack-0/b"));
  EXPECT_EQ(find(layout, "rack-0/a-1").kind, PlantKind::breaker);
  EXPECT_EQ(limits(layout, "rack-0/a-1").current->value(), 63);
  EXPECT_EQ(limits(layout, "rack-0/a-1").continuous, 1.0);
  EXPECT_EQ(find(layout, "rack-0/b").kind, PlantKind::bus);
  EXPECT_FALSE(limits(layout, "rack-0/b").current.has_value());
}

TEST(PowerLayout, voltage_and_phases_come_from_the_feed) {
  PowerSpec spec = two_feeds();
  spec.nodes["utility"].voltage = Volts(10'000);
  spec.nodes["transformer"] = node(PowerKind::transformer, {"utility"});
  spec.nodes["transformer"].voltage = 400_V;
  spec.nodes["transformer"].apparent = 1000_kVA;
  spec.nodes["ups"].fed_by = {"transformer"};
  spec.racks.feeds["a"].phases = 1;
  spec.racks.feeds["a"].circuits = 4;
  spec.racks.feeds["b"].phases = 1;
  spec.racks.feeds["b"].voltage = 400_V;
  spec.racks.feeds["b"].circuits = 3;
  ASSERT_THAT(check_power(spec), IsEmpty());
  const PowerLayout layout = lay_out_power(spec, 1);
  EXPECT_EQ(find(layout, "utility").voltage.value(), 10'000);
  EXPECT_EQ(find(layout, "pdu-3").voltage.value(), 400);
  EXPECT_EQ(find(layout, "pdu-3").phases, 3);
  EXPECT_NEAR(find(layout, "rack-0/a-0").voltage.value(), 230.94, 0.01);
  std::vector<Lines> lines;
  for (const char* name : {"a-0", "a-1", "a-2", "a-3", "b-0", "b-1", "b-2"})
    lines.push_back(limits(layout, std::string("rack-0/") + name).lines);
  EXPECT_THAT(lines,
              ElementsAre(Lines::a, Lines::b, Lines::c, Lines::a, Lines::ab, Lines::bc, Lines::ca));
}

std::string only(const Problems& problems) {
  if (problems.size() != 1) return std::to_string(problems.size()) + " problems";
  return problems[0].path + ": " + problems[0].what + "; " + problems[0].right;
}

TEST(CheckPower, unknown_names_say_what_there_is) {
  PowerSpec spec = two_feeds();
  spec.nodes["pdu"].fed_by = {"upsa"};
  EXPECT_EQ(only(check_power(spec)),
            "nodes.pdu.fed_by: there is no \"upsa\"; one of pdu (pdu-0 to -3), ups (ups-0 to -1), "
            "utility");
  spec = two_feeds();
  spec.racks.feeds["b"].from = "pdu-4";  // there are 0 to 3
  EXPECT_THAT(only(check_power(spec)), HasSubstr("racks.feeds.b.from: there is no \"pdu-4\""));
  spec.racks.feeds["b"].from = "pdu-03";
  EXPECT_THAT(only(check_power(spec)), HasSubstr("there is no \"pdu-03\""));
  spec.racks.feeds["b"].from = "pdu-3";
  EXPECT_THAT(check_power(spec), IsEmpty());
}

TEST(CheckPower, loops_are_told_as_a_way) {
  PowerSpec spec = two_feeds();
  spec.nodes["ups"].fed_by = {"tie"};
  spec.nodes["tie"] = node(PowerKind::switchgear, {"pdu-1"});
  EXPECT_EQ(only(check_power(spec)),
            "nodes.pdu.fed_by: a loop: pdu is fed by ups is fed by tie is fed by pdu; power comes "
            "from a utility or from generators");
  spec = two_feeds();
  spec.nodes["ups"].fed_by = {"utility", "ups"};
  EXPECT_THAT(only(check_power(spec)), HasSubstr("a loop: ups is fed by ups;"));
}

TEST(CheckPower, nothing_feeds_it) {
  PowerSpec spec = two_feeds();
  spec.nodes["pdu"].fed_by = {};
  EXPECT_THAT(only(check_power(spec)), HasSubstr("nodes.pdu.fed_by: nothing feeds pdu"));
}

TEST(CheckPower, names_are_free_and_named_once) {
  PowerSpec spec = two_feeds();
  spec.nodes["rack-1"] = node(PowerKind::pdu, {"ups"});
  EXPECT_THAT(only(check_power(spec)), HasSubstr("is a name of racks"));
  spec = two_feeds();
  spec.nodes["ups-1"] = node(PowerKind::pdu, {"utility"});
  EXPECT_THAT(only(check_power(spec)), HasSubstr("ups-1 is a unit of ups already"));
  spec = two_feeds();
  spec.nodes["pdu"].fed_by = {"ups-0", "ups-0"};
  EXPECT_THAT(only(check_power(spec)), HasSubstr("named twice"));
  spec = two_feeds();
  spec.nodes["pdu"].fed_by = {"ups", "ups-1"};  // one of a group that is named already
  EXPECT_THAT(only(check_power(spec)), HasSubstr("\"ups-1\" is named twice"));
  spec = two_feeds();
  spec.nodes["rack"] = node(PowerKind::pdu, {"ups"}, 2);  // its units are rack-0 and rack-1
  EXPECT_THAT(only(check_power(spec)), HasSubstr("is a name of racks"));
  spec = two_feeds();
  spec.racks.feeds["a"].circuits = 2;
  spec.racks.feeds["a-0"].from = "pdu-2";
  EXPECT_THAT(only(check_power(spec)), HasSubstr("a-0 is a circuit of a already"));
}

TEST(CheckPower, single_phase_circuits_fit_a_pair_of_lines) {
  PowerSpec spec = two_feeds();
  RackFeedSpec& feed = spec.racks.feeds["a"];
  feed.phases = 1;
  for (const double fits : {230.0, 220.0, 240.0, 400.0, 415.0}) {
    feed.voltage = Volts(fits);
    EXPECT_THAT(check_power(spec), IsEmpty()) << fits;
  }
  feed.voltage = 120_V;
  EXPECT_EQ(only(check_power(spec)),
            "racks.feeds.a.voltage: 1 phase at 120 V on pdu-0 with 3 phases and 400 V; 231 V to "
            "the neutral or 400 V between two lines");
  spec = two_feeds();
  spec.nodes["pdu"].phases = 1;
  spec.racks.feeds["a"].phases = 3;
  EXPECT_THAT(only(check_power(spec)), HasSubstr("3 phase at 231 V on pdu-0 with 1 phases"));
}

TEST(CheckPower, feeds_of_a_node_have_one_voltage) {
  PowerSpec spec = two_feeds();
  spec.nodes["backup"] = node(PowerKind::utility);
  spec.nodes["ats"] = node(PowerKind::transfer_switch, {"utility", "backup"});
  spec.loads["pumps"] = {.fed_by = {"pdu-0", "backup"}, .constant = 10_kW};
  for (const double fits : {400.0, 361.0, 439.0}) {
    spec.nodes["backup"].voltage = Volts(fits);
    EXPECT_THAT(check_power(spec), IsEmpty()) << fits;
  }
  spec.nodes["backup"].voltage = 480_V;
  const Problems problems = check_power(spec);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].path, "nodes.ats.fed_by");
  EXPECT_EQ(problems[0].what, "utility has 400 V, backup has 480 V");
  EXPECT_EQ(problems[1].path, "loads.pumps.fed_by");
}

TEST(CheckPower, loads_have_names_and_feeds) {
  const auto with = [](const std::string& name, std::vector<std::string> from) {
    PowerSpec spec = two_feeds();
    spec.loads[name].fed_by = std::move(from);
    return only(check_power(spec));
  };
  EXPECT_THAT(with("pumps", {"pdu", "utility"}), "0 problems");
  EXPECT_THAT(with("pumps", {"pdx"}), HasSubstr("loads.pumps.fed_by: there is no \"pdx\""));
  EXPECT_THAT(with("pumps", {"pumps"}), HasSubstr("there is no \"pumps\""));
  EXPECT_THAT(with("pumps", {}), HasSubstr("nothing feeds pumps"));
  EXPECT_THAT(with("pumps", {"ups", "ups-0"}), HasSubstr("\"ups-0\" is named twice"));
  EXPECT_THAT(with("ups-1", {"pdu"}), HasSubstr("ups-1 is a unit of ups already"));
  EXPECT_THAT(with("rack-0", {"pdu"}), HasSubstr("is a name of racks"));
}

TEST(PowerLayout, loads_are_nodes_on_all_their_feeds) {
  PowerSpec spec = two_feeds();
  spec.loads["pumps"].fed_by = {"ups", "pdu-3"};
  spec.nodes["pdu"].voltage = 415_V;
  const PowerLayout layout = lay_out_power(spec, 2);
  const PlantNode& pumps = layout.nodes[layout.loads.at("pumps")];
  EXPECT_EQ(pumps.name, "pumps");
  EXPECT_EQ(pumps.kind, PlantKind::load);
  EXPECT_THAT(pumps.from, ElementsAre("ups-0", "ups-1", "pdu-3"));
  EXPECT_EQ(pumps.voltage, 400_V);
  EXPECT_EQ(layout.limits.size(), layout.nodes.size());
  EXPECT_EQ(find(layout, "pdu-0").kind, PlantKind::pdu);
}

TEST(PowerSpec, rules) {
  using Keys = std::vector<std::string>;
  PowerNodeSpec spec;
  spec.kind = PowerKind::utility;
  EXPECT_EQ(mistakes_of(spec), Keys());
  spec.fed_by = {"x"};
  EXPECT_EQ(mistakes_of(spec), Keys{"fed_by"});
  spec = node(PowerKind::breaker, {"x"});
  EXPECT_EQ(mistakes_of(spec), Keys{"breaker"});
  spec.breaker = BreakerSpec{.rating = 16_A};
  EXPECT_EQ(mistakes_of(spec), Keys());
  spec.current = 16_A;
  EXPECT_EQ(mistakes_of(spec), Keys{"current"});
  spec = node(PowerKind::transfer_switch, {"x"});
  EXPECT_EQ(mistakes_of(spec), Keys{"fed_by"});
  spec = node(PowerKind::pdu, {"x"});
  EXPECT_EQ(mistakes_of(spec), Keys());
  spec.curve = {};  // loses by its kind, but of what?
  EXPECT_EQ(mistakes_of(spec), Keys{"apparent"});
  spec.current = 400_A;
  EXPECT_EQ(mistakes_of(spec), Keys());
  spec.phases = 2;
  EXPECT_EQ(mistakes_of(spec), Keys{"phases"});
  spec = node(PowerKind::pdu, {"x"});
  spec.ups = UpsSpec{};
  EXPECT_EQ(mistakes_of(spec), Keys{"ups"});
  PowerRacksSpec racks;
  EXPECT_EQ(mistakes_of(racks), Keys{"feeds"});
  racks.feeds["a"].from = racks.feeds["b"].from = "pdu";
  EXPECT_EQ(mistakes_of(racks), Keys());
  racks.supplies = 3;
  EXPECT_EQ(mistakes_of(racks), Keys{"supplies"});
}

TEST(PowerLayout, ratings_by_what_is_given) {
  PowerSpec spec = two_feeds();
  spec.nodes["ups"].power_factor = 0.9;
  spec.nodes["pdu"].current = 400_A;
  spec.nodes["sets"] = node(PowerKind::generators);
  spec.nodes["sets"].generators = GeneratorSpec{.sets = 3, .rating = 2_MW};
  const PowerLayout layout = lay_out_power(spec, 0);
  EXPECT_EQ(limits(layout, "ups-0").active->value(), 90e3);
  EXPECT_EQ(find(layout, "ups-0").rating.value(), 90e3);
  EXPECT_FALSE(limits(layout, "pdu-0").active.has_value());
  EXPECT_NEAR(find(layout, "pdu-0").rating.value(), std::sqrt(3.0) * 400 * 400, 1e-9);
  EXPECT_EQ(limits(layout, "sets").active->value(), 6e6);
  spec.nodes["main"] = node(PowerKind::breaker, {"ups"});
  spec.nodes["main"].breaker = BreakerSpec{.rating = 250_A};
  const PowerLayout with_breaker = lay_out_power(spec, 0);
  EXPECT_EQ(limits(with_breaker, "main").current->value(), 250);
  EXPECT_EQ(limits(with_breaker, "main").continuous, 0.8);
}

/// A load of `x` of the rating behind one node with these losses.
double efficiency(LossCurve curve, double x) {
  PowerSpec spec;
  spec.nodes["utility"] = node(PowerKind::utility);
  spec.nodes["device"] = node(PowerKind::ups, {"utility"});
  spec.nodes["device"].active = 500_kW;
  spec.nodes["device"].curve = curve;
  spec.racks.feeds["a"].from = "device";
  PowerPaths paths(lay_out_power(spec, 1).nodes);
  paths.set_load(paths.index("rack-0"), 500_kW * x, VoltAmperes{});
  paths.solve();
  const PowerPaths::Flow& flow = paths.flow(paths.index("device"));
  return flow.out_W / flow.in_W;
}

TEST(Losses, of_a_double_conversion_ups) {
  const PowerLossSpec loss = losses_of(LossCurve::ups);
  const double best = std::sqrt(loss.a0 / loss.a2);
  EXPECT_NEAR(best, 0.61841, 5e-6);
  EXPECT_NEAR(efficiency(LossCurve::ups, best), 0.963718, 5e-7);
  EXPECT_NEAR(efficiency(LossCurve::ups, best),
              1 / (1 + loss.a1 + 2 * std::sqrt(loss.a0 * loss.a2)), 1e-12);
  EXPECT_LT(efficiency(LossCurve::ups, best * 1.01), efficiency(LossCurve::ups, best));
  EXPECT_LT(efficiency(LossCurve::ups, best * 0.99), efficiency(LossCurve::ups, best));
  EXPECT_NEAR(efficiency(LossCurve::ups, 0.1), 0.899425, 5e-7);
  EXPECT_NEAR(efficiency(LossCurve::ups, 0.4), 0.960671, 5e-7);
}

TEST(Losses, curves_meet_the_efficiencies_they_stand_for) {
  const auto quarter_half_full = [](LossCurve curve) {
    return std::vector<double>{efficiency(curve, 0.25), efficiency(curve, 0.5),
                               efficiency(curve, 1.0)};
  };
  using testing::DoubleNear;
  const double tolerance = 2e-4;
  EXPECT_THAT(quarter_half_full(LossCurve::ups),
              ElementsAre(DoubleNear(0.950, tolerance), DoubleNear(0.963, tolerance),
                          DoubleNear(0.960, tolerance)));
  EXPECT_THAT(quarter_half_full(LossCurve::ups_eco),
              ElementsAre(DoubleNear(0.985, tolerance), DoubleNear(0.990, tolerance),
                          DoubleNear(0.990, tolerance)));
  EXPECT_THAT(quarter_half_full(LossCurve::rectifier),
              ElementsAre(DoubleNear(0.970, tolerance), DoubleNear(0.975, tolerance),
                          DoubleNear(0.970, tolerance)));
  EXPECT_NEAR(efficiency(LossCurve::transformer, std::sqrt(0.0014 / 0.0075)), 0.9936, tolerance);
  EXPECT_NEAR(efficiency(LossCurve::distribution, 1.0), 0.9930, tolerance);
}

// 2N costs: two at 0.4 lose 5.6 % more than one at 0.8.
TEST(Losses, of_a_redundant_pair) {
  const auto losses = [](int count) {
    PowerSpec spec;
    spec.nodes["utility"] = node(PowerKind::utility);
    spec.nodes["ups"] = node(PowerKind::ups, {"utility"}, count);
    spec.nodes["ups"].active = 1_MW;
    spec.nodes["ups"].curve = {};
    spec.nodes["bus"] = node(PowerKind::switchgear, {"ups"});
    spec.racks.feeds["a"].from = "bus";
    PowerPaths paths(lay_out_power(spec, 1).nodes);
    paths.set_load(paths.index("rack-0"), 800_kW, VoltAmperes{});
    paths.solve();
    double sum = 0;
    for (std::size_t n = 0; n < paths.size(); ++n) sum += paths.flow(n).loss_W / 1e6;
    return sum;
  };
  EXPECT_NEAR(losses(2), 0.0327516, 5e-8);
  EXPECT_NEAR(losses(1), 0.0310286, 5e-8);
  EXPECT_NEAR(losses(2) / losses(1) - 1, 0.056, 5e-4);
}

}  // namespace
}  // namespace trainyard::models
