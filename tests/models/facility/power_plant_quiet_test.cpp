#include <gtest/gtest.h>

#include <cmath>

#include "models/facility/power_plant.hpp"
#include "tests/models/facility/power_plant_rig.hpp"

/// Changes of the load of which no device is told, against a twin that tells all devices of all.
namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;

PlantNode with_losses(PlantNode node, Watts rating) {
  node.rating = rating;
  node.a0 = 0.005;
  node.a1 = 0.003;
  node.a2 = 0.02;
  return node;
}

/// Two sides with grid, sets, UPS and a panel; racks on both, in the odd places on one line each;
/// pumps on both sides, lights on one.
std::vector<PlantNode> two_sides(int racks) {
  std::vector<PlantNode> nodes;
  for (const std::string k : {"a", "b"}) {
    nodes.push_back(utility("grid-" + k));
    nodes.push_back(generators("sets-" + k, 2, 150_kW, 9s));
    nodes.push_back(transfer("ats-" + k, {"grid-" + k, "sets-" + k}));
    nodes.push_back(with_losses(
        {.name = "trafo-" + k, .kind = PlantKind::transformer, .from = {"ats-" + k}}, 250_kW));
    nodes.push_back(with_losses(ups("ups-" + k, "trafo-" + k, 150_kW), 150_kW));
    nodes.push_back(breaker("panel-" + k, "ups-" + k, 150_A, 400_V, 3));
    nodes.back().breaker.time_constant = k == "a" ? 60s : 103s;
  }
  for (int i = 0; i < racks; ++i) {
    const std::string name = "rack-" + std::to_string(i);
    for (const std::string k : {"a", "b"}) {
      nodes.push_back(breaker(name + "/" + k, "panel-" + k, i % 2 ? 60_A : 20_A,
                              i % 2 ? 230_V : 400_V, i % 2 ? 1 : 3));
      if (i % 2) nodes.back().lines = i % 4 == 1 ? Lines::a : Lines::bc;
    }
    nodes.push_back(rack(name, {name + "/a", name + "/b"}));
  }
  nodes.push_back({.name = "pumps", .kind = PlantKind::load, .from = {"panel-a", "panel-b"}});
  nodes.push_back({.name = "lights", .kind = PlantKind::load, .from = {"trafo-a"}});
  return nodes;
}

struct Trial {
  PlantRig rig;
  std::vector<std::vector<PowerPlant::RackLoad>> vectors = {};
  /// Operators who do something before a breaker trips, or with odd seeds not.
  static PowerPolicySpec policy_of(std::uint64_t seed) {
    PowerPolicySpec policy;
    if (seed % 2) policy.cap = policy.brake = policy.suspend = policy.cut = false;
    return policy;
  }
  explicit Trial(std::uint64_t seed) : rig(two_sides(8), policy_of(seed), seed) {
    sim::Stream luck(sim::Seed{seed}, "vectors");
    for (int i = 0; i < 3; ++i) vectors.push_back(drawn(luck));
    for (int i = 0; i < 8; ++i)
      rig.plant->set_rack_limits(rig.node("rack-" + std::to_string(i)), 4_kW, 2_kW, i % 3);
  }

  std::vector<PowerPlant::RackLoad> drawn(sim::Stream& luck) {
    std::vector<PowerPlant::RackLoad> loads;
    for (int i = 0; i < 8; ++i)
      loads.push_back({rig.node("rack-" + std::to_string(i)), Watts(6e3 + 15e3 * luck.uniform()),
                       VoltAmperes(2e3 * luck.uniform())});
    if (luck.uniform() < 0.5)
      loads.push_back({rig.node("pumps"), Watts(8e3 * luck.uniform()), VoltAmperes(1e3)});
    return loads;
  }

  /// The same for the same luck.
  void act(sim::Stream& luck) {
    PowerPlant& plant = *rig.plant;
    const double what = luck.uniform();
    std::vector<PowerPlant::RackLoad> loads;
    if (what < 0.80) {
      loads = vectors[luck.below(vectors.size())];
    } else if (what < 0.90) {
      loads = drawn(luck);
    } else if (what < 0.97) {
      loads = {vectors[luck.below(vectors.size())][luck.below(8)]};
    } else {
      static const char* const names[] = {"panel-a",  "panel-b",  "ups-a", "ups-b",
                                          "rack-2/b", "rack-3/a", "ats-b"};
      const std::string name = names[luck.below(std::size(names))];
      const double kind = luck.uniform();
      if (kind < 0.3)
        plant.fail(plant.node(name));
      else if (kind < 0.5)
        plant.disturb(plant.node(luck.below(2) ? "grid-a" : "grid-b"), 0.0,
                      seconds(luck.log_normal(30.0, 2.0)));
      else
        for (const char* each : names) plant.restore(plant.node(each));
      for (const char* each : {"ups-a", "ups-b"}) plant.return_by_hand(plant.node(each));
      return;
    }
    set(loads);
  }

  /// Two of the three that come back have one.
  std::uint64_t name_of(const std::vector<PowerPlant::RackLoad>& loads) const {
    const auto is_same = [](const PowerPlant::RackLoad& a, const PowerPlant::RackLoad& b) {
      return a.rack == b.rack && a.active == b.active && a.reactive == b.reactive;
    };
    for (std::size_t i = 0; i < 2; ++i)
      if (std::equal(loads.begin(), loads.end(), vectors[i].begin(), vectors[i].end(), is_same))
        return 1 + i;
    return 0;
  }

  void set(const std::vector<PowerPlant::RackLoad>& loads) {
    for (const PowerPlant::RackLoad& load : loads) {
      rig.loads[load.rack] = load.active;
      rig.reactive[load.rack] = load.reactive;
    }
    rig.plant->set_rack_loads(loads, name_of(loads));
  }
};

void expect_same_state(Trial& quick, Trial& slow) {
  for (std::size_t n = 0; n < quick.rig.list.size(); ++n) {
    const PowerPaths::Flow& a = quick.rig.plant->flow(n);
    const PowerPaths::Flow& b = slow.rig.plant->flow(n);
    SCOPED_TRACE(quick.rig.list[n].name);
    ASSERT_EQ(a.is_live, b.is_live);
    ASSERT_EQ(a.out_W, b.out_W);
    ASSERT_EQ(a.in_W, b.in_W);
    ASSERT_EQ(a.in_var, b.in_var);
    ASSERT_EQ(a.loss_W, b.loss_W);
    ASSERT_EQ(a.current, b.current);
    const Time now = quick.rig.engine.now();
    if (quick.rig.list[n].kind == PlantKind::breaker) {
      ASSERT_NEAR(quick.rig.plant->breaker(n).image(now), slow.rig.plant->breaker(n).image(now),
                  1e-12);
    }
    if (quick.rig.list[n].kind != PlantKind::ups) continue;
    ASSERT_EQ(quick.rig.plant->ups(n).state(), slow.rig.plant->ups(n).state());
    ASSERT_EQ(quick.rig.plant->ups(n).load(), slow.rig.plant->ups(n).load());
    ASSERT_EQ(quick.rig.plant->ups(n).autonomy(now), slow.rig.plant->ups(n).autonomy(now));
  }
  const PowerPlant::Energy e = quick.rig.plant->energy(), f = slow.rig.plant->energy();
  const double sum = e.from_sources.value();
  ASSERT_NEAR(e.from_sources.value(), f.from_sources.value(), 1e-12 * sum);
  ASSERT_NEAR(e.to_racks.value(), f.to_racks.value(), 1e-12 * sum);
  ASSERT_NEAR(e.to_loads.value(), f.to_loads.value(), 1e-12 * sum);
  ASSERT_NEAR(e.losses.value(), f.losses.value(), 1e-12 * sum);
  ASSERT_NEAR(e.battery_stored.value(), f.battery_stored.value(), 1e-9 * sum);
}

/// The same events; a trip may be a nanosecond off, as images are summed in another order.
void expect_same_events(const Trial& quick, const Trial& slow) {
  const auto& a = quick.rig.recorder.events();
  const auto& b = slow.rig.recorder.events();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(quick.rig.recorder.kinds()[a[i].kind.index()].name,
              slow.rig.recorder.kinds()[b[i].kind.index()].name);
    ASSERT_EQ(a[i].subject, b[i].subject);
    ASSERT_EQ(a[i].cause, b[i].cause);
    ASSERT_LE(std::abs((a[i].when - b[i].when).count()), 1);
    ASSERT_NEAR(a[i].value, b[i].value, 1e-8 * std::max(1.0, std::abs(a[i].value)));
  }
}

TEST(QuietChanges, agree_with_telling_all_devices) {
  std::size_t quiet = 0, changes = 0, trips = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Trial quick(seed), slow(seed);
    slow.rig.plant->tell_all_devices();
    sim::Stream times(sim::Seed{seed}, "times"), luck(sim::Seed{seed}, "acts");
    sim::Stream same(sim::Seed{seed}, "acts");
    Duration now{};
    for (int i = 0; i < 800; ++i, ++changes) {
      now += seconds(times.exponential(60.0));
      quick.rig.run(now);
      slow.rig.run(now);
      if (i % 7 == 0) expect_same_state(quick, slow);
      quick.act(luck);
      slow.act(same);
      if (i % 5 == 0) expect_same_state(quick, slow);
      if (HasFatalFailure()) return;
    }
    expect_same_events(quick, slow);
    EXPECT_EQ(slow.rig.plant->quiet_changes(), 0u);
    quiet += quick.rig.plant->quiet_changes();
    trips += quick.rig.recorder.count("breaker tripped");
  }
  EXPECT_GT(quiet, changes / 3);  // both ways were gone
  EXPECT_GT(trips, 12u);
}

TEST(QuietChanges, many_loads_and_back) {
  Trial quick(1), slow(1);
  slow.rig.plant->tell_all_devices();
  sim::Stream luck(sim::Seed{5}, "many");
  for (int i = 0; i < 400; ++i) {  // more than are remembered
    const auto loads = i % 3 ? quick.drawn(luck) : quick.vectors[std::size_t(i / 3 % 2)];
    for (Trial* t : {&quick, &slow}) {
      t->rig.run(i * 9s);
      t->set(loads);
    }
    if (i % 40 == 0) expect_same_state(quick, slow);
  }
  EXPECT_EQ(quick.rig.plant->quiet_changes(), 400u);
  for (Trial* t : {&quick, &slow}) t->rig.plant->fail(t->rig.node("panel-a"));
  for (Trial* t : {&quick, &slow}) t->rig.run(2h);
  expect_same_state(quick, slow);
  expect_same_events(quick, slow);
}

/// 0.9 and 0.3 of the rating in turn, a minute each, for an hour: then twice the load trips it as
/// soon as a breaker that was told of every change.
TEST(QuietChanges, a_breaker_knows_what_it_carried) {
  const std::vector<PlantNode> nodes = {utility("grid"), breaker("cb", "grid", 100_A, 400_V, 3),
                                        rack("rack", {"cb"})};
  PlantRig rig(nodes);
  Breaker alone(nodes[1].breaker);
  const auto load = [&](double ratio) {
    rig.load("rack", Watts(ratio * 100 * 400 * std::sqrt(3.0)));
    alone.set_current(rig.engine.now(), Amperes(ratio * 100));
  };
  for (int i = 0; i < 60; ++i) {
    load(i % 2 ? 0.3 : 0.9);
    rig.run((i + 1) * 1min);
    EXPECT_NEAR(rig.plant->breaker(1).image(rig.engine.now()), alone.image(rig.engine.now()),
                1e-13);
  }
  EXPECT_EQ(rig.plant->quiet_changes(), 60u);
  load(2.0);
  EXPECT_EQ(rig.plant->quiet_changes(), 60u);
  ASSERT_TRUE(alone.next_event());
  EXPECT_LE(std::abs((*rig.plant->breaker(1).next_event() - *alone.next_event()).count()), 1);
}

/// Up to the pick-up no device is told, above it the breaker is.
TEST(QuietChanges, the_pick_up_is_the_boundary) {
  PlantRig rig({utility("grid"), breaker("cb", "grid", 100_A, 400_V, 3), rack("rack", {"cb"})});
  const double pick_up_W = std::sqrt(1.64) * 100 * 400 * std::sqrt(3.0);
  rig.load("rack", Watts(pick_up_W * (1 - 1e-9)));
  EXPECT_EQ(rig.plant->quiet_changes(), 1u);
  EXPECT_FALSE(rig.plant->breaker(1).next_event());
  rig.load("rack", Watts(pick_up_W * (1 + 1e-9)));
  EXPECT_EQ(rig.plant->quiet_changes(), 1u);
  EXPECT_TRUE(rig.plant->breaker(1).next_event());
}

TEST(QuietChanges, a_battery_that_recharges_is_told) {
  std::vector<PlantNode> nodes = {utility("grid"), ups("ups", "grid", 100_kW),
                                  rack("rack", {"ups"})};
  nodes[1].ups.battery.charge = 0.9;
  PlantRig rig(nodes);
  rig.load("rack", 50_kW);
  rig.load("rack", 95_kW);  // leaves 5 kW to recharge
  EXPECT_EQ(rig.plant->quiet_changes(), 0u);
  EXPECT_DOUBLE_EQ(rig.plant->flow(1).in_W, 100e3);
  rig.run(48h);
  rig.load("rack", 50_kW);
  rig.load("rack", 95_kW);
  EXPECT_EQ(rig.plant->quiet_changes(), 2u);
}

}  // namespace
}  // namespace trainyard::models
