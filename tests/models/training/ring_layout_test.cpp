#include "models/training/ring_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace trainyard::models {
namespace {

using Groups = std::vector<std::vector<int>>;
using testing::ElementsAre;

struct Sizes {
  int tensor = 1, context = 1, data = 1, pipeline = 1;
};

// Only what ranks depend on.
Plan plan_of(Sizes sizes, const std::string& order = "tp-cp-dp-pp") {
  Plan plan;
  plan.tensor = plan.expert_tensor = sizes.tensor;
  plan.context = sizes.context;
  plan.data = sizes.data;
  plan.pipeline = sizes.pipeline;
  plan.gpus = sizes.tensor * sizes.context * sizes.data * sizes.pipeline;
  plan.order = *rank_order(order);
  plan.sharding = Sharding::zero1;
  plan.shard_group = plan.weight_replicas();
  plan.shares.resize(std::size_t(sizes.pipeline));
  return plan;
}

Plan with_experts(Plan plan, int expert, int expert_tensor) {
  plan.expert = expert;
  plan.expert_tensor = expert_tensor;
  for (ChunkShare& share : plan.shares) share.expert_weights = 1e9;
  return plan;
}

TEST(RingGroups, ranks_that_share_weights_are_all_context_and_data_coordinates) {
  const Plan plan = plan_of({.tensor = 2, .context = 2, .data = 2, .pipeline = 2});
  EXPECT_EQ(ring_size(plan, RingKind::shards), 4);
  EXPECT_EQ(ring_groups(plan, 0, RingKind::shards), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(ring_groups(plan, 1, RingKind::shards), (Groups{{8, 10, 12, 14}, {9, 11, 13, 15}}));
}

TEST(RingGroups, follow_the_rank_order) {
  // strides: tp 1, pp 2, dp 4, cp 8
  const Plan plan = plan_of({.tensor = 2, .context = 2, .data = 2, .pipeline = 2}, "tp-pp-dp-cp");
  EXPECT_EQ(ring_groups(plan, 0, RingKind::shards), (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}}));
  EXPECT_EQ(ring_groups(plan, 1, RingKind::shards), (Groups{{2, 6, 10, 14}, {3, 7, 11, 15}}));
  // strides: dp 1, pp 2, tp 4, cp 8
  const Plan other = plan_of({.tensor = 2, .context = 2, .data = 2, .pipeline = 2}, "dp-pp-tp-cp");
  EXPECT_EQ(ring_groups(other, 0, RingKind::shards), (Groups{{0, 1, 8, 9}, {4, 5, 12, 13}}));
}

TEST(RingGroups, hybrid_sharding_shards_among_neighbours_and_replicates_across) {
  Plan plan = plan_of({.data = 16});
  plan.shard_group = 4;
  EXPECT_EQ(ring_size(plan, RingKind::shards), 4);
  EXPECT_EQ(ring_size(plan, RingKind::replicas), 4);
  EXPECT_EQ(ring_groups(plan, 0, RingKind::shards),
            (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(ring_groups(plan, 0, RingKind::replicas),
            (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

TEST(RingGroups, one_rank_is_no_group) {
  Plan plan = plan_of({.tensor = 2, .data = 4});
  EXPECT_EQ(ring_size(plan, RingKind::replicas), 1);  // sharded over all
  EXPECT_EQ(ring_groups(plan, 0, RingKind::replicas), Groups{});
  EXPECT_EQ(ring_size(plan, RingKind::experts), 1);  // no experts
  plan.shard_group = 1;
  EXPECT_EQ(ring_groups(plan, 0, RingKind::shards), Groups{});
  EXPECT_EQ(ring_groups(plan, 0, RingKind::replicas), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  plan.sharding = Sharding::none;  // one ring over all
  EXPECT_EQ(ring_groups(plan, 0, RingKind::shards), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(ring_size(plan, RingKind::replicas), 1);
}

TEST(RingGroups, replicas_of_experts_are_at_one_position_of_all_expert_parallel_groups) {
  // groups of experts: 0-3 and 4-7
  const Plan plain = with_experts(plan_of({.data = 8}), 4, 1);
  EXPECT_EQ(ring_groups(plain, 0, RingKind::experts), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  // split as everything else: {0 2} {4 6} of tensor rank 0, {1 3} {5 7} of tensor rank 1
  const Plan split = with_experts(plan_of({.tensor = 2, .data = 4}), 2, 2);
  EXPECT_EQ(ring_groups(split, 0, RingKind::experts), (Groups{{0, 4}, {2, 6}, {1, 5}, {3, 7}}));
  // whole experts: {0 1} {2 3} {4 5} {6 7}
  const Plan whole = with_experts(plan_of({.tensor = 2, .data = 4}), 2, 1);
  EXPECT_EQ(ring_groups(whole, 0, RingKind::experts), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  // every expert once in the stage
  const Plan single = with_experts(plan_of({.data = 8}), 8, 1);
  EXPECT_EQ(ring_size(single, RingKind::experts), 1);
}

TEST(RingGroups, every_rank_is_in_one_group_of_ranks_that_hold_the_same) {
  const std::vector<std::string> orders{"tp-cp-dp-pp", "tp-pp-dp-cp", "pp-tp-dp-cp", "cp-tp-pp-dp",
                                        "dp-cp-pp-tp"};
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto power = [&](unsigned most) { return 1 << random() % (most + 1); };
    Plan plan = plan_of(
        {.tensor = power(3), .context = power(2), .data = 2 * power(3), .pipeline = power(2)},
        orders[random() % orders.size()]);
    plan.shard_group = std::min(plan.weight_replicas(), power(4));
    plan = with_experts(plan, std::min(plan.weight_replicas(), power(3)),
                        random() % 2 ? plan.tensor : 1);
    for (int stage = 0; stage < plan.pipeline; ++stage)
      for (const RingKind kind : {RingKind::shards, RingKind::replicas, RingKind::experts}) {
        const Groups groups = ring_groups(plan, stage, kind);
        std::vector<int> seen;
        for (const std::vector<int>& group : groups) {
          EXPECT_EQ(int(group.size()), ring_size(plan, kind));
          EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
          seen.insert(seen.end(), group.begin(), group.end());
          const bool one_tensor = kind != RingKind::experts || plan.expert_tensor == plan.tensor;
          for (const int rank : group)
            EXPECT_TRUE(!one_tensor ||
                        plan.place_of(rank).tensor == plan.place_of(group.front()).tensor);
        }
        std::sort(seen.begin(), seen.end());
        EXPECT_EQ(seen,
                  ring_size(plan, kind) > 1 ? plan.ranks_of_stage(stage) : std::vector<int>{});
      }
  }
}

RingConnection connection(int from, int to, int channel, double weight = 1) {
  return {from, to, channel, weight};
}

TEST(RingLayout, one_member_a_server_has_one_channel_for_each_group) {
  RingShapes shapes;
  const RingLayout l =
      ring_layout(plan_of({.tensor = 2, .data = 3}), 0, RingKind::shards, 2, shapes);
  EXPECT_EQ(l.servers, 3);
  EXPECT_EQ(l.channels, 1);
  EXPECT_TRUE(l.passing.empty());
  ASSERT_EQ(l.edges.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(l.edges[std::size_t(i)].from, i);
    EXPECT_EQ(l.edges[std::size_t(i)].to, (i + 1) % 3);
    EXPECT_EQ(l.edges[std::size_t(i)].shape, 0);  // all alike
  }
  EXPECT_THAT(shapes[0], ElementsAre(connection(0, 0, 0), connection(1, 1, 0)));
}

TEST(RingLayout, uneven_servers_have_as_many_channels_as_the_smallest_has_members) {
  // 12 ranks: 8 in the first server, 4 in the second; channels spread over the eight
  RingShapes shapes;
  const RingLayout l = ring_layout(plan_of({.data = 12}), 0, RingKind::shards, 8, shapes);
  EXPECT_EQ(l.servers, 2);
  EXPECT_EQ(l.channels, 4);
  EXPECT_EQ(l.passing.size(), 12u);
  ASSERT_EQ(l.edges.size(), 2u);
  EXPECT_THAT(shapes[l.edges[0].shape], ElementsAre(connection(0, 0, 0), connection(2, 1, 1),
                                                    connection(4, 2, 2), connection(6, 3, 3)));
  EXPECT_THAT(shapes[l.edges[1].shape], ElementsAre(connection(0, 0, 0), connection(1, 2, 1),
                                                    connection(2, 4, 2), connection(3, 6, 3)));
}

TEST(RingLayout, a_ring_with_more_channels_has_thinner_ones) {
  // groups of ten: 8 + 2 members, so 2 channels; 6 + 4 members, so 4 of half the bytes
  Plan plan = plan_of({.data = 20});
  plan.shard_group = 10;
  RingShapes shapes;
  const RingLayout l = ring_layout(plan, 0, RingKind::shards, 8, shapes);
  EXPECT_EQ(l.channels, 2);
  ASSERT_EQ(l.edges.size(), 4u);  // 0 -> 1, 1 -> 0, 1 -> 2, 2 -> 1
  EXPECT_THAT(shapes[l.edges[0].shape], ElementsAre(connection(0, 0, 0), connection(4, 1, 1)));
  EXPECT_EQ(l.edges[2].from, 1);
  EXPECT_EQ(l.edges[2].to, 2);
  EXPECT_THAT(shapes[l.edges[2].shape],
              ElementsAre(connection(2, 0, 0, 0.5), connection(3, 1, 1, 0.5),
                          connection(5, 2, 2, 0.5), connection(6, 3, 3, 0.5)));
}

TEST(RingLayout, the_order_decides_whether_a_stage_stays_in_a_server) {
  // two stages of eight: one a server, or half of each in both
  RingShapes shapes;
  const Plan packed = plan_of({.data = 8, .pipeline = 2});
  EXPECT_EQ(ring_layout(packed, 1, RingKind::shards, 8, shapes).servers, 1);
  EXPECT_TRUE(ring_layout(packed, 1, RingKind::shards, 8, shapes).edges.empty());
  const Plan spread = plan_of({.data = 8, .pipeline = 2}, "pp-tp-cp-dp");
  const RingLayout l = ring_layout(spread, 1, RingKind::shards, 8, shapes);
  EXPECT_EQ(l.servers, 2);
  EXPECT_EQ(l.channels, 4);
  ASSERT_EQ(l.edges.size(), 2u);
  EXPECT_THAT(shapes[l.edges[0].shape],  // odd places: the other stage has the even ones
              ElementsAre(connection(1, 1, 0), connection(3, 3, 1), connection(5, 5, 2),
                          connection(7, 7, 3)));
  EXPECT_EQ(servers_of_stage(packed, 1, 8), std::vector<int>{1});
  EXPECT_EQ(servers_of_stage(spread, 1, 8), (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace trainyard::models
