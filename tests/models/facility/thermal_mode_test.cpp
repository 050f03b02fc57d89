#include "models/facility/thermal_mode.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "models/facility/thermal_modes.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;

// Chips, air and mass of a 40 kW rack without cooling.
const ThermalMatrix rack{
    .capacities = {25.6e3, 35e3, 400e3},
    .exchange = {32 / 0.065, -32 / 0.065, 0, -32 / 0.065, 32 / 0.065 + 600, -600, 0, -600, 600},
    .losses = {0, 0, 0}};

TEST(ThermalMode, RatesOfARack) {
  const auto mode = make_mode(rack);
  ASSERT_EQ(mode->rates().size(), 3u);
  EXPECT_NEAR(mode->rates()[0], -0.04313993, 5e-9);
  EXPECT_NEAR(mode->rates()[1], -0.00879963, 5e-9);
  EXPECT_EQ(mode->rates()[2], 0.0);  // no rounding
}

TEST(ThermalMode, CoordinatesAndBack) {
  const auto mode = make_mode(rack);
  const std::vector<double> t = {80.0, 34.0, 30.0};
  const std::vector<double> back = mode->temperatures(mode->coordinates(t));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(back[i], t[i], 1e-12);
    EXPECT_NEAR(mode->temperature(i, mode->coordinates(t)), t[i], 1e-12);
  }
  // Heat at one node is the same whether it is given with the others or added.
  std::vector<double> added = mode->sources(std::vector{22.4e3, 0.0, 0.0});
  mode->add_heat(1, 17.6e3, added);
  const std::vector<double> given = mode->sources(std::vector{22.4e3, 17.6e3, 0.0});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(added[i], given[i], 1e-10);
  // 40 kW on 460.6 kJ/K, whoever gets it: sum of C dT/dt.
  double sum = 0.0;
  for (std::size_t i = 0; i < 3; ++i)
    sum += rack.capacities[i] * mode->slope(i, mode->coordinates(t), given);
  EXPECT_NEAR(sum, 40e3, 1e-8);
}

TEST(ThermalMode, ClosedAndOpenPartsSideBySide) {
  // Nodes 0 and 2 exchange 6 W/K and touch nothing else; node 1 loses 3 W/K.
  const auto mode = make_mode(
      {.capacities = {2, 3, 4}, .exchange = {6, 0, -6, 0, 0, 0, -6, 0, 6}, .losses = {0, 3, 0}});
  // 0 and 2: -(6 / 2 + 6 / 4) = -4.5 and 0; 1: -1.
  EXPECT_NEAR(mode->rates()[0], -4.5, 1e-14);
  EXPECT_EQ(mode->rates()[1], 0.0);
  EXPECT_NEAR(mode->rates()[2], -1.0, 1e-15);
}

TEST(ThermalMode, ShortStepsDoNotCancel) {
  // Integral of 1 - e^(-rt) over a short h is r h^2 / 2: lost by subtraction, kept by the series.
  const auto mode = make_mode({.capacities = {1.0}, .exchange = {0.0}, .losses = {1e-3}});
  std::vector<double> y = mode->coordinates(std::vector{0.0}), integral = {0.0};
  mode->step(1us, mode->sources(std::vector{1e-3}), y, integral);
  EXPECT_NEAR(y[0] / 1e-9, 1.0, 1e-9);
  EXPECT_NEAR(integral[0] / 5e-16, 1.0, 1e-9);
}

TEST(ThermalMode, SteadyStateByHand) {
  // 10 W in node 0, 5 W/K to node 1, 2 W/K from there to 20 degrees: 25 and 27.
  const ThermalMatrix m{.capacities = {1, 1}, .exchange = {5, -5, -5, 5}, .losses = {0, 2}};
  const std::vector<double> t = steady_temperatures(m, std::vector{10.0, 40.0});
  EXPECT_NEAR(t[0], 27.0, 1e-12);
  EXPECT_NEAR(t[1], 25.0, 1e-12);
  EXPECT_THROW(steady_temperatures(rack, std::vector{1.0, 0.0, 0.0}), CheckFailed);
}

TEST(ThermalModes, OneOfEachAndTheLeastUsedGoes) {
  ThermalModes modes(2 * (3 * 3 + 2 * 3 + 1) * sizeof(double));  // room for two
  int built = 0;
  const auto build = [&] {
    ++built;
    return rack;
  };
  const auto first = modes.mode({1.0}, build);
  EXPECT_EQ(modes.mode({1.0}, build), first);
  modes.mode({2.0}, build);
  modes.mode({1.0}, build);
  modes.mode({3.0}, build);  // 2 was used longest ago
  EXPECT_EQ(modes.size(), 2u);
  EXPECT_EQ(modes.mode({1.0}, build), first);
  EXPECT_EQ(built, 3);
  EXPECT_EQ(modes.decompositions(), 3);
  EXPECT_EQ(modes.reuses(), 3);
  modes.mode({2.0}, build);
  EXPECT_EQ(built, 4);
}

}  // namespace
}  // namespace trainyard::models
