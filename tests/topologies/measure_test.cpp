#include "topologies/measure.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <deque>
#include <numeric>

#include "tests/topologies/imports.hpp"
#include "topologies/distances.hpp"

namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;
using testing::HasSubstr;

// Published and textbook fabrics, from their formulas.

TEST(Measure, radix_64_in_three_tiers_with_65536_hosts) {
  const auto f = k_ary(64);
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.hosts, 65'536);       // k^3 / 4
  EXPECT_EQ(m.switches, 5'120);     // 5 k^2 / 4
  EXPECT_EQ(m.cables, 3 * 65'536);  // k^3 / 4 of each tier
  EXPECT_EQ(m.copper_cables, 65'536);
  EXPECT_DOUBLE_EQ(m.bisection.of_injection, 1.0);
  EXPECT_DOUBLE_EQ(m.bisection.rate.value(), 32'768 * 50e9);
  EXPECT_DOUBLE_EQ(m.bisection_between_pods.of_injection, 1.0);
  EXPECT_EQ(m.diameter_hops, 6);
  for (const TierReport& t : m.tiers) EXPECT_EQ(t.ports_free, 0);
  EXPECT_DOUBLE_EQ(m.tiers[0].oversubscription, 1.0);
  EXPECT_DOUBLE_EQ(m.tiers[1].oversubscription, 1.0);
  EXPECT_DOUBLE_EQ(m.tiers[2].oversubscription, 0.0);
  EXPECT_EQ(m.diversity.shortest_least, 32 * 32);  // (k/2)^2 cores
  EXPECT_EQ(m.diversity.disjoint_least, 32);       // uplinks of a leaf
}

TEST(Measure, a_dragonfly_of_1056_hosts) {
  const SwitchSpec box = switch_of(15);
  const auto f = must_build_any({.kind = FabricKind::dragonfly,
                                 .nics_per_router = 4,
                                 .routers_per_group = 8,
                                 .global_links_per_router = 4,
                                 .groups = 33,
                                 .router_switch = box},
                                {.hosts = 1056, .gpus = 1, .nics = 1});
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.switches, 264);  // a g
  // g a (a-1) / 2 local cables of copper, g (g-1) / 2 global ones, optical.
  EXPECT_EQ(m.copper_cables, 1056 + 33 * 28);
  EXPECT_EQ(m.optic_cables, 528);
  ASSERT_EQ(m.tiers.size(), 1u);
  EXPECT_EQ(m.tiers[0].ports_used, 264 * 15);  // p + a - 1 + h
  EXPECT_EQ(m.tiers[0].ports_free, 0);
  EXPECT_NEAR(m.tiers[0].oversubscription, 4.0 / 11.0, 1e-12);
  EXPECT_EQ(m.diameter_hops, 5);  // NIC, local, global, local, NIC
  // Groups 0-15 against 17-32, each pair of groups one link; group 16 forwards at most 16 more.
  EXPECT_DOUBLE_EQ(m.bisection_between_pods.rate.value(), (16 * 16 + 16) * 50e9);
}

TEST(Measure, a_torus_of_4096_chips) {
  const auto f = must_build_any(
      {.kind = FabricKind::torus, .router_switch = switch_of(7), .dimensions = {16, 16, 16}},
      {.hosts = 4096, .gpus = 1, .nics = 1});
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.switches, 4096);
  EXPECT_EQ(m.cables, 4096 + 3 * 4096);
  // A rack is a block of 4 x 4 x 4: 6 faces of 16 links leave it, 96; half of them each
  // (Jouppi et al. 2023: 64 racks, 96 optical links each).
  EXPECT_EQ(m.optic_cables, 64 * 96 / 2);
  EXPECT_EQ(m.diameter_hops, 2 + 3 * 8);
  EXPECT_DOUBLE_EQ(m.bisection.rate.value(), 2 * 16 * 16 * 50e9);
  EXPECT_DOUBLE_EQ(m.bisection.of_injection, 512.0 / 2048.0);
  EXPECT_EQ(m.diversity.disjoint_least, 6);
  EXPECT_THAT(m.notes, testing::Contains(HasSubstr("1:1 is not full rate")));
}

TEST(Measure, a_torus_is_cut_across_its_longest_dimension) {
  const auto cut = [](std::vector<int> dimensions) {
    const int n = std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>());
    const auto f = must_build_any({.kind = FabricKind::torus,
                                   .router_switch = switch_of(16),
                                   .dimensions = std::move(dimensions)},
                                  {.hosts = n, .gpus = 1, .nics = 1, .nic_rate = 400_Gbps});
    return bisection_across_longest_dimension(*f).rate.value() / 50e9;
  };
  EXPECT_DOUBLE_EQ(cut({8, 2}), 4);      // 2 rings, each cut twice
  EXPECT_DOUBLE_EQ(cut({2, 8}), 4);      // whichever comes first
  EXPECT_DOUBLE_EQ(cut({8, 4, 2}), 16);  // 8 rings
  EXPECT_DOUBLE_EQ(cut({5}), 2);         // the middle node sends nothing but forwards
}

TEST(Measure, a_leaf_spine_by_hand) {
  // 8 leaves of 8 servers, 4 spines: 2:1; a leaf uses 12 ports of 12, a spine 8 of 8.
  const auto f = leaf_spine(8, 8, 4);
  const MeasuredFabric m = measure(*f);
  EXPECT_DOUBLE_EQ(m.tiers[0].oversubscription, 2.0);
  EXPECT_EQ(m.tiers[0].cables_down, 64);
  EXPECT_EQ(m.tiers[0].cables_up, 32);
  EXPECT_EQ(m.tiers[1].cables_down, 32);
  EXPECT_EQ(m.diameter_hops, 4);
  EXPECT_EQ(m.diversity.pairs, 16);
  EXPECT_EQ(m.diversity.shortest_least, 4);
  EXPECT_EQ(m.diversity.disjoint_median, 4);
  EXPECT_EQ(m.copper_cables, 64);
  EXPECT_EQ(m.optic_cables, 32);
  // 64 copper cables at 250, 64 transceivers at 650; the boxes have no price here. Transceivers at
  // switches are in the power of the switch: 64 * 0.1 W of copper remain.
  EXPECT_DOUBLE_EQ(m.price.value(), 64 * 250 + 64 * 650);
  EXPECT_DOUBLE_EQ(m.power.value(), 6.4);
}

TEST(Measure, rails_are_optical_to_the_leaf) {
  for (const auto& [name, f] : one_of_each()) {
    SCOPED_TRACE(name);
    const MeasuredFabric m = measure(*f);
    Dollars price{};
    Watts power{};
    for (const CostItem& item : m.items) {
      EXPECT_DOUBLE_EQ(item.price.value(), item.each.value() * double(item.count));
      EXPECT_FALSE(item.source.empty());
      price += item.price;
      power += item.power;
    }
    EXPECT_DOUBLE_EQ(price.value(), m.price.value());
    EXPECT_DOUBLE_EQ(power.value(), m.power.value());
    EXPECT_EQ(std::size_t(m.cables), f->links().size() / 2 - f->gpu_count());
    EXPECT_EQ(m.cables, m.copper_cables + m.optic_cables);
    EXPECT_GT(m.diameter_hops, 1);
    for (const CableReport& c : m.cable_kinds)
      if (c.kind == LinkKind::nic_leaf) {
        EXPECT_EQ(c.is_optical, name == "rails" || name == "rails_alone");
      }
    if (name == "rails_alone") {
      EXPECT_THAT(m.notes, testing::Contains(HasSubstr("rails are not joined")));
    }
    // Read back from a file: the same distances, bisection and ways.
    if (std::holds_alternative<TorusShape>(f->any_shape())) continue;
    const MeasuredFabric back = measure(*as_custom(*f));
    EXPECT_EQ(back.diameter_hops, m.diameter_hops);
    EXPECT_DOUBLE_EQ(back.bisection.rate.value(), m.bisection.rate.value());
    EXPECT_EQ(back.diversity.shortest_median, m.diversity.shortest_median);
    EXPECT_EQ(back.diversity.disjoint_median, m.diversity.disjoint_median);
    EXPECT_EQ(back.tiers[0].ports_free, -1);
    EXPECT_THAT(back.notes, testing::Contains(HasSubstr("router_switch is not given")));
  }
}

/// The slow twin: breadth first from every NIC over all vertices that are not inside servers.
int slow_diameter(const Fabric& f) {
  int farthest = 0;
  for (std::size_t n = 0; n < f.nic_count(); ++n) {
    std::vector<int> hops(f.vertex_count(), -1);
    std::deque<VertexId> queue{f.vertex(NicId(n))};
    hops[queue.front().index()] = 0;
    while (!queue.empty()) {
      const VertexId v = queue.front();
      queue.pop_front();
      if (!f.is_switch(v) && hops[v.index()] > 0) {
        if (f.kind(v) == VertexKind::nic) farthest = std::max(farthest, hops[v.index()]);
        continue;
      }
      for (const LinkId l : f.out_links(v)) {
        const VertexId to = f.link(l).to;
        if (hops[to.index()] >= 0 || f.kind(to) == VertexKind::gpu) continue;
        hops[to.index()] = hops[v.index()] + 1;
        queue.push_back(to);
      }
    }
  }
  return farthest;
}

/// A connected graph of switches with one or two servers at some.
std::shared_ptr<const Fabric> any_graph(std::mt19937_64& random) {
  const int switches = 1 + int(random() % 150);
  std::string rows = "from,to,capacity\n";
  const auto cable = [&](int a, int b) {
    if (a != b) rows += 's' + std::to_string(a) + ",s" + std::to_string(b) + ",1 Gb/s\n";
  };
  for (int s = 1; s < switches; ++s)
    cable(int(random() % std::uint64_t(std::min(s, 8))) + std::max(0, s - 8), s);
  for (int extra = int(random() % 20); extra > 0; --extra)
    cable(int(random() % std::uint64_t(switches)), int(random() % std::uint64_t(switches)));
  const int hosts = 2 + int(random() % 100);
  for (int h = 0; h < hosts; ++h)
    rows += "node-" + std::to_string(h) + ",s" +
            std::to_string(random() % std::uint64_t(switches)) + ",\n";
  return must_build_text(rows, GraphFormat::edge_list, {.hosts = hosts, .gpus = 1, .nics = 1});
}

TEST(Diameter, agrees_with_a_search_from_every_nic) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto f = any_graph(random);
    const Diameter d = diameter(*f);
    EXPECT_TRUE(d.is_exact);
    EXPECT_TRUE(d.joins_all_pairs);
    EXPECT_EQ(d.hops, slow_diameter(*f));
  }
  for (const auto& [name, f] : one_of_each()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(diameter(*f).hops, slow_diameter(*f));
    EXPECT_EQ(diameter(*f).joins_all_pairs, name != "rails_alone");
  }
}

TEST(Diameter, a_torus_that_is_not_full_is_searched_from_everywhere) {
  // A ring of 8 with servers at nodes 0 to 2 only.
  const auto f =
      must_build_any({.kind = FabricKind::torus, .router_switch = switch_of(8), .dimensions = {8}},
                     {.hosts = 3, .gpus = 1, .nics = 1});
  EXPECT_EQ(diameter(*f).hops, 2 + 2);
}

TEST(ShortestRoutes, are_counted_by_hand) {
  // a to d: over b (1 * 3) and over c (2 * 1).
  const auto f = must_build_text(
      "from,to,capacity,count\nnode-0,a,,1\nnode-1,d,,1\nnode-2,a,,1\n"
      "a,b,1 Gb/s,1\nb,d,1 Gb/s,3\na,c,1 Gb/s,2\nc,d,1 Gb/s,1\n",
      GraphFormat::edge_list, {.hosts = 3, .gpus = 1, .nics = 1});
  EXPECT_EQ(shortest_routes(*f, NicId(0), NicId(1)), 5);
  EXPECT_EQ(shortest_routes(*f, NicId(0), NicId(2)), 1);
  EXPECT_EQ(disjoint_routes(*f, {{NicId(0), NicId(1)}}), std::vector<int>{2});
}

TEST(Measure, one_server_alone) {
  const MeasuredFabric m = measure(*leaf_spine(1, 1, 1));
  EXPECT_EQ(m.diameter_hops, 0);
  EXPECT_EQ(m.diversity.pairs, 0);
  EXPECT_EQ(m.bisection.rate.value(), 0.0);
}

}  // namespace
}  // namespace trainyard::topologies
