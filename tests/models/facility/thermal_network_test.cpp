#include "models/facility/thermal_network.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "sim/check.hpp"
#include "tests/models/facility/thermal_twin.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace literals;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Optional;

Time at(double s) {
  return start_of_run + seconds(s);
}

// dT_air = Q t / C + (Q / G) (C_s / C)^2 (1 - e^(-t / tau)),  tau = C_f C_s / (G C).
double two_node_rise(double heat, double air, double mass, double g, double t) {
  const double c = air + mass, tau = air * mass / (g * c);
  return heat * t / c + heat / g * (mass / c) * (mass / c) * (1.0 - std::exp(-t / tau));
}

struct Cabinet {
  ThermalNetwork net;
  ThermalNode air, mass;
  Cabinet(double heat, double g) {
    air = net.add_node("air", 25e3, 0.0);
    mass = net.add_node("mass", 300e3, 0.0);
    net.connect(air, mass, g);
    net.set_heat(air, Watts(heat));
  }
};

TEST(ThermalNetwork, TwoNodesInAClosedRoom) {
  Cabinet cabinet(5e3, 100.0);
  cabinet.net.advance(at(189.0));
  EXPECT_NEAR(cabinet.net.temperature(cabinet.air), 26.7285, 5e-5);
  EXPECT_NEAR(cabinet.net.temperature(cabinet.mass), 0.92263, 1e-5);
  EXPECT_NEAR(cabinet.net.temperature(cabinet.air), two_node_rise(5e3, 25e3, 300e3, 100.0, 189.0),
              1e-11);
  // Nothing leaves: 5 kW for 189 s is stored.
  EXPECT_NEAR(cabinet.net.balance().stored.value(), 945e3, 1e-6);
}

// A calibration, not a proof: G and the allowed rise are fitted to the published 189 s at 5 kW; the
// second figure, below 60 s at 10 kW and more, then lies between the two fits.
TEST(ThermalNetwork, TimeToShutDownBracketsThePublishedCabinets) {
  const auto time_to = [](double heat, double g, double rise) {
    Cabinet cabinet(heat, g);
    return to_seconds(
        cabinet.net.first_crossing(cabinet.air, rise, Direction::rising)->time_since_epoch());
  };
  EXPECT_NEAR(time_to(5e3, 201.0, 20.0), 189.0, 0.5);
  EXPECT_NEAR(time_to(10e3, 201.0, 20.0), 63.7, 0.05);
  EXPECT_NEAR(time_to(5e3, 328.0, 15.0), 189.0, 0.5);
  EXPECT_NEAR(time_to(10e3, 328.0, 15.0), 51.2, 0.05);
}

// A rack of 32 accelerators at 40 kW whose cooling is cut at t = 0.
struct HotRack {
  ThermalNetwork net;
  ThermalNode chips, air, mass;
  ThermalBoundary supply;
  ThermalLink cooling;
  HotRack() {
    chips = net.add_node("chips", 25.6e3, 22.0);
    air = net.add_node("air", 35e3, 22.0);
    mass = net.add_node("mass", 400e3, 22.0);
    supply = net.add_boundary("supply", 22.0);
    net.connect(chips, air, 32.0 / 0.065);
    net.connect(air, mass, 600.0);
    cooling = net.connect(air, supply, 40e3 / 12.0);
    net.set_heat(chips, 22.4_kW);
    net.set_heat(air, 17.6_kW);
    net.settle();
  }
  void cut() { net.set_conductance(cooling, 0.0); }
};

struct Row {
  double t, chips, air, mass;
};

TEST(ThermalNetwork, RackAfterLossOfCooling) {
  HotRack rack;
  rack.cut();
  for (const Row& row :
       {Row{0, 79.5000, 34.0000, 34.0000}, Row{10, 80.4330, 43.8634, 34.0772},
        Row{30, 85.7092, 57.1215, 34.5795}, Row{60, 96.2157, 69.1005, 35.8589},
        Row{120, 115.0280, 83.4660, 39.3979}, Row{300, 147.2605, 108.2466, 53.1667},
        Row{600, 177.3121, 136.4686, 78.7740}}) {
    rack.net.advance(at(row.t));
    EXPECT_NEAR(rack.net.temperature(rack.chips), row.chips, 5.1e-5) << row.t;
    EXPECT_NEAR(rack.net.temperature(rack.air), row.air, 5.1e-5) << row.t;
    EXPECT_NEAR(rack.net.temperature(rack.mass), row.mass, 5.1e-5) << row.t;
  }
  EXPECT_NEAR(rack.net.balance().stored.value(), 24e6, 1e-5);
  EXPECT_NEAR(rack.net.balance().residual.value(), 0.0, 1e-6);
  // Late: everything rises together at 40 kW / 460.6 kJ/K.
  rack.net.advance(at(7200.0));
  for (ThermalNode node : {rack.chips, rack.air, rack.mass})
    EXPECT_NEAR(rack.net.slope(node), 0.086843, 5e-7);
}

TEST(ThermalNetwork, RackCrossesItsLimitsOnTime) {
  HotRack rack;
  rack.cut();
  const auto air = rack.net.first_crossing(rack.air, 45.0, Direction::rising);
  const auto chips = rack.net.first_crossing(rack.chips, 87.0, Direction::rising);
  ASSERT_TRUE(air && chips);
  // An integrator of 1 ms finds them at the ends of its steps 11.364 and 33.891.
  EXPECT_NEAR(to_seconds(*air), 11.3635, 5e-4);
  EXPECT_NEAR(to_seconds(*chips), 33.8905, 5e-4);
  // One microsecond early not yet; on time, yes.
  rack.net.advance(*air - 1us);
  EXPECT_FALSE(rack.net.is_beyond(rack.air, 45.0, Direction::rising));
  rack.net.advance(*air);
  EXPECT_TRUE(rack.net.is_beyond(rack.air, 45.0, Direction::rising));
  EXPECT_NEAR(rack.net.temperature(rack.air), 45.0, 2e-9);
}

TEST(ThermalNetwork, ReachesABalanceThatSolvesTheEquations) {
  HotRack rack;
  rack.net.advance(at(86400.0));
  // 40 kW through 3333.3 W/K is 12 K; 22.4 kW through 32 / 0.065 W/K is 45.5 K more.
  EXPECT_NEAR(rack.net.temperature(rack.air), 34.0, 1e-10);
  EXPECT_NEAR(rack.net.temperature(rack.chips), 79.5, 1e-10);
  EXPECT_NEAR(rack.net.flow(rack.cooling).value(), 40e3, 1e-6);
  EXPECT_NEAR(rack.net.heat_removed(rack.supply).value(), 40e3 * 86400.0, 1.0);
}

TEST(ThermalNetwork, ClosedRoomIsLinearForever) {
  ThermalNetwork net;
  const ThermalNode a = net.add_node("a", 1.0, 20.0), b = net.add_node("b", 1e6, 20.0);
  net.connect(a, b, 50.0);
  net.advance(at(30.0 * 86400.0));
  // Nothing in, nothing out: the mode of no decay is exact, also after a month in one step.
  EXPECT_NEAR(net.temperature(a), 20.0, 1e-11);
  EXPECT_NEAR(net.temperature(b), 20.0, 1e-11);
  net.set_heat(b, 1000_W);
  net.advance(at(60.0 * 86400.0));
  EXPECT_NEAR(net.balance().stored.value(), 30.0 * 86400.0 * 1000.0, 1.0);
  EXPECT_NEAR(net.temperature(b), 20.0 + 2592.0 * 1e6 / 1000001.0, 1e-8);
}

TEST(ThermalNetwork, HeatSlopeActsAsANegativeLoss) {
  // C dT/dt = 100 + 2 (T - 20) - 10 (T - 20):  T = 20 + 12.5 (1 - e^(-0.008 t)) with C = 1000.
  ThermalNetwork net;
  const ThermalNode chip = net.add_node("chip", 1000.0, 20.0);
  const ThermalBoundary air = net.add_boundary("air", 20.0);
  const ThermalLink sink = net.connect(chip, air, 10.0);
  net.set_heat(chip, 100_W);
  net.set_heat_slope(chip, 2.0, 20.0);
  net.advance(at(100.0));
  const double decay = std::exp(-0.8), rise = 12.5 * (1.0 - decay);
  EXPECT_NEAR(net.temperature(chip), 20.0 + rise, 1e-12);
  EXPECT_NEAR(net.heat(chip).value(), 100.0 + 2.0 * rise, 1e-11);
  // Given: 100 t + 2 * 12.5 (t - (1 - e^(-0.8)) / 0.008).
  EXPECT_NEAR(net.heat_given(chip).value(), 1e4 + 25.0 * (100.0 - (1.0 - decay) / 0.008), 1e-8);
  EXPECT_NEAR(net.balance().residual.value(), 0.0, 1e-8);
  // The sink lost, it runs away, and the crossing is found.
  net.set_conductance(sink, 0.0);
  const auto when = net.first_crossing(chip, 85.0, Direction::rising);
  ASSERT_TRUE(when);
  // dT/dt = (100 + 2 (T - 20)) / 1000, so T + 30 grows by e^(0.002 t).
  EXPECT_NEAR(to_seconds(*when) - 100.0, std::log(115.0 / (50.0 + rise)) / 0.002, 2e-6);
}

TEST(ThermalNetwork, BoundaryMayMove) {
  // T follows the weather: C = 1000 J/K behind 10 W/K, tau 100 s.
  ThermalNetwork net;
  const ThermalNode room = net.add_node("room", 1000.0, 20.0);
  const ThermalBoundary weather = net.add_boundary("weather", 20.0);
  const ThermalLink wall = net.connect(weather, room, 10.0);
  net.advance(at(50.0));
  net.set_temperature(weather, 30.0);
  net.advance(at(150.0));
  EXPECT_NEAR(net.temperature(room), 30.0 - 10.0 * std::exp(-1.0), 1e-12);
  const double in = 1e4 * (1.0 - std::exp(-1.0));
  EXPECT_NEAR(net.heat_moved(wall).value(), in, 1e-8);
  EXPECT_NEAR(net.heat_removed(weather).value(), -in, 1e-8);
  EXPECT_NEAR(net.temperature_integral(room),
              20.0 * 150.0 + 10.0 * (100.0 - 100.0 * (1.0 - std::exp(-1.0))), 1e-9);
}

TEST(ThermalNetwork, RefusesWhatHasNoCapacityOrNoBalance) {
  ThermalNetwork net;
  EXPECT_THROW(net.add_node("duct", 0.0, 20.0), CheckFailed);
  const ThermalNode room = net.add_node("room", 1e6, 20.0);
  EXPECT_THROW(net.connect(room, room, 1.0), CheckFailed);
  EXPECT_THROW(net.connect(room, net.add_boundary("out", 0.0), -1.0), CheckFailed);
  net.set_heat(room, 1_W);
  EXPECT_THROW(net.steady_state(), CheckFailed);  // reaches no boundary
  net.advance(at(1.0));
  EXPECT_THROW(net.advance(at(0.5)), CheckFailed);
}

TEST(ThermalNetwork, ModesAreDecomposedOnce) {
  HotRack rack;
  for (int i = 1; i <= 100; ++i) {
    rack.net.set_conductance(rack.cooling, i % 2 ? 0.0 : 40e3 / 12.0);
    rack.net.set_heat(rack.chips, Watts(20e3 + i));  // sources are no part of a mode
    rack.net.set_temperature(rack.supply, 20.0 + i % 5);
    rack.net.advance(at(i));
  }
  EXPECT_EQ(rack.net.modes().decompositions(), 2);
  EXPECT_EQ(rack.net.modes().reuses(), 98);
  EXPECT_EQ(rack.net.modes().size(), 2u);
}

TEST(ThermalNetwork, ForgetsTheModesThatWereUsedLeast) {
  auto modes = std::make_shared<ThermalModes>(1500);  // some five modes of three nodes
  ThermalNetwork net(modes);
  const ThermalNode a = net.add_node("a", 1e3, 20.0), b = net.add_node("b", 1e3, 30.0);
  const ThermalNode c = net.add_node("c", 1e3, 30.0);
  const ThermalLink link = net.connect(a, b, 1.0);
  net.connect(b, c, 1.0);
  for (int i = 1; i <= 50; ++i) {
    net.set_conductance(link, i);
    net.advance(at(2 * i));
    EXPECT_LE(modes->bytes(), 1500u);
    net.set_conductance(link, 1000.0);  // used every time: stays
    net.advance(at(2 * i + 1));
  }
  EXPECT_EQ(modes->decompositions(), 51);
  EXPECT_NEAR(net.balance().residual.value(), 0.0, 1e-7);
}

TEST(ThermalNetwork, NetworksBuiltAlikeShareTheirModes) {
  auto modes = std::make_shared<ThermalModes>();
  for (int hall = 0; hall < 3; ++hall) {
    ThermalNetwork net(modes);
    const ThermalNode a = net.add_node("a", 1e3, 20.0), b = net.add_node("b", 2e3, 30.0 + hall);
    net.connect(a, b, 1.0);
    net.advance(at(1.0));
  }
  EXPECT_EQ(modes->decompositions(), 1);
  EXPECT_EQ(modes->reuses(), 2);
}

TEST(ThermalNetwork, ReportsArrivalsInTurn) {
  HotRack rack;
  const ThermalWatch chips = rack.net.watch(rack.chips, 87.0, Direction::rising);
  const ThermalWatch air = rack.net.watch(rack.air, 45.0, Direction::rising);
  const ThermalWatch cool = rack.net.watch(rack.air, 40.0, Direction::falling);  // is below: waits
  EXPECT_EQ(rack.net.next_event(), std::nullopt);
  rack.cut();
  ASSERT_TRUE(rack.net.next_event());
  EXPECT_NEAR(to_seconds(*rack.net.next_event()), 11.3635, 5e-4);
  EXPECT_THROW(rack.net.advance(at(12.0)), CheckFailed);  // not past an arrival
  rack.net.advance(*rack.net.next_event());
  EXPECT_THAT(rack.net.take_arrivals(), ElementsAre(air));
  EXPECT_THAT(rack.net.take_arrivals(), ElementsAre());
  EXPECT_NEAR(to_seconds(*rack.net.next_event()), 33.8905, 5e-4);
  rack.net.advance(*rack.net.next_event());
  EXPECT_THAT(rack.net.take_arrivals(), ElementsAre(chips));
  EXPECT_EQ(rack.net.next_event(), std::nullopt);
  // Cooling back: the air falls through 40; on a second loss both are told again.
  rack.net.set_conductance(rack.cooling, 40e3 / 12.0);
  rack.net.advance(*rack.net.next_event());
  EXPECT_THAT(rack.net.take_arrivals(), ElementsAre(cool));
  rack.net.advance(rack.net.now() + 1h);
  rack.cut();
  rack.net.advance(*rack.net.next_event());
  EXPECT_THAT(rack.net.take_arrivals(), ElementsAre(air));
  rack.net.move_watch(chips, 100.0);
  rack.net.remove_watch(air);
  rack.net.advance(*rack.net.next_event());
  EXPECT_NEAR(rack.net.temperature(rack.chips), 100.0, 1e-8);
  EXPECT_THAT(rack.net.take_arrivals(), ElementsAre(chips));
}

TEST(ThermalNetwork, ArrivalsOfOneInstantAreAllTold) {
  ThermalNetwork net;
  std::vector<ThermalNode> nodes;
  std::vector<ThermalWatch> watches;
  for (int i = 0; i < 4; ++i) {
    nodes.push_back(net.add_node("twin", 1000.0, 20.0));
    net.set_heat(nodes.back(), 100_W);  // 0.1 K/s: 30 at 100 s
    watches.push_back(net.watch(nodes.back(), 30.0, Direction::rising));
  }
  EXPECT_EQ(net.next_event(), at(100.0));
  net.advance(at(100.0));
  // What one owner does about its own does not hide the others.
  net.set_heat(nodes[0], -100_W);
  net.connect(nodes[0], nodes[1], 3.0);
  EXPECT_EQ(net.next_event(), at(100.0));
  EXPECT_THAT(net.take_arrivals(), testing::ElementsAreArray(watches));
}

TEST(ThermalNetwork, AHairBeforeTheLimitIsNotForgotten) {
  // The inputs change 2 ns before the arrival, when the gap (2e-10 K) is below touch_K.
  ThermalNetwork net;
  const ThermalNode node = net.add_node("node", 1000.0, 20.0);
  net.set_heat(node, 100_W);
  const ThermalWatch watch = net.watch(node, 30.0, Direction::rising);
  net.advance(at(100.0) - 2ns);
  net.set_heat(node, 101_W);
  ASSERT_TRUE(net.next_event());
  EXPECT_LE(*net.next_event(), at(100.0));
  net.advance(*net.next_event());
  EXPECT_THAT(net.take_arrivals(), ElementsAre(watch));
}

TEST(ThermalNetwork, AHairBeforeComingBackIsNotForgotten) {
  // Starts beyond, leaves at 10 s, turns at 20 s and is back at 30 s; told apart 2 ns before.
  ThermalNetwork net;
  const ThermalNode node = net.add_node("node", 1000.0, 31.0);
  net.set_heat(node, -100_W);
  const ThermalWatch watch = net.watch(node, 30.0, Direction::rising);
  net.advance(at(20.0));
  net.set_heat(node, 100_W);
  net.advance(at(30.0) - 2ns);
  net.set_heat(node, 101_W);
  ASSERT_TRUE(net.next_event());
  net.advance(*net.next_event());
  EXPECT_LE(net.now(), at(30.0));
  EXPECT_THAT(net.take_arrivals(), ElementsAre(watch));
}

TEST(ThermalNetwork, AbsorbedNodesKeepTheHeat) {
  ThermalNetwork net;
  const ThermalBoundary out = net.add_boundary("out", 10.0);
  const ThermalNode a = net.add_node("a", 1000.0, 20.0), b = net.add_node("b", 3000.0, 40.0);
  net.connect(a, out, 5.0);
  net.connect(b, out, 7.0);
  net.set_heat(a, 100_W);
  net.set_heat_slope(a, 1.0, 20.0);
  net.set_heat(b, 50_W);
  net.set_heat_slope(b, 2.0, 30.0);
  net.advance(at(60.0));
  const double mean = (net.temperature(a) + 3.0 * net.temperature(b)) / 4.0;
  const double removed = net.heat_removed(out).value();
  net.absorb(a, b);
  EXPECT_NEAR(net.temperature(a), mean, 1e-12);
  EXPECT_EQ(net.capacity(a), 4000.0);
  EXPECT_EQ(net.node_count(), 1u);
  EXPECT_NEAR(net.heat_removed(out).value(), removed, 1e-9);
  EXPECT_NEAR(net.heat(a).value(), 150.0 + (mean - 20.0) + 2.0 * (mean - 30.0), 1e-10);
  EXPECT_NEAR(net.balance().residual.value(), 0.0, 1e-8);
  EXPECT_THROW(net.temperature(b), CheckFailed);
  net.advance(at(120.0));
  EXPECT_NEAR(net.balance().residual.value(), 0.0, 1e-8);
  // The place is used again.
  EXPECT_EQ(net.add_node("c", 1.0, 0.0), b);
}

class RandomNetwork : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomNetwork, testing::Range(1, 25));

TEST_P(RandomNetwork, AgreesWithAPlainIntegrator) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  ThermalScript script(GetParam(), /*streams=*/GetParam() % 3 == 0);
  ThermalNetwork net;
  ThermalTwin twin;
  script.build(net);
  script.build(twin);
  for (int event = 0; event < 6; ++event) {
    script.change(event, net);
    script.change(event, twin);
    net.advance(net.now() + 40s);
    twin.advance(40.0, 0.01);
    for (std::size_t i = 0; i < script.nodes(); ++i) {
      EXPECT_NEAR(net.temperature(ThermalNode(i)), twin.temperature(i), 1e-6);
      EXPECT_NEAR(net.temperature_integral(ThermalNode(i)), twin.integral(i), 1e-4);
    }
  }
  for (std::size_t i = 0; i < script.boundaries(); ++i)
    EXPECT_NEAR(net.heat_removed(ThermalBoundary(i)).value(), twin.removed(i),
                1e-6 * std::abs(twin.removed(i)) + 0.1);
}

// A month of random events: capacities, conductances, streams, sources and weather. In one run each
// interval is cut into random pieces; the nodes of a third are in another order.
TEST_P(RandomNetwork, AMonthOfEventsBalances) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  const bool streams = GetParam() % 3 == 0;
  ThermalScript script(GetParam(), streams);
  ThermalNetwork whole, cut, permuted;
  script.build(whole);
  script.build(cut);
  const std::vector<std::size_t> order = script.build_permuted(permuted);
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  const int events = streams ? 60 : 400;
  Time now = start_of_run;
  double turnover = 0.0;
  for (int event = 0; event < events; ++event) {
    script.change(event, whole);
    script.change(event, cut);
    script.change(event, permuted, order);
    const double mean_s = 30.0 * 86400.0 / events;
    now = now + seconds(mean_s * (0.1 + 1.8 * double(random() >> 11) * 0x1p-53));
    whole.advance(now);
    permuted.advance(now);
    while (cut.now() < now) {
      const Duration left = now - cut.now();
      const Duration piece = Duration(1 + std::int64_t(random() % std::uint64_t(left.count())));
      cut.advance(cut.now() + piece);
    }
  }
  for (std::size_t i = 0; i < script.nodes(); ++i)
    turnover += std::abs(whole.heat_given(ThermalNode(i)).value());
  for (std::size_t i = 0; i < script.boundaries(); ++i)
    turnover += std::abs(whole.heat_removed(ThermalBoundary(i)).value());
  for (const ThermalNetwork* net : {&whole, &cut, &permuted})
    EXPECT_LT(std::abs(net->balance().residual.value()), 1e-9 * turnover);
  for (std::size_t i = 0; i < script.nodes(); ++i) {
    const ThermalNode node(i), other(order[i]);
    const double t = whole.temperature(node), scale = 1e-9 * (1.0 + std::abs(t));
    EXPECT_NEAR(cut.temperature(node), t, scale);
    EXPECT_NEAR(permuted.temperature(other), t, scale);
    EXPECT_NEAR(cut.temperature_integral(node), whole.temperature_integral(node),
                1e-9 * std::abs(whole.temperature_integral(node)) + 1e-6);
    EXPECT_NEAR(cut.heat_given(node).value(), whole.heat_given(node).value(), 1e-9 * turnover);
  }
}

}  // namespace
}  // namespace trainyard::models
