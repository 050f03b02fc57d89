#include <cmath>
#include <functional>

#include <gmock/gmock.h>

#include "models/network/collectives/collective.hpp"
#include "models/network/collectives/play.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

/// Eighteen cases with exact answers, from a group of ranks to milliseconds: links of 50e9 B/s per
/// direction, no latency, no efficiency factors. Those that are about sharing one link have their
/// weights given; tests/models/network/flow_timeline_test.cpp has them once more without plans.
namespace trainyard::models {
namespace {

using enum CollectiveKind;
using Algorithm = CollectiveAlgorithm;
using testing::ElementsAre;
constexpr double C = adapter_Bps;

auto near_ms(double want) {
  return testing::DoubleNear(want, given_ms);
}

template <class Fabric>
double alone_ms(CollectiveKind kind, Algorithm algorithm, double bytes, const Fabric& fabric,
                const std::vector<Member>& group, CollectiveOptions options = {}) {
  options.corrections.fill = false;
  return ms(time_alone_s(plan_collective(kind, algorithm, bytes, group, fabric, options),
                         fabric.capacities));
}

/// A ring of n in which link l carries w[l] of its edges.
PhasedPlan ring_with(std::size_t n, double bytes, const std::vector<double>& w,
                     int queue_pairs = 1) {
  PhasedPlan plan{all_reduce, Algorithm::ring, bytes, n, {}, 1, {}};
  CollectivePlan& phase = plan.phases.emplace_back(CollectivePhase{"ring", {}}).plan;
  Stream& stream = phase.streams.emplace_back();
  stream.bytes_per_flow = bus_factor(all_reduce, n) * bytes / queue_pairs;
  for (std::size_t l = 0; l < w.size(); ++l)
    if (w[l] > 0) stream.loads.push_back({LinkIndex(l), w[l] * queue_pairs});
  return plan;
}
std::vector<double> played_ms(const std::vector<PhasedPlan>& plans,
                              const std::vector<double>& capacities,
                              const std::vector<double>& starts_s = {}) {
  FlowTimeline line;
  for (const double c : capacities) line.add_link(c);
  std::vector<TimedCollective> jobs;
  for (std::size_t i = 0; i < plans.size(); ++i)
    jobs.push_back({&plans[i], {starts_s.empty() ? 0.0 : starts_s[i]}});
  std::vector<double> finish;
  for (const PlayedCollective& p : play_collectives(line, jobs)) finish.push_back(ms(p.finish_s));
  return finish;
}

TEST(Oracle, o1_ring_in_leaf_order_under_any_oversubscription) {
  for (const std::size_t spines : {8, 4, 2, 1}) {
    for (const bool is_sprayed : {false, true}) {
      const LeafSpine fabric(8, 8, spines, is_sprayed);
      EXPECT_THAT(alone_ms(all_reduce, Algorithm::ring, GiB, fabric, fabric.hosts_in(in_order(64))),
                  near_ms(42.27858432));
    }
  }
}

TEST(Oracle, o2_to_4_two_rings_on_one_link) {
  EXPECT_THAT(played_ms({ring_with(8, GiB, {2}), ring_with(8, GiB, {1})}, {C}),
              ElementsAre(near_ms(112.742892), near_ms(112.742892)));
  EXPECT_THAT(played_ms({ring_with(8, GiB, {3}), ring_with(8, 2 * GiB, {1})}, {C}),
              ElementsAre(near_ms(150.323855), near_ms(187.904819)));
  EXPECT_THAT(played_ms({ring_with(4, GiB, {1}), ring_with(12, 4 * GiB, {1})}, {C}),
              ElementsAre(near_ms(64.424509), near_ms(189.694389)));
}

TEST(Oracle, o5_three_links_of_which_one_keeps_room) {
  // GiB an edge: n = 2, 2·1/2 = 1
  EXPECT_THAT(played_ms({ring_with(2, GiB, {5, 1}), ring_with(2, GiB, {0, 1, 1}),
                         ring_with(2, GiB, {0, 0, 2})},
                        {C, C, C}),
              ElementsAre(near_ms(107.374182), near_ms(64.424509), near_ms(64.424509)));
}

TEST(Oracle, o6_queue_pairs_are_shares) {
  EXPECT_THAT(played_ms({ring_with(8, GiB, {1}), ring_with(8, GiB, {1}, 4)}, {C}),
              ElementsAre(near_ms(75.161928), near_ms(46.976205)));
}

TEST(Oracle, o7_double_binary_tree) {
  const LeafSpine fabric(1, 8, 1, true);
  const std::vector<Member> group = fabric.hosts_in(in_order(8));
  EXPECT_THAT(alone_ms(all_reduce, Algorithm::tree, GiB, fabric, group), near_ms(42.949673));
  auto w =
      weights(plan_collective(all_reduce, Algorithm::tree, GiB, group, fabric, {}).phases[0].plan);
  std::vector<double> sent;
  for (std::size_t i = 0; i < 8; ++i) sent.push_back(w[fabric.nic_out(i).index()]);
  EXPECT_THAT(sent, ElementsAre(2, 4, 4, 4, 4, 4, 4, 2));
}

TEST(Oracle, o8_all_to_all_four_to_one) {
  const LeafSpine fabric(8, 8, 2, true);
  EXPECT_THAT(
      alone_ms(all_to_all, Algorithm::direct, 64 * 16 * MiB, fabric, fabric.hosts_in(in_order(64))),
      near_ms(75.161928));
}

TEST(Oracle, o9_ring_over_eight_rails) {
  const Rails wide(8, 8, 450e9), narrow(8, 8, 300e9);
  EXPECT_THAT(alone_ms(all_reduce, Algorithm::ring, GiB, wide, wide.group(8)), near_ms(5.284823));
  EXPECT_THAT(alone_ms(all_reduce, Algorithm::ring, GiB, narrow, narrow.group(8)),
              near_ms(7.046431));
  EXPECT_THAT(alone_ms(all_reduce, Algorithm::ring, GiB, narrow, narrow.group(8), {.pxn = false}),
              near_ms(6.165626));
}

TEST(Oracle, o10_latency_of_a_ring_of_eight) {
  const LeafSpine fabric(1, 8, 1, true);
  const std::vector<Member> group = fabric.hosts_in(in_order(8));
  const CollectiveOptions options{.costs = {.nic_s = 5e-6}};
  const PhasedPlan large =
      plan_collective(all_reduce, Algorithm::ring, GiB, group, fabric, options);
  EXPECT_EQ(large.phases[0].plan.latency.loops, 64);
  EXPECT_THAT(ms(time_alone_s(large, fabric.capacities)), near_ms(37.585964));
  EXPECT_THAT(alone_ms(all_reduce, Algorithm::ring, MiB, fabric, group, options),
              testing::DoubleNear(0.0896608, 1e-9));
}

TEST(Oracle, o11_hierarchical_in_buckets) {
  const Rails fabric(8, 8, 450e9);
  for (const auto& [k, want] : {std::pair{1, 8.873283}, {4, 5.741536}, {16, 4.958599}})
    EXPECT_THAT(
        alone_ms(all_reduce, Algorithm::hierarchical, GiB, fabric, fabric.group(8), {.buckets = k}),
        near_ms(want));
}

/// Dragonfly p = 2, a = 4, h = 2: 9 groups of 4 routers of 2 hosts, one cable between each two
/// groups, from router (s-1)/2 to the router that the other counts from. Minimal paths.
class SmallDragonfly final : public PathSource {
 public:
  void add_path(std::size_t from, std::size_t to, std::uint64_t, double flows,
                LoadAccumulator& loads) const override {
    loads.add(LinkIndex(from), flows);
    loads.add(LinkIndex(72 + to), flows);
    const std::size_t a = from / 8, b = to / 8;
    std::size_t router = from / 2;
    if (a != b) {
      const std::size_t shift = (b + 9 - a) % 9, back = 9 - shift;
      local(router, a * 4 + (shift - 1) / 2, flows, loads);
      loads.add(global(a, b), flows);
      router = b * 4 + (back - 1) / 2;
    }
    local(router, to / 2, flows, loads);
  }
  static LinkIndex global(std::size_t a, std::size_t b) { return LinkIndex(144 + a * 9 + b); }

  std::vector<double> capacities = std::vector<double>(144 + 81 + 36 * 36, C);

 private:
  static void local(std::size_t from, std::size_t to, double flows, LoadAccumulator& loads) {
    if (from != to) loads.add(LinkIndex(225 + from * 36 + to), flows);
  }
};

TEST(Oracle, o12_dragonfly_rings_meet_on_global_cables) {
  const SmallDragonfly fabric;
  std::vector<PhasedPlan> plans;
  for (std::size_t j = 0; j < 8; ++j) {
    std::vector<Member> group;
    for (std::size_t i = 0; i < 9; ++i) group.push_back({j + 8 * i, j + 8 * i, j + 8 * i});
    plans.push_back(plan_collective(all_reduce, Algorithm::ring, GiB, group, fabric, {}));
  }
  double on_cable = 0;
  for (const PhasedPlan& plan : plans)
    on_cable += weights(plan.phases[0].plan)[SmallDragonfly::global(3, 4).index()];
  EXPECT_EQ(on_cable, 8);
  EXPECT_THAT(played_ms(plans, fabric.capacities), testing::Each(near_ms(305.419897)));
}

TEST(Oracle, o13_a_late_member_and_a_slow_adapter) {
  LeafSpine fabric(1, 32, 1, true);
  const PhasedPlan plan =
      plan_collective(all_reduce, Algorithm::ring, GiB, fabric.hosts_in(in_order(32)), fabric, {});
  FlowTimeline line;
  for (const double c : fabric.capacities) line.add_link(c);
  std::vector<double> ready(32, 0.0);
  ready[17] = 0.020;
  const std::vector<TimedCollective> jobs{{&plan, ready}};
  EXPECT_THAT(ms(play_collectives(line, jobs)[0].finish_s), near_ms(61.607496));
  fabric.capacities[fabric.nic_in(9).index()] /= 2;
  EXPECT_THAT(ms(time_alone_s(plan, fabric.capacities)), near_ms(83.214991));
}

TEST(Oracle, o14_in_network_reduction) {
  const LeafSpine fabric(8, 8, 8, true);
  EXPECT_THAT(alone_ms(all_reduce, Algorithm::sharp, GiB, fabric, fabric.hosts_in(in_order(64))),
              near_ms(21.474836));
}

TEST(Oracle, o15_two_reduce_scatters_on_one_adapter) {
  const LeafSpine fabric(1, 16, 1, true);
  const std::vector<PhasedPlan> plans(
      2, plan_collective(reduce_scatter, Algorithm::ring, GiB / 2, fabric.hosts_in(in_order(16)),
                         fabric, {}));
  EXPECT_THAT(played_ms(plans, fabric.capacities, {0, 0.005}),
              ElementsAre(near_ms(15.132659), near_ms(20.132659)));
}

TEST(Oracle, o16_ring_whose_every_edge_leaves_its_leaf) {
  const LeafSpine fabric(8, 8, 4, true);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < 64; ++i) order.push_back(i % 8 * 8 + i / 8);
  const std::vector<Member> group = fabric.hosts_in(order);
  EXPECT_THAT(alone_ms(all_reduce, Algorithm::ring, GiB, fabric, group), near_ms(84.557169));
  EXPECT_EQ(weights(plan_collective(all_reduce, Algorithm::ring, GiB, group, fabric, {})
                        .phases[0]
                        .plan)[fabric.up(2, 3).index()],
            2);
}

TEST(Oracle, o17_elephant_beside_a_throttled_ring) {
  // 4 GiB an edge with weights 4, 1, 1; the elephant of 128 MiB on b and c.
  const PhasedPlan ring = ring_with(2, 4 * GiB, {4, 1, 1});
  PhasedPlan elephant{point_to_point, Algorithm::direct, 128 * MiB, 2, {}, 1, {}};
  elephant.phases.push_back({"direct", {}});
  elephant.phases[0].plan.kind = point_to_point;
  elephant.phases[0].plan.streams.push_back({{{LinkIndex(1), 1}, {LinkIndex(2), 1}}, 128 * MiB});
  for (const auto& [phi, want] : {std::pair{0.0, 3.579139}, {0.5, 4.294967}}) {
    FlowTimeline line({.phi = phi});
    for (int l = 0; l < 3; ++l) line.add_link(C);
    const std::vector<TimedCollective> jobs{{&ring}, {&elephant}};
    EXPECT_THAT(ms(play_collectives(line, jobs)[1].finish_s), near_ms(want));
  }
}

TEST(Oracle, o18_all_to_all_on_rails) {
  const Rails fabric(4, 8, 450e9);
  EXPECT_THAT(alone_ms(all_to_all, Algorithm::direct, 32 * 4 * MiB, fabric, fabric.group(8)),
              near_ms(2.013266));
}

}  // namespace
}  // namespace trainyard::models
