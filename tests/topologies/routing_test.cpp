#include "topologies/routing.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "tests/topologies/tree_twin.hpp"

namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;

void expect_path_joins(const Fabric& f, const std::vector<LinkId>& path, NicId from, NicId to) {
  VertexId at = f.vertex(from);
  bool is_down = false;
  for (const LinkId l : path) {
    EXPECT_EQ(f.link(l).from, at);
    at = f.link(l).to;
    if (!Fabric::is_upward(l)) is_down = true;
    EXPECT_EQ(!Fabric::is_upward(l), is_down) << "up, then down, never up again";
  }
  EXPECT_EQ(at, f.vertex(to));
}

TEST(Routing, lengths_by_hand) {
  const auto f = k_ary(4);  // servers 0 and 1 on leaf 0; 2, 3 on leaf 1; 4 in pod 1
  const Router router(*f, RoutingKind::ecmp, 1, 1);
  std::vector<LinkId> path;
  const std::array<std::size_t, 4> hops{0, 2, 4, 6};
  const std::array<NicId, 4> to{NicId(0), NicId(1), NicId(2), NicId(4)};
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(router.path(NicId(0), to[i], 0, path));
    EXPECT_EQ(path.size(), hops[i]);
  }
  // 6 links over 5 switches of 350 ns each.
  EXPECT_EQ(router.latency(path).count(), 5 * 350);
}

TEST(Routing, spray_by_hand) {
  const auto f = k_ary(4);
  const Router router(*f, RoutingKind::spray, 1, 4);
  EXPECT_EQ(router.flows_of_pair(), 1);
  const Loads l = loads(router, NicId(0), NicId(4));
  EXPECT_EQ(l.size(), 1u + 2 + 4 + 4 + 2 + 1);
  EXPECT_DOUBLE_EQ(l.at(f->uplink(NicId(0))), 1.0);
  EXPECT_DOUBLE_EQ(l.at(f->leaf_uplink(0, 1)), 0.5);
  EXPECT_DOUBLE_EQ(l.at(f->spine_uplink(1, 0)), 0.25);
  EXPECT_DOUBLE_EQ(l.at(Fabric::reverse(f->spine_uplink(3, 1))), 0.25);
}

TEST(Routing, a_connection_of_four_queue_pairs_is_four_flows) {
  const auto f = leaf_spine(2, 4, 4);
  const Router router(*f, RoutingKind::ecmp, 1, 4);
  EXPECT_EQ(router.flows_of_pair(), 4);
  const Loads l = loads(router, NicId(0), NicId(4), 7, 0.5);
  EXPECT_DOUBLE_EQ(l.at(f->uplink(NicId(0))), 2.0);
  double up = 0;
  std::vector<LinkId> path;
  Loads by_path;
  for (int q = 0; q < 4; ++q) {
    ASSERT_TRUE(router.path(NicId(0), NicId(4), 7, path, q));
    for (const LinkId link : path) by_path[link] += 0.5;
  }
  for (int u = 0; u < 4; ++u)
    if (const auto at = l.find(f->leaf_uplink(0, u)); at != l.end()) up += at->second;
  EXPECT_DOUBLE_EQ(up, 2.0);
  EXPECT_EQ(l, by_path);
}

void expect_loads(const Fabric& f, const Loads& got, const Loads& expected, std::size_t length) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [l, w] : expected) EXPECT_NEAR(got.at(l), w, 1e-12) << f.name(l);
  double per_tier[4][2] = {};
  for (const auto& [l, w] : got) per_tier[f.link(l).tier][Fabric::is_upward(l)] += w;
  for (std::size_t tier = 1; tier <= 3; ++tier)
    for (const double sum : per_tier[tier])
      EXPECT_NEAR(sum, length >= 2 * tier ? 1.0 : 0.0, 1e-12) << "tier " << tier;
}

TEST(Routing, agrees_with_breadth_first_search_with_and_without_failures) {
  int cut_pairs = 0, routed_pairs = 0, unwired_pairs = 0, raised_pairs = 0, uneven_pairs = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto f = any_fabric(random);
    Router ecmp(*f, RoutingKind::ecmp, seed, 3);
    Router spray(*f, RoutingKind::spray, seed, 1);
    Router adaptive(*f, RoutingKind::adaptive, seed, 1);
    Router fixed(*f, RoutingKind::fixed, seed, 3);
    const std::array<Router*, 4> routers{&ecmp, &spray, &adaptive, &fixed};
    const Router intact(*f, RoutingKind::ecmp, seed, 1);
    const auto fail = [&](auto what) {
      for (Router* r : routers) r->change([&](LinkState& s) { s.set_up(what, false); });
    };
    // A third of the fabrics intact, the others with up to half of their links and some switches
    // down, some links degraded.
    const double down = seed % 3 == 0 ? 0.0 : double(random() % 50) / 100;
    for (std::size_t l = 0; l < f->links().size(); ++l) {
      const int tier = f->link(LinkId(l)).tier;  // NICs alone, all, or switches alone
      const bool may_fail = seed % 5 == 0 ? tier == 1 : tier >= (seed % 5 == 1 ? 1 : 2);
      if (may_fail && double(random() % 1000) < 1000 * down) fail(LinkId(l));
      if (seed % 4 == 1 && random() % 4 == 0)
        for (Router* r : routers)
          r->change([&](LinkState& s) { s.set_capacity_factor(LinkId(l), 0.25); });
    }
    if (seed % 3 == 2) fail(f->vertex(VertexKind::leaf, random() % f->count(VertexKind::leaf)));
    if (seed % 3 == 2 && f->count(VertexKind::spine) > 0)
      fail(f->vertex(VertexKind::spine, random() % f->count(VertexKind::spine)));
    std::vector<LinkId> path;
    for (int pair = 0; pair < 24; ++pair) {
      const NicId from = any_nic(*f, random);
      NicId to = any_nic(*f, random);
      if (pair % 3 == 0)  // a neighbour
        to = NicId((from.index() + std::size_t(f->servers().nics)) % f->nic_count());
      if (from == to) continue;
      const Twin twin(*f, ecmp.state(), f->vertex(to));
      const int shortest = twin.distance_of(f->vertex(from));
      const bool is_wired = intact.path(from, to, 0, path);
      const int designed = static_cast<int>(path.size());
      EXPECT_EQ(designed,
                std::max(0, Twin(*f, intact.state(), f->vertex(to)).distance_of(f->vertex(from))));
      EXPECT_EQ(intact.is_wired(from, to), is_wired);
      EXPECT_EQ(ecmp.is_wired(from, to), is_wired);
      EXPECT_TRUE(!is_wired || shortest < 0 || shortest >= designed);
      // Under failures the graph may offer a detour over another leaf; routes do not use it. But
      // NICs that share two leaves may meet over a spine instead.
      const bool is_raised = f->servers().ports_per_nic > 1 && designed == 2 && shortest == 4;
      const bool has_path = is_wired && (shortest == designed || is_raised);
      ++(has_path ? routed_pairs : is_wired ? cut_pairs : unwired_pairs);
      raised_pairs += is_raised;

      for (const Router* r : routers) {
        SCOPED_TRACE(name_of(r->kind()));
        EXPECT_EQ(r->has_path(from, to), has_path);
        EXPECT_EQ(r->cut(from, to).empty(), has_path || !is_wired);
        ASSERT_EQ(r->path(from, to, 5, path), has_path);
        EXPECT_EQ(int(path.size()), has_path ? shortest : 0);
        for (const LinkId l : path) EXPECT_TRUE(r->state().is_up(l)) << f->name(l);
        if (has_path)
          expect_path_joins(*f, path, from, to);
        else
          EXPECT_TRUE(loads(*r, from, to).empty());
      }
      if (!has_path) continue;
      expect_loads(*f, loads(spray, from, to), twin.even_split(f->vertex(from)), path.size());
      expect_loads(*f, loads(adaptive, from, to), twin.adaptive_split(f->vertex(from)),
                   path.size());
      uneven_pairs += loads(spray, from, to) != loads(adaptive, from, to);
      Loads of_path;
      for (const LinkId l : path) of_path[l] = 1.0;  // of the last router, the fixed one
      EXPECT_EQ(loads(fixed, from, to, 17), of_path);
    }
  }
  EXPECT_GT(cut_pairs, 100);
  EXPECT_GT(routed_pairs, 1500);
  EXPECT_GT(unwired_pairs, 100);
  EXPECT_GT(raised_pairs, 10);
  EXPECT_GT(uneven_pairs, 200);
}

TEST(Routing, the_same_seed_gives_the_same_paths_and_another_one_others) {
  const auto f = k_ary(8);
  const Router a(*f, RoutingKind::ecmp, 11, 1);
  const Router b(*f, RoutingKind::ecmp, 11, 1);
  const Router other(*f, RoutingKind::ecmp, 12, 1);
  std::vector<LinkId> pa, pb, po;
  int differ = 0;
  for (std::uint64_t label = 0; label < 200; ++label) {
    a.path(NicId(0), NicId(100), label, pa);
    b.path(NicId(0), NicId(100), label, pb);
    other.path(NicId(0), NicId(100), label, po);
    EXPECT_EQ(pa, pb);
    differ += pa != po;
  }
  // 16 routes: 1 in 16 agrees by luck, 187.5 of 200 differ, standard deviation 3.4.
  EXPECT_NEAR(differ, 187.5, 15);
}

/// Sum of (observed - expected)^2 / expected.
double chi_square(const std::map<std::uint64_t, int>& counts, std::size_t cells, int total) {
  const double expected = double(total) / double(cells);
  double sum = double(cells - counts.size()) * expected;
  for (const auto& [cell, n] : counts) sum += (n - expected) * (n - expected) / expected;
  return sum;
}

TEST(Routing, the_hash_spreads_evenly_and_hops_are_independent) {
  // k = 16: 8 uplinks a leaf, 8 a spine, 64 routes between pods. Chi-square of 63 degrees of
  // freedom is above 112 once in 10,000. Consecutive labels, and consecutive NICs, are the hard
  // inputs.
  const auto f = k_ary(16);
  const Router router(*f, RoutingKind::ecmp, 3, 1);
  std::vector<LinkId> path;
  std::map<std::uint64_t, int> by_label, by_nic, by_queue_pair;
  const int n = 64 * 100;
  const auto route = [&] { return std::uint64_t{path[1].index()} << 32 | path[2].index(); };
  for (int i = 0; i < n; ++i) {
    ASSERT_TRUE(router.path(NicId(0), NicId(1000), std::uint64_t(i), path));
    ++by_label[route()];
    ASSERT_TRUE(router.path(NicId(std::size_t(i % 8)), NicId(64 + std::size_t(i / 8)), 0, path));
    ++by_nic[std::uint64_t((path[1].index() - f->leaf_uplink(0, 0).index()) / 2)];
    ASSERT_TRUE(router.path(NicId(0), NicId(1000), 0, path, i));
    ++by_queue_pair[route()];
  }
  EXPECT_LT(chi_square(by_label, 64, n), 112);
  EXPECT_GT(chi_square(by_label, 64, n), 30);  // nor too even: a round robin would give 0
  EXPECT_LT(chi_square(by_queue_pair, 64, n), 112);
  EXPECT_LT(chi_square(by_nic, 8, n), 30);  // 7 degrees of freedom, once in 10,000
}

TEST(Routing, every_hop_uses_all_parallel_cables) {
  // 1 spine with a bundle of 4: the choice is among cables, up and down alike.
  FabricSpec spec{
      .hosts_per_leaf = 4, .spines = 1, .leaf_switch = switch_of(8), .spine_switch = switch_of(8)};
  const auto f = must_build(spec, {.hosts = 8, .gpus = 1, .nics = 1});
  const Router router(*f, RoutingKind::ecmp, 1, 1);
  std::vector<LinkId> path;
  std::map<std::uint64_t, int> pairs;
  for (int i = 0; i < 1600; ++i) {
    ASSERT_TRUE(router.path(NicId(0), NicId(4), std::uint64_t(i), path));
    ++pairs[std::uint64_t{path[1].index()} << 32 | path[2].index()];
  }
  EXPECT_EQ(pairs.size(), 16u);
  EXPECT_LT(chi_square(pairs, 16, 1600), 45);  // 15 degrees of freedom, once in 10,000
}

// Slow-down of the slowest flow of a random permutation of hosts: the most flows on one link over
// what the NIC allows. Expected means: Monte Carlo with true random paths, independent of this
// code.
struct Collision {
  std::string name;
  int leaves, hosts_per_leaf, spines, queue_pairs;
  double slow_down;
};
class Collisions : public testing::TestWithParam<Collision> {};
TEST_P(Collisions, are_as_frequent_as_with_random_paths) {
  const Collision& c = GetParam();
  const auto f = leaf_spine(c.leaves, c.hosts_per_leaf, c.spines);
  const int trials = 400;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < trials; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::size_t> to(f->nic_count());
    std::iota(to.begin(), to.end(), 0u);
    std::shuffle(to.begin(), to.end(), random);
    const Router router(*f, RoutingKind::ecmp, seed, c.queue_pairs);
    std::vector<double> load(f->links().size(), 0.0);
    for (std::size_t i = 0; i < to.size(); ++i)
      router.for_each_load(NicId(i), NicId(to[i]), 0, 1.0 / c.queue_pairs,
                           [&](LinkId l, double w) { load[l.index()] += w; });
    sum += *std::max_element(load.begin(), load.end());
  }
  EXPECT_NEAR(sum / trials, c.slow_down, 0.03 * c.slow_down);
}
INSTANTIATE_TEST_SUITE_P(Routing, Collisions,
                         testing::Values(Collision{"eight_by_eight", 8, 8, 8, 1, 3.67},
                                         Collision{"with_four_queue_pairs", 8, 8, 8, 4, 2.20},
                                         Collision{"sixteen_by_sixteen", 16, 16, 16, 1, 4.65},
                                         Collision{"four_to_one", 8, 8, 2, 1, 6.27}),
                         [](const auto& p) { return p.param.name; });

TEST(Routing, only_flows_on_the_failed_link_move) {
  const auto f = k_ary(8);
  Router router(*f, RoutingKind::ecmp, 5, 1);
  std::vector<LinkId> before, after;
  std::vector<std::vector<LinkId>> old;
  for (std::uint64_t label = 0; label < 400; ++label) {
    router.path(NicId(0), NicId(100), label, before);
    old.push_back(before);
  }
  const LinkId failed = old[0][3];  // a core's way down
  router.set_up(failed, false);
  int moved = 0;
  std::map<std::uint64_t, int> onto;
  for (std::uint64_t label = 0; label < 400; ++label) {
    ASSERT_TRUE(router.path(NicId(0), NicId(100), label, after));
    const bool was_on_it = std::count(old[label].begin(), old[label].end(), failed) > 0;
    EXPECT_EQ(after != old[label], was_on_it) << label;
    if (!was_on_it) continue;
    ++moved;
    ++onto[after[2].index()];
  }
  // One of 16 routes: 25 of 400 flows, and they scatter over the other cores of the same spine
  // (in this tree a core has one way down, so the spine avoids the core).
  EXPECT_NEAR(moved, 25, 16);
  EXPECT_EQ(onto.size(), 3u);
  router.set_up(failed, true);
  for (std::uint64_t label = 0; label < 400; ++label) {
    router.path(NicId(0), NicId(100), label, after);
    EXPECT_EQ(after, old[label]);
  }
}

TEST(Routing, a_leaf_avoids_a_spine_that_lost_the_other_leaf) {
  const auto f = leaf_spine(3, 2, 2);
  Router router(*f, RoutingKind::spray, 1, 1);
  router.set_up(Fabric::reverse(f->leaf_uplink(2, 0)), false);  // spine-0 -> leaf-2
  const Loads to_cut_leaf = loads(router, NicId(0), NicId(4));
  EXPECT_EQ(to_cut_leaf.size(), 4u);
  EXPECT_DOUBLE_EQ(to_cut_leaf.at(f->leaf_uplink(0, 1)), 1.0);
  const Loads to_other = loads(router, NicId(0), NicId(2));
  EXPECT_DOUBLE_EQ(to_other.at(f->leaf_uplink(0, 0)), 0.5);
  EXPECT_DOUBLE_EQ(loads(router, NicId(4), NicId(0)).at(f->leaf_uplink(2, 0)),
                   0.5);  // the other way is whole
}

TEST(Routing, a_cut_names_the_links_that_separate) {
  const auto f = leaf_spine(3, 2, 2);
  Router router(*f, RoutingKind::ecmp, 1, 1);
  router.set_up(f->leaf_uplink(0, 0), false);
  EXPECT_TRUE(router.cut(NicId(0), NicId(4)).empty());  // one way left
  router.set_up(Fabric::reverse(f->leaf_uplink(2, 1)), false);
  router.set_up(f->leaf_uplink(1, 1), false);  // elsewhere: not to blame
  std::vector<std::string> names;
  for (const LinkId l : router.cut(NicId(0), NicId(4))) names.push_back(f->name(l));
  EXPECT_THAT(names, testing::ElementsAre("leaf-0 -> spine-0", "spine-1 -> leaf-2"));
  std::vector<LinkId> path;
  EXPECT_FALSE(router.path(NicId(0), NicId(4), 0, path));
  EXPECT_TRUE(router.path(NicId(0), NicId(1), 0, path));  // same leaf
  router.set_up(f->uplink(NicId(0)), false);
  ASSERT_EQ(router.cut(NicId(0), NicId(4)).size(), 1u);
  EXPECT_EQ(f->name(router.cut(NicId(0), NicId(4))[0]), "node-0/nic-0 -> leaf-0");
}

TEST(Routing, a_cut_alone_separates_and_each_of_its_links_would_join) {
  int cuts = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto f = any_fabric(random);
    Router router(*f, RoutingKind::ecmp, seed, 1);
    for (std::size_t l = 0; l < f->links().size(); ++l)
      if (f->link(LinkId(l)).tier > (seed % 2 ? 0 : 1) && random() % 2 == 0)
        router.set_up(LinkId(l), false);
    const NicId from = any_nic(*f, random);
    const NicId to = any_nic(*f, random);
    const std::vector<LinkId> cut = router.cut(from, to);
    if (cut.empty()) continue;
    ++cuts;
    Router only(*f, RoutingKind::ecmp, seed, 1);
    for (const LinkId l : cut) {
      EXPECT_FALSE(router.state().is_up(l));
      only.set_up(l, false);
    }
    EXPECT_FALSE(only.has_path(from, to));
    for (const LinkId l : cut) {
      only.set_up(l, true);
      EXPECT_TRUE(only.has_path(from, to)) << f->name(l);
      only.set_up(l, false);
    }
  }
  EXPECT_GT(cuts, 50);
}

}  // namespace
}  // namespace trainyard::topologies
