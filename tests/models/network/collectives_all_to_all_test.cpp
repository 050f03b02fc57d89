#include "models/network/collectives/all_to_all.hpp"

#include <gmock/gmock.h>

#include "models/network/collectives/point_to_point.hpp"
#include "sim/check.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

namespace trainyard::models {
namespace {

using enum CollectiveKind;

TEST(PointToPoint, goes_over_adapters_or_inside_the_node) {
  const Rails fabric(2, 8, 450e9);
  const std::vector<Member> m = fabric.group(8);
  const MessageCosts costs{.base_s = 1e-3, .scale_up_s = 2e-3, .nic_s = 3e-3};
  const auto time_ms = [&](std::size_t a, std::size_t b) {
    return ms(time_alone(plan_point_to_point(GiB, m[a], m[b], fabric, {.costs = costs}),
                         fabric.capacities)
                  .time_s);
  };
  EXPECT_NEAR(time_ms(0, 8), ms(GiB / 50e9) + 4, given_ms);
  EXPECT_NEAR(time_ms(0, 7), ms(GiB / 450e9) + 3, given_ms);
  const CollectivePlan split = plan_point_to_point(GiB, m[0], m[8], fabric, {.queue_pairs = 4});
  EXPECT_DOUBLE_EQ(split.streams[0].bytes_per_flow, GiB / 4);
  EXPECT_EQ(weights(split)[fabric.nic_out(0).index()], 4);
}

TEST(AllToAll, over_oversubscribed_leaves) {
  const LeafSpine fabric(8, 8, 2, true);  // 4:1: 8·56 pairs leave a leaf over 2 uplinks
  const CollectivePlan plan =
      plan_all_to_all(64 * 16 * MiB, fabric.hosts_in(in_order(64)), fabric, {});
  EXPECT_DOUBLE_EQ(weights(plan)[fabric.up(3, 1).index()], 224);
  EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), 75.161928, given_ms);
}

TEST(AllToAll, on_rails_loads_adapters_alike_with_and_without_pxn) {
  const Rails fabric(4, 8, 450e9);
  for (const bool pxn : {true, false}) {
    const CollectivePlan plan =
        plan_all_to_all(32 * 4 * MiB, fabric.group(8), fabric, {.pxn = pxn});
    auto w = weights(plan);
    EXPECT_DOUBLE_EQ(w[fabric.nic_out(5).index()], 24);  // 8 pairs to each of 3 nodes
    EXPECT_DOUBLE_EQ(w[fabric.nic_in(17).index()], 24);
    // Scale-up: 7 pairs of its own; with PXN also 7 of 8 pairs to each remote node.
    EXPECT_DOUBLE_EQ(w[fabric.gpu_out(5).index()], pxn ? 7 + 21 : 7);
    EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), 2.013266, given_ms);
  }
}

TEST(AllToAll, of_unequal_pairs_weighs_them_by_the_largest) {
  const LeafSpine fabric(1, 3, 1, true);
  // 0 -> 1: 4 MiB, 0 -> 2: 1 MiB, 1 -> 2: 2 MiB, nothing else
  const std::vector<double> pairs{0, 4 * MiB, MiB, 0, 0, 2 * MiB, 0, 0, 0};
  const CollectivePlan plan =
      plan_all_to_all(5 * MiB, fabric.hosts_in({0, 1, 2}), fabric, {.pair_bytes = pairs});
  EXPECT_EQ(plan.streams[0].bytes_per_flow, 4 * MiB);
  auto w = weights(plan);
  EXPECT_DOUBLE_EQ(w[fabric.nic_out(0).index()], 1.25);
  EXPECT_DOUBLE_EQ(w[fabric.nic_out(1).index()], 0.5);
  EXPECT_DOUBLE_EQ(w[fabric.nic_in(2).index()], 0.75);
  EXPECT_FALSE(w.contains(fabric.nic_out(2).index()));
  EXPECT_NEAR(time_alone(plan, fabric.capacities).time_s, 5 * MiB / adapter_Bps, 1e-12);
  EXPECT_THROW(plan_all_to_all(1, fabric.hosts_in({0, 1}), fabric, {.pair_bytes = pairs}),
               CheckFailed);
}

TEST(AllToAll, batches_are_shifts_and_add_up_to_all_pairs) {
  const LeafSpine fabric(4, 4, 4, true);  // 1:1, sprayed: batches lose nothing
  const std::vector<Member> group = fabric.hosts_in(in_order(16));
  const CollectivePlan one = plan_all_to_all(16 * MiB, group, fabric, {});
  for (const int q : {1, 4, 7, 15, 40}) {
    const auto batches = plan_all_to_all_batches(16 * MiB, group, fabric, {}, q);
    EXPECT_EQ(batches.size(), (15 + std::size_t(q) - 1) / std::size_t(q)) << q;
    double sum_s = 0, sent = 0;
    for (const CollectivePhase& phase : batches) {
      sum_s += time_alone(phase.plan, fabric.capacities).time_s;
      sent += weights(phase.plan)[fabric.nic_out(3).index()];
    }
    EXPECT_DOUBLE_EQ(sent, 15);
    EXPECT_NEAR(sum_s, time_alone(one, fabric.capacities).time_s, 1e-12);
  }
  EXPECT_EQ(plan_all_to_all_batches(16 * MiB, group, fabric, {}, 4).back().name, "shifts 13 to 15");
}

TEST(AllToAll, in_shifts_leaves_the_other_cables_of_a_dragonfly_idle) {
  // One rank in each of 9 groups, one cable for each ordered pair of groups. All at once every pair
  // has its own cable; shift by shift only one cable of a group works at a time: 8 times as long.
  class OneCableAPair final : public PathSource {
   public:
    void add_path(std::size_t from, std::size_t to, std::uint64_t, double flows,
                  LoadAccumulator& loads) const override {
      if (from / 8 != to / 8) loads.add(LinkIndex(from / 8 * 9 + to / 8), flows);
    }
  };
  const OneCableAPair fabric;
  const std::vector<double> capacities(81, adapter_Bps);
  std::vector<Member> group;  // one rank of each of the 9 groups
  for (std::size_t i = 0; i < 9; ++i) group.push_back({i, i * 8, i});
  const double one_s = time_alone(plan_all_to_all(9 * MiB, group, fabric, {}), capacities).time_s;
  EXPECT_NEAR(one_s, MiB / adapter_Bps, 1e-15);
  double batches_s = 0;
  for (const auto& phase : plan_all_to_all_batches(9 * MiB, group, fabric, {}, 1))
    batches_s += time_alone(phase.plan, capacities).time_s;
  EXPECT_NEAR(batches_s / one_s, 8, 1e-12);
}

TEST(AllToAll, share_of_the_batches_on_both_sides_of_its_bounds) {
  EXPECT_EQ(batches_share(0, 100), 0);
  EXPECT_EQ(batches_share(16, 100), 0);
  EXPECT_EQ(batches_share(15, 100), 0.5);
  EXPECT_EQ(batches_share(15, 16), 0);  // all 15 peers are in flight
  EXPECT_EQ(batches_share(14, 16), 0.5);
  EXPECT_EQ(batches_share(4, 100), 0.5);
  EXPECT_DOUBLE_EQ(batches_share(1, 100), 2.0 / 3);
  EXPECT_DOUBLE_EQ(batches_share(2, 100), 7.0 / 12);
}

TEST(Direct, reductions_send_to_each_rank_its_part) {
  const LeafSpine fabric(1, 8, 1, true);
  const std::vector<Member> group = fabric.hosts_in(in_order(8));
  const auto alone_ms = [&](CollectiveKind kind) {
    double sum = 0;
    for (const auto& phase : plan_direct(kind, GiB, group, fabric, {}))
      sum += ms(time_alone(phase.plan, fabric.capacities).time_s);
    return sum;
  };
  EXPECT_NEAR(alone_ms(reduce_scatter), ms(7 * GiB / 8 / adapter_Bps), given_ms);
  EXPECT_NEAR(alone_ms(all_gather), ms(7 * GiB / 8 / adapter_Bps), given_ms);
  EXPECT_NEAR(alone_ms(all_reduce), ms(14 * GiB / 8 / adapter_Bps), given_ms);
  EXPECT_NEAR(alone_ms(broadcast), ms(7 * GiB / adapter_Bps), given_ms);  // all from one adapter
}

}  // namespace
}  // namespace trainyard::models
