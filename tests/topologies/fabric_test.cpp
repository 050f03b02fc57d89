#include "topologies/fabric.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sim/check.hpp"
#include "tests/topologies/fabrics.hpp"

namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;

std::shared_ptr<const Fabric>
named_fabric() {  // pods of 3 leaves, spines in bundles of 2, 24 servers
  const SwitchSpec box = switch_of(64);
  FabricSpec spec{.tiers = 3,
                  .hosts_per_leaf = 2,
                  .leaves_per_pod = 3,
                  .uplinks_per_leaf = 4,
                  .spines = 2,
                  .uplinks_per_spine = 2,
                  .cores = 2,
                  .leaf_switch = box,
                  .spine_switch = box,
                  .core_switch = box};
  spec.cable_latency = Duration(150);
  spec.leaf_switch.latency = Duration(100);
  spec.spine_switch.latency = Duration(200);
  spec.core_switch.latency = Duration(400);
  return must_build(spec, {.hosts = 24, .gpus = 8, .nics = 4});
}

TEST(Fabric, names_say_where_a_thing_is) {
  const auto f = named_fabric();
  EXPECT_EQ(f->name(f->vertex(GpuId(17 * 8 + 3))), "node-17/gpu-3");
  EXPECT_EQ(f->name(f->vertex(NicId(17 * 4 + 2))), "node-17/nic-2");
  EXPECT_EQ(f->name(f->scale_up_switch(HostId(17))), "node-17/scale-up");
  EXPECT_EQ(f->name(f->edge_of(HostId(17))), "pod-2/leaf-2");  // leaf 8 of all
  EXPECT_EQ(f->name(f->vertex(VertexKind::spine, 5)), "pod-2/spine-1");
  EXPECT_EQ(f->name(f->vertex(VertexKind::core, 1)), "core-1");
  EXPECT_EQ(f->name(f->uplink(NicId(0))), "node-0/nic-0 -> pod-0/leaf-0");
  EXPECT_EQ(f->name(f->leaf_uplink(8, 3)), "pod-2/leaf-2 -> pod-2/spine-1 #1");
  EXPECT_EQ(f->name(Fabric::reverse(f->spine_uplink(5, 0))), "core-0 -> pod-2/spine-1");
  const auto flat = leaf_spine(4, 2, 2);
  EXPECT_EQ(flat->name(flat->leaf_uplink(3, 1)), "leaf-3 -> spine-1");
}

TEST(Fabric, names_are_unique_and_lead_back) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto f = any_fabric(random);
    for (std::size_t v = 0; v < f->vertex_count(); ++v)
      EXPECT_EQ(f->find_vertex(f->name(VertexId(v))), VertexId(v)) << f->name(VertexId(v));
    for (std::size_t l = 0; l < f->links().size(); ++l)
      EXPECT_EQ(f->find_link(f->name(LinkId(l))), LinkId(l)) << f->name(LinkId(l));
  }
}

TEST(Fabric, finds_nothing_under_a_wrong_name) {
  const auto f = named_fabric();
  for (const char* wrong :
       {"", "node-24/gpu-0", "node-0/gpu-8", "node-0/nic-4", "node-0", "leaf-1", "pod-4/leaf-0",
        "pod-0/leaf-3", "pod-0/leaf-03", "pod-0/leaf-", "pod-0/leaf-1x", "core-2", "storage-0",
        "core-99999999999999999999", "pod-0/leaf-0/spine-0"})
    EXPECT_FALSE(f->find_vertex(wrong)) << wrong;
  EXPECT_FALSE(f->find_link("pod-0/leaf-0 -> pod-1/spine-0 #0"));
  EXPECT_FALSE(f->find_link("pod-0/leaf-0 -> pod-0/spine-0"));  // which of the two?
  EXPECT_TRUE(f->find_link("pod-0/leaf-0 -> pod-0/spine-0 #0"));
}

TEST(Fabric, a_gpu_uses_the_nic_of_its_share) {
  const auto f = named_fabric();  // 8 GPUs, 4 NICs: pairs
  for (std::size_t i = 0; i < 8; ++i) {
    const GpuId g = f->gpu(HostId(5), i);
    EXPECT_EQ(f->nic_of(g), f->nic(HostId(5), i / 2));
    EXPECT_EQ(f->host_of(g), HostId(5));
    EXPECT_EQ(f->host_of(f->nic_of(g)), HostId(5));
  }
}

TEST(Fabric, a_scale_up_path_is_up_and_down) {
  const auto f = named_fabric();
  std::vector<LinkId> path;
  f->scale_up_path(GpuId(8), GpuId(11), path);
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(f->name(path[0]), "node-1/gpu-0 -> node-1/scale-up");
  EXPECT_EQ(f->name(path[1]), "node-1/scale-up -> node-1/gpu-3");
  EXPECT_DOUBLE_EQ(f->link(path[0]).capacity.value(), 450e9);
  f->scale_up_path(GpuId(8), GpuId(8), path);
  EXPECT_TRUE(path.empty());
  EXPECT_THROW(f->scale_up_path(GpuId(0), GpuId(8), path), CheckFailed);  // two servers
}

TEST(Fabric, the_graph_is_consistent) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto f = any_fabric(random);
    std::set<LinkId> seen;
    for (std::size_t v = 0; v < f->vertex_count(); ++v) {
      EXPECT_EQ(f->vertex(f->kind(VertexId(v)), f->index_in_kind(VertexId(v))), VertexId(v));
      for (const LinkId l : f->out_links(VertexId(v))) {
        EXPECT_EQ(f->link(l).from, VertexId(v));
        EXPECT_TRUE(seen.insert(l).second);
      }
    }
    EXPECT_EQ(seen.size(), f->links().size());
    for (std::size_t l = 0; l < f->links().size(); ++l) {
      const Link& one = f->link(LinkId(l));
      const Link& other = f->link(Fabric::reverse(LinkId(l)));
      EXPECT_EQ(one.from, other.to);
      EXPECT_EQ(one.to, other.from);
      EXPECT_EQ(one.capacity, other.capacity);
      // Kinds are numbered from the GPUs to the cores, so upward means to a later vertex … except
      // that storage ports and NICs are equals below the leaves, which this also says.
      EXPECT_EQ(Fabric::is_upward(LinkId(l)), one.from < one.to);
    }
    // A server's NICs and their ports: on the leaf of their unit, rail and port, and on no other.
    const FatTreeShape& t = f->shape<FatTreeShape>();
    std::map<VertexId, std::tuple<std::size_t, int, int>> on_leaf;
    for (std::size_t h = 0; h < f->host_count(); ++h)
      for (int n = 0; n < t.nics_per_host; ++n) {
        const NicId nic = f->nic(HostId(h), std::size_t(n));
        EXPECT_EQ(f->ports_of(nic), t.ports_per_nic);
        for (int port = 0; port < t.ports_per_nic; ++port) {
          const std::tuple place(h / std::size_t(t.hosts_per_leaf), n / (t.nics_per_host / t.rails),
                                 port);
          EXPECT_EQ(on_leaf.try_emplace(f->edge_of(nic, port), place).first->second, place);
          EXPECT_EQ(f->link(f->downlink(nic, port)).to, f->vertex(nic));
          EXPECT_DOUBLE_EQ(f->link(f->uplink(nic, port)).capacity.value(), 50e9 / t.ports_per_nic);
        }
      }
    std::set<std::tuple<std::size_t, int, int>> places;
    for (const auto& [leaf, place] : on_leaf) EXPECT_TRUE(places.insert(place).second);
  }
}

TEST(Fabric, a_path_counts_every_switch_and_long_cable_once) {
  const auto f = named_fabric();
  const auto latency = [&](LinkId l) { return f->link(l).latency.count(); };
  EXPECT_EQ(latency(f->uplink(NicId(0))), 0);
  EXPECT_EQ(latency(f->leaf_uplink(0, 0)), 100 + 150);
  EXPECT_EQ(latency(f->spine_uplink(0, 0)), 200 + 150);
  EXPECT_EQ(latency(Fabric::reverse(f->spine_uplink(0, 0))), 400 + 150);
  EXPECT_EQ(latency(Fabric::reverse(f->leaf_uplink(0, 0))), 200 + 150);
  EXPECT_EQ(latency(f->downlink(NicId(0))), 100);
}

TEST(LinkState, a_link_works_when_it_and_both_its_ends_do) {
  const auto f = leaf_spine(2, 2, 2);
  LinkState s(*f);
  const LinkId l = f->leaf_uplink(0, 1);
  const VertexId spine = f->link(l).to;
  EXPECT_TRUE(s.is_all_up());
  s.set_up(l, false);
  s.set_up(spine, false);
  s.set_up(spine, true);  // the switch returns, the broken link does not
  EXPECT_FALSE(s.is_up(l));
  EXPECT_TRUE(s.is_up(Fabric::reverse(l)));  // one direction
  EXPECT_EQ(s.capacity(l).value(), 0.0);
  s.set_up(l, true);
  s.set_up(l, true);  // saying it twice changes nothing
  EXPECT_TRUE(s.is_all_up());
  s.set_up(spine, false);
  for (const LinkId out : f->out_links(spine)) {
    EXPECT_FALSE(s.is_up(out));
    EXPECT_FALSE(s.is_up(Fabric::reverse(out)));
  }
  EXPECT_TRUE(s.is_up(f->leaf_uplink(0, 0)));
}

TEST(LinkState, a_degraded_link_is_slower_not_down) {
  const auto f = leaf_spine(2, 2, 2);
  LinkState s(*f);
  const LinkId l = f->leaf_uplink(0, 1);
  s.set_capacity_factor(l, 0.5);
  EXPECT_TRUE(s.is_all_up());
  EXPECT_DOUBLE_EQ(s.capacity(l).value(), 25e9);
  EXPECT_DOUBLE_EQ(s.capacity(Fabric::reverse(l)).value(), 50e9);
  EXPECT_THROW(s.set_capacity_factor(l, 0.0), CheckFailed);
}

}  // namespace
}  // namespace trainyard::topologies
