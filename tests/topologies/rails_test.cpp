#include <gmock/gmock.h>

#include <map>
#include <string>

#include "tests/topologies/fabrics.hpp"
#include "topologies/bisection.hpp"
#include "topologies/measure.hpp"
#include "topologies/routing.hpp"

/// Rail-optimised and rail-only fabrics, NICs with two ports, uplinks of several rates, pods to
/// spare.
namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;

std::size_t hops(const Router& router, NicId from, NicId to) {
  std::vector<LinkId> path;
  router.path(from, to, 0, path);
  return path.size();
}

std::map<LinkId, double> loads(const Router& router, NicId from, NicId to) {
  std::map<LinkId, double> sum;
  router.for_each_load(from, to, 0, 1.0, [&](LinkId l, double w) { sum[l] += w; });
  return sum;
}

TEST(Rails, a_unit_by_hand) {
  // 4 servers of 4 NICs in units of 2, switches of 8 ports, 2 rails: 4 NICs of a unit on each leaf,
  // 4 up. 4 leaves x 4 uplinks are 2 spines.
  FabricSpec spec = rail_spec(FabricKind::rail_optimized, 2, 2, 8);
  spec.rails = 2;
  const auto f = must_build(spec, {.hosts = 4, .gpus = 4, .nics = 4});
  EXPECT_EQ(f->edge_count(), 4u);
  EXPECT_EQ(f->count(VertexKind::spine), 2u);
  EXPECT_EQ(f->name(f->edge_of(f->nic(HostId(0), 1))), "unit-0/leaf-0");
  EXPECT_EQ(f->name(f->edge_of(f->nic(HostId(0), 2))), "unit-0/leaf-1");
  EXPECT_EQ(f->name(f->edge_of(f->nic(HostId(3), 3))), "unit-1/leaf-1");
  const Router router(*f, RoutingKind::ecmp, 1, 1);
  const NicId from = f->nic(HostId(0), 0);
  EXPECT_EQ(hops(router, from, f->nic(HostId(1), 1)), 2u);  // same rail, same unit
  EXPECT_EQ(hops(router, from, f->nic(HostId(1), 2)), 4u);  // the other rail
  EXPECT_EQ(hops(router, from, f->nic(HostId(2), 0)), 4u);  // the other unit
  EXPECT_EQ(measure(*f).diameter_hops, 4);
}

// NVIDIA DGX SuperPOD reference architecture (B200; the unit of 32 servers and the switches of
// 64 x 400 Gb/s are those of H100), table of larger component counts.
struct SuperPod {
  int units, hosts, leaves, spines, cores, cables_a_tier;
};
class RailCounts : public testing::TestWithParam<SuperPod> {};
TEST_P(RailCounts, follow_from_the_number_of_servers_alone) {
  const SuperPod& p = GetParam();
  const auto f = must_build(rail_spec(FabricKind::rail_optimized, p.cores == 0 ? 2 : 3, 32),
                            {.hosts = p.hosts});
  EXPECT_EQ(f->shape<FatTreeShape>().units(), p.units);
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.tiers[0].switches, p.leaves);
  EXPECT_EQ(m.tiers[1].switches, p.spines);
  EXPECT_EQ(m.tiers[0].cables_down, p.cables_a_tier);
  EXPECT_EQ(m.tiers[0].cables_up, p.cables_a_tier);
  if (p.cores > 0) {
    EXPECT_EQ(m.tiers[2].switches, p.cores);
    EXPECT_EQ(m.tiers[2].cables_down, p.cables_a_tier);
  }
  for (const TierReport& t : m.tiers) EXPECT_EQ(t.ports_free, 0);
  EXPECT_EQ(m.diameter_hops, p.cores > 0 ? 6 : 4);
  EXPECT_DOUBLE_EQ(m.bisection.rate.value(), p.hosts / 2 * 8 * 50e9);
}
INSTANTIATE_TEST_SUITE_P(Rails, RailCounts,
                         testing::Values(SuperPod{2, 64, 16, 8, 0, 512},
                                         SuperPod{4, 128, 32, 16, 0, 1024},
                                         SuperPod{8, 256, 64, 32, 0, 2048},
                                         SuperPod{16, 512, 128, 128, 64, 4096},
                                         SuperPod{32, 1024, 256, 256, 128, 8192},
                                         SuperPod{64, 2048, 512, 512, 256, 16384}),
                         [](const auto& p) { return std::to_string(p.param.hosts) + "_servers"; });

TEST(Rails, without_links_between_them_save_a_tier) {
  // Rail-only (Wang et al. 2023) in two tiers of 64 ports: a rail is 64 leaves of 32 servers and 32
  // spines, 2,048 servers. Eight rails: 512 leaves, 256 spines. Rail-optimised, the same servers
  // need three tiers and 1,280 switches (the table above).
  const auto f = must_build(rail_spec(FabricKind::rail_only, 2, 32), {.hosts = 2048});
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.switches, 512 + 256);
  EXPECT_EQ(m.cables, 2 * 16384);
  for (const TierReport& t : m.tiers) EXPECT_EQ(t.ports_free, 0);
  EXPECT_DOUBLE_EQ(m.bisection.rate.value(), 1024 * 8 * 50e9);
  EXPECT_EQ(f->name(f->edge_of(f->nic(HostId(33), 2))), "rail-2/leaf-1");
  EXPECT_EQ(f->name(f->vertex(VertexKind::spine, 2 * 32 + 5)), "rail-2/spine-5");
}

TEST(Rails, without_links_between_them_join_only_their_own_nics) {
  for (const int tiers : {1, 2}) {
    const auto f = must_build(rail_spec(FabricKind::rail_only, tiers, tiers == 1 ? 8 : 4),
                              {.hosts = 8, .gpus = 4, .nics = 4});
    Router router(*f, RoutingKind::spray, 1, 1);
    const NicId from = f->nic(HostId(0), 2);
    EXPECT_EQ(hops(router, from, f->nic(HostId(1), 2)), 2u);
    EXPECT_EQ(hops(router, from, f->nic(HostId(7), 2)), tiers == 1 ? 2u : 4u);
    EXPECT_TRUE(router.is_wired(from, f->nic(HostId(7), 2)));
    for (std::size_t host : {0u, 1u, 7u}) {  // not even in its own server
      EXPECT_FALSE(router.is_wired(from, f->nic(HostId(host), 1)));
      EXPECT_FALSE(router.has_path(from, f->nic(HostId(host), 1)));
      EXPECT_TRUE(router.cut(from, f->nic(HostId(host), 1)).empty());
    }
    // A failure is another thing: wired, no path, and a cut that says why.
    router.set_up(f->uplink(from), false);
    EXPECT_TRUE(router.is_wired(from, f->nic(HostId(1), 2)));
    EXPECT_THAT(router.cut(from, f->nic(HostId(1), 2)), testing::ElementsAre(f->uplink(from)));
  }
}

TEST(Rails, storage_ports_are_spread_over_all_leaves) {
  FabricSpec spec = rail_spec(FabricKind::rail_optimized, 2, 2);
  const auto f = must_build(spec, {.hosts = 4, .gpus = 4, .nics = 4, .storage_ports = 16});
  std::map<VertexId, int> on_leaf;
  for (std::size_t s = 0; s < 16; ++s) ++on_leaf[f->edge_of(f->storage_port(s))];
  EXPECT_EQ(on_leaf.size(), 8u);
  for (const auto& [leaf, n] : on_leaf) EXPECT_EQ(n, 2) << f->name(leaf);
}

// Dual-homed.

/// 2 units of 2 servers, one NIC of 2 x 200 Gb/s each; leaves with 2 x 200 down and 1 x 400 up.
std::shared_ptr<const Fabric> dual(int spines = 1) {
  FabricSpec spec{.hosts_per_leaf = 2, .leaf_switch = switch_of(8), .spine_switch = switch_of(8)};
  spec.dual_homed = true;
  spec.uplinks_per_leaf = spines;
  return must_build(spec, {.hosts = 4, .gpus = 1, .nics = 1, .nic_rate = 400_Gbps});
}

TEST(DualHomed, a_nic_is_split_over_two_leaves) {
  const auto f = dual();
  EXPECT_EQ(f->edge_count(), 4u);
  EXPECT_EQ(f->servers().ports_per_nic, 2);
  EXPECT_EQ(f->name(f->uplink(NicId(3), 0)), "node-3/nic-0 -> unit-1/leaf-0a");
  EXPECT_EQ(f->name(f->uplink(NicId(3), 1)), "node-3/nic-0 -> unit-1/leaf-0b");
  EXPECT_DOUBLE_EQ(f->link(f->uplink(NicId(3), 1)).capacity.value(), 25e9);
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.cables, 8 + 4);
  EXPECT_DOUBLE_EQ(m.tiers[0].oversubscription, 1.0);
  EXPECT_DOUBLE_EQ(m.bisection.of_injection, 1.0);
}

TEST(DualHomed, both_ports_are_used) {
  const auto f = dual(2);
  const Router spray(*f, RoutingKind::spray, 1, 1);
  for (const NicId to : {NicId(1), NicId(2)}) {  // over the leaves; over the spines
    const auto l = loads(spray, NicId(0), to);
    for (int port : {0, 1}) {
      EXPECT_DOUBLE_EQ(l.at(f->uplink(NicId(0), port)), 0.5);
      EXPECT_DOUBLE_EQ(l.at(f->downlink(to, port)), 0.5);
    }
  }
  EXPECT_DOUBLE_EQ(loads(spray, NicId(0), NicId(2)).at(f->leaf_uplink(1, 0)), 0.25);
  // 400 queue pairs hash apart: 200 a port, standard deviation 10.
  const Router ecmp(*f, RoutingKind::ecmp, 1, 400);
  EXPECT_NEAR(loads(ecmp, NicId(0), NicId(2)).at(f->uplink(NicId(0), 0)), 200, 40);
  EXPECT_NEAR(loads(ecmp, NicId(0), NicId(2)).at(f->downlink(NicId(2), 0)), 200, 40);
}

TEST(DualHomed, the_loss_of_a_leaf_leaves_half_of_the_rate) {
  const auto f = dual();
  for (const RoutingKind kind :
       {RoutingKind::ecmp, RoutingKind::spray, RoutingKind::adaptive, RoutingKind::fixed}) {
    Router router(*f, kind, 1, 4);
    const VertexId leaf = f->edge_of(NicId(0), 1);
    router.change([&](LinkState& s) { s.set_up(leaf, false); });
    EXPECT_DOUBLE_EQ(
        max_flow(*f, std::vector{HostId(0)}, std::vector{HostId(2)}, &router.state()).value(),
        25e9);
    const auto l = loads(router, NicId(0), NicId(2));
    EXPECT_DOUBLE_EQ(l.at(f->uplink(NicId(0), 0)), double(router.flows_of_pair()));
    EXPECT_EQ(l.count(f->uplink(NicId(0), 1)), 0u);
    // The other leaf of the unit gone too, only the unit itself is cut off.
    router.change([&](LinkState& s) { s.set_up(f->edge_of(NicId(0), 0), false); });
    EXPECT_FALSE(router.has_path(NicId(0), NicId(2)));
    EXPECT_TRUE(router.has_path(NicId(2), NicId(3)));
  }
}

TEST(DualHomed, ports_on_different_leaves_meet_over_a_spine) {
  const auto f = dual();
  Router router(*f, RoutingKind::ecmp, 1, 1);
  router.set_up(f->uplink(NicId(0), 0), false);
  EXPECT_EQ(hops(router, NicId(0), NicId(1)), 2u);
  router.set_up(f->downlink(NicId(1), 1), false);
  std::vector<std::string> names;
  std::vector<LinkId> path;
  ASSERT_TRUE(router.path(NicId(0), NicId(1), 0, path));
  for (const LinkId l : path) names.push_back(f->name(l));
  EXPECT_THAT(names,
              testing::ElementsAre("node-0/nic-0 -> unit-0/leaf-0b", "unit-0/leaf-0b -> spine-0",
                                   "spine-0 -> unit-0/leaf-0a", "unit-0/leaf-0a -> node-1/nic-0"));
  router.set_up(f->leaf_uplink(1, 0), false);
  names.clear();
  for (const LinkId l : router.cut(NicId(0), NicId(1))) names.push_back(f->name(l));
  EXPECT_THAT(names, testing::UnorderedElementsAre("node-0/nic-0 -> unit-0/leaf-0a",
                                                   "unit-0/leaf-0b -> node-1/nic-0",
                                                   "unit-0/leaf-0b -> spine-0"));
}

TEST(DualHomed, adaptive_gives_a_slow_port_less) {
  const auto f = dual();
  Router router(*f, RoutingKind::adaptive, 1, 1);
  router.change([&](LinkState& s) { s.set_capacity_factor(f->downlink(NicId(2), 1), 0.5); });
  const auto l = loads(router, NicId(0), NicId(2));
  EXPECT_DOUBLE_EQ(l.at(f->downlink(NicId(2), 0)), 2.0 / 3);
  EXPECT_DOUBLE_EQ(l.at(f->downlink(NicId(2), 1)), 1.0 / 3);
}

TEST(DualHomed, with_rails_as_in_alibabas_hpn) {
  // Qian et al., SIGCOMM 2024: leaves of 51.2 Tb/s with 128 x 200 Gb/s down and 60 x 400 Gb/s up
  // (1.067 : 1), segments of 128 servers of 8 NICs of 2 x 200 Gb/s: 16 leaves. Eight segments fill
  // 60 spines of 128 ports. (Theirs are two separate planes of 60, with fewer cables each.)
  FabricSpec spec = rail_spec(FabricKind::rail_optimized, 2, 128, 128);
  spec.dual_homed = true;
  spec.uplinks_per_leaf = 60;
  spec.spines = 60;
  const auto f = must_build(spec, {.hosts = 8 * 128, .nic_rate = 400_Gbps});
  const MeasuredFabric m = measure(*f);
  EXPECT_EQ(m.tiers[0].switches, 8 * 16);
  EXPECT_EQ(m.tiers[0].cables_down, 8 * 16 * 128);
  EXPECT_DOUBLE_EQ(m.tiers[0].oversubscription, 128 * 200.0 / (60 * 400));
  EXPECT_EQ(m.tiers[1].ports_free, 0);
  EXPECT_EQ(f->name(f->edge_of(f->nic(HostId(129), 7), 1)), "unit-1/leaf-7b");
}

// Uplinks of several rates.

TEST(MixedUplinks, count_by_their_sum) {
  // 6 NICs of 400 Gb/s: 2,400 down. In turn 800, 400, 800, 400 up: 2,400. On ports of 800 that is
  // 3 ports down, 2 for the fast ones up and 1 for the slow.
  FabricSpec spec{.hosts_per_leaf = 6,
                  .spines = 4,
                  .uplink_rates = {800_Gbps, 400_Gbps},
                  .leaf_switch = switch_of(6, 800_Gbps),
                  .spine_switch = switch_of(2, 800_Gbps)};
  const HostShape servers{.hosts = 12, .gpus = 1, .nics = 1, .nic_rate = 400_Gbps};
  const auto f = must_build(spec, servers);
  EXPECT_EQ(f->shape<FatTreeShape>().uplinks_per_leaf, 4);
  EXPECT_DOUBLE_EQ(f->link(f->leaf_uplink(1, 2)).capacity.value(), 100e9);
  EXPECT_DOUBLE_EQ(f->link(f->leaf_uplink(1, 3)).capacity.value(), 50e9);
  const MeasuredFabric m = measure(*f);
  EXPECT_DOUBLE_EQ(m.tiers[0].oversubscription, 1.0);
  EXPECT_EQ(m.tiers[0].ports_free, 0);
  // Spray counts cables, adaptive routing what they carry.
  const Router spray(*f, RoutingKind::spray, 1, 1);
  const Router adaptive(*f, RoutingKind::adaptive, 1, 1);
  for (int u = 0; u < 4; ++u) {
    EXPECT_DOUBLE_EQ(loads(spray, NicId(0), NicId(6)).at(f->leaf_uplink(0, u)), 0.25);
    EXPECT_DOUBLE_EQ(loads(adaptive, NicId(0), NicId(6)).at(f->leaf_uplink(0, u)),
                     u % 2 == 0 ? 1.0 / 3 : 1.0 / 6);
  }
  spec.leaf_switch.ports = 5;
  EXPECT_EQ(build_fat_tree(spec, servers).fabric, nullptr);
}

// Pods to spare.

TEST(Pods, that_no_server_needs_are_built_whole) {
  // Llama 3's 24,576 GPUs are 8 pods of 192 leaves, the job's 16,896 servers' GPUs fill 5.5.
  FabricSpec spec = llama_spec();
  spec.pods = 8;
  const auto f = must_build(spec, llama_servers());
  const FatTreeShape& t = f->shape<FatTreeShape>();
  EXPECT_EQ(t.leaves, 8 * 192);
  EXPECT_EQ(t.spines(), 64);
  // 8 pods x 8 spines x 55 = 3,520 cables; 5 cores would need 704 ports, 8 groups of one need 440.
  EXPECT_EQ(t.cores(), 8);
  EXPECT_EQ(f->host_count(), 2112u);
  EXPECT_EQ(f->pod_of(HostId(2111)), 5);
  EXPECT_EQ(f->name(f->vertex(VertexKind::leaf, 1535)), "pod-7/leaf-191");
  EXPECT_EQ(must_build(f->spec(), f->servers())->shape<FatTreeShape>(), t);
}

TEST(Rails, what_is_built_from_the_counts_as_built_is_the_same) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto f = any_fabric(random);
    const auto again = must_build(f->spec(), f->servers());
    EXPECT_EQ(f->shape<FatTreeShape>(), again->shape<FatTreeShape>());
    ASSERT_EQ(f->links().size(), again->links().size());
    for (std::size_t l = 0; l < f->links().size(); ++l) {
      EXPECT_EQ(f->links()[l].to, again->links()[l].to);
      EXPECT_EQ(f->links()[l].capacity, again->links()[l].capacity);
    }
  }
}

}  // namespace
}  // namespace trainyard::topologies
