#include "models/network/collectives/tree.hpp"

#include <set>

#include <gmock/gmock.h>

#include "models/network/collectives/halving_doubling.hpp"
#include "sim/check.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

namespace trainyard::models {
namespace {

using enum CollectiveKind;
using testing::ElementsAre;

// ---- Double binary tree

std::vector<double> sent(const CollectivePlan& plan, const LeafSpine& fabric, std::size_t n) {
  auto w = weights(plan);
  std::vector<double> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(w[fabric.nic_out(i).index()]);
  return out;
}

TEST(Tree, of_eight_is_the_one_nccl_builds) {
  const auto parents = [](int tree) {
    std::vector<int> up;
    for (std::size_t rank = 0; rank < 8; ++rank) {
      const auto parent = tree_parent(rank, 8, tree);
      up.push_back(parent ? static_cast<int>(*parent) : -1);
    }
    return up;
  };
  //      0 ---- 4        (0 is the root; 4 has 2 and 6, these have the odd ones)
  EXPECT_THAT(parents(0), ElementsAre(-1, 2, 4, 2, 0, 6, 4, 6));
  EXPECT_THAT(parents(1), ElementsAre(1, 3, 1, 7, 5, 3, 5, -1));  // 7 - parent of 7 - rank
}

TEST(Tree, sends_what_its_place_in_both_trees_asks) {
  const auto sent_by = [](std::size_t n) {
    const LeafSpine fabric(1, n, 1, true);
    return sent(plan_tree(all_reduce, GiB, fabric.hosts_in(in_order(n)), fabric, {}), fabric, n);
  };
  EXPECT_THAT(sent_by(2), ElementsAre(2, 2));
  EXPECT_THAT(sent_by(3), testing::Contains(3));
  EXPECT_THAT(sent_by(8), ElementsAre(2, 4, 4, 4, 4, 4, 4, 2));
}

TEST(Tree, joins_all_ranks_twice_and_no_rank_is_inner_in_both) {
  for (std::size_t n = 2; n <= 70; ++n) {
    std::vector<std::size_t> children(2 * n);
    for (const int tree : {0, 1}) {
      std::size_t roots = 0;
      for (std::size_t rank = 0; rank < n; ++rank) {
        std::size_t hops = 0;  // every rank reaches the root
        for (auto up = tree_parent(rank, n, tree); up; up = tree_parent(*up, n, tree))
          ASSERT_LE(++hops, tree_depth(n)) << n << ' ' << rank;
        const auto up = tree_parent(rank, n, tree);
        if (up)
          ++children[static_cast<std::size_t>(tree) * n + *up];
        else
          ++roots;
      }
      ASSERT_EQ(roots, 1u);
    }
    double most = 0;
    for (std::size_t rank = 0; rank < n; ++rank) {
      double flows = static_cast<double>(children[rank] + children[n + rank]);
      for (const int tree : {0, 1}) flows += tree_parent(rank, n, tree) ? 1 : 0;
      most = std::max(most, flows);
    }
    ASSERT_EQ(most, std::min(4.0, static_cast<double>(n))) << n;
  }
}

TEST(Tree, depth_is_the_logarithm) {
  EXPECT_EQ(tree_depth(1), 0u);
  EXPECT_EQ(tree_depth(2), 1u);
  EXPECT_EQ(tree_depth(8), 3u);
  EXPECT_EQ(tree_depth(9), 4u);
  EXPECT_EQ(tree_depth(1024), 10u);
}

TEST(Tree, time_does_not_depend_on_the_number_of_nodes) {
  for (const std::size_t n : {2, 3, 4, 5, 8, 31, 64}) {
    const LeafSpine fabric(1, n, 1, true);
    const CollectivePlan plan =
        plan_tree(all_reduce, GiB, fabric.hosts_in(in_order(n)), fabric, {});
    const double want = n == 2 ? GiB : n == 3 ? 1.5 * GiB : 2 * GiB;
    EXPECT_NEAR(time_alone(plan, fabric.capacities).fluid_s, want / adapter_Bps, 1e-12) << n;
  }
}

TEST(Tree, over_rails_divides_by_adapters_and_loads_the_node_as_a_chain) {
  const Rails fabric(4, 8, 450e9);
  for (const int m : {1, 2}) {
    const CollectivePlan plan =
        plan_tree(all_reduce, GiB, fabric.group(8), fabric, {.channels_per_nic = m});
    EXPECT_EQ(plan.streams.size(), 16u * std::size_t(m));
    auto w = weights(plan);
    EXPECT_EQ(w[fabric.nic_out(3).index()], 2.0 * m);  // node 0: root of one, leaf of the other
    EXPECT_EQ(w[fabric.nic_out(11).index()], 4.0 * m);
    // In the chain of each of 16·m trees a GPU has two neighbours, at its ends (2 of 8) one.
    EXPECT_EQ(w[fabric.gpu_out(3).index()], 16.0 * m * 14 / 8);
    EXPECT_NEAR(time_alone(plan, fabric.capacities).fluid_s, 2 * GiB / 8 / adapter_Bps, 1e-12);
  }
}

TEST(Tree, in_a_narrow_node_is_held_by_scale_up_links) {
  const Rails fabric(4, 8, 100e9);
  EXPECT_NEAR(time_alone(plan_tree(all_reduce, GiB, fabric.group(8), fabric, {}), fabric.capacities)
                  .fluid_s,
              1.75 * GiB / 100e9, 1e-12);
}

TEST(Tree, broadcast_moves_each_byte_once_into_every_rank) {
  for (const std::size_t n : {2, 3, 4, 5, 7, 8, 9, 33}) {
    const LeafSpine fabric(1, n, 1, true);
    const CollectivePlan plan = plan_tree(broadcast, GiB, fabric.hosts_in(in_order(n)), fabric, {});
    auto w = weights(plan);
    EXPECT_FALSE(w.contains(fabric.nic_in(0).index())) << n;  // it has everything
    for (std::size_t i = 1; i < n; ++i) EXPECT_EQ(w[fabric.nic_in(i).index()], 2) << n;
    EXPECT_NEAR(time_alone(plan, fabric.capacities).fluid_s, GiB / adapter_Bps, 1e-12) << n;
  }
}

TEST(Tree, broadcast_leaves_the_first_gpu_and_reaches_the_rest_of_its_node) {
  const Rails fabric(2, 4, 100e9);
  const CollectivePlan plan = plan_tree(broadcast, GiB, fabric.group(4), fabric, {});
  auto w = weights(plan);  // 8 trees, one flow each
  EXPECT_EQ(w[fabric.gpu_out(0).index()], 8);
  EXPECT_FALSE(w.contains(fabric.gpu_in(0).index()));
  EXPECT_EQ(w[fabric.gpu_in(3).index()], 8);
  EXPECT_EQ(w[fabric.gpu_in(6).index()], 6);  // enters there by its own adapter in 2 of 8
}

TEST(Tree, fill_is_paid_once_a_call) {
  const LeafSpine fabric(1, 8, 1, true);
  const auto time_us = [&](double bytes, MessageCosts costs) {
    return 1e6 * time_alone(plan_tree(all_reduce, bytes, fabric.hosts_in(in_order(8)), fabric,
                                      {.costs = costs}),
                            fabric.capacities)
                     .time_s;
  };
  // 2·3·(5 us + 1 MiB/50e9 = 20.97152 us) beside 2 GiB/50e9
  EXPECT_NEAR(time_us(GiB, {.nic_s = 5e-6}), 42949.67296 + 30 + 125.82912, 1e-5);
  // Of 16 KiB all is one chunk: 8 KiB a tree
  EXPECT_NEAR(time_us(16384, {.nic_s = 5e-6}), 2 * 0.32768 + 30 + 6 * 0.16384, 1e-6);
}

TEST(Tree, queue_pairs_change_flows_and_not_the_time) {
  const LeafSpine fabric(2, 4, 2, true);
  const CollectivePlan plan =
      plan_tree(all_reduce, GiB, fabric.hosts_in(in_order(8)), fabric, {.queue_pairs = 4});
  EXPECT_EQ(weights(plan)[fabric.nic_out(2).index()], 16);
  EXPECT_NEAR(time_alone(plan, fabric.capacities).fluid_s, 2 * GiB / adapter_Bps, 1e-12);
  EXPECT_THROW(plan_tree(all_gather, GiB, fabric.hosts_in({0, 1}), fabric, {}), CheckFailed);
}

// ---- Halving and doubling

TEST(HalvingDoubling, bytes_halve_while_distances_double) {
  const auto steps = halving_doubling_steps(all_reduce, 8);
  std::vector<std::string> names;
  double moved = 0;
  for (const ExchangeStep& step : steps) {
    names.push_back(step.name);
    moved += step.fraction;
    EXPECT_EQ(step.sends.size(), 8u);
  }
  EXPECT_THAT(names, ElementsAre("halve over 1", "halve over 2", "halve over 4", "double over 4",
                                 "double over 2", "double over 1"));
  EXPECT_DOUBLE_EQ(moved, 2 * 7.0 / 8);
  EXPECT_EQ(halving_doubling_steps(all_gather, 8).size(), 3u);
  EXPECT_EQ(halving_doubling_steps(reduce_scatter, 1).size(), 0u);
}

TEST(HalvingDoubling, reduces_every_rank_into_every_other) {
  for (std::size_t n = 2; n <= 40; ++n) {
    std::vector<std::set<std::size_t>> known(n);
    for (std::size_t i = 0; i < n; ++i) known[i] = {i};
    for (const ExchangeStep& step : halving_doubling_steps(all_reduce, n)) {
      const auto before = known;
      for (const auto& [from, to] : step.sends)
        known[to].insert(before[from].begin(), before[from].end());
    }
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(known[i].size(), n) << n << ' ' << i;
  }
}

TEST(HalvingDoubling, flat_it_takes_what_a_ring_takes_and_folding_adds_two) {
  const LeafSpine fabric(1, 16, 1, true);
  const auto alone_s = [&](std::size_t n) {
    double sum = 0;
    for (const auto& phase :
         plan_halving_doubling(all_reduce, GiB, fabric.hosts_in(in_order(n)), fabric, {}))
      sum += time_alone(phase.plan, fabric.capacities).time_s;
    return sum * adapter_Bps / GiB;
  };
  EXPECT_NEAR(alone_s(8), 1.75, 1e-12);
  EXPECT_NEAR(alone_s(16), 1.875, 1e-12);
  EXPECT_NEAR(alone_s(10), 2 + 1.75, 1e-12);
  EXPECT_THROW(halving_doubling_steps(all_gather, 10), CheckFailed);
}

TEST(HalvingDoubling, inside_nodes_uses_scale_up_links_and_little_of_the_adapters) {
  const Rails fabric(4, 8, 450e9);
  const auto phases = plan_halving_doubling(all_reduce, GiB, fabric.group(8), fabric, {});
  ASSERT_EQ(phases.size(), 10u);
  double sum = 0;
  for (const auto& phase : phases) sum += time_alone(phase.plan, fabric.capacities).time_s;
  EXPECT_NEAR(sum, 2 * (7.0 / 8 * GiB / 450e9 + 3.0 / 4 * GiB / 8 / adapter_Bps), 1e-12);
}

TEST(HalvingDoubling, every_step_pays_its_latency) {
  const LeafSpine fabric(1, 8, 1, true);
  const MessageCosts costs{.base_s = 1, .nic_s = 10};
  double sum = 0;
  for (const auto& phase :
       plan_halving_doubling(all_reduce, 0, fabric.hosts_in(in_order(8)), fabric, {.costs = costs}))
    sum += time_alone(phase.plan, fabric.capacities).time_s;
  EXPECT_DOUBLE_EQ(sum, 1 + 6 * 10);
}

}  // namespace
}  // namespace trainyard::models
