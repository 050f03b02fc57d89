#include <gtest/gtest.h>

#include <map>

#include "tests/topologies/tree_twin.hpp"

/// Fixed and adaptive routing of a fat tree by hand; against a twin: routing_test.cpp.
namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;

TEST(Routing, fixed_looks_at_the_destination_alone) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto f = any_fabric(random);
    Router fixed(*f, RoutingKind::fixed, seed, 4);
    EXPECT_EQ(fixed.flows_of_pair(), 1);
    if (seed % 2)
      for (std::size_t l = 0; l < f->links().size(); ++l)
        if (random() % 4 == 0) fixed.set_up(LinkId(l), false);
    std::vector<LinkId> path;
    const NicId to = any_nic(*f, random);
    std::map<VertexId, LinkId> table;  // of every switch, for this destination
    for (std::size_t from = 0; from < f->nic_count(); ++from) {
      if (!fixed.path(NicId(from), to, random(), path, int(random() % 4))) continue;
      for (const LinkId l : path)
        EXPECT_EQ(table.try_emplace(f->link(l).from, l).first->second, l) << f->name(l);
    }
  }
}

TEST(Routing, fixed_gives_a_shift_of_a_full_tree_a_link_each) {
  // D-mod-k (Zahavi 2012): in a full tree, destinations that follow each other take different links
  // up and down, so "everyone sends s places on" meets nowhere.
  for (const auto& f : {leaf_spine(4, 4, 4), k_ary(4), k_ary(8)}) {
    const Router fixed(*f, RoutingKind::fixed, 1, 1);
    const std::size_t n = f->nic_count();
    for (std::size_t shift = 1; shift < n; ++shift) {
      Loads sum;
      for (std::size_t i = 0; i < n; ++i)
        for (const auto& [l, w] : loads(fixed, NicId(i), NicId((i + shift) % n))) sum[l] += w;
      for (const auto& [l, w] : sum) EXPECT_LE(w, 1.0) << f->name(l) << ", shift " << shift;
    }
  }
}

TEST(Routing, fixed_sends_all_queue_pairs_the_same_way_by_hand) {
  // 2 leaves of 4, 2 spines: destination 5 is odd, so over spine 1; destination 6 over spine 0.
  const auto f = leaf_spine(2, 4, 2);
  const Router fixed(*f, RoutingKind::fixed, 1, 8);
  std::vector<LinkId> path;
  for (int queue_pair = 0; queue_pair < 8; ++queue_pair)
    for (std::size_t from = 0; from < 4; ++from) {
      ASSERT_TRUE(fixed.path(NicId(from), NicId(5), 3, path, queue_pair));
      EXPECT_EQ(path[1], f->leaf_uplink(0, 1));
      ASSERT_TRUE(fixed.path(NicId(from), NicId(6), 3, path, queue_pair));
      EXPECT_EQ(path[1], f->leaf_uplink(0, 0));
    }
}

TEST(Routing, adaptive_by_hand) {
  // 2 leaves, 3 spines with one cable each. The cable down from spine 1 runs at half rate, the one
  // up to spine 2 at a quarter: 1 : 1/2 : 1/4 of a cable.
  const auto f = leaf_spine(2, 2, 3);
  Router adaptive(*f, RoutingKind::adaptive, 1, 1);
  adaptive.change([&](LinkState& s) {
    s.set_capacity_factor(Fabric::reverse(f->leaf_uplink(1, 1)), 0.5);
    s.set_capacity_factor(f->leaf_uplink(0, 2), 0.25);
  });
  const Loads l = loads(adaptive, NicId(0), NicId(2));
  EXPECT_DOUBLE_EQ(l.at(f->leaf_uplink(0, 0)), 4.0 / 7);
  EXPECT_DOUBLE_EQ(l.at(f->leaf_uplink(0, 1)), 2.0 / 7);
  EXPECT_DOUBLE_EQ(l.at(f->leaf_uplink(0, 2)), 1.0 / 7);
  EXPECT_DOUBLE_EQ(l.at(Fabric::reverse(f->leaf_uplink(1, 2))), 1.0 / 7);
  // Back, only what lies that way counts: all is whole.
  EXPECT_DOUBLE_EQ(loads(adaptive, NicId(2), NicId(0)).at(f->leaf_uplink(1, 1)), 1.0 / 3);
}

TEST(Routing, adaptive_sees_what_cores_share) {
  // k = 4: spine 0 of each pod is reached over cores 0 and 1, spine 1 over cores 2 and 3. With the
  // cable from the receiver's spine 0 to its leaf at half rate, both its cores can bring it half a
  // cable, but only one of them at a time: spine 0 gets 1/2 against 1.
  const auto f = k_ary(4);
  Router adaptive(*f, RoutingKind::adaptive, 1, 1);
  adaptive.change(
      [&](LinkState& s) { s.set_capacity_factor(Fabric::reverse(f->leaf_uplink(2, 0)), 0.5); });
  const Loads l = loads(adaptive, NicId(0), NicId(4));
  EXPECT_DOUBLE_EQ(l.at(f->leaf_uplink(0, 0)), 1.0 / 3);
  EXPECT_DOUBLE_EQ(l.at(f->leaf_uplink(0, 1)), 2.0 / 3);
  EXPECT_DOUBLE_EQ(l.at(f->spine_uplink(0, 0)), 1.0 / 6);
}

}  // namespace
}  // namespace trainyard::topologies
