#include "topologies/graph_routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tests/topologies/imports.hpp"
#include "topologies/routing.hpp"

namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;

using Loads = std::map<std::pair<std::string, std::string>, double>;
/// By the names of the ends: parallel cables are added up.
Loads loads_of(const Router& r, NicId from, NicId to, std::uint64_t label = 1) {
  Loads all;
  const Fabric& f = r.fabric();
  r.for_each_load(from, to, label, 1.0, [&](LinkId l, double w) {
    all[{f.name(f.link(l).from), f.name(f.link(l).to)}] += w;
  });
  return all;
}
void expect_near(const Loads& a, const Loads& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [ends, w] : a) {
    const auto found = b.find(ends);
    ASSERT_NE(found, b.end()) << ends.first << " -> " << ends.second;
    EXPECT_NEAR(w, found->second, tolerance) << ends.first << " -> " << ends.second;
  }
}

/// A path starts at one NIC, ends at the other, and every link begins where the one before ends.
void expect_joined(const Fabric& f, const std::vector<LinkId>& path, NicId from, NicId to) {
  ASSERT_FALSE(path.empty());
  EXPECT_EQ(f.link(path.front()).from, f.vertex(from));
  EXPECT_EQ(f.link(path.back()).to, f.vertex(to));
  for (std::size_t i = 0; i + 1 < path.size(); ++i)
    EXPECT_EQ(f.link(path[i]).to, f.link(path[i + 1]).from);
}

std::pair<NicId, NicId> any_pair(const Fabric& f, std::mt19937_64& random) {
  const std::size_t n = f.nic_count() + f.count(VertexKind::storage);
  const NicId a(random() % n);
  NicId b = a;
  while (b == a) b = NicId(random() % n);
  return {a, b};
}

// A tree written to a file and read back is routed like the tree.
TEST(GraphRoutes, equal_those_of_the_fat_tree) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto tree = any_fabric(random);
    const auto copy = as_custom(*tree, seed % 2 == 0 ? GraphFormat::graphml : GraphFormat::dot);
    ASSERT_TRUE(copy);
    Router tree_spray(*tree, RoutingKind::spray, seed, 1),
        copy_spray(*copy, RoutingKind::spray, seed, 1);
    Router tree_hash(*tree, RoutingKind::ecmp, seed, 2),
        copy_hash(*copy, RoutingKind::ecmp, seed, 2);
    const Router intact(*copy, RoutingKind::ecmp, seed, 1);
    std::vector<LinkId> a, b;
    const auto compare = [&](bool is_intact) {
      for (int i = 0; i < 15; ++i) {
        const auto [from, to] = any_pair(*tree, random);
        if (is_intact)
          expect_near(loads_of(tree_spray, from, to), loads_of(copy_spray, from, to), 1e-12);
        const bool on_tree = tree_hash.path(from, to, 7, a);
        const bool on_copy = copy_hash.path(from, to, 7, b);
        EXPECT_TRUE(!on_tree || on_copy);  // detours: never less
        EXPECT_EQ(on_tree, tree_hash.has_path(from, to));
        EXPECT_EQ(on_copy, copy_hash.has_path(from, to));
        if (on_copy) expect_joined(*copy, b, from, to);
        if (on_tree && on_copy) {
          EXPECT_EQ(a.size(), b.size());
          EXPECT_EQ(tree_hash.latency(a), copy_hash.latency(b));
        }
        if (!on_copy) {  // failed links separate the pair, or it was never joined: rails
          const auto cut = copy_hash.cut(from, to);
          EXPECT_TRUE(!cut.empty() || !intact.has_path(from, to));
          for (const LinkId l : cut) EXPECT_FALSE(copy_hash.state().is_up(l));
        }
      }
    };
    compare(true);
    for (std::size_t l = 0; l < tree->links().size(); ++l) {
      if (random() % 4 != 0) continue;
      const auto same = copy->find_link(tree->name(LinkId(l)));
      ASSERT_TRUE(same) << tree->name(LinkId(l));
      for (Router* r : {&tree_spray, &tree_hash}) r->set_up(LinkId(l), false);
      for (Router* r : {&copy_spray, &copy_hash}) r->set_up(*same, false);
    }
    compare(false);
  }
}

TEST(GraphRoutes, equal_those_of_dual_homed_and_railed_trees_in_length) {
  for (const auto& [name, f] : one_of_each()) {
    if (!std::holds_alternative<FatTreeShape>(f->any_shape())) continue;
    SCOPED_TRACE(name);
    const auto copy = as_custom(*f);
    ASSERT_TRUE(copy);
    Router tree(*f, RoutingKind::spray, 1, 1), graph(*copy, RoutingKind::spray, 1, 1);
    std::mt19937_64 random(1);
    for (int i = 0; i < 40; ++i) {
      const auto [from, to] = any_pair(*f, random);
      EXPECT_EQ(tree.has_path(from, to), graph.has_path(from, to));
      expect_near(loads_of(tree, from, to), loads_of(graph, from, to), 1e-12);
    }
  }
}

// a - b - d and a - c - d with twice the cables: three shortest routes over four cables a side.
//     node-0 at a, node-1 at d
const char* diamond =
    "from,to,capacity,count\nnode-0,a,,1\nnode-1,d,,1\n"
    "a,b,400 Gb/s,1\nb,d,400 Gb/s,1\na,c,200 Gb/s,2\nc,d,1000 Gb/s,1\n";
std::shared_ptr<const Fabric> the_diamond() {
  return must_build_text(diamond, GraphFormat::edge_list, {.hosts = 2, .gpus = 1, .nics = 1});
}

TEST(GraphRoutes, spray_splits_by_cables_and_adaptive_by_capacity) {
  const auto f = the_diamond();
  // Three cables leave a: one to b, two to c.
  const Loads spray = loads_of(Router(*f, RoutingKind::spray, 1, 1), NicId(0), NicId(1));
  EXPECT_NEAR(spray.at({"a", "b"}), 1.0 / 3, 1e-15);
  EXPECT_NEAR(spray.at({"a", "c"}), 2.0 / 3, 1e-15);
  EXPECT_NEAR(spray.at({"c", "d"}), 2.0 / 3, 1e-15);
  // 400 against 2 * 200.
  Router adaptive(*f, RoutingKind::adaptive, 1, 1);
  EXPECT_NEAR(loads_of(adaptive, NicId(0), NicId(1)).at({"a", "c"}), 0.5, 1e-15);
  // a -> b at half rate: 200 against 400.
  adaptive.change([&](LinkState& s) { s.set_capacity_factor(*f->find_link("a -> b"), 0.5); });
  EXPECT_NEAR(loads_of(adaptive, NicId(0), NicId(1)).at({"a", "c"}), 2.0 / 3, 1e-15);
  EXPECT_EQ(adaptive.flows_of_pair(), 1);
}

TEST(GraphRoutes, static_asks_only_for_the_destination) {
  const auto f = must_build_text(
      "from,to,capacity,count\nnode-0,a,,1\nnode-2,a,,1\nnode-1,b,,1\nnode-3,b,,1\na,b,1 Gb/s,64\n",
      GraphFormat::edge_list, {.hosts = 4, .gpus = 1, .nics = 1});
  const Router r(*f, RoutingKind::fixed, 3, 1);
  std::vector<LinkId> one, other;
  ASSERT_TRUE(r.path(NicId(0), NicId(1), 5, one));
  ASSERT_TRUE(r.path(NicId(2), NicId(1), 6, other));
  EXPECT_EQ(one[1], other[1]);  // of 64 cables the same, from whom and for what ever
  ASSERT_TRUE(r.path(NicId(0), NicId(3), 5, other));
  EXPECT_NE(one[1], other[1]);
}

TEST(GraphRoutes, a_failure_moves_only_the_flows_on_it_and_repair_brings_them_back) {
  const auto f = must_build_text("from,to,capacity,count\nnode-0,a,,1\nnode-1,b,,1\na,b,1 Gb/s,8\n",
                                 GraphFormat::edge_list, {.hosts = 2, .gpus = 1, .nics = 1});
  Router r(*f, RoutingKind::ecmp, 3, 1);
  const auto cables_of = [&] {
    std::vector<LinkId> all, path;
    for (std::uint64_t label = 0; label < 200; ++label) {
      EXPECT_TRUE(r.path(NicId(0), NicId(1), label, path));
      all.push_back(path[1]);
    }
    return all;
  };
  const auto before = cables_of();
  const LinkId dead = before[0];
  r.set_up(dead, false);
  const auto during = cables_of();
  std::set<LinkId> takers;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != dead) {
      EXPECT_EQ(during[i], before[i]);
    } else {
      EXPECT_NE(during[i], dead);
      takers.insert(during[i]);
    }
  }
  EXPECT_GE(takers.size(), 4u);  // about 25 flows spread over 7 cables
  r.set_up(dead, true);
  EXPECT_EQ(cables_of(), before);
}

TEST(GraphRoutes, hashes_spread_evenly) {
  const auto f =
      must_build_text("from,to,capacity,count\nnode-0,a,,1\nnode-1,b,,1\na,b,1 Gb/s,16\n",
                      GraphFormat::edge_list, {.hosts = 2, .gpus = 1, .nics = 1});
  const Router r(*f, RoutingKind::ecmp, 9, 4);
  std::map<LinkId, int> taken;
  std::vector<LinkId> path;
  for (std::uint64_t label = 0; label < 400; ++label)
    for (int q = 0; q < 4; ++q) {
      ASSERT_TRUE(r.path(NicId(0), NicId(1), label, path, q));
      ++taken[path[1]];
    }
  double chi = 0;  // 1600 draws, 100 expected each; 15 degrees of freedom
  ASSERT_EQ(taken.size(), 16u);
  for (const auto& [l, n] : taken) chi += (n - 100.0) * (n - 100.0) / 100.0;
  EXPECT_LT(chi, 44.3);  // once in 10,000
}

TEST(GraphRoutes, detours_are_taken_and_a_cut_names_what_failed) {
  const auto f = must_build_text(
      "from,to,capacity\nnode-0,a,\nnode-1,b,\na,b,1 Gb/s\na,c,1 Gb/s\nc,d,1 Gb/s\nd,b,1 Gb/s\n",
      GraphFormat::edge_list, {.hosts = 2, .gpus = 1, .nics = 1});
  Router r(*f, RoutingKind::ecmp, 1, 1);
  std::vector<LinkId> path;
  ASSERT_TRUE(r.path(NicId(0), NicId(1), 0, path));
  EXPECT_EQ(path.size(), 3u);
  r.set_up(*f->find_link("a -> b"), false);
  ASSERT_TRUE(r.path(NicId(0), NicId(1), 0, path));
  EXPECT_EQ(path.size(), 5u);  // over c and d
  ASSERT_TRUE(r.path(NicId(1), NicId(0), 0, path));
  EXPECT_EQ(path.size(), 3u);  // the other direction works
  r.change([&](LinkState& s) { s.set_up(*f->find_vertex("d"), false); });
  EXPECT_FALSE(r.path(NicId(0), NicId(1), 0, path));
  EXPECT_TRUE(path.empty());
  EXPECT_EQ(f->name(r.cut(NicId(0), NicId(1)).front()), "a -> b");
  r.change([&](LinkState& s) { s.set_up(*f->find_vertex("d"), true); });
  EXPECT_TRUE(r.has_path(NicId(0), NicId(1)));
  r.set_up(f->uplink(NicId(0)), false);
  EXPECT_EQ(r.cut(NicId(0), NicId(1)), std::vector<LinkId>{f->uplink(NicId(0))});
}

// More destinations than are kept: the answers stay the same.
TEST(GraphRoutes, forgetting_does_not_change_routes) {
  // A ring of 8,000 switches: 32 kB of distances for each destination, 2,097 are kept.
  std::string ring = "from,to,capacity\n";
  const int n = 8000;
  for (int i = 0; i < n; ++i) {
    ring += 's' + std::to_string(i) + ",s" + std::to_string((i + 1) % n) + ",1 Gb/s\n";
    ring += "node-" + std::to_string(i) + ",s" + std::to_string(i) + ",\n";
  }
  const auto f = must_build_text(ring, GraphFormat::edge_list, {.hosts = n, .gpus = 1, .nics = 1});
  const Router r(*f, RoutingKind::ecmp, 1, 1);
  std::vector<LinkId> path;
  const auto check_one = [&](int to) {
    const int hops = std::min(to, n - to);
    ASSERT_TRUE(r.path(NicId(0), NicId(std::size_t(to)), 0, path));
    ASSERT_EQ(path.size(), std::size_t(hops) + 2);
  };
  for (int to = 1; to < 2200; ++to) check_one(to);
  for (int to = 1; to < 50; ++to) check_one(to);  // forgotten, and searched again
}

}  // namespace
}  // namespace trainyard::topologies
