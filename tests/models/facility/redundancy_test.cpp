#include "models/facility/redundancy.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/facility/power_ratings.hpp"
#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

PowerNodeSpec node(PowerKind kind, std::vector<std::string> fed_by = {}, int count = 1) {
  PowerNodeSpec spec;
  spec.kind = kind;
  spec.fed_by = std::move(fed_by);
  spec.count = count;
  spec.curve = LossCurve::none;
  return spec;
}

/// UPS of 100 kW each, without losses, so that sums are round.
PowerSpec plant(int ups) {
  PowerSpec spec;
  spec.nodes["utility"] = node(PowerKind::utility);
  spec.nodes["ups"] = node(PowerKind::ups, {"utility"}, ups);
  spec.nodes["ups"].active = 100_kW;
  return spec;
}

/// The loss of one node of a plant in which all racks draw the same, power factor 1.
struct Case {
  PowerLayout layout;
  SteadyPower power;
  Case(const PowerSpec& spec, int racks, Watts rack)
      : layout(lay_out_power(spec, racks)), power(layout) {
    EXPECT_THAT(check_power(spec), IsEmpty());
    power.set_racks(rack, 1.0);
    power.solve();
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  std::size_t operator[](const std::string& name) const {
    for (std::size_t n = 0; n < layout.nodes.size(); ++n)
      if (layout.nodes[n].name == name) return n;
    ADD_FAILURE() << name;
    return 0;
  }
  double kW(const std::string& name) const { return power.flow((*this)[name]).out_W / 1e3; }
  Loss without(const std::string& name, NMinus1Options options = {}) {
    return lose(power, (*this)[name], options);
  }
};

TEST(Redundancy, N) {
  PowerSpec spec = plant(1);
  spec.racks.feeds["a"].from = "ups";
  Case c(spec, 4, 20_kW);
  EXPECT_NEAR(c.kW("ups"), 80, 1e-9);
  const Loss loss = c.without("ups");
  EXPECT_THAT(loss.dark, SizeIs(4));
  EXPECT_NEAR(loss.dark_load.value(), 80e3, 1e-6);
  EXPECT_THAT(loss.survivors, IsEmpty());
  EXPECT_EQ(to_text(loss, c.layout), "without ups: 4 racks dark (80 kW)");
}

// Three of 100 kW on one bus carry 200 kW: 66.7 kW each, 100 kW without one. The bus is shared.
TEST(Redundancy, N_plus_1) {
  PowerSpec spec = plant(3);
  spec.nodes["bus"] = node(PowerKind::switchgear, {"ups"});
  spec.racks.feeds["a"].from = spec.racks.feeds["b"].from = "bus";
  Case c(spec, 10, 20_kW);
  EXPECT_NEAR(c.kW("ups-1"), 200.0 / 3, 1e-9);
  const Loss loss = c.without("ups-1");
  EXPECT_THAT(loss.dark, IsEmpty());
  ASSERT_THAT(loss.survivors, SizeIs(2));
  for (const Survivor& s : loss.survivors) {
    EXPECT_NEAR(s.ratio, 1.0, 1e-12);
    EXPECT_NEAR(s.before, 2.0 / 3, 1e-12);
  }
  EXPECT_EQ(to_text(loss, c.layout),
            "without ups-1: all racks fed; ups-0 at 100 % of its rating, before 67 %");
  EXPECT_THAT(c.without("bus").dark, SizeIs(10));
}

// 80 kW on two paths: 40 each, 80 without one.
TEST(Redundancy, 2N) {
  PowerSpec spec = plant(2);
  spec.nodes["utility"].count = 2;
  spec.racks.feeds["a"].from = "ups-0";
  spec.racks.feeds["b"].from = "ups-1";
  Case c(spec, 4, 20_kW);
  EXPECT_NEAR(c.kW("ups-0"), 40, 1e-9);
  for (const char* lost : {"ups-0", "utility-0"}) {
    const Loss loss = c.without(lost);
    EXPECT_THAT(loss.dark, IsEmpty());
    ASSERT_THAT(loss.survivors, SizeIs(1));
    EXPECT_EQ(loss.survivors[0].node, c["ups-1"]);
    EXPECT_NEAR(loss.survivors[0].ratio, 0.8, 1e-12);
    EXPECT_NEAR(loss.survivors[0].before, 0.4, 1e-12);
  }
  EXPECT_THAT(shared_points(c.layout), IsEmpty());
}

/// Distributed: feed a in turn, feed b on the other UPS.
PowerSpec distributed(int ups, Attach attach) {
  PowerSpec spec = plant(ups);
  spec.nodes["utility"].count = 2;
  spec.racks.feeds["a"].from = "ups";
  spec.racks.feeds["b"] = {.from = "ups", .attach = attach, .offset = 1};
  return spec;
}

// Three carry the load of two: 66.7 kW each. Of the load of a lost one each of the others takes
// half.
TEST(Redundancy, distributed_3N_2) {
  Case c(distributed(3, Attach::in_pairs), 6, Watts(200e3 / 6));
  for (const char* lost : {"ups-0", "ups-1", "ups-2"}) {
    const Loss loss = c.without(lost);
    EXPECT_THAT(loss.dark, IsEmpty());
    ASSERT_THAT(loss.survivors, SizeIs(2));
    for (const Survivor& s : loss.survivors) {
      EXPECT_NEAR(s.ratio, 1.0, 1e-12);
      EXPECT_NEAR(s.before, 2.0 / 3, 1e-12);
    }
  }
}

// Four carry the load of three: 75 kW each, and 100 kW without one: every pair has its racks.
TEST(Redundancy, distributed_4N_3) {
  Case c(distributed(4, Attach::in_pairs), 12, 25_kW);
  EXPECT_NEAR(c.kW("ups-3"), 75, 1e-9);
  const Loss loss = c.without("ups-2");
  ASSERT_THAT(loss.survivors, SizeIs(3));
  for (const Survivor& s : loss.survivors) EXPECT_NEAR(s.ratio, 1.0, 1e-12);
}

// The same four in a ring: only two of the three are neighbours of the lost one. 75 + 37.5 kW.
TEST(Redundancy, a_ring_is_not_4N_3) {
  Case c(distributed(4, Attach::in_turn), 12, 25_kW);
  EXPECT_NEAR(c.kW("ups-3"), 75, 1e-9);
  const Loss loss = c.without("ups-2");
  ASSERT_THAT(loss.survivors, SizeIs(2));
  EXPECT_EQ(loss.survivors[0].node, c["ups-1"]);
  EXPECT_EQ(loss.survivors[1].node, c["ups-3"]);
  EXPECT_NEAR(loss.survivors[0].ratio, 1.125, 1e-12);
}

// Three blocks of 90 kW and a reserve that carries nothing until a static switch takes it.
TEST(Redundancy, block_redundant) {
  PowerSpec spec = plant(3);
  spec.nodes["reserve"] = node(PowerKind::ups, {"utility"});
  spec.nodes["reserve"].active = 100_kW;
  spec.nodes["sts"] = node(PowerKind::transfer_switch, {"ups", "reserve"}, 3);
  spec.racks.feeds["a"].from = "sts";
  spec.racks.supplies = 1;
  Case c(spec, 6, 45_kW);
  EXPECT_EQ(c.kW("reserve"), 0);
  EXPECT_NEAR(c.kW("ups-1"), 90, 1e-9);
  Loss loss = c.without("ups-1");
  EXPECT_THAT(loss.dark, IsEmpty());
  ASSERT_THAT(loss.survivors, SizeIs(1));
  EXPECT_EQ(loss.survivors[0].node, c["reserve"]);
  EXPECT_NEAR(loss.survivors[0].ratio, 0.9, 1e-12);
  EXPECT_EQ(loss.survivors[0].before, 0);
  loss = c.without("sts-1");
  EXPECT_THAT(loss.dark, ElementsAre(c["rack-1"], c["rack-4"]));
  EXPECT_THAT(c.without("reserve").survivors, IsEmpty());
  // Two blocks at once are more than the reserve carries.
  c.power.solve({c["ups-0"], c["ups-1"]});
  EXPECT_NEAR(c.kW("reserve"), 180, 1e-9);
}

// A server of 5 kW at 220 V and 0.9 on two ports of 16 A: 12.6 A each. Without one feed the other
// port carries 25.3 A, 1.578 of its rating, and trips after 81.17 s.
TEST(Redundancy, two_ports_that_are_none) {
  PowerSpec spec = plant(2);
  spec.nodes["utility"].phases = 1;
  spec.nodes["utility"].voltage = 220_V;
  spec.racks.feeds["a"] = {.from = "ups-0", .breaker = BreakerSpec{.rating = 16_A}};
  spec.racks.feeds["b"] = {.from = "ups-1", .breaker = BreakerSpec{.rating = 16_A}};
  Case c(spec, 1, 5_kW);
  c.power.set_racks(5_kW, 0.9);
  const Loss loss = c.without("ups-0");
  const Survivor& port = loss.survivors.front();
  EXPECT_EQ(port.node, c["rack-0/b"]);
  EXPECT_NEAR(port.current.value(), 25.25, 0.01);
  EXPECT_NEAR(port.ratio, 1.578, 5e-4);
  EXPECT_NEAR(port.before, 1.578 / 2, 5e-4);
  ASSERT_TRUE(port.trips);
  EXPECT_NEAR(to_seconds(*port.trips), 81.17, 0.005);
  // Half the power holds for ever.
  c.power.set_racks(2.5_kW, 0.9);
  EXPECT_FALSE(c.without("ups-0").survivors.front().trips);
}

/// Currents of 0.6 to 0.8 of the rating of two breakers; one is lost.
TEST(Redundancy, a_survivor_trips_by_what_it_carried) {
  const auto trips = [](double share) {
    PowerSpec spec = plant(2);
    spec.nodes["ups"].active = 1_MW;
    spec.nodes["main"] = node(PowerKind::breaker, {"ups"}, 2);
    spec.nodes["main"].breaker = BreakerSpec{.rating = 100_A};
    spec.racks.feeds["a"].from = "main-0";
    spec.racks.feeds["b"].from = "main-1";
    Case c(spec, 1, Watts(2 * share * 100 * std::sqrt(3.0) * 400));
    const Loss loss = c.without("ups-0");
    EXPECT_EQ(loss.survivors.front().node, c["main-1"]);
    EXPECT_NEAR(loss.worst(), 2 * share, 1e-12);
    return loss.survivors.front().trips;
  };
  EXPECT_FALSE(trips(0.60));
  EXPECT_NEAR(to_seconds(*trips(0.70)), 157.38, 0.005);
  EXPECT_NEAR(to_seconds(*trips(0.75)), 105.03, 0.005);
  EXPECT_NEAR(to_seconds(*trips(0.80)), 75.94, 0.005);
}

// A third of the lines is worst: single-phase racks pile up on line a of the survivor.
TEST(Redundancy, survivors_by_their_worst_line) {
  PowerSpec spec = plant(2);
  spec.nodes["pdu"] = node(PowerKind::pdu, {"ups"}, 2);
  spec.nodes["pdu"].current = 20_A;
  for (const char* feed : {"a", "b"}) {
    spec.racks.feeds[feed].from = feed[0] == 'a' ? "pdu-0" : "pdu-1";
    spec.racks.feeds[feed].phases = 1;
  }
  Case c(spec, 4, Watts(4000 / std::sqrt(3.0)));  // 10 A at 231 V
  const Loss loss = c.without("pdu-0");
  EXPECT_EQ(loss.survivors.front().node, c["pdu-1"]);
  EXPECT_NEAR(loss.survivors.front().current.value(), 20, 1e-9);
  EXPECT_NEAR(loss.survivors.front().before, 0.5, 1e-12);
}

TEST(NMinus1, worst_survivor_first_then_darkness) {
  PowerSpec spec = plant(3);
  spec.nodes["ups"].count = 2;
  spec.nodes["small"] = node(PowerKind::ups, {"utility"});
  spec.nodes["small"].active = 50_kW;
  spec.racks.feeds["a"].from = "ups-0";
  spec.racks.feeds["b"].from = "small";
  Case c(spec, 1, 80_kW);
  const std::vector<Loss> losses = n_minus_1(c.power);
  std::vector<std::string> names;
  for (const Loss& loss : losses) names.push_back(c.layout.nodes[loss.node].name);
  // Without ups-0 the small one has 160 %; without the small one ups-0 has 80 %.
  EXPECT_THAT(names, ElementsAre("ups-0", "small", "utility", "ups-1"));
  EXPECT_NEAR(losses[0].worst(), 1.6, 1e-12);
  EXPECT_NEAR(losses[1].worst(), 0.8, 1e-12);
  EXPECT_THAT(losses[2].dark, SizeIs(1));
  EXPECT_THAT(n_minus_1(c.power, {.circuits = true}), SizeIs(6));
  EXPECT_NEAR(c.kW("small"), 40, 1e-9);  // left whole
  EXPECT_THAT(n_minus_1(c.power, {.keep = 0, .only_more = false})[0].survivors, SizeIs(2));
}

TEST(SharedPoints, feeds_that_meet_in_one_pdu) {
  PowerSpec spec = plant(2);
  spec.nodes["utility"].count = 2;
  spec.nodes["pdu"] = node(PowerKind::pdu, {"ups"}, 4);
  spec.racks.feeds["a"].from = "pdu";
  spec.racks.feeds["b"] = {.from = "pdu", .attach = Attach::in_blocks};
  // Feed a of racks 0 to 7: 0 1 2 3 0 1 2 3. Feed b: 0 0 1 1 2 2 3 3. So rack 0 and rack 7, and
  // with the pdu the UPS and the utility of those whose numbers are both even or both odd.
  Case c(spec, 8, 1_kW);
  const std::vector<SharedPoint> shared = shared_points(c.layout);
  std::vector<std::string> texts;
  for (const SharedPoint& s : shared) texts.push_back(to_text(s));
  EXPECT_THAT(texts, ElementsAre("rack-0's feeds a and b share pdu-0",
                                 "rack-0's feeds a and b share ups-0, so do rack-4's",
                                 "rack-3's feeds a and b share ups-1, so do rack-7's",
                                 "rack-7's feeds a and b share pdu-3",
                                 "rack-0's feeds a and b share utility-0, so do rack-4's",
                                 "rack-3's feeds a and b share utility-1, so do rack-7's"));
}

// A transfer switch is a shared point; what is behind it is not.
TEST(SharedPoints, of_a_switch_and_a_backup) {
  PowerSpec spec;
  spec.nodes["utility"] = node(PowerKind::utility);
  spec.nodes["sets"] = node(PowerKind::generators);
  spec.nodes["sets"].generators = GeneratorSpec{.rating = 1_MW};
  spec.nodes["ats"] = node(PowerKind::transfer_switch, {"utility", "sets"});
  spec.nodes["ups"] = node(PowerKind::ups, {"ats"}, 2);
  spec.nodes["ups"].active = 100_kW;
  spec.racks.feeds["a"].from = "ups-0";
  spec.racks.feeds["b"].from = "ups-1";
  Case c(spec, 3, 10_kW);
  const std::vector<SharedPoint> shared = shared_points(c.layout);
  ASSERT_THAT(shared, SizeIs(1));
  EXPECT_EQ(shared[0].name, "ats");
  EXPECT_THAT(shared[0].racks, ElementsAre("rack-0", "rack-1", "rack-2"));
  EXPECT_EQ(c.kW("sets"), 0);
  c.power.solve({c["utility"]});
  EXPECT_NEAR(c.kW("sets"), 30, 1e-9);
}

/// Chillers of 60 kW on both UPS, lights of 10 kW on one.
TEST(Redundancy, loads_beside_racks_count) {
  PowerSpec spec = plant(2);
  spec.nodes["utility"].count = 2;
  spec.racks.feeds["a"].from = "ups-0";
  spec.racks.feeds["b"].from = "ups-1";
  spec.loads["chillers"] = {.fed_by = {"ups"}, .units = {"north/chiller"}, .power_factor = 1.0};
  spec.loads["lights"] = {.fed_by = {"ups-0"}, .constant = 10_kW, .power_factor = 1.0};
  Case c(spec, 2, 20_kW);
  c.power.set_loads(spec, {{"chillers", 60_kW}});
  c.power.solve();
  EXPECT_NEAR(c.kW("ups-0"), 60, 1e-9);
  EXPECT_NEAR(c.kW("ups-1"), 50, 1e-9);
  const Loss loss = c.without("ups-0");
  EXPECT_THAT(loss.dark, IsEmpty());
  EXPECT_THAT(loss.dark_loads, ElementsAre(c["lights"]));
  EXPECT_NEAR(loss.worst(), 1.0, 1e-12);
  EXPECT_EQ(to_text(loss, c.layout),
            "without ups-0: all racks fed, lights without power; ups-1 at 100 % of its rating, "
            "before 50 %");
  EXPECT_NEAR(c.without("ups-1").worst(), 1.1, 1e-12);
  c.power.solve();
  EXPECT_THAT(check_ratings(c.power), IsEmpty());
  c.power.set_loads(spec, {{"chillers", 142_kW}});
  c.power.solve();
  ASSERT_THAT(check_ratings(c.power), SizeIs(1));
  EXPECT_EQ(check_ratings(c.power)[0].node, "ups-0");
}

TEST(SharedPoints, of_loads_with_several_feeds) {
  PowerSpec spec = plant(2);  // both UPS on one utility
  spec.racks.feeds["a"].from = "ups-0";
  spec.loads["chillers"].fed_by = {"ups"};
  spec.loads["lights"].fed_by = {"ups-0"};  // one feed: nothing to share
  const std::vector<SharedPoint> shared = shared_points(lay_out_power(spec, 2));
  ASSERT_THAT(shared, SizeIs(1));
  EXPECT_THAT(shared[0].racks, IsEmpty());
  EXPECT_EQ(to_text(shared[0]), "all feeds of chillers go through utility");
  spec.racks.feeds["b"].from = "ups-1";
  const std::vector<SharedPoint> both = shared_points(lay_out_power(spec, 1));
  ASSERT_THAT(both, SizeIs(1));
  EXPECT_EQ(to_text(both[0]), "rack-0's feeds a and b share utility, and all of chillers");
}

/// A random plant: every node has one to three feeds among those before it.
PowerLayout random_layout(sim::Stream& luck) {
  PowerLayout layout;
  layout.feeds = {"a", "b"};
  const std::size_t count = 5 + luck.below(25);
  for (std::size_t n = 0; n < count; ++n) {
    PlantNode node;
    node.name = "n" + std::to_string(n);
    std::set<std::size_t> feeds;
    const std::size_t sources = 1 + count / 8;
    for (std::size_t i = luck.below(3) + 1; n >= sources && i > 0; --i) {
      const std::size_t near = std::min<std::size_t>(n, 6);
      feeds.insert(n - 1 - luck.below(near));
    }
    for (const std::size_t feed : feeds)
      if (layout.nodes[feed].kind != PlantKind::rack) node.from.push_back(layout.nodes[feed].name);
    const std::size_t kind = luck.below(8);
    if (!node.from.empty() && kind == 0) node.kind = PlantKind::transfer;
    if (!node.from.empty() && kind == 1) node.kind = PlantKind::ups;
    if (!node.from.empty() && kind >= 6 && n > count / 2) node.kind = PlantKind::rack;
    if (node.kind == PlantKind::rack) layout.racks.push_back(n);
    layout.nodes.push_back(node);
    layout.limits.push_back({});
  }
  return layout;
}

// Each dominator against taking nodes away one by one and asking the solver.
TEST(SharedPoints, agree_with_taking_nodes_away) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    sim::Stream luck(sim::Seed{seed}, "plants");
    const PowerLayout layout = random_layout(luck);
    SteadyPower power(layout);
    for (const std::size_t rack : layout.racks) {
      std::vector<std::size_t> found = dominators(layout, rack);
      std::sort(found.begin(), found.end());
      std::vector<std::size_t> expected;
      for (std::size_t n = 0; n < layout.nodes.size(); ++n) {
        if (n == rack) continue;
        power.solve({n});
        if (!power.flow(rack).is_live) expected.push_back(n);
      }
      EXPECT_EQ(found, expected) << layout.nodes[rack].name;
    }
  }
}

}  // namespace
}  // namespace trainyard::models
