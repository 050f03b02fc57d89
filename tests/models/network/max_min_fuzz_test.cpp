#include "tests/models/network/max_min_fuzz.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

/// MaxMin against textbook filling in extended precision, on every road it can take. The number of
/// seeds is 1000 a road; TRAINYARD_FUZZ_SEEDS asks for more.
namespace trainyard::models {
namespace {

using Loads = std::vector<Load>;

std::uint64_t seeds() {
  const char* asked = std::getenv("TRAINYARD_FUZZ_SEEDS");
  return asked == nullptr ? 1000 : std::strtoull(asked, nullptr, 10);
}

// All repairs, no full solve.
constexpr MaxMin::Tuning repair_always{
    .guard_factor = 1e9, .guard_base = 1e9, .batch_fraction = 1e9};
constexpr MaxMin::Tuning fill_always{
    .guard_factor = 0, .guard_base = 0, .batch_fraction = 0, .batch_least = 0};
constexpr MaxMin::Tuning guard_at_once{.guard_factor = 0, .guard_base = 0, .batch_fraction = 1e9};
constexpr MaxMin::Tuning guard_midway{.guard_factor = 0.1, .guard_base = 20, .batch_fraction = 1e9};

/// Every variable with an envelope.
constexpr MaxMin::Tuning all_wide(MaxMin::Tuning tuning, double factor) {
  tuning.envelope_factor = factor;
  tuning.wide_least = 1;
  return tuning;
}

struct Road {
  const char* name;
  MaxMin::Tuning tuning;
  bool falls_back, repairs;  // the road it is meant to take
};
class AgainstTextbook : public testing::TestWithParam<Road> {};

TEST_P(AgainstTextbook, rates_are_equal_after_every_batch) {
  std::size_t compared = 0;
  std::uint64_t fallbacks = 0, steps = 0;
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Fuzz fuzz(seed, GetParam().tuning);
    for (int event = 0; event < 40; ++event) {
      for (std::size_t i = 1 + fuzz.pick(6); i > 0; --i) fuzz.change_something();
      const double difference = fuzz.worst_difference();
      ASSERT_LE(difference, 1e-9) << "event " << event;
      worst = std::max(worst, difference);
    }
    compared += fuzz.rates_compared;
    fallbacks += fuzz.net().counters().fallbacks;
    steps += fuzz.net().counters().steps;
  }
  RecordProperty("rates_compared", std::to_string(compared));
  RecordProperty("worst_difference", testing::PrintToString(worst));
  EXPECT_GT(compared, 700 * seeds());
  EXPECT_EQ(fallbacks > 0, GetParam().falls_back);
  EXPECT_EQ(steps > 0, GetParam().repairs);
}

INSTANTIATE_TEST_SUITE_P(
    MaxMin, AgainstTextbook,
    testing::Values(
        Road{"as_shipped", {}, true, true},
        Road{"repair_whatever_it_costs", repair_always, false, true},
        Road{"guard_fires_at_once", guard_at_once, true, false},
        Road{"guard_fires_midway", guard_midway, true, true},
        Road{"always_in_full", fill_always, false, false},
        Road{"envelope_at_the_rate", all_wide(repair_always, 1), false, true},
        Road{"envelope_above_the_rate", all_wide(repair_always, 1.25), false, true},
        Road{"envelope_at_the_limit", all_wide(repair_always, MaxMin::unlimited), false, true},
        Road{"envelopes_and_the_guard_at_once", all_wide(guard_at_once, 1.25), true, false},
        Road{"envelopes_and_the_guard_midway", all_wide(guard_midway, 1.25), true, true},
        Road{"envelopes_as_shipped", all_wide({}, 1.25), true, true},
        Road{"envelopes_in_full", all_wide(fill_always, 1.25), false, false}),
    [](const testing::TestParamInfo<Road>& test) { return std::string(test.param.name); });

TEST(MaxMin, the_order_within_a_batch_does_not_matter) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::size_t links = 3 + random() % 20, flows = 10 + random() % 60;
    std::vector<Loads> loads(flows);
    for (Loads& list : loads)
      for (std::size_t i = 1 + random() % 5; i > 0; --i)
        list.push_back({LinkIndex(random() % links), 1.0 + static_cast<double>(random() % 3)});
    std::vector<std::size_t> order(flows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<std::vector<double>> rates(2, std::vector<double>(flows));
    for (std::vector<double>& result : rates) {
      MaxMin net(repair_always);
      for (std::size_t l = 0; l < links; ++l) net.add_link(1.0 + static_cast<double>(l % 4));
      std::vector<VarIndex> vars(flows);
      for (const std::size_t i : order) vars[i] = net.add(loads[i]);
      net.solve();
      for (std::size_t i = 0; i < flows; ++i) result[i] = net.rate(vars[i]);
      std::shuffle(order.begin(), order.end(), random);
    }
    for (std::size_t i = 0; i < flows; ++i)
      ASSERT_NEAR(rates[0][i], rates[1][i], 1e-12 * rates[0][i]);
  }
}

TEST(MaxMin, same_input_gives_the_same_bits) {
  std::vector<double> results[2];
  for (std::vector<double>& rates : results) {
    Fuzz fuzz(7, {});
    for (int i = 0; i < 300; ++i) {
      fuzz.change_something();
      rates.push_back(fuzz.worst_difference());
      rates.push_back(fuzz.net().load(LinkIndex(0)));
    }
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace trainyard::models
