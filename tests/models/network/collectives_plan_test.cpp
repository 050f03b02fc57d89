#include "models/network/collectives/plan.hpp"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>

#include "models/network/collectives/ring.hpp"
#include "models/network/flow_timeline.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

namespace trainyard::models {
namespace {

using enum CollectiveKind;

TEST(Plan, alone_equals_its_streams_in_the_timeline) {
  const LeafSpine fabric(8, 4, 2, false);
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<std::size_t> order = in_order(32);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Member> group = fabric.hosts_in(order);
    for (std::size_t i = 0; i < group.size(); ++i) group[i].node = i / 4;  // four adapters a node
    const CollectivePlan plan =
        plan_ring(all_reduce, GiB, group, fabric,
                  {.channels_per_nic = 2, .label = static_cast<std::uint64_t>(trial)});
    FlowTimeline line;
    for (const double c : fabric.capacities) line.add_link(c);
    for (const Stream& s : plan.streams) line.add(s.bytes_per_flow, s.loads);
    while (const auto next = line.next_completion_s()) line.advance(*next);
    EXPECT_NEAR(time_alone(plan, fabric.capacities).fluid_s / line.now_s(), 1, 1e-12);
    const std::vector<Stream> one{merged(plan.streams)};
    CollectivePlan together = plan;
    together.streams = one;
    EXPECT_NEAR(bound_s(together, fabric.capacities), bound_s(plan, fabric.capacities), 1e-12);
  }
}

TEST(Latency, of_a_ring_hides_behind_large_slices) {
  const LeafSpine fabric(1, 8, 1, true);
  const auto time_us = [&](double bytes, LatencyForm form) {
    const MessageCosts costs{.nic_s = 5e-6, .form = form};
    return time_alone(
               plan_ring(all_reduce, bytes, fabric.hosts_in(in_order(8)), fabric, {.costs = costs}),
               fabric.capacities)
               .time_s *
           1e6;
  };
  EXPECT_NEAR(time_us(MiB, LatencyForm::pipelined), 89.6608, 1e-6);  // 14 · (5 + 1.31072) + 1.31072
  EXPECT_NEAR(time_us(GiB, LatencyForm::pipelined), 37585.96384,
              1e-5);  // all hidden but one tail of 5 us
  EXPECT_NEAR(time_us(GiB, LatencyForm::additive), 37580.96384 + 70, 1e-5);
  EXPECT_NEAR(time_us(0, LatencyForm::pipelined), 70, 1e-9);  // 14 steps of nothing
}

TEST(Latency, both_sides_of_the_slice_that_just_hides_it) {
  const LatencyTerms t{.alpha_s = 1, .steps = 10, .loops = 1, .slices = 2};
  // A slice takes bytes / (10·2) / rate. At 1 s a slice the latency is hidden but for the tail.
  EXPECT_DOUBLE_EQ(exposed_latency_s(t, 20, 1), 1);
  EXPECT_DOUBLE_EQ(exposed_latency_s(t, 40, 1), 1);
  EXPECT_DOUBLE_EQ(exposed_latency_s(t, 18, 1), 10 * 0.1 + 0.9);
}

TEST(Latency, of_a_mixed_ring_is_the_mean_over_its_edges) {
  const Rails fabric(2, 4, 450e9);
  const CollectivePlan plan = plan_ring(all_gather, GiB, fabric.group(4), fabric,
                                        {.costs = {.base_s = 1, .scale_up_s = 2, .nic_s = 10}});
  EXPECT_DOUBLE_EQ(plan.latency.alpha_s, (6 * 2 + 2 * 10) / 8.0);
  EXPECT_EQ(plan.latency.steps, 7);
}

TEST(LoadAccumulator, sums_by_link_however_much_is_added) {
  LoadAccumulator loads;
  for (int i = 0; i < 100'000; ++i) loads.add(LinkIndex(static_cast<std::size_t>(i) % 6000), 1);
  const std::vector<Load> sums = loads.take();
  ASSERT_EQ(sums.size(), 6000u);
  for (std::size_t l = 0; l < sums.size(); ++l) {
    ASSERT_EQ(sums[l].link.index(), l);
    ASSERT_EQ(sums[l].weight, l < 4000 ? 17 : 16);  // 100,000 = 16·6,000 + 4,000
  }
  EXPECT_TRUE(loads.take().empty());
}

TEST(Bandwidth, of_the_bus_is_what_the_link_of_a_rank_shows) {
  const Rails fabric(8, 8, 450e9);
  const double t =
      time_alone(plan_ring(all_reduce, GiB, fabric.group(8), fabric, {}), fabric.capacities).time_s;
  EXPECT_NEAR(busbw_Bps(all_reduce, 64, GiB, t) / 400e9, 1, 1e-12);  // 8 adapters of 50 GB/s
  EXPECT_DOUBLE_EQ(algbw_Bps(GiB, 0.5), 2 * GiB);
  EXPECT_DOUBLE_EQ(bus_factor(all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(broadcast, 8), 1);
}

}  // namespace
}  // namespace trainyard::models
