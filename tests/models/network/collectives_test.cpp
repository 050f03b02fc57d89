#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include <gmock/gmock.h>

#include "models/network/collectives/all_to_all.hpp"
#include "models/network/collectives/alone.hpp"
#include "models/network/collectives/hierarchical.hpp"
#include "models/network/collectives/plan.hpp"
#include "models/network/collectives/point_to_point.hpp"
#include "models/network/collectives/ring.hpp"
#include "models/network/flow_timeline.hpp"
#include "sim/check.hpp"
#include "tests/models/network/small_fabrics.hpp"
#include "tests/support/ring_twin.hpp"

namespace trainyard::models {
namespace {

constexpr double C = 50e9;
constexpr double MiB = 1048576, GiB = 1073741824;
using enum CollectiveKind;

double ms(double s) {
  return s * 1e3;
}
/// Oracles are given to six decimals of a millisecond, some of them cut off and not rounded.
constexpr double given = 1e-6;

std::vector<std::size_t> in_order(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}
std::map<std::size_t, double> weights(const CollectivePlan& plan) {
  std::map<std::size_t, double> sum;
  for (const Stream& s : plan.streams)
    for (const Load& load : s.loads) sum[load.link.index()] += load.weight;
  return sum;
}
double all_reduce_alone_ms(const PathSource& fabric, const std::vector<double>& capacities,
                           const std::vector<Member>& group, RingOptions options = {}) {
  return ms(time_alone(plan_ring(all_reduce, GiB, group, fabric, options), capacities).time_s);
}

// ---- Rings
// ------------------------------------------------------------------------------------------

TEST(Ring, in_leaf_order_oversubscription_does_not_matter) {
  for (const std::size_t spines : {8, 4, 2, 1}) {  // 1:1 to 8:1
    for (const bool is_sprayed : {false, true}) {
      const LeafSpine fabric(8, 8, spines, is_sprayed);
      EXPECT_NEAR(all_reduce_alone_ms(fabric, fabric.capacities, fabric.hosts_in(in_order(64))),
                  42.278584, given);
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
  EXPECT_NEAR(ms(time.time_s), 84.557169, given);
  EXPECT_EQ(time.bottleneck, fabric.up(0, 0));
}

TEST(Ring, over_eight_rails_is_held_by_adapters_or_by_scale_up) {
  const Rails wide(8, 8, 450e9), narrow(8, 8, 300e9);
  EXPECT_NEAR(all_reduce_alone_ms(wide, wide.capacities, wide.group(8)), 5.284823, given);
  EXPECT_NEAR(all_reduce_alone_ms(narrow, narrow.capacities, narrow.group(8)), 7.046431, given);
  EXPECT_NEAR(all_reduce_alone_ms(narrow, narrow.capacities, narrow.group(8), {.pxn = false}),
              6.165626, given);
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
  EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), ms(0.875 * GiB / 450e9), given);
}

TEST(Ring, two_gpus_on_one_adapter_add_their_weights) {
  const LeafSpine fabric(1, 4, 1, true);
  const std::vector<Member> group{{0, 0, 0}, {1, 0, 0}, {2, 1, 1}, {3, 1, 1}};
  const CollectivePlan plan = plan_ring(all_reduce, GiB, group, fabric, {});
  EXPECT_EQ(weights(plan)[fabric.nic_out(0).index()], 2);
  // so the two channels share one adapter: 2·3/4 GiB through 50e9
  EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), ms(1.5 * GiB / C), given);
}

TEST(Ring, queue_pairs_carry_less_each_and_take_more_shares) {
  const LeafSpine fabric(2, 4, 2, true);
  const CollectivePlan plan =
      plan_ring(all_reduce, GiB, fabric.hosts_in(in_order(8)), fabric, {.queue_pairs = 4});
  EXPECT_DOUBLE_EQ(plan.streams[0].bytes_per_flow, 1.75 * GiB / 4);
  EXPECT_EQ(weights(plan)[fabric.nic_out(2).index()], 4);
  EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), ms(1.75 * GiB / C), given);
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

TEST(Ring, alone_takes_what_its_messages_take_one_by_one) {
  // Random orders on hashed leaf-spines, one adapter slow: one variable against every message.
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    LeafSpine fabric(4, 4, 1 + random() % 4, random() % 3 == 0);
    std::vector<std::size_t> order = in_order(16);
    std::shuffle(order.begin(), order.end(), random);
    order.resize(3 + random() % 14);
    if (seed % 2 == 0) fabric.capacities[fabric.nic_out(order[0]).index()] = C / 3;
    const CollectiveKind kind = seed % 3 == 0 ? all_gather : all_reduce;
    const RingOptions options{.label = seed};
    const double fluid_s =
        time_alone(plan_ring(kind, GiB, fabric.hosts_in(order), fabric, options), fabric.capacities)
            .fluid_s;

    const std::size_t n = order.size(), steps = kind == all_reduce ? 2 * (n - 1) : n - 1;
    tests::RingTwin twin;
    twin.capacities = fabric.capacities;
    for (std::size_t i = 0; i < n; ++i) {
      LoadAccumulator loads;
      fabric.add_path(order[i], order[(i + 1) % n], connection_label(options.label, 0, i, 0), 1,
                      loads);
      tests::FillingProblem::Variable& edge = twin.edges.emplace_back();
      for (const Load& load : loads.take()) edge.loads.push_back({load.link.index(), load.weight});
      twin.upstream.push_back((i + n - 1) % n);
      twin.messages.push_back(steps);
      twin.bytes.push_back(GiB / static_cast<double>(n));
    }
    const std::vector<double> finish = twin.finish_times();
    EXPECT_NEAR(fluid_s / *std::max_element(finish.begin(), finish.end()), 1, 1e-9);
  }
}

TEST(Ring, equal_rings_started_together_end_when_their_messages_do) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const LeafSpine fabric(4, 4, 2, false);
    std::vector<std::size_t> order = in_order(16);
    std::shuffle(order.begin(), order.end(), random);
    FlowTimeline line;
    for (const double c : fabric.capacities) line.add_link(c);
    tests::RingTwin twin;
    twin.capacities = fabric.capacities;
    for (std::size_t r = 0; r < 4; ++r) {  // four rings of four
      const std::vector<std::size_t> members(
          order.begin() + static_cast<std::ptrdiff_t>(4 * r),
          order.begin() + static_cast<std::ptrdiff_t>(4 * r + 4));
      const CollectivePlan plan =
          plan_ring(all_reduce, GiB, fabric.hosts_in(members), fabric, {.label = r});
      line.add(plan.streams[0].bytes_per_flow, plan.streams[0].loads, MaxMin::unlimited,
               FlowKind::collective);
      for (std::size_t i = 0; i < 4; ++i) {
        LoadAccumulator loads;
        fabric.add_path(members[i], members[(i + 1) % 4], connection_label(r, 0, i, 0), 1, loads);
        tests::FillingProblem::Variable& edge = twin.edges.emplace_back();
        for (const Load& load : loads.take())
          edge.loads.push_back({load.link.index(), load.weight});
        twin.upstream.push_back(4 * r + (i + 3) % 4);
        twin.messages.push_back(6);
        twin.bytes.push_back(GiB / 4);
      }
    }
    while (const auto next = line.next_completion_s()) line.advance(*next);
    const std::vector<double> finish = twin.finish_times();
    EXPECT_NEAR(line.now_s() / *std::max_element(finish.begin(), finish.end()), 1, 1e-9);
  }
}

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

// ---- Latency
// ----------------------------------------------------------------------------------------

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

// ---- Hierarchical and point to point
// ----------------------------------------------------------------

TEST(Hierarchical, all_reduce_in_buckets) {
  const Rails fabric(8, 8, 450e9);
  const HierarchicalPlan plan = plan_hierarchical(all_reduce, GiB, fabric.group(8), fabric, {});
  ASSERT_EQ(plan.phases.size(), 3u);
  EXPECT_NEAR(ms(time_alone_s(plan, fabric.capacities, 1)), 8.873283, given);
  EXPECT_NEAR(ms(time_alone_s(plan, fabric.capacities, 4)), 5.741536, given);
  EXPECT_NEAR(ms(time_alone_s(plan, fabric.capacities, 16)), 4.958599, given);
}

TEST(Hierarchical, gather_and_scatter_are_its_halves) {
  const Rails fabric(8, 8, 450e9);
  double halves_s = 0;
  for (const CollectiveKind kind : {reduce_scatter, all_gather})
    halves_s += time_alone_s(plan_hierarchical(kind, GiB, fabric.group(8), fabric, {}),
                             fabric.capacities, 1);
  EXPECT_NEAR(ms(halves_s), 8.873283, 2 * given);
  EXPECT_EQ(plan_hierarchical(all_gather, GiB, fabric.group(8), fabric, {}).phases.front().name,
            "rails");
}

TEST(Hierarchical, without_a_node_or_without_rails_one_phase_is_left) {
  const Rails fabric(4, 4, 450e9);
  EXPECT_EQ(plan_hierarchical(all_reduce, GiB, fabric.group(1), fabric, {}).phases.size(), 1u);
  const std::vector<Member> all = fabric.group(4), one_node(all.begin(), all.begin() + 4);
  EXPECT_EQ(plan_hierarchical(all_reduce, GiB, one_node, fabric, {}).phases.size(), 2u);
}

TEST(PointToPoint, goes_over_adapters_or_inside_the_node) {
  const Rails fabric(2, 8, 450e9);
  const std::vector<Member> m = fabric.group(8);
  const MessageCosts costs{.base_s = 1e-3, .scale_up_s = 2e-3, .nic_s = 3e-3};
  const auto time_ms = [&](std::size_t a, std::size_t b) {
    return ms(time_alone(plan_point_to_point(GiB, m[a], m[b], fabric, {.costs = costs}),
                         fabric.capacities)
                  .time_s);
  };
  EXPECT_NEAR(time_ms(0, 8), ms(GiB / 50e9) + 4, given);
  EXPECT_NEAR(time_ms(0, 7), ms(GiB / 450e9) + 3, given);
  const CollectivePlan split = plan_point_to_point(GiB, m[0], m[8], fabric, {.queue_pairs = 4});
  EXPECT_DOUBLE_EQ(split.streams[0].bytes_per_flow, GiB / 4);
  EXPECT_EQ(weights(split)[fabric.nic_out(0).index()], 4);
}

TEST(AllToAll, over_oversubscribed_leaves) {
  const LeafSpine fabric(8, 8, 2, true);  // 4:1: 8·56 pairs leave a leaf over 2 uplinks
  const CollectivePlan plan =
      plan_all_to_all(64 * 16 * MiB, fabric.hosts_in(in_order(64)), fabric, {});
  EXPECT_DOUBLE_EQ(weights(plan)[fabric.up(3, 1).index()], 224);
  EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), 75.161928, given);
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
    EXPECT_NEAR(ms(time_alone(plan, fabric.capacities).time_s), 2.013266, given);
  }
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

// ---- Bandwidth definitions
// --------------------------------------------------------------------------

TEST(Bandwidth, of_the_bus_is_what_the_link_of_a_rank_shows) {
  const Rails fabric(8, 8, 450e9);
  const double t = all_reduce_alone_ms(fabric, fabric.capacities, fabric.group(8)) * 1e-3;
  EXPECT_NEAR(busbw_Bps(all_reduce, 64, GiB, t) / 400e9, 1, 1e-12);  // 8 adapters of 50 GB/s
  EXPECT_DOUBLE_EQ(algbw_Bps(GiB, 0.5), 2 * GiB);
  EXPECT_DOUBLE_EQ(bus_factor(all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(broadcast, 8), 1);
}

// ---- Closed forms
// ------------------------------------------------------------------------------------

TEST(Alone, calibrated_constants_give_the_published_times) {
  const AloneConstants h100;
  AloneConstants a100;
  a100.step_s = 3e-6;
  a100.sqrt_s_per_sqrt_B = 2.4e-8;
  a100.ring_Bps = 234e9;
  const auto is_within_1_percent = [](double got_s, double want_s) {
    EXPECT_NEAR(got_s / want_s, 1, 0.01) << got_s;
  };
  is_within_1_percent(alone_s(all_gather, 128 * MiB, 8, 8, h100), 455e-6);
  is_within_1_percent(alone_s(reduce_scatter, GiB, 16, 1, h100), 23.3e-3);  // one rank a server
  is_within_1_percent(alone_s(all_reduce, 64 * MiB, 1024, 8, h100), 1.15e-3);
  is_within_1_percent(alone_s(all_gather, GiB, 512, 8, h100), 4.57e-3);
  is_within_1_percent(alone_s(all_reduce, 48 * MiB, 8, 8, a100), 578e-6);
}

TEST(Alone, terms_by_hand) {
  AloneConstants c;
  c.ring_Bps = 100;
  c.sqrt_s_per_sqrt_B = 0.5;
  c.base_s = 1;
  c.step_s = 2;
  c.nic_step_s = 10;
  c.nic_Bps = 10;
  c.nic_efficiency = 0.5;
  EXPECT_DOUBLE_EQ(alone_s(all_gather, 400, 4, 4, c),
                   1 + 3 + 10 + 3);  // base, 3·a/2, 0.5·20, 0.75·400/100
  EXPECT_DOUBLE_EQ(alone_s(all_reduce, 400, 4, 4, c), 1 + 6 + 10 + 6);
  EXPECT_DOUBLE_EQ(alone_s(all_gather, 400, 4, 2, c), 1 + 2 * 2 + 10 + 20);  // (1/2)·(400/2)/5
  EXPECT_DOUBLE_EQ(alone_point_to_point_s(400, false, c), 1 + 10 + 80);
  EXPECT_EQ(alone_s(all_reduce, 400, 1, 8, c), 0);
}

TEST(Alone, more_bytes_or_ranks_never_take_less) {
  const AloneConstants c;
  for (const CollectiveKind kind :
       {all_reduce, all_gather, reduce_scatter, broadcast, all_to_all}) {
    double before = 0;
    for (double bytes = 1024; bytes < 1e11; bytes *= 3) {
      const double now = alone_s(kind, bytes, 64, 8, c);
      EXPECT_GT(now, before);
      before = now;
    }
    // From two domains on: the law of one domain has a term that the others lack, and is above them
    // there.
    before = 0;
    for (std::size_t n = 16; n <= 1024; n *= 2) {
      const double now = alone_s(kind, GiB, n, 8, c);
      EXPECT_GE(now, before) << n;
      before = now;
    }
  }
}

}  // namespace
}  // namespace trainyard::models
