#include "models/facility/thermal_stream.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "models/facility/directed_mode.hpp"
#include "models/facility/thermal_network.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace literals;

TEST(ThermalStream, ShareOfEachNodeByHand) {
  // Enters at T_0, meets a with e = 1/2, then b with e = 1: a is given (T_0 - T_a) / 2, the stream
  // goes on at (T_0 + T_a) / 2 and leaves at T_b.
  const StreamShape s = stream_shape(std::vector{0.5, 1.0}, true);
  EXPECT_DOUBLE_EQ(s.from_inlet[0], 0.5);
  EXPECT_DOUBLE_EQ(s.heat(0, 0), -0.5);
  EXPECT_DOUBLE_EQ(s.from_inlet[1], 0.5);
  EXPECT_DOUBLE_EQ(s.heat(1, 0), 0.5);
  EXPECT_DOUBLE_EQ(s.heat(1, 1), -1.0);
  EXPECT_DOUBLE_EQ(s.outlet_inlet, 0.0);
  EXPECT_DOUBLE_EQ(s.outlet[1], 1.0);
}

TEST(ThermalStream, CircuitOfTwoIsALink) {
  // Exchangers of 1/2 at a and b: the stream is at T_1 before a, (T_1 + T_a) / 2 before b, and
  // again T_1: T_1 = T_a / 3 + 2 T_b / 3. To a: (T_1 - T_a) / 2 = (T_b - T_a) / 3.
  const StreamShape s = stream_shape(std::vector{0.5, 0.5}, false);
  EXPECT_NEAR(s.heat(0, 1), 1.0 / 3.0, 1e-15);
  EXPECT_NEAR(s.heat(0, 0), -1.0 / 3.0, 1e-15);
  EXPECT_NEAR(s.heat(1, 0), 1.0 / 3.0, 1e-15);
  ThermalNetwork net;
  const ThermalNode a = net.add_node("a", 1e3, 20.0), b = net.add_node("b", 1e3, 40.0);
  net.add_stream("loop", std::nullopt, {{a, 0.5}, {b, 0.5}}, 30.0);
  EXPECT_FALSE(net.is_directed());
  net.advance(start_of_run + 100s);
  EXPECT_NEAR(net.temperature(a), 30.0 - 10.0 * std::exp(-2.0), 1e-12);
}

TEST(ThermalStream, RefusesAnImpossibleExchanger) {
  EXPECT_THROW(stream_shape(std::vector{0.0}, true), CheckFailed);
  EXPECT_THROW(stream_shape(std::vector{1.1}, true), CheckFailed);
  EXPECT_THROW(stream_shape(std::vector<double>{}, true), CheckFailed);
}

// Supply air - rack - hot aisle - back: c dT_1/dt = q - w (T_1 - T_0), c dT_2/dt = w (T_1 - T_2)
// has the double eigenvalue -w / c and no second eigenvector: a decomposition would fail here.
struct Contained {
  ThermalNetwork net;
  ThermalBoundary supply;
  ThermalNode rack, aisle;
  ThermalStream air;
  Contained() {
    supply = net.add_boundary("supply", 20.0);
    rack = net.add_node("rack", 10e3, 20.0);
    aisle = net.add_node("aisle", 10e3, 20.0);
    air = net.add_stream("air", supply, {{rack, 1.0}, {aisle, 1.0}}, 100.0);
    net.set_heat(rack, 1_kW);
  }
};

TEST(ThermalStream, ChainInClosedForm) {
  Contained c;
  EXPECT_TRUE(c.net.is_directed());
  for (double t : {0.001, 1.0, 77.7, 100.0, 250.0, 1e5}) {
    c.net.advance(start_of_run + seconds(t));
    const double x = to_seconds(c.net.now()) / 100.0, decay = std::exp(-x);
    EXPECT_NEAR(c.net.temperature(c.rack), 20.0 + 10.0 * (1.0 - decay), 1e-12) << t;
    EXPECT_NEAR(c.net.temperature(c.aisle), 20.0 + 10.0 * (1.0 - decay - x * decay), 1e-12) << t;
    EXPECT_NEAR(c.net.flow(c.air).value(), 1e3 * (1.0 - decay - x * decay), 1e-9) << t;
    EXPECT_NEAR(c.net.balance().residual.value(), 0.0, 1e-12 * 1e3 * t + 1e-8) << t;
  }
}

TEST(ThermalStream, ChainCrossesOnTime) {
  Contained c;
  // The aisle passes 25 where e^-x (1 + x) = 1/2: x = 1.6783469900166605.
  const auto when = c.net.first_crossing(c.aisle, 25.0, Direction::rising);
  ASSERT_TRUE(when);
  EXPECT_NEAR(to_seconds(*when), 167.83469900166605, 2e-9);
  EXPECT_EQ(c.net.first_crossing(c.aisle, 30.001, Direction::rising), std::nullopt);
  EXPECT_EQ(c.net.first_crossing(c.aisle, 19.9, Direction::falling), std::nullopt);
  c.net.advance(*when);
  EXPECT_TRUE(c.net.is_beyond(c.aisle, 25.0, Direction::rising));
  // Heat off: the aisle first rises on, then falls; it passes 25 downwards after its top.
  c.net.set_heat(c.rack, 0_W);
  const auto back = c.net.first_crossing(c.aisle, 24.0, Direction::falling);
  ASSERT_TRUE(back);
  c.net.advance(*back - 1us);
  EXPECT_GT(c.net.temperature(c.aisle), 24.0);
  c.net.advance(*back);
  EXPECT_NEAR(c.net.temperature(c.aisle), 24.0, 1e-8);
}

TEST(ThermalStream, ClosedCircuitKeepsItsHeat) {
  ThermalNetwork net;
  std::vector<StreamStop> stops;
  for (int i = 0; i < 5; ++i)
    stops.push_back({net.add_node("n", 1e3 * (i + 1), 20.0 + 10.0 * i), 0.3 + 0.1 * i});
  net.add_stream("loop", std::nullopt, stops, 50.0);
  net.set_heat(stops[2].node, 15_W);
  EXPECT_TRUE(net.is_directed());
  // 20, 30, 40, 50, 60 weighted 1 to 5: 140 / 3 on the average; 15 W into 15 kJ/K.
  net.advance(start_of_run + 10000s);
  EXPECT_NEAR(net.balance().stored.value(), 150e3, 1e-6);
  double sum = 0.0;
  for (const StreamStop& stop : stops) sum += net.capacity(stop.node) * net.temperature(stop.node);
  EXPECT_NEAR(sum / 15e3, 140.0 / 3.0 + 10.0, 1e-9);
  // With drift every limit above is reached in the end, none below.
  EXPECT_TRUE(net.first_crossing(stops[0].node, 80.0, Direction::rising));
  EXPECT_EQ(net.first_crossing(stops[0].node, 20.0, Direction::falling), std::nullopt);
}

TEST(ThermalStream, TooManyNodesForADenseExponential) {
  const std::size_t n = directed_nodes + 1;
  ThermalMatrix m{std::vector<double>(n, 1.0), std::vector<double>(n * n), std::vector<double>(n)};
  m.exchange[1] = -1.0;
  EXPECT_THROW(make_mode(m), CheckFailed);
}

}  // namespace
}  // namespace trainyard::models
