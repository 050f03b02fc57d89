#include "models/network/flow_timeline.hpp"

#include <cmath>
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Loads = std::vector<Load>;
constexpr double C = 50e9;
constexpr double MiB = 1048576, GiB = 1073741824;

/// Runs everything to its end; the finish time of each variable.
std::vector<double> finish_all(FlowTimeline& line) {
  std::vector<double> finish;
  while (const auto next = line.next_completion_s())
    for (const VarIndex v : line.advance(*next)) {
      if (v.index() >= finish.size()) finish.resize(v.index() + 1, -1);
      finish[v.index()] = line.now_s();
    }
  return finish;
}

TEST(FlowTimeline, rates_change_when_the_first_of_two_ends) {
  FlowTimeline line;
  const Loads on_link{{line.add_link(10)}};
  const VarIndex a = line.add(10, on_link), b = line.add(30, on_link);
  EXPECT_DOUBLE_EQ(line.next_completion_s().value(), 2);  // 10 at 5
  EXPECT_THAT(line.advance(1.5), IsEmpty());
  EXPECT_DOUBLE_EQ(line.bytes_left(a), 2.5);
  EXPECT_THAT(line.advance(100), ElementsAre(a));  // stops at the completion
  EXPECT_DOUBLE_EQ(line.now_s(), 2);
  EXPECT_DOUBLE_EQ(line.next_completion_s().value(), 4);  // b has 20 left at 10
  EXPECT_THAT(line.advance(4), ElementsAre(b));
  EXPECT_EQ(line.next_completion_s(), std::nullopt);
  EXPECT_EQ(line.running(), 0u);
}

TEST(FlowTimeline, equal_flows_end_together_in_one_solve) {
  FlowTimeline line;
  const Loads on_link{{line.add_link(7)}};
  for (int i = 0; i < 3; ++i) line.add(1, on_link);
  EXPECT_EQ(line.advance(line.next_completion_s().value()).size(), 3u);
  EXPECT_EQ(line.next_completion_s(), std::nullopt);
  EXPECT_LE(line.solver().counters().solves, 2u);
}

TEST(FlowTimeline, ends_within_rounding_are_one_instant_and_others_are_not) {
  FlowTimeline line;
  const Loads a{{line.add_link(3)}}, b{{line.add_link(3)}}, c{{line.add_link(3)}};
  line.add(1, a);
  line.add(1 * (1 + 2e-15), b);
  line.add(1 * (1 + 1e-11), c);
  EXPECT_EQ(line.advance(1).size(), 2u);
  EXPECT_EQ(line.advance(1).size(), 1u);
}

TEST(FlowTimeline, a_restarted_flow_costs_no_solve) {
  FlowTimeline line;
  const Loads on_link{{line.add_link(10)}};
  const VarIndex v = line.add(10, on_link);
  for (int i = 1; i <= 100; ++i) {
    ASSERT_THAT(line.advance(1e9), ElementsAre(v));
    ASSERT_DOUBLE_EQ(line.now_s(), i);
    line.restart(v, 10);
  }
  EXPECT_EQ(line.solver().counters().solves, 1u);
  line.advance(1e9);
  line.advance(1e9);  // gone now
  EXPECT_THROW(line.restart(v, 1), CheckFailed);
}

TEST(FlowTimeline, a_flow_over_a_broken_link_waits_and_goes_on_where_it_was) {
  FlowTimeline line;
  const LinkIndex link = line.add_link(10);
  const VarIndex v = line.add(100, Loads{{link}});
  line.advance(4);
  line.set_capacity(link, 0);
  EXPECT_EQ(line.next_completion_s(), std::nullopt);
  EXPECT_THAT(line.advance(50), IsEmpty());
  EXPECT_DOUBLE_EQ(line.bytes_left(v), 60);
  line.set_capacity(link, 20);
  EXPECT_DOUBLE_EQ(line.next_completion_s().value(), 53);  // 60 / 20
}

TEST(FlowTimeline, a_removed_flow_gives_its_share_back) {
  FlowTimeline line;
  const Loads on_link{{line.add_link(10)}};
  const VarIndex a = line.add(100, on_link), b = line.add(100, on_link);
  line.advance(2);
  line.remove(a);
  EXPECT_DOUBLE_EQ(line.next_completion_s().value(), 11);  // b: 90 left at 10
  EXPECT_THAT(line.advance(11), ElementsAre(b));
}

TEST(FlowTimeline, a_short_late_flow_keeps_its_duration) {
  FlowTimeline line;
  const Loads on_link{{line.add_link(C)}};
  line.advance(0.123456789);
  line.add(17028, on_link);
  EXPECT_NEAR((line.next_completion_s().value() - line.now_s()) / (17028 / C), 1, 1e-9);
}

TEST(FlowTimeline, flows_that_end_together_among_many_end_in_order_of_their_numbers) {
  FlowTimeline line;
  std::vector<VarIndex> flows;
  for (int i = 0; i < 100; ++i)
    flows.push_back(line.add(i % 3 == 0 ? 1 : 2 + i, Loads{{line.add_link(1)}}));
  std::vector<VarIndex> first;
  for (int i = 0; i < 100; i += 3) first.push_back(flows[static_cast<std::size_t>(i)]);
  EXPECT_THAT(line.advance(1e9), testing::ElementsAreArray(first));
  EXPECT_THAT(line.advance(1e9), ElementsAre(flows[1]));
  EXPECT_THAT(line.advance(1e9), ElementsAre(flows[2]));
}

// ---- Oracles of coupled collectives, weights given
// -------------------------------------------------- C = 50e9 B/s. A ring of n moves 2(n-1)/n of
// its bytes over each edge; w edges on a link weigh w.

double ring_edge_bytes(double n, double bytes) {
  return 2 * (n - 1) / n * bytes;
}

struct Ring {
  double edge_bytes;
  std::vector<std::pair<std::size_t, double>> weights;  // link, edges on it
  double start_s = 0;
};
struct Oracle {
  const char* name;
  std::vector<double> capacities;
  std::vector<Ring> rings;
  std::vector<double> finish_ms;
};
class Coupled : public testing::TestWithParam<Oracle> {};

TEST_P(Coupled, ends_when_the_arithmetic_says) {
  const Oracle& o = GetParam();
  FlowTimeline line;
  for (const double c : o.capacities) line.add_link(c);
  std::vector<double> finish(o.rings.size());
  std::vector<std::size_t> ring_of;
  const auto run_until = [&](double t) {
    while (line.next_completion_s().value_or(1e9) <= t)
      for (const VarIndex v : line.advance(t)) finish[ring_of[v.index()]] = line.now_s();
    if (t < 1e8) line.advance(t);
  };
  for (std::size_t i = 0; i < o.rings.size(); ++i) {
    if (o.rings[i].start_s > line.now_s()) run_until(o.rings[i].start_s);
    Loads loads;
    for (const auto& [l, w] : o.rings[i].weights) loads.push_back({LinkIndex(l), w});
    const VarIndex v =
        line.add(o.rings[i].edge_bytes, loads, MaxMin::unlimited, FlowKind::collective);
    ring_of.resize(std::max(ring_of.size(), v.index() + 1));
    ring_of[v.index()] = i;
  }
  run_until(1e8);
  for (std::size_t i = 0; i < finish.size(); ++i)
    EXPECT_NEAR(finish[i] * 1e3, o.finish_ms[i], 6e-7) << i;  // six decimals
}

INSTANTIATE_TEST_SUITE_P(
    FlowTimeline, Coupled,
    testing::Values(
        // 64 hosts in leaf order: each link carries one edge, 2·63/64 GiB / C
        Oracle{"ring_in_leaf_order", {C}, {{ring_edge_bytes(64, GiB), {{0, 1}}}}, {42.27858432}},
        // three shares of C/3: 1,879,048,192 B each a share
        Oracle{"two_rings_weights_2_and_1",
               {C},
               {{ring_edge_bytes(8, GiB), {{0, 2}}}, {ring_edge_bytes(8, GiB), {{0, 1}}}},
               {112.74289152, 112.74289152}},
        Oracle{"weights_3_and_1",
               {C},
               {{ring_edge_bytes(8, GiB), {{0, 3}}}, {ring_edge_bytes(8, 2 * GiB), {{0, 1}}}},
               {150.32385536, 187.9048192}},
        Oracle{"rings_of_4_and_12",
               {C},
               {{ring_edge_bytes(4, GiB), {{0, 1}}}, {ring_edge_bytes(12, 4 * GiB), {{0, 1}}}},
               {64.42450944, 189.694389}},
        // x = C/5 at link a; then Q and R at C/3: b keeps C - C/5 - C/3 free
        Oracle{"three_links_with_surplus",
               {C, C, C},
               {{GiB, {{0, 5}, {1, 1}}}, {GiB, {{1, 1}, {2, 1}}}, {GiB, {{2, 2}}}},
               {107.3741824, 64.42450944, 64.42450944}},
        // one with 4 queue pairs an edge takes 4 of 5 shares and moves a quarter of the bytes by
        // each
        Oracle{"queue_pairs_are_shares",
               {C},
               {{ring_edge_bytes(8, GiB), {{0, 1}}}, {ring_edge_bytes(8, GiB) / 4, {{0, 4}}}},
               {75.16192768, 46.9762048}},
        // double binary tree of 8: two trees of GiB/2 on a NIC that sends 4 of their edges: x = C/4
        Oracle{"double_binary_tree", {C}, {{GiB / 2, {{0, 4}}}}, {42.94967296}},
        Oracle{"all_to_all_4_to_1", {C}, {{16 * MiB, {{0, 224}}}}, {75.161928}},
        Oracle{"ring_with_a_slow_nic",
               {C, C / 2},
               {{ring_edge_bytes(32, GiB), {{0, 1}, {1, 1}}}},
               {83.214991}},
        Oracle{"ring_with_a_late_member",
               {C},
               {{ring_edge_bytes(32, GiB), {{0, 1}}, 0.020}},
               {61.607496}},
        Oracle{"in_network_reduction", {C}, {{GiB, {{0, 1}}}}, {21.47483648}},
        // alone 15/16·0.5 GiB takes 10.066 ms; from 5 ms both at half rate
        Oracle{"reduce_scatters_overlap",
               {C},
               {{15.0 / 16 * GiB / 2, {{0, 1}}}, {15.0 / 16 * GiB / 2, {{0, 1}}, 0.005}},
               {15.132659, 20.132659}},
        Oracle{
            "ring_across_leaves_sprayed", {C}, {{ring_edge_bytes(64, GiB), {{0, 2}}}}, {84.557169}},
        Oracle{"dragonfly_rings_share_a_global_cable",
               {C},
               std::vector<Ring>(8, Ring{ring_edge_bytes(9, GiB), {{0, 1}}}),
               std::vector<double>(8, 305.419897)},
        // 4 nodes x 8, a rail a NIC: 8·3 flows leave each NIC
        Oracle{"all_to_all_on_rails", {C}, {{4 * MiB, {{0, 24}}}}, {2.013266}}),
    [](const testing::TestParamInfo<Oracle>& test) { return std::string(test.param.name); });

TEST(FlowTimeline, lone_flow_beside_a_throttled_ring_with_and_without_phi) {
  // Ring at C/4 (held at a). Max-min gives the elephant 3C/4; F = C/2; phi 0.5: 0.625 C.
  for (const auto& [phi, finish_ms] : {std::pair{0.0, 3.579139}, {0.5, 4.294967}}) {
    FlowTimeline line({.phi = phi});
    const LinkIndex a = line.add_link(C), b = line.add_link(C), c = line.add_link(C);
    line.add(4 * GiB, Loads{{a, 4}, {b, 1}, {c, 1}}, MaxMin::unlimited, FlowKind::collective);
    const VarIndex elephant = line.add(128 * MiB, Loads{{b}, {c}});
    EXPECT_THAT(line.advance(1e9), ElementsAre(elephant));
    EXPECT_NEAR(line.now_s() * 1e3, finish_ms, 1e-6) << phi;
  }
}

TEST(FlowTimeline, phi_leaves_a_flow_with_one_shared_link_alone) {
  FlowTimeline line({.phi = 0.5});
  const LinkIndex a = line.add_link(C), b = line.add_link(C);
  line.add(4 * GiB, Loads{{a, 4}, {b, 1}}, MaxMin::unlimited, FlowKind::collective);
  const VarIndex elephant = line.add(128 * MiB, Loads{{b}});
  EXPECT_DOUBLE_EQ(line.progress_Bps(elephant), 0.75 * C);
}

// ---- Properties over random sets
// --------------------------------------------------------------------

struct RandomSet {
  std::vector<double> capacities;
  std::vector<Loads> loads;
  std::vector<double> bytes;
};
RandomSet random_set(std::uint64_t seed, bool equal_bytes) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  RandomSet set;
  for (std::size_t l = 2 + pick(12); l > 0; --l)
    set.capacities.push_back(1.0 + static_cast<double>(pick(4)));
  for (std::size_t k = 1 + pick(15); k > 0; --k) {
    std::set<std::size_t> links;
    for (std::size_t i = 1 + pick(5); i > 0; --i) links.insert(pick(set.capacities.size()));
    Loads& loads = set.loads.emplace_back();
    for (const std::size_t l : links)
      loads.push_back({LinkIndex(l), static_cast<double>(1 + pick(6))});
    set.bytes.push_back(equal_bytes ? 3.0 : 0.5 + static_cast<double>(pick(1000)) / 100);
  }
  return set;
}
std::vector<double> finish_times(const RandomSet& set, double scale = 1) {
  FlowTimeline line;
  for (const double c : set.capacities) line.add_link(c * scale);
  for (std::size_t k = 0; k < set.loads.size(); ++k) line.add(set.bytes[k] * scale, set.loads[k]);
  return finish_all(line);
}
double makespan(const std::vector<double>& finish) {
  return *std::max_element(finish.begin(), finish.end());
}

TEST(FlowTimelineProperties,
     equal_variables_started_together_end_at_bytes_times_greatest_weight_over_capacity) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomSet set = random_set(seed, true);
    std::vector<double> weight(set.capacities.size());
    for (const Loads& loads : set.loads)
      for (const Load& load : loads) weight[load.link.index()] += load.weight;
    double longest = 0;
    for (std::size_t l = 0; l < weight.size(); ++l)
      longest = std::max(longest, weight[l] / set.capacities[l]);
    ASSERT_NEAR(makespan(finish_times(set)) / (3 * longest), 1, 1e-9) << "seed " << seed;
  }
}

TEST(FlowTimelineProperties, no_end_before_the_busiest_link_could_carry_all) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomSet set = random_set(seed, false);
    std::vector<double> bytes(set.capacities.size());
    for (std::size_t k = 0; k < set.loads.size(); ++k)
      for (const Load& load : set.loads[k]) bytes[load.link.index()] += load.weight * set.bytes[k];
    double bound = 0;
    for (std::size_t l = 0; l < bytes.size(); ++l)
      bound = std::max(bound, bytes[l] / set.capacities[l]);
    ASSERT_GE(makespan(finish_times(set)), bound * (1 - 1e-12)) << "seed " << seed;
  }
}

TEST(FlowTimelineProperties, doubling_bytes_and_capacities_changes_nothing) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const RandomSet set = random_set(seed, false);
    EXPECT_EQ(finish_times(set), finish_times(set, 2))
        << "seed " << seed;  // powers of two are exact
  }
}

TEST(FlowTimelineProperties, a_variable_split_into_two_of_half_the_weight_ends_at_the_same_time) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomSet set = random_set(seed, false);
    RandomSet split = set;
    for (Load& load : split.loads[0]) load.weight /= 2;
    split.loads.push_back(split.loads[0]);
    split.bytes.push_back(split.bytes[0]);
    const std::vector<double> want = finish_times(set), got = finish_times(split);
    for (std::size_t k = 0; k < want.size(); ++k)
      ASSERT_NEAR(got[k], want[k], 1e-11 * want[k]) << "seed " << seed;
  }
}

TEST(FlowTimelineProperties, one_more_equal_variable_never_makes_the_set_shorter) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomSet set = random_set(seed, true);
    const double with = makespan(finish_times(set));
    if (set.loads.size() == 1) continue;
    set.loads.pop_back();
    set.bytes.pop_back();
    ASSERT_LE(makespan(finish_times(set)), with * (1 + 1e-12)) << "seed " << seed;
  }
}

TEST(FlowTimelineProperties, every_byte_arrives_under_failures_and_withdrawals) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    FlowTimeline line;
    std::vector<double> capacities;
    for (int l = 0; l < 6; ++l)
      line.add_link(capacities.emplace_back(1.0 + static_cast<double>(random() % 3)));
    // Bytes moved, integrated outside from the rates in force, against bytes given.
    std::map<std::size_t, double> moved, given;
    const auto step = [&](double to) {
      while (line.now_s() < to) {
        line.next_completion_s();
        const double from = line.now_s();
        std::map<std::size_t, double> rates;
        for (const auto& [k, b] : given) rates[k] = line.progress_Bps(VarIndex(k));
        const auto finished = line.advance(to);
        for (const auto& [k, r] : rates) moved[k] += r * (line.now_s() - from);
        for (const VarIndex v : finished) {
          EXPECT_NEAR(moved[v.index()], given[v.index()], 1e-9 * given[v.index()]);
          given.erase(v.index());
          moved.erase(v.index());
        }
      }
    };
    for (int event = 0; event < 60; ++event) {
      Loads loads{{LinkIndex(random() % 6), 1.0 + static_cast<double>(random() % 2)},
                  {LinkIndex(random() % 6)}};
      const double bytes = 0.1 + static_cast<double>(random() % 100) / 20;
      given[line.add(bytes, loads).index()] = bytes;
      if (random() % 3 == 0) {
        const std::size_t l = random() % 6;
        line.set_capacity(LinkIndex(l), random() % 2 == 0 ? 0 : capacities[l]);
      }
      if (random() % 4 == 0 && !given.empty()) {
        line.remove(VarIndex(given.begin()->first));
        moved.erase(given.begin()->first);
        given.erase(given.begin());
      }
      step(line.now_s() + static_cast<double>(random() % 100) / 50);
    }
    for (std::size_t l = 0; l < 6; ++l) line.set_capacity(LinkIndex(l), capacities[l]);
    step(1e4);
    EXPECT_EQ(line.running(), 0u);
    EXPECT_TRUE(given.empty());
  }
}

// Each round, what ended is followed by as many new flows over paths of a small set.
std::map<int, double> ends_of_rounds(bool takes_places, std::uint64_t seed, std::uint64_t* solves) {
  std::mt19937_64 random(seed);
  FlowTimeline line(FlowTimeline::Options{.takes_places = takes_places});
  for (int l = 0; l < 6; ++l) line.add_link(1.0 + static_cast<double>(random() % 4));
  std::vector<Loads> paths;
  for (int p = 0; p < 5; ++p)
    paths.push_back(
        {{LinkIndex(random() % 3)}, {LinkIndex(3 + random() % 3), 1.0 + double(p % 2)}});
  std::map<std::size_t, int> id_of;
  std::map<int, double> ends;
  int ids = 0;
  const auto add = [&] {
    const Loads& path = paths[random() % paths.size()];
    const double bytes = 1.0 + static_cast<double>(random() % 3);
    id_of[line.add(bytes, path).index()] = ids++;
  };
  for (int f = 0; f < 8; ++f) add();
  for (int round = 0; round < 60; ++round) {
    std::vector<int> ended;
    for (const VarIndex var : line.advance(*line.next_completion_s()))
      ended.push_back(id_of.at(var.index()));
    for (const int id : ended) ends[id] = line.now_s();
    for (std::size_t f = 0; f < ended.size(); ++f) add();
  }
  *solves = line.solver().counters().solves;
  return ends;
}

TEST(FlowTimeline, a_newcomer_that_takes_a_place_changes_no_end) {
  std::uint64_t places = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::uint64_t with = 0, without = 0;
    const std::map<int, double> a = ends_of_rounds(true, seed, &with);
    const std::map<int, double> b = ends_of_rounds(false, seed, &without);
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [id, end] : a) EXPECT_NEAR(end, b.at(id), 1e-9 * end);
    EXPECT_LE(with, without);
    places += without - with;
  }
  EXPECT_GT(places, 50u);
}

}  // namespace
}  // namespace trainyard::models
