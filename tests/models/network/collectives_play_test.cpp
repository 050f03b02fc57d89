#include "models/network/collectives/play.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "sim/check.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

namespace trainyard::models {
namespace {

using enum CollectiveKind;
using Algorithm = CollectiveAlgorithm;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

FlowTimeline line_of(const std::vector<double>& capacities) {
  FlowTimeline line;
  for (const double c : capacities) line.add_link(c);
  return line;
}
PlayedCollective played(const PhasedPlan& plan, const std::vector<double>& capacities) {
  FlowTimeline line = line_of(capacities);
  const std::vector<TimedCollective> jobs{{&plan}};
  return play_collectives(line, jobs).front();
}

TEST(Play, alone_takes_the_time_alone_with_and_without_latency) {
  const Rails rails(4, 4, 300e9);
  const MessageCosts costs{.base_s = 1e-5, .scale_up_s = 1e-6, .nic_s = 5e-6};
  for (const bool has_latency : {false, true}) {
    for (const double bytes : {double(MiB), double(GiB)}) {
      for (const auto& [algorithm, name] : Names<CollectiveAlgorithm>::all) {
        if (!supports(all_reduce, algorithm, rails.group(4), rails, nullptr)) continue;
        const PhasedPlan plan = plan_collective(all_reduce, algorithm, bytes, rails.group(4), rails,
                                                {.costs = has_latency ? costs : MessageCosts{}});
        const PlayedCollective p = played(plan, rails.capacities);
        EXPECT_NEAR(p.finish_s / time_alone_s(plan, rails.capacities), 1, 1e-12) << name;
        EXPECT_EQ(p.latest_finish_s, p.finish_s);  // alone it has its share and no more
        EXPECT_EQ(p.phases.size(), plan.phases.size());
      }
    }
  }
}

TEST(Play, phases_follow_each_other) {
  const Rails fabric(8, 8, 450e9);
  const PhasedPlan plan =
      plan_collective(all_reduce, Algorithm::hierarchical, GiB, fabric.group(8), fabric, {});
  const PlayedCollective p = played(plan, fabric.capacities);
  ASSERT_EQ(p.phases.size(), 3u);
  EXPECT_EQ(p.phases[0].name, "reduce in node");
  EXPECT_EQ(p.phases[0].start_s, 0);
  EXPECT_EQ(p.phases[1].start_s, p.phases[0].finish_s);
  EXPECT_EQ(p.phases[2].start_s, p.phases[1].finish_s);
  EXPECT_NEAR(ms(p.phases[1].finish_s - p.phases[1].start_s), ms(1.75 * GiB / 8 / adapter_Bps),
              given_ms);
}

TEST(Play, buckets_come_near_the_closed_form) {
  // The form is never too short. It is exact while the rails are the limit; when the node is, its
  // links work on without a gap and the form counts one: R instead of R + A/K for R >= 2A.
  for (const double up : {450e9, 200e9, 1000e9}) {
    const Rails fabric(8, 8, up);
    const double r = 1.75 * GiB / up, a = 1.75 * GiB / 8 / adapter_Bps;
    for (const int k : {1, 2, 4, 16}) {
      const PhasedPlan plan = plan_collective(all_reduce, Algorithm::hierarchical, GiB,
                                              fabric.group(8), fabric, {.buckets = k});
      const double got = played(plan, fabric.capacities).finish_s;
      const double form = time_alone_s(plan, fabric.capacities);
      if (r < a || k == 1)
        EXPECT_NEAR(got / form, 1, 1e-12) << up << ' ' << k;
      else
        EXPECT_NEAR(got / r, 1, 1e-12) << up << ' ' << k;
    }
  }
}

TEST(Play, starts_with_the_last_member_and_can_be_told_not_to) {
  const LeafSpine fabric(1, 4, 1, true);
  const PhasedPlan plan =
      plan_collective(all_reduce, Algorithm::ring, GiB, fabric.hosts_in(in_order(4)), fabric, {});
  const std::vector<TimedCollective> jobs{{&plan, {0.001, 0.003, 0.002, 0.001}}};
  FlowTimeline line = line_of(fabric.capacities);
  const PlayedCollective p = play_collectives(line, jobs)[0];
  EXPECT_EQ(p.start_s, 0.003);
  EXPECT_NEAR(p.finish_s, 0.003 + 1.5 * GiB / adapter_Bps, 1e-12);
  EXPECT_THAT(p.notes, Contains(HasSubstr("last-ready")));
  FlowTimeline other = line_of(fabric.capacities);
  EXPECT_EQ(play_collectives(other, jobs, {.last_ready = false})[0].start_s, 0.001);
}

TEST(Play, jobs_beside_each_other_share_and_the_second_gets_the_rest) {
  const LeafSpine fabric(1, 4, 1, true);
  const std::vector<Member> group = fabric.hosts_in(in_order(4));
  const PhasedPlan large = plan_collective(all_reduce, Algorithm::ring, GiB, group, fabric, {}),
                   small = plan_collective(all_reduce, Algorithm::ring, GiB / 2, group, fabric, {});
  FlowTimeline line = line_of(fabric.capacities);
  const std::vector<TimedCollective> jobs{{&large}, {&small}};
  const auto p = play_collectives(line, jobs);
  // Both at half rate until the small one has moved 0.75 GiB, then the large one alone.
  EXPECT_NEAR(p[1].finish_s, 1.5 * GiB / adapter_Bps, 1e-12);
  EXPECT_NEAR(p[0].finish_s, 2.25 * GiB / adapter_Bps, 1e-12);
}

TEST(Play, range_of_a_collective_on_surplus) {
  // P is held at a (C/5), Q gets C/3 of b and c where its share of b (2 users) would be C/2 and of
  // c (3 shares) C/3: not above its share. R alone on b and d: 4C/5 where its share is C/2.
  const auto ring = [](std::vector<Load> loads) {
    PhasedPlan plan{all_reduce, Algorithm::ring, GiB, 2, {}, 1, {}};
    plan.phases.push_back({"ring", {}});
    plan.phases[0].plan.streams.push_back({std::move(loads), GiB});
    return plan;
  };
  const PhasedPlan p = ring({{LinkIndex(0), 5}, {LinkIndex(1), 1}}), r = ring({{LinkIndex(1), 1}});
  const std::vector<TimedCollective> jobs{{&p}, {&r}};
  FlowTimeline line = line_of({adapter_Bps, adapter_Bps});
  const auto played_both = play_collectives(line, jobs);
  EXPECT_NEAR(played_both[1].finish_s, GiB / (0.8 * adapter_Bps), 1e-12);
  EXPECT_NEAR(played_both[1].latest_finish_s, GiB / (0.5 * adapter_Bps), 1e-12);
  EXPECT_THAT(played_both[1].notes, Contains(HasSubstr("surplus-range: 0.026843")));
  EXPECT_EQ(played_both[0].latest_finish_s, played_both[0].finish_s);  // the slowest of the set
  EXPECT_THAT(played_both[0].notes, IsEmpty());
  FlowTimeline off = line_of({adapter_Bps, adapter_Bps});
  const auto without = play_collectives(off, jobs, {.surplus_range = false});
  EXPECT_EQ(without[1].latest_finish_s, without[1].finish_s);
  EXPECT_THAT(without[1].notes, IsEmpty());
}

TEST(Play, beside_flows_of_others_which_stay_in_the_timeline) {
  const LeafSpine fabric(1, 2, 1, true);
  const PhasedPlan plan =
      plan_collective(all_reduce, Algorithm::ring, GiB, fabric.hosts_in({0, 1}), fabric, {});
  FlowTimeline line = line_of(fabric.capacities);
  const std::vector<Load> path{{fabric.nic_out(0), 1}};
  const VarIndex other = line.add(100 * GiB, path);
  const std::vector<TimedCollective> jobs{{&plan}};
  EXPECT_NEAR(play_collectives(line, jobs)[0].finish_s, 2 * GiB / adapter_Bps, 1e-12);
  EXPECT_EQ(line.running(), 1u);
  EXPECT_NEAR(line.bytes_left(other), 99 * GiB, 1);
}

TEST(Play, over_a_broken_link_never_ends_and_leaves_nothing_behind) {
  LeafSpine fabric(1, 4, 1, true);
  fabric.capacities[fabric.nic_in(2).index()] = 0;
  const PhasedPlan ring = plan_collective(all_reduce, Algorithm::ring, GiB,
                                          fabric.hosts_in(in_order(4)), fabric, {}),
                   pair = plan_collective(all_reduce, Algorithm::ring, GiB, fabric.hosts_in({0, 1}),
                                          fabric, {});
  FlowTimeline line = line_of(fabric.capacities);
  const std::vector<TimedCollective> jobs{{&ring}, {&pair}};
  const auto p = play_collectives(line, jobs);
  EXPECT_TRUE(std::isinf(p[0].finish_s));
  EXPECT_TRUE(std::isfinite(p[1].finish_s));
  EXPECT_EQ(line.running(), 0u);
}

TEST(Play, empty_ones_and_no_bytes_end_where_they_start) {
  const LeafSpine fabric(1, 4, 1, true);
  const PhasedPlan one =
      plan_collective(all_reduce, Algorithm::ring, GiB, fabric.hosts_in({0}), fabric, {});
  const PhasedPlan nothing =
      plan_collective(all_reduce, Algorithm::hierarchical, 0, fabric.hosts_in(in_order(4)), fabric,
                      {.buckets = 3, .costs = {.base_s = 1e-3}});
  FlowTimeline line = line_of(fabric.capacities);
  const std::vector<TimedCollective> jobs{{&one, {0.5}}, {&nothing, {0.5}}};
  const auto p = play_collectives(line, jobs);
  EXPECT_EQ(p[0].finish_s, 0.5);
  EXPECT_NEAR(p[1].finish_s, 0.503, 1e-12);  // three buckets, one base each
}

TEST(Play, few_peers_stretch_the_one_variable_to_the_mixed_time) {
  const LeafSpine fabric(4, 4, 4, false);
  const PhasedPlan plan =
      plan_collective(all_to_all, Algorithm::direct, GiB, fabric.hosts_in(in_order(16)), fabric,
                      {.peers_in_flight = 1, .label = 5});
  EXPECT_NEAR(played(plan, fabric.capacities).finish_s, time_alone_s(plan, fabric.capacities),
              1e-9);
}

TEST(PlayProperties, equal_rings_end_at_the_greatest_weight_over_capacity) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const LeafSpine fabric(4, 4, 2, false);
    std::vector<PhasedPlan> plans;
    std::vector<TimedCollective> jobs;
    std::vector<double> weight(fabric.capacities.size());
    for (std::size_t r = 0; r < 5; ++r) {
      std::vector<std::size_t> order = in_order(16);
      for (std::size_t i = 15; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
      order.resize(6);
      plans.push_back(plan_collective(all_reduce, Algorithm::ring, GiB, fabric.hosts_in(order),
                                      fabric, {.label = seed * 100 + r}));
      for (const auto& [l, w] : weights(plans.back().phases[0].plan)) weight[l] += w;
    }
    for (const PhasedPlan& plan : plans) jobs.push_back({&plan});
    FlowTimeline line = line_of(fabric.capacities);
    double last = 0, most = 0;
    for (const PlayedCollective& p : play_collectives(line, jobs)) {
      last = std::max(last, p.finish_s);
      EXPECT_GE(p.latest_finish_s, p.finish_s);
    }
    for (std::size_t l = 0; l < weight.size(); ++l)
      most = std::max(most, weight[l] / fabric.capacities[l]);
    EXPECT_NEAR(last / (2 * 5.0 / 6 * GiB * most), 1, 1e-9);
    // The one that ends last has its share all the time.
    FlowTimeline again = line_of(fabric.capacities);
    double latest = 0;
    for (const PlayedCollective& p : play_collectives(again, jobs))
      if (p.finish_s > last * (1 - 1e-9)) latest = std::max(latest, p.latest_finish_s);
    EXPECT_NEAR(latest / last, 1, 1e-9);
  }
}

}  // namespace
}  // namespace trainyard::models
