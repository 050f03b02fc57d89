#include "topologies/fat_tree.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <utility>

#include "tests/topologies/fabrics.hpp"
#include "topologies/catalog.hpp"
#include "topologies/measure.hpp"

namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;

TEST(FatTree, two_tiers_of_eight_by_eight) {
  // 64 servers of one NIC: 8 leaves with 8 down and 8 up, 8 spines with one cable to each leaf.
  const auto f = leaf_spine(8, 8, 8);
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.hosts, 64);
  EXPECT_EQ(m.switches, 16);
  EXPECT_EQ(m.cables, 64 + 64);
  EXPECT_EQ(m.copper_cables, 64);
  EXPECT_EQ(m.optic_cables, 64);
  EXPECT_EQ(m.diameter_hops, 4);
  EXPECT_EQ(m.tiers.size(), 2u);
  EXPECT_EQ(m.tiers[0].ports_used, 128);
  EXPECT_EQ(m.tiers[0].ports_free, 0);
  EXPECT_DOUBLE_EQ(m.tiers[0].oversubscription, 1.0);
  EXPECT_DOUBLE_EQ(m.tiers[1].oversubscription, 0.0);  // the top has nothing above
}

TEST(FatTree, open_spines_are_the_fewest_whose_ports_suffice) {
  // 8 leaves x 8 uplinks = 64 cables: one spine of 64 ports takes them all, in bundles of 8.
  FabricSpec spec{.hosts_per_leaf = 8, .leaf_switch = switch_of(16), .spine_switch = switch_of(64)};
  const HostShape servers{.hosts = 64, .gpus = 1, .nics = 1};
  auto f = must_build(spec, servers);
  EXPECT_EQ(f->shape<FatTreeShape>().spines_per_pod, 1);
  EXPECT_EQ(f->shape<FatTreeShape>().leaf_bundle, 8);
  // One port less and it takes two.
  spec.spine_switch.ports = 63;
  f = must_build(spec, servers);
  EXPECT_EQ(f->shape<FatTreeShape>().spines_per_pod, 2);
  EXPECT_EQ(f->shape<FatTreeShape>().leaf_bundle, 4);
}

// NVIDIA DGX SuperPOD reference architecture (B200), table of larger component counts: 64 x 400
// Gb/s switches, servers of 8 NICs. The published rows are cabled by rails; the counts are the
// same.
struct SuperPod {
  int hosts, leaves, spines, cores, cables_a_tier;
};
class PublishedCounts : public testing::TestWithParam<SuperPod> {};
TEST_P(PublishedCounts, follow_from_the_number_of_servers_alone) {
  const SuperPod& p = GetParam();
  const SwitchSpec box = switch_of(64);
  FabricSpec spec{.tiers = p.cores == 0 ? 2 : 3,
                  .hosts_per_leaf = 4,
                  .leaf_switch = box,
                  .spine_switch = box,
                  .core_switch = box};
  const MeasuredFabric m = measure(*must_build(spec, {.hosts = p.hosts}));
  EXPECT_EQ(m.tiers[0].switches, p.leaves);
  EXPECT_EQ(m.tiers[1].switches, p.spines);
  EXPECT_EQ(m.tiers[0].cables_down, p.cables_a_tier);
  EXPECT_EQ(m.tiers[0].cables_up, p.cables_a_tier);
  if (p.cores > 0) {
    EXPECT_EQ(m.tiers[2].switches, p.cores);
    EXPECT_EQ(m.tiers[2].cables_down, p.cables_a_tier);
  }
  for (const TierReport& t : m.tiers) EXPECT_EQ(t.ports_free, 0);
  EXPECT_DOUBLE_EQ(m.bisection.of_injection, 1.0);
}
INSTANTIATE_TEST_SUITE_P(
    FatTree, PublishedCounts,
    testing::Values(SuperPod{64, 16, 8, 0, 512}, SuperPod{128, 32, 16, 0, 1024},
                    SuperPod{256, 64, 32, 0, 2048}, SuperPod{512, 128, 128, 64, 4096},
                    SuperPod{1024, 256, 256, 128, 8192}, SuperPod{2048, 512, 512, 256, 16384}),
    [](const auto& p) { return std::to_string(p.param.hosts) + "_servers"; });

TEST(FatTree, three_tiers_of_four_port_switches) {
  // Al-Fares et al. 2008, k = 4: 4 pods of 2 leaves and 2 spines, 4 cores, 16 servers.
  const auto f = k_ary(4);
  const FatTreeShape& t = f->shape<FatTreeShape>();
  EXPECT_EQ(t.pods, 4);
  EXPECT_EQ(t.leaves, 8);
  EXPECT_EQ(t.spines(), 8);
  EXPECT_EQ(t.cores(), 4);
  EXPECT_EQ(t.core_groups, 2);  // spine j of each pod to cores 2j and 2j + 1
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.switches, 20);
  EXPECT_EQ(m.copper_cables, 16);
  EXPECT_EQ(m.optic_cables, 16 + 16);  // 8 leaves x 2, 8 spines x 2
  EXPECT_EQ(m.diameter_hops, 6);
  for (const TierReport& tier : m.tiers) EXPECT_EQ(tier.ports_free, 0);
  EXPECT_DOUBLE_EQ(m.tiers[1].oversubscription, 1.0);
  EXPECT_DOUBLE_EQ(m.bisection.of_injection, 1.0);
}

TEST(FatTree, the_fabric_of_llama_3) {
  const auto f = must_build(llama_spec(), llama_servers());
  const FatTreeShape& t = f->shape<FatTreeShape>();
  EXPECT_EQ(f->gpu_count(), 16896u);
  EXPECT_EQ(t.uplinks_per_leaf, 16);  // 2 servers x 8 NICs, 1:1
  EXPECT_EQ(t.leaves, 1056);
  EXPECT_EQ(t.pods, 6);  // 5.5 pods of 192 leaves
  // 16 uplinks over 4 spines would need 192 x 4 = 768 ports down. Over 8: 384 down, 384/7 = 54.9
  // up.
  EXPECT_EQ(t.spines_per_pod, 8);
  EXPECT_EQ(t.uplinks_per_spine, 55);
  // 6 pods x 8 spines x 55 = 2640 cables; 55 = 5 x 11, so 5 cores with 528 ports each.
  EXPECT_EQ(t.cores(), 5);
  EXPECT_EQ(t.core_groups, 1);
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.copper_cables, 16896);
  EXPECT_EQ(m.optic_cables, 16896 + 2640);
  EXPECT_DOUBLE_EQ(m.tiers[0].oversubscription, 1.0);
  EXPECT_DOUBLE_EQ(m.tiers[1].oversubscription, 384.0 / 55.0);  // 6.98, asked 7
  EXPECT_EQ(f->count(VertexKind::spine), 48u);  // the half-filled pod has all its spines …
  EXPECT_EQ(f->pod_of(HostId(2111)), 5);        // … but only 96 leaves
  // First half against second, 528 leaves each: pods 0, 1 and 144 leaves of pod 2 against the rest.
  // Three pods' ways over the core, 3 x 8 x 55, and inside pod 2 the 48 x 16 NICs of its other
  // half.
  EXPECT_DOUBLE_EQ(m.bisection.rate.value(), (3 * 8 * 55 + 48 * 16) * 50e9);
  EXPECT_DOUBLE_EQ(m.bisection.of_injection, 2088.0 / 8448.0);
  // Pods 0, 1, 2 against 3, 4, 5: the ways over the core alone.
  EXPECT_DOUBLE_EQ(m.bisection_between_pods.rate.value(), 3 * 8 * 55 * 50e9);
}

TEST(FatTree, the_last_leaf_and_pod_may_be_partly_filled) {
  // k = 4 with 9 servers of 16: all spines of a pod that has a server, but only the leaves needed.
  const SwitchSpec box = switch_of(4);
  FabricSpec spec{
      .tiers = 3, .hosts_per_leaf = 2, .leaf_switch = box, .spine_switch = box, .core_switch = box};
  const auto f = must_build(spec, {.hosts = 9, .gpus = 1, .nics = 1});
  EXPECT_EQ(f->shape<FatTreeShape>().leaves,
            5);  // 2 + 2 + 1: the last pod has one of its two leaves
  EXPECT_EQ(f->shape<FatTreeShape>().pods, 3);
  EXPECT_EQ(f->shape<FatTreeShape>().spines(), 6);
  EXPECT_EQ(f->pod_of(HostId(8)), 2);
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.copper_cables, 9);
  EXPECT_EQ(m.optic_cables, 5 * 2 + 6 * 2);
  EXPECT_EQ(m.tiers[0].ports_free, 1);                 // beside the lonely server
  EXPECT_EQ(m.tiers[1].ports_free, 2);                 // the missing leaf's
  EXPECT_DOUBLE_EQ(m.tiers[0].oversubscription, 1.0);  // of the worst leaf, not the mean
}

TEST(FatTree, a_fast_port_is_split_for_slow_nics) {
  // 64 ports of 800 Gb/s are 128 of 400: 8 servers x 8 NICs take 32 ports, 32 ports of 800 go up.
  FabricSpec spec{.hosts_per_leaf = 8,
                  .leaf_switch = switch_of(64, 800_Gbps),
                  .spine_switch = switch_of(64, 800_Gbps)};
  const auto f = must_build(spec, {.hosts = 16, .nic_rate = 400_Gbps});
  EXPECT_EQ(f->shape<FatTreeShape>().uplinks_per_leaf, 32);
  EXPECT_DOUBLE_EQ(f->link(f->leaf_uplink(0, 0)).capacity.value(), 100e9);
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.tiers[0].ports_used, 2 * 64);
  EXPECT_DOUBLE_EQ(m.tiers[0].oversubscription, 1.0);
  // And a spine of 400 Gb/s slows the uplinks down, two in each split leaf port: still 1:1 with 64.
  spec.spine_switch = switch_of(128, 400_Gbps);
  const auto g = must_build(spec, {.hosts = 16, .nic_rate = 400_Gbps});
  EXPECT_EQ(g->shape<FatTreeShape>().uplinks_per_leaf, 64);
  EXPECT_EQ(measure(*g).tiers[0].ports_used, 2 * 64);
}

TEST(FatTree, cost_and_power_add_up) {
  FabricSpec spec{.hosts_per_leaf = 4, .leaf_switch = switch_of(64), .spine_switch = switch_of(64)};
  spec.leaf_switch.power = 1700_W;
  spec.leaf_switch.price = Dollars(36e3);
  spec.spine_switch.power = 2000_W;
  spec.spine_switch.price = Dollars(50e3);
  const MeasuredFabric m = measure(*must_build(spec, {.hosts = 128}));
  EXPECT_DOUBLE_EQ(m.tiers[0].power.value(), 32 * 1700.0);
  EXPECT_DOUBLE_EQ(m.tiers[1].power.value(), 16 * 2000.0);
  EXPECT_DOUBLE_EQ(m.tiers[0].price.value(), 32 * 36e3);
  EXPECT_DOUBLE_EQ(m.tiers[1].price.value(), 16 * 50e3);
}

TEST(FatTree, storage_ports_are_spread_over_the_leaves) {
  FabricSpec spec{.hosts_per_leaf = 2,
                  .leaf_oversubscription = 2.0,
                  .leaf_switch = switch_of(7),
                  .spine_switch = switch_of(64)};
  HostShape servers{.hosts = 8, .gpus = 2, .nics = 2, .storage_ports = 6, .storage_rate = 400_Gbps};
  // A leaf: 4 NICs, 2 uplinks, and 6 ports on 4 leaves: two on some, so 8 ports.
  EXPECT_EQ(build_fat_tree(spec, servers).fabric, nullptr);
  spec.leaf_switch.ports = 8;
  const auto f = must_build(spec, servers);
  std::map<VertexId, int> on_leaf;
  for (std::size_t s = 0; s < 6; ++s) ++on_leaf[f->edge_of(f->storage_port(s))];
  EXPECT_EQ(on_leaf.size(), 4u);
  for (const auto& [leaf, n] : on_leaf) EXPECT_THAT(n, testing::AnyOf(1, 2)) << f->name(leaf);
  EXPECT_EQ(f->name(f->uplink(f->storage_port(5))), "storage-5 -> leaf-3");
}

TEST(FatTree, what_is_built_from_the_counts_as_built_is_the_same) {
  const auto f = must_build(llama_spec(), llama_servers());
  const auto again = must_build(f->spec(), f->servers());
  EXPECT_EQ(f->shape<FatTreeShape>(), again->shape<FatTreeShape>());
}

TEST(FatTree, eight_thousand_servers_fill_three_tiers_of_64_ports) {
  // k = 64: 64^3/4 = 65,536 NICs = 8,192 servers of 8; 5 k^2/4 = 5,120 switches.
  const SwitchSpec box = switch_of(64);
  FabricSpec spec{
      .tiers = 3, .hosts_per_leaf = 4, .leaf_switch = box, .spine_switch = box, .core_switch = box};
  const auto f = must_build(spec, {.hosts = 8192});
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.switches, 5120);
  EXPECT_EQ(m.cables, 3 * 65536);
  for (const TierReport& t : m.tiers) EXPECT_EQ(t.ports_free, 0);
  EXPECT_DOUBLE_EQ(m.bisection.rate.value(), 32768 * 50e9);
}

TEST(FatTree, sixty_five_thousand_hosts_on_three_tiers_of_64_ports) {
  // k = 64: k^3/4 hosts, 5 k^2/4 switches, as many cables in each tier as hosts, k^3/8 NICs across.
  constexpr int k = 64;
  const auto f = k_ary(k);
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.hosts, 65536);
  EXPECT_EQ(m.tiers[0].switches, k * k / 2);
  EXPECT_EQ(m.tiers[1].switches, k * k / 2);
  EXPECT_EQ(m.tiers[2].switches, k * k / 4);
  EXPECT_EQ(m.cables, 3 * k * k * k / 4);
  EXPECT_EQ(m.diameter_hops, 6);
  EXPECT_DOUBLE_EQ(m.bisection.rate.value(), k * k * k / 8 * 50e9);
  for (const TierReport& t : m.tiers) EXPECT_EQ(t.ports_free, 0);
}

TEST(FatTree, any_valid_counts_are_cabled_evenly) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto f = any_fabric(random);
    ASSERT_TRUE(f);
    const FatTreeShape& t = f->shape<FatTreeShape>();
    // Every leaf has leaf_bundle cables to each spine of its pod and to no other, every spine
    // core_bundle to each core of one group; every core sees every pod alike.
    std::map<std::pair<VertexId, VertexId>, int> bundle;
    for (const Link& l : f->links())
      if (l.kind == LinkKind::leaf_spine || l.kind == LinkKind::spine_core)
        ++bundle[{l.from, l.to}];
    std::size_t expected = 2 * std::size_t(t.leaves) * std::size_t(t.spines_per_pod) +
                           2 * std::size_t(t.spines()) * std::size_t(t.cores_per_group);
    EXPECT_EQ(bundle.size(), expected);
    for (const auto& [ends, n] : bundle) {
      const bool has_core =
          f->kind(ends.first) == VertexKind::core || f->kind(ends.second) == VertexKind::core;
      EXPECT_EQ(n, has_core ? t.core_bundle : t.leaf_bundle);
      EXPECT_EQ(bundle.at({ends.second, ends.first}), n);
    }
    for (int c = 0; c < t.cores(); ++c)
      EXPECT_EQ(f->out_links(f->vertex(VertexKind::core, std::size_t(c))).size(),
                std::size_t(t.pods * t.spines_per_group() * t.core_bundle));
  }
}

TEST(Catalog, has_one_row_a_kind_and_builds_it) {
  std::set<FabricKind> kinds;
  for (const Topology& row : catalog()) {
    EXPECT_TRUE(kinds.insert(row.kind).second);
    EXPECT_FALSE(row.summary.empty());
  }
  EXPECT_EQ(kinds.size(), Names<FabricKind>::all.size());
  EXPECT_EQ(build_fabric(llama_spec(), llama_servers()).fabric->shape<FatTreeShape>().pods, 6);
}

}  // namespace
}  // namespace trainyard::topologies
