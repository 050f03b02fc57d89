#include "models/network/fabric_paths.hpp"

#include <gmock/gmock.h>

#include <map>

#include "topologies/catalog.hpp"

namespace trainyard::models {
namespace {

using namespace topologies;

constexpr double rate = 50e9;

SwitchSpec box(int ports) {
  return {
      .name = "box", .ports = ports, .port_rate = BytesPerSecond(rate), .latency = Duration(350)};
}

std::shared_ptr<const Fabric> build(FabricSpec spec, const HostShape& servers, int ports = 64) {
  spec.leaf_switch = spec.spine_switch = spec.core_switch = spec.router_switch = box(ports);
  const BuildResult r = build_fabric(spec, servers);
  EXPECT_TRUE(r.fabric) << (r.problems.empty() ? "" : r.problems[0].what);
  return r.fabric;
}

/// Two leaves of two servers with two GPUs and NICs each, four spines.
std::shared_ptr<const Fabric> small_tree() {
  return build({.hosts_per_leaf = 2, .uplinks_per_leaf = 4, .spines = 4},
               {.hosts = 4, .gpus = 2, .nics = 2});
}

std::map<std::string, double> by_name(const Fabric& fabric, LoadAccumulator& loads) {
  std::map<std::string, double> out;
  for (const auto& [link, weight] : loads.take()) out[fabric.name(LinkId(link.index()))] = weight;
  return out;
}

std::vector<Member> members(const Fabric& fabric, std::size_t servers, std::size_t per_node) {
  std::vector<Member> out;
  for (std::size_t s = 0; s < servers; ++s)
    for (std::size_t g = 0; g < per_node; ++g) {
      const GpuId gpu = fabric.gpu(HostId(s), g);
      out.push_back({gpu.index(), fabric.nic_of(gpu).index(), s});
    }
  return out;
}

TEST(FabricPaths, a_connection_of_several_queue_pairs_is_one_flow_in_all) {
  const auto fabric = small_tree();
  const Router router(*fabric, RoutingKind::ecmp, 1, 8);
  const FabricPaths paths(router);
  LoadAccumulator loads;
  paths.add_path(0, 4, 7, 3, loads);  // node-0/nic-0 to node-2/nic-0
  const auto load = by_name(*fabric, loads);
  EXPECT_DOUBLE_EQ(load.at("node-0/nic-0 -> leaf-0"), 3);
  EXPECT_DOUBLE_EQ(load.at("leaf-1 -> node-2/nic-0"), 3);
  double up = 0;
  for (const auto& [name, weight] : load)
    if (name.starts_with("leaf-0 -> spine")) up += weight;
  EXPECT_DOUBLE_EQ(up, 3);
}

TEST(FabricPaths, inside_a_server_it_is_the_sender_up_and_the_receiver_down) {
  const auto fabric = small_tree();
  const Router router(*fabric, RoutingKind::ecmp, 1, 1);
  LoadAccumulator loads;
  FabricPaths(router).add_scale_up(0, 1, 2, loads);
  EXPECT_THAT(by_name(*fabric, loads),
              testing::UnorderedElementsAre(testing::Pair("node-0/gpu-0 -> node-0/scale-up", 2),
                                            testing::Pair("node-0/scale-up -> node-0/gpu-1", 2)));
}

TEST(FabricPaths, a_switch_that_reduces_takes_and_gives_to_each) {
  const auto fabric = small_tree();
  const Router router(*fabric, RoutingKind::ecmp, 1, 1);
  LoadAccumulator loads;
  const std::vector<std::size_t> gpus{0, 1};
  FabricPaths(router).add_scale_up_switch(gpus, 1, 0.5, loads);
  const auto load = by_name(*fabric, loads);
  EXPECT_EQ(load.size(), 4u);
  EXPECT_DOUBLE_EQ(load.at("node-0/gpu-1 -> node-0/scale-up"), 1);
  EXPECT_DOUBLE_EQ(load.at("node-0/scale-up -> node-0/gpu-1"), 0.5);
}

// The twin: without the count by pairs of leaves. A degraded cable switches it off, and spraying
// does not look at capacities, so the loads must be the same.
TEST(FabricPaths, counting_by_leaf_pairs_changes_nothing) {
  const auto fabric = build({.tiers = 3, .hosts_per_leaf = 2, .leaf_oversubscription = 1.0},
                            {.hosts = 32, .gpus = 4, .nics = 4}, 16);
  Router plain(*fabric, RoutingKind::spray, 1, 1);
  plain.change([](LinkState& s) { s.set_capacity_factor(LinkId(0), 0.5); });
  const Router counted(*fabric, RoutingKind::spray, 1, 1);
  ASSERT_TRUE(counted.treats_neighbours_alike());
  const std::vector<Member> group = members(*fabric, 32, 4);
  for (const auto algorithm : {CollectiveAlgorithm::direct, CollectiveAlgorithm::ring}) {
    const auto kind = algorithm == CollectiveAlgorithm::direct ? CollectiveKind::all_to_all
                                                               : CollectiveKind::all_reduce;
    const PhasedPlan a = FabricPaths(counted).plan(kind, algorithm, 1e6, group, {});
    const PhasedPlan b = FabricPaths(plain).plan(kind, algorithm, 1e6, group, {});
    ASSERT_EQ(a.phases.size(), b.phases.size());
    for (std::size_t s = 0; s < a.phases[0].plan.streams.size(); ++s) {
      const auto &x = a.phases[0].plan.streams[s].loads, &y = b.phases[0].plan.streams[s].loads;
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(x[i].link, y[i].link);
        EXPECT_NEAR(x[i].weight, y[i].weight, 1e-9 * y[i].weight);
      }
    }
  }
}

TEST(FabricPaths, a_rail_that_is_not_wired_is_reached_inside_the_server) {
  const auto fabric = build({.kind = FabricKind::rail_only, .hosts_per_leaf = 4},
                            {.hosts = 4, .gpus = 2, .nics = 2});
  const Router router(*fabric, RoutingKind::ecmp, 1, 1);
  ASSERT_FALSE(router.is_wired(NicId(0), NicId(3)));
  const FabricPaths paths(router);
  LoadAccumulator loads;
  paths.add_path(0, 3, 0, 1, loads);  // rail 0 of node-0 to rail 1 of node-1
  const auto load = by_name(*fabric, loads);
  EXPECT_DOUBLE_EQ(load.at("node-0/gpu-0 -> node-0/scale-up"), 1);
  EXPECT_DOUBLE_EQ(load.at("node-0/scale-up -> node-0/gpu-1"), 1);
  EXPECT_EQ(load.size(), 4u);  // and NIC 1 to its leaf, and down
  EXPECT_FALSE(paths.no_path());
}

TEST(FabricPaths, the_first_pair_without_a_path_is_told) {
  const auto fabric = small_tree();
  Router router(*fabric, RoutingKind::spray, 1, 1);
  router.change([&](LinkState& s) { s.set_up(*fabric->find_vertex("leaf-1"), false); });
  const FabricPaths paths(router);
  LoadAccumulator loads;
  paths.add_path(0, 2, 0, 1, loads);
  EXPECT_FALSE(paths.no_path());  // both on leaf 0
  paths.add_path(1, 6, 0, 1, loads);
  paths.add_path(0, 4, 0, 1, loads);
  ASSERT_TRUE(paths.no_path());
  EXPECT_EQ(paths.no_path()->from, NicId(1));
  EXPECT_EQ(paths.no_path()->to, NicId(6));
}

TEST(FabricPaths, capacities_by_kind_of_link) {
  const auto fabric = small_tree();
  Router router(*fabric, RoutingKind::ecmp, 1, 1);
  const LinkId up = fabric->uplink(NicId(0)), trunk = fabric->leaf_uplink(0, 0);
  router.set_up(trunk, false);
  const auto c = FabricPaths(router).capacities({.scale_up = 0.8, .adapters = 0.9, .fabric = 0.5});
  EXPECT_DOUBLE_EQ(c[0], 0.8 * fabric->servers().scale_up_rate.value());
  EXPECT_DOUBLE_EQ(c[up.index()], 0.9 * rate);
  EXPECT_DOUBLE_EQ(c[trunk.index()], 0);
  EXPECT_DOUBLE_EQ(c[fabric->leaf_uplink(0, 1).index()], 0.5 * rate);
}

TEST(FabricPaths, a_permutation_sends_to_the_rank_half_way_round) {
  const auto fabric = small_tree();
  const Router router(*fabric, RoutingKind::spray, 1, 1);
  const FabricPaths paths(router);
  const std::vector<Member> group = members(*fabric, 4, 2);
  const PhasedPlan plan = paths.plan_permutation(1e9, group, {});
  ASSERT_EQ(plan.phases.size(), 1u);
  EXPECT_EQ(plan.phases[0].plan.streams.size(), 8u);
  // Four flows leave each leaf over four uplinks, one for each adapter: the adapter's rate.
  EXPECT_NEAR(time_alone_s(plan, paths.capacities({})), 1e9 / rate, 1e-12);
}

struct TreeLinks {
  std::size_t adapters = 0, trunks = 0;
};
TreeLinks count(const Fabric& fabric, LoadAccumulator& loads, double weight) {
  TreeLinks out;
  for (const auto& [link, w] : loads.take()) {
    EXPECT_DOUBLE_EQ(w, weight);
    ++(fabric.link(LinkId(link.index())).kind == LinkKind::nic_leaf ? out.adapters : out.trunks);
  }
  return out;
}

TEST(ReductionTree, of_two_tiers_has_one_cable_a_leaf_in_both_directions) {
  const auto fabric = small_tree();
  const Router router(*fabric, RoutingKind::ecmp, 1, 1);
  const FabricPaths paths(router);
  LoadAccumulator loads;
  ASSERT_TRUE(paths.add_reduction_tree(std::vector<std::size_t>{0, 2}, 5, 1, loads));
  EXPECT_EQ(count(*fabric, loads, 1).trunks, 0u);  // one leaf
  ASSERT_TRUE(paths.add_reduction_tree(std::vector<std::size_t>{0, 2, 4, 6}, 5, 2, loads));
  const TreeLinks tree = count(*fabric, loads, 2);
  EXPECT_EQ(tree.adapters, 8u);
  EXPECT_EQ(tree.trunks, 4u);
}

TEST(ReductionTree, of_three_tiers_meets_in_a_spine_of_the_pod_or_in_a_core) {
  const auto fabric = build({.tiers = 3, .hosts_per_leaf = 2, .leaf_oversubscription = 1.0},
                            {.hosts = 8, .gpus = 1, .nics = 1}, 4);
  ASSERT_EQ(fabric->pod_of(HostId(3)), fabric->pod_of(HostId(0)));
  ASSERT_NE(fabric->pod_of(HostId(4)), fabric->pod_of(HostId(0)));
  const Router router(*fabric, RoutingKind::ecmp, 1, 1);
  const FabricPaths paths(router);
  LoadAccumulator loads;
  ASSERT_TRUE(paths.add_reduction_tree(std::vector<std::size_t>{0, 3}, 1, 1, loads));
  EXPECT_EQ(count(*fabric, loads, 1).trunks, 4u);  // two leaves, one spine
  for (std::uint64_t label = 0; label < 8; ++label) {
    ASSERT_TRUE(paths.add_reduction_tree(std::vector<std::size_t>{0, 3, 4, 7}, label, 1, loads));
    EXPECT_EQ(count(*fabric, loads, 1).trunks, 12u) << label;  // 4 leaves and 2 spines, both ways
  }
}

TEST(ReductionTree, avoids_what_is_down_and_gives_up_when_nothing_is_left) {
  const auto fabric = small_tree();
  Router router(*fabric, RoutingKind::ecmp, 1, 1);
  const FabricPaths paths(router);
  const std::vector<std::size_t> nics{0, 4};
  for (int spine = 0; spine < 4; ++spine) {
    LoadAccumulator loads;
    ASSERT_TRUE(paths.add_reduction_tree(nics, 0, 1, loads)) << spine;
    for (const auto& [link, weight] : loads.take())
      EXPECT_TRUE(router.state().is_up(LinkId(link.index())));
    router.set_up(fabric->leaf_uplink(1, spine), false);
  }
  LoadAccumulator loads;
  EXPECT_FALSE(paths.add_reduction_tree(nics, 0, 1, loads));
  EXPECT_TRUE(loads.take().empty());
}

TEST(ReductionTree, of_dual_homed_adapters_has_half_on_each_port) {
  const auto fabric = build({.hosts_per_leaf = 4, .dual_homed = true, .leaf_oversubscription = 1.0},
                            {.hosts = 8, .gpus = 1, .nics = 1});
  const Router router(*fabric, RoutingKind::ecmp, 1, 1);
  LoadAccumulator loads;
  ASSERT_TRUE(FabricPaths(router).add_reduction_tree(std::vector<std::size_t>{0, 7}, 0, 1, loads));
  const TreeLinks tree = count(*fabric, loads, 0.5);
  EXPECT_EQ(tree.adapters, 8u);  // two adapters, two ports, both ways
  EXPECT_EQ(tree.trunks, 8u);
}

TEST(ReductionTree, other_fabrics_have_none) {
  const auto torus =
      build({.kind = FabricKind::torus, .dimensions = {2, 2}}, {.hosts = 4, .gpus = 1, .nics = 1});
  const Router router(*torus, RoutingKind::minimal, 1, 1);
  LoadAccumulator loads;
  EXPECT_FALSE(FabricPaths(router).add_reduction_tree(std::vector<std::size_t>{0, 1}, 0, 1, loads));
}

}  // namespace
}  // namespace trainyard::models
