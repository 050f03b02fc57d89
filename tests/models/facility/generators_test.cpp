#include "models/facility/generators.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;

Time at(Duration d) {
  return start_of_run + d;
}

/// Starts in exactly 8 s, never fails, accepts everything at once.
GeneratorSpec sure(int sets) {
  GeneratorSpec spec;
  spec.sets = sets;
  spec.rating = 1_MW;
  spec.start_sigma = 0.0;
  spec.fail_to_start = 0.0;
  spec.try_fails = 0.0;
  spec.unavailable = 0.0;
  spec.mttf = std::chrono::hours(2'000'000);
  spec.block = 1.0;
  return spec;
}

Generators make(const GeneratorSpec& spec, std::uint64_t seed = 1) {
  return Generators(spec, sim::Stream(sim::Seed{seed}, "generators"));
}

struct Cell {
  int k, n;
  double beta;
  double chance;
  double unit;  // of the last digit given
};

const std::vector<Cell> table = {
    {1, 2, 0.00, 8.84e-5, 1e-7}, {1, 2, 0.02, 2.73e-4, 1e-6}, {1, 2, 0.05, 5.50e-4, 1e-6},
    {1, 2, 0.10, 1.01e-3, 1e-5}, {3, 4, 0.00, 5.24e-4, 1e-6}, {3, 4, 0.02, 6.91e-4, 1e-6},
    {3, 4, 0.05, 9.43e-4, 1e-6}, {3, 4, 0.10, 1.36e-3, 1e-5}, {4, 5, 0.00, 8.67e-4, 1e-6},
    {4, 5, 0.02, 1.02e-3, 1e-5}, {4, 5, 0.05, 1.25e-3, 1e-5}, {4, 5, 0.10, 1.64e-3, 1e-5},
    {4, 6, 0.00, 1.63e-5, 1e-7}, {4, 6, 0.02, 2.03e-4, 1e-6}, {4, 6, 0.05, 4.84e-4, 1e-6},
    {4, 6, 0.10, 9.52e-4, 1e-6}};

TEST(Generators, ChanceThatTooFewStart) {
  for (const Cell& cell : table)
    EXPECT_NEAR(chance_fewer_start(cell.k, cell.n, 0.0094, cell.beta), cell.chance,
                0.501 * cell.unit)
        << cell.k << " of " << cell.n << ", beta " << cell.beta;
}

TEST(Generators, OneSetThroughAnOutage) {
  GeneratorSpec spec = sure(1);
  spec.unavailable = 0.005;
  spec.fail_to_start = 0.0094;
  spec.mttf = 1100h;
  EXPECT_NEAR(chance_of_service(spec, 1h), 0.98475, 5e-6);
  EXPECT_NEAR(chance_of_service(spec, 8h), 0.97850, 5e-6);
  EXPECT_NEAR(chance_of_service(spec, 24h), 0.96437, 5e-6);
  EXPECT_NEAR(chance_of_service(spec, 336h), 0.72621, 5e-6);
}

// The sets that the model starts, against the closed form: within the 99 % interval. The chance of
// a failure is raised so that 20 000 starts see enough of them.
TEST(Generators, SampledStartsFollowTheClosedForm) {
  struct Row {
    int k, n;
    double beta;
  };
  for (const Row& row : {Row{1, 2, 0.1}, {3, 4, 0.0}, {3, 4, 0.1}, {4, 6, 0.05}}) {
    GeneratorSpec spec = sure(row.n);
    spec.fail_to_start = 0.08;
    spec.common_cause = row.beta;
    spec.try_fails = 0.3;
    const int trials = 20'000;
    int fewer = 0;
    for (int i = 0; i < trials; ++i) {
      Generators sets = make(spec, std::uint64_t(i));
      sets.start(at(0s));
      sets.advance(at(10min));
      fewer += sets.running() < row.k ? 1 : 0;
    }
    const double p = chance_fewer_start(row.k, row.n, 0.08, row.beta);
    EXPECT_NEAR(double(fewer) / trials, p, 2.576 * std::sqrt(p * (1 - p) / trials))
        << row.k << " of " << row.n << ", beta " << row.beta;
  }
}

TEST(Generators, ASetServesAnHourAsOftenAsItsClosedForm) {
  GeneratorSpec spec = sure(1);
  spec.unavailable = 0.02;
  spec.fail_to_start = 0.03;
  spec.mttf = 20h;
  const int trials = 10'000;
  int served = 0;
  for (int i = 0; i < trials; ++i) {
    Generators sets = make(spec, std::uint64_t(i));
    sets.start(at(0s));
    sets.advance(at(1h + 8s));
    served += sets.running();
  }
  const double p = chance_of_service(spec, 1h);
  EXPECT_NEAR(double(served) / trials, p, 2.576 * std::sqrt(p * (1 - p) / trials));
}

TEST(Generators, TheFirstTakesTheBusAndTheOthersSynchronise) {
  Generators sets = make(sure(3));
  sets.start(at(100s));
  sets.advance(at(108s) - 1ns);
  EXPECT_EQ(sets.running(), 0);
  EXPECT_EQ(sets.capacity(), 0_W);
  sets.advance(at(108s));
  EXPECT_EQ(sets.running(), 1);
  sets.advance(at(113s));
  EXPECT_EQ(sets.running(), 2);
  EXPECT_FALSE(sets.is_settled(at(113s)));
  sets.advance(at(118s));
  EXPECT_EQ(sets.capacity(), 3_MW);
  EXPECT_TRUE(sets.is_settled(at(118s)));
  sets.stop(at(200s));
  EXPECT_EQ(sets.capacity(), 0_W);
}

TEST(Generators, LoadIsAcceptedInBlocks) {
  GeneratorSpec spec = sure(1);
  spec.block = 0.4;
  spec.block_interval = 5s;
  Generators sets = make(spec);
  sets.start(at(0s));
  sets.advance(at(8s));
  EXPECT_EQ(sets.capacity(), 400_kW);
  sets.advance(at(13s));
  EXPECT_EQ(sets.capacity(), 800_kW);
  sets.advance(at(18s));
  EXPECT_EQ(sets.capacity(), 1_MW);
}

TEST(Generators, MedianAndSpreadOfTheStart) {
  GeneratorSpec spec = sure(1);
  spec.start_sigma = 0.25;
  int within_8 = 0, within_sigma = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Generators sets = make(spec, seed);
    sets.start(at(0s));
    within_8 += *sets.next_event() <= at(8s) ? 1 : 0;
    within_sigma += *sets.next_event() <= start_of_run + seconds(8.0 * std::exp(0.25)) ? 1 : 0;
  }
  EXPECT_NEAR(within_8 / 4000.0, 0.5, 2.576 * std::sqrt(0.25 / 4000));
  EXPECT_NEAR(within_sigma / 4000.0, 0.8413, 2.576 * std::sqrt(0.8413 * 0.1587 / 4000));
}

// Full load empties the tank in its 24 h; idling takes 24 h / 0.15.
TEST(Generators, FuelByLoad) {
  GeneratorSpec spec = sure(1);
  spec.refill.reset();
  Generators full = make(spec);
  full.start(at(0s));
  full.set_load(at(8s), 1_MW);
  EXPECT_NEAR(full.fuel(at(8s + 6h)), 0.75, 1e-12);
  full.advance(at(8s + 24h));
  EXPECT_EQ(full.running(), 0);

  Generators idle = make(spec);
  idle.start(at(0s));
  idle.advance(at(8s + 24h));
  EXPECT_NEAR(idle.fuel(at(8s + 24h)), 0.85, 1e-12);

  spec.refill = 12h;
  Generators refilled = make(spec);
  refilled.start(at(0s));
  refilled.set_load(at(8s), 1_MW);
  refilled.advance(at(100h));
  EXPECT_EQ(refilled.running(), 1);
}

TEST(Generators, OverloadTripsAfterTenSeconds) {
  Generators held = make(sure(2)), tripped = make(sure(2));
  for (Generators* sets : {&held, &tripped}) {
    sets->start(at(0s));
    sets->advance(at(60s));
  }
  held.set_load(at(60s), 2.2_MW);
  held.advance(at(10min));
  EXPECT_EQ(held.running(), 2);
  tripped.set_load(at(60s), 2.21_MW);
  tripped.advance(at(70s) - 1ns);
  EXPECT_EQ(tripped.running(), 2);
  tripped.advance(at(70s));
  EXPECT_EQ(tripped.running(), 0);
}

TEST(Generators, AnotherSetDoesNotChangeTheLuckOfTheOthers) {
  GeneratorSpec spec;
  spec.rating = 1_MW;
  spec.fail_to_start = 0.3;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    spec.sets = 3;
    Generators three = make(spec, seed);
    spec.sets = 4;
    Generators four = make(spec, seed);
    three.start(at(0s));
    four.start(at(0s));
    three.advance(at(5min));
    four.advance(at(5min));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(three.state(i), four.state(i)) << seed;
  }
}

}  // namespace
}  // namespace trainyard::models
