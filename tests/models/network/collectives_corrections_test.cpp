#include "models/network/collectives/corrections.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "models/network/collectives/ring.hpp"
#include "sim/check.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

namespace trainyard::models {
namespace {

/// Hosts are shuffled into one permutation; each sends to the next. The edges that leave a leaf
/// draw one of s uplinks for each of Q queue pairs. The load of the fullest of all uplinks and
/// downlinks, mean over trials.
double drawn_slowdown(std::size_t leaves, std::size_t hosts, std::size_t s, int q, int trials,
                      std::uint64_t seed) {
  std::mt19937_64 random(seed);
  double sum = 0;
  const std::size_t n = leaves * hosts;
  for (int t = 0; t < trials; ++t) {
    std::vector<std::size_t> to = in_order(n);
    for (std::size_t i = n - 1; i > 0; --i) std::swap(to[i], to[random() % (i + 1)]);
    std::vector<double> up(leaves * s), down(leaves * s);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t a = i / hosts, b = to[i] / hosts;
      if (a == b) continue;
      for (int k = 0; k < q; ++k) {
        const std::size_t spine = random() % s;
        up[a * s + spine] += 1.0 / q;
        down[b * s + spine] += 1.0 / q;
      }
    }
    sum += std::max({1.0, *std::max_element(up.begin(), up.end()),
                     *std::max_element(down.begin(), down.end())});
  }
  return sum / trials;
}

struct Drawn {
  std::size_t leaves, hosts, spines;
  double at_1_2_4_8_16[5];
};
const Drawn monte_carlo[] = {
    {8, 8, 8, {3.67, 2.84, 2.20, 1.86, 1.55}},    {16, 16, 16, {4.65, 3.33, 2.64, 2.10, 1.73}},
    {32, 32, 32, {5.80, 4.03, 2.98, 2.32, 1.92}}, {64, 32, 32, {5.92, 4.25, 3.12, 2.43, 1.96}},
    {8, 8, 2, {6.27, 5.59, 5.21, 4.80, 4.54}},    {16, 16, 4, {8.70, 7.10, 6.09, 5.49, 4.96}}};

TEST(Collisions, formula_is_near_the_monte_carlo_table) {
  for (const Drawn& row : monte_carlo) {
    for (int i = 0; i < 5; ++i) {
      const double h = static_cast<double>(row.hosts) * (1 - 1.0 / static_cast<double>(row.leaves));
      const double got = expected_collision_slowdown(row.leaves, row.spines, h, 1 << i);
      EXPECT_THAT(got / row.at_1_2_4_8_16[i] - 1,
                  testing::AllOf(testing::Gt(-0.185), testing::Lt(0.115)))
          << row.leaves << 'x' << row.hosts << " Q " << (1 << i);
    }
  }
}

TEST(Collisions, the_table_is_what_drawing_gives) {
  // Its own trials were few: 3 % between the two.
  for (const Drawn& row : monte_carlo) {
    if (row.leaves > 16) continue;
    for (const int i : {0, 2, 4})
      EXPECT_NEAR(
          drawn_slowdown(row.leaves, row.hosts, row.spines, 1 << i, 200, 7) / row.at_1_2_4_8_16[i],
          1, 0.06)
          << row.leaves << 'x' << row.hosts << " Q " << (1 << i);
  }
}

TEST(Collisions, by_hand_and_at_the_ends) {
  // lambda 1, s 8, L 8: 1 + sqrt(2 · 7/8 · ln 128) = 1 + sqrt(1.75 · 4.85203) = 3.91394
  EXPECT_NEAR(expected_collision_slowdown(8, 8, 8, 1), 3.91394, 1e-5);
  EXPECT_EQ(expected_collision_slowdown(8, 8, 0, 1), 1);  // nothing leaves its leaf
  EXPECT_EQ(expected_collision_slowdown(8, 1, 4, 1), 4);  // one uplink: no luck involved
  double before = 1e9;
  for (int q = 1; q <= 1 << 20; q *= 4) {
    const double now = expected_collision_slowdown(8, 8, 8, q);
    EXPECT_LT(now, before);
    before = now;
  }
  EXPECT_NEAR(before, 1, 0.01);  // towards spraying
}

TEST(Contention, holds_hashed_fabric_links_with_two_flows_and_nothing_else) {
  const std::vector<double> capacities{100, 100, 100, 100};
  const std::vector<bool> is_hashed_fabric{true, true, false, true};
  const std::vector<Stream> streams{{{{LinkIndex(0), 1}, {LinkIndex(1), 1}, {LinkIndex(2), 5}}, 1},
                                    {{{LinkIndex(1), 1}, {LinkIndex(3), 0.5}}, 1}};
  EXPECT_THAT(contended_capacities(capacities, is_hashed_fabric, streams),
              testing::ElementsAre(100, 93, 100, 100));
  EXPECT_THAT(contended_capacities(capacities, is_hashed_fabric, streams, 1),
              testing::ElementsAreArray(capacities));
  EXPECT_THROW(contended_capacities(capacities, {true}, streams), CheckFailed);
}

TEST(Contention, slows_a_ring_with_collisions_and_not_one_without) {
  const LeafSpine fabric(2, 4, 1, false);
  std::vector<bool> is_hashed_fabric(fabric.capacities.size(), false);
  for (const std::size_t leaf : {0, 1})
    is_hashed_fabric[fabric.up(leaf, 0).index()] = is_hashed_fabric[fabric.down(leaf, 0).index()] =
        true;
  const auto slowdown = [&](const std::vector<std::size_t>& order) {
    const CollectivePlan plan =
        plan_ring(CollectiveKind::all_reduce, GiB, fabric.hosts_in(order), fabric, {});
    return time_alone(plan, contended_capacities(fabric.capacities, is_hashed_fabric, plan.streams))
               .time_s /
           time_alone(plan, fabric.capacities).time_s;
  };
  EXPECT_DOUBLE_EQ(slowdown({0, 1, 4, 5}), 1);         // one edge over each uplink
  EXPECT_DOUBLE_EQ(slowdown({0, 4, 1, 5}), 1 / 0.93);  // two
}

TEST(Wire, payload_over_bytes_on_the_wire) {
  EXPECT_NEAR(payload_efficiency(4096, WireFormat::rocev2), 0.9804, 1e-4);      // 4096/4178
  EXPECT_NEAR(payload_efficiency(1024, WireFormat::rocev2), 0.9259, 1e-4);      // 1024/1106
  EXPECT_NEAR(payload_efficiency(4096, WireFormat::infiniband), 0.9937, 1e-4);  // 4096/4122
}

}  // namespace
}  // namespace trainyard::models
