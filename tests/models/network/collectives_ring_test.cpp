#include "models/network/collectives/ring.hpp"

#include <cmath>

#include <gmock/gmock.h>

#include "sim/check.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

namespace trainyard::models {
namespace {

using enum CollectiveKind;

double all_reduce_alone_ms(const PathSource& fabric, const std::vector<double>& capacities,
                           const std::vector<Member>& group, RingOptions options = {}) {
  return ms(time_alone(plan_ring(all_reduce, GiB, group, fabric, options), capacities).time_s);
}

TEST(Ring, in_leaf_order_oversubscription_does_not_matter) {
  for (const std::size_t spines : {8, 4, 2, 1}) {  // 1:1 to 8:1
    for (const bool is_sprayed : {false, true}) {
      const LeafSpine fabric(8, 8, spines, is_sprayed);
      EXPECT_NEAR(all_reduce_alone_ms(fabric, fabric.capacities, fabric.hosts_in(in_order(64))),
                  42.278584, given_ms);
    }
  }
}

TEST(Ring, whose_every_edge_leaves_its_leaf_feels_oversubscription) {
  const LeafSpine fabric(8, 8, 4, true);  // 2:1: 8 edges over 4 uplinks
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < 64; ++i) order.push_back(i % 8 * 8 + i / 8);
  const CollectivePlan plan = plan_ring(all_reduce, GiB, fabric.hosts_in(order), fabric, {});
  EXPECT_DOUBLE_EQ(weights(plan)[fabric.up(3, 1).index()], 2);
  const PlanTime time = time_alone(plan, fabric.capacities);
  EXPECT_NEAR(ms(time.time_s), 84.557169, given_ms);
  EXPECT_EQ(time.bottleneck, fabric.up(0, 0));
}

TEST(Ring, over_eight_rails_is_held_by_adapters_or_by_scale_up) {
  const Rails wide(8, 8, 450e9), narrow(8, 8, 300e9);
  EXPECT_NEAR(all_reduce_alone_ms(wide, wide.capacities, wide.group(8)), 5.284823, given_ms);
  EXPECT_NEAR(all_reduce_alone_ms(narrow, narrow.capacities, narrow.group(8)), 7.046431, given_ms);
  EXPECT_NEAR(all_reduce_alone_ms(narrow, narrow.capacities, narrow.group(8), {.pxn = false}),
              6.165626, given_ms);
}

TEST(Ring, weights_follow_channels_rails_and_pxn) {
  const Rails fabric(4, 8, 450e9);
  for (const std::size_t k : {1, 2, 4, 8}) {
    for (const int m : {1, 2}) {
      for (const bool pxn : {true, false}) {
        const CollectivePlan plan = plan_ring(all_reduce, GiB, fabric.group(k), fabric,
                                              {.channels_per_nic = m, .pxn = pxn});
        ASSERT_EQ(plan.streams.size(), k * static_cast<std::size_t>(m));
        auto w = weights(plan);
        const double scale_up = k == 1 ? 0.0 : pxn ? double(k) * m : double(k - 1) * m;
        for (const Member& member : fabric.group(k)) {
          EXPECT_EQ(w[fabric.nic_out(member.nic).index()], m);
          EXPECT_EQ(w[fabric.nic_in(member.nic).index()], m);
          EXPECT_EQ(w[fabric.gpu_out(member.gpu).index()], scale_up);
          EXPECT_EQ(w[fabric.gpu_in(member.gpu).index()], scale_up);
        }
      }
    }
  }
}

TEST(Ring, within_one_node_uses_no_adapter) {
  const Rails fabric(1, 8, 450e9);
  const CollectivePlan plan = plan_ring(all_gather, GiB, fabric.group(8), fabric, {});
  for (const Member& member : fabric.group(8))
    EXPECT_FALSE(weights(plan).contains(fabric.nic_out(member.nic).index()));
  // 8 rings, each an eighth of 7/8 GiB, on every GPU's link
  EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), ms(0.875 * GiB / 450e9), given_ms);
}

TEST(Ring, two_gpus_on_one_adapter_add_their_weights) {
  const LeafSpine fabric(1, 4, 1, true);
  const std::vector<Member> group{{0, 0, 0}, {1, 0, 0}, {2, 1, 1}, {3, 1, 1}};
  const CollectivePlan plan = plan_ring(all_reduce, GiB, group, fabric, {});
  EXPECT_EQ(weights(plan)[fabric.nic_out(0).index()], 2);
  // so the two channels share one adapter: 2·3/4 GiB through 50e9
  EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), ms(1.5 * GiB / adapter_Bps),
              given_ms);
}

TEST(Ring, queue_pairs_carry_less_each_and_take_more_shares) {
  const LeafSpine fabric(2, 4, 2, true);
  const CollectivePlan plan =
      plan_ring(all_reduce, GiB, fabric.hosts_in(in_order(8)), fabric, {.queue_pairs = 4});
  EXPECT_DOUBLE_EQ(plan.streams[0].bytes_per_flow, 1.75 * GiB / 4);
  EXPECT_EQ(weights(plan)[fabric.nic_out(2).index()], 4);
  EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), ms(1.75 * GiB / adapter_Bps),
              given_ms);
}

TEST(Ring, uneven_nodes_use_as_many_rails_as_the_least_has) {
  const Rails fabric(2, 8, 450e9);
  std::vector<Member> group = fabric.group(4);
  group.erase(group.begin() + 2, group.begin() + 4);  // node 0: 2 members, node 1: 4
  const CollectivePlan plan = plan_ring(all_reduce, GiB, group, fabric, {});
  EXPECT_EQ(plan.streams.size(), 2u);
  auto w = weights(plan);
  EXPECT_EQ(w[fabric.nic_out(0).index()], 1);
  EXPECT_EQ(w[fabric.nic_out(8).index()], 1);
  EXPECT_FALSE(w.contains(fabric.nic_out(10).index()));
  EXPECT_EQ(w[fabric.gpu_out(11).index()], 2);  // every member is visited by every channel
}

TEST(Ring, of_one_rank_takes_no_time_and_wrong_kinds_are_refused) {
  const LeafSpine fabric(1, 2, 1, true);
  const CollectivePlan plan = plan_ring(all_reduce, GiB, fabric.hosts_in({0}), fabric, {});
  EXPECT_TRUE(plan.streams.empty());
  EXPECT_EQ(time_alone(plan, fabric.capacities).time_s, 0);
  EXPECT_THROW(plan_ring(all_to_all, GiB, fabric.hosts_in({0, 1}), fabric, {}), CheckFailed);
}

TEST(Ring, over_a_broken_link_never_ends_and_names_it) {
  LeafSpine fabric(1, 4, 1, true);
  fabric.capacities[fabric.nic_in(2).index()] = 0;
  const PlanTime time = time_alone(
      plan_ring(all_reduce, GiB, fabric.hosts_in(in_order(4)), fabric, {}), fabric.capacities);
  EXPECT_TRUE(std::isinf(time.time_s));
  EXPECT_EQ(time.bottleneck, fabric.nic_in(2));
}

}  // namespace
}  // namespace trainyard::models
