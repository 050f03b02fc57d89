#include "models/failures/unit_names.hpp"

#include <gmock/gmock.h>

#include <set>

#include "tests/topologies/fabrics.hpp"
#include "topologies/catalog.hpp"

namespace trainyard::models {
namespace {

using namespace trainyard::literals;
using namespace topologies;
using namespace topologies::testing_fabrics;

UnitCounts counts_of(const Fabric& f) {
  return {.servers = std::int64_t(f.host_count()),
          .gpus_per_server = f.servers().gpus,
          .nics_per_server = f.servers().nics,
          .leaves = std::int64_t(f.edge_count()),
          .upper_switches = std::int64_t(f.switch_count() - f.edge_count()),
          .links = std::int64_t((f.links().size() - f.first_trunk().index()) / 2),
          .fabric = &f,
          .access_links = std::int64_t(f.nic_count()) * f.servers().ports_per_nic,
          .servers_per_rack = 3,
          .servers_per_pdu = 5,
          .servers_per_cdu = 7,
          .store_servers = {{"scratch", 3}, {"home", 1}}};
}

/// Every unit has a name of its own, and every name finds its unit.
void go_there_and_back(const UnitCounts& counts) {
  const UnitNames names(counts);
  std::set<std::string> seen;
  const auto check_all = [&](Component c, std::int64_t n, const std::string& store) {
    for (std::uint32_t u = 0; u < n; ++u) {
      const std::string name = unit_name(counts, c, u, store);
      EXPECT_TRUE(seen.insert(name).second) << name;
      const auto found = names.find(name);
      ASSERT_TRUE(found) << name;
      EXPECT_EQ(*found, (UnitRef{c, u, store})) << name;
    }
  };
  for (const auto& [component, text] : Names<Component>::all)
    if (component != Component::store_server) check_all(component, counts.of(component), "");
  for (const auto& [store, n] : counts.store_servers) check_all(Component::store_server, n, store);
}

struct Case {
  const char* name;
  FabricSpec spec;
  HostShape servers;
};
std::vector<Case> cases() {
  FabricSpec dual = rail_spec(FabricKind::rail_optimized, 2, 4);
  dual.dual_homed = true;
  FabricSpec bundles{
      .hosts_per_leaf = 8, .leaf_switch = switch_of(16), .spine_switch = switch_of(64)};
  FabricSpec storage = bundles;
  storage.leaf_switch = switch_of(32);
  FabricSpec tree{.tiers = 3,
                  .hosts_per_leaf = 4,
                  .leaf_switch = switch_of(8),
                  .spine_switch = switch_of(8),
                  .core_switch = switch_of(8)};
  FabricSpec torus{.kind = FabricKind::torus,
                   .routing = RoutingKind::minimal,
                   .nics_per_router = 4,
                   .router_switch = switch_of(16),
                   .dimensions = {2, 4}};
  FabricSpec dragonfly{.kind = FabricKind::dragonfly,
                       .routing = RoutingKind::minimal,
                       .nics_per_router = 2,
                       .routers_per_group = 4,
                       .global_links_per_router = 2,
                       .router_switch = switch_of(16)};
  return {{"dual_homed_rails", dual, {.hosts = 8, .gpus = 8, .nics = 8}},
          {"bundles", bundles, {.hosts = 64, .gpus = 2, .nics = 1}},
          {"storage", storage, {.hosts = 56, .gpus = 2, .nics = 1, .storage_ports = 8}},
          {"three_tiers", tree, {.hosts = 32, .gpus = 1, .nics = 1}},
          {"torus", torus, {.hosts = 8, .gpus = 4, .nics = 4}},
          {"dragonfly", dragonfly, {.hosts = 40, .gpus = 1, .nics = 1}}};
}

TEST(UnitNames, find_every_unit_of_every_fabric) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const BuildResult built = build_fabric(c.spec, c.servers);
    ASSERT_TRUE(built.fabric) << text(built.problems);
    go_there_and_back(counts_of(*built.fabric));
  }
}

TEST(UnitNames, find_every_unit_without_a_fabric) {
  UnitCounts counts{.servers = 10, .gpus_per_server = 8, .nics_per_server = 2, .leaves = 3};
  counts.upper_switches = 2;
  counts.links = 6;
  counts.access_links = 20;
  counts.servers_per_rack = 4;
  EXPECT_EQ(counts.of(Component::rack), 3);  // the last has two servers
  EXPECT_EQ(counts.of(Component::cdu), 0);
  EXPECT_EQ(counts.per_server(Component::access_link), 2);
  go_there_and_back(counts);
}

TEST(UnitNames, know_cables_by_both_directions) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const BuildResult built = build_fabric(c.spec, c.servers);
    ASSERT_TRUE(built.fabric) << text(built.problems);
    const Fabric& f = *built.fabric;
    const UnitNames names(counts_of(f));
    for (std::uint32_t u = 0; u < names.counts().links; ++u)
      EXPECT_EQ(names.find(f.name(Fabric::reverse(trunk(f, u)))), (UnitRef{Component::link, u}));
    for (std::uint32_t u = 0; u < names.counts().access_links; ++u) {
      const LinkId l = access_link(f, u);
      EXPECT_EQ(names.find(f.name(Fabric::reverse(l))), (UnitRef{Component::access_link, u}));
      EXPECT_EQ(f.link(l).kind, LinkKind::nic_leaf);
      EXPECT_TRUE(Fabric::is_upward(l));
    }
    for (std::size_t n = 0; n < f.nic_count(); ++n)
      for (const std::uint32_t u : access_links_of_nic(f, NicId(n))) {
        EXPECT_EQ(f.link(access_link(f, u)).from, f.vertex(NicId(n)));
        EXPECT_EQ(server_of_access_link(f, u), f.host_of(NicId(n)));
        EXPECT_EQ(std::int64_t(u) / names.counts().per_server(Component::access_link),
                  std::int64_t(f.host_of(NicId(n)).index()));
      }
    // Ports of storage and the links inside a server are no units.
    for (std::size_t l = 0; l < f.links().size(); ++l)
      if (f.link(LinkId(l)).kind == LinkKind::storage ||
          f.link(LinkId(l)).kind == LinkKind::nvlink) {
        EXPECT_FALSE(names.find(f.name(LinkId(l)))) << f.name(LinkId(l));
      }
  }
}

TEST(UnitNames, refuse_what_is_not_there_and_other_spellings) {
  const auto f = leaf_spine(2, 2, 2);
  const UnitCounts counts = counts_of(*f);
  EXPECT_EQ(find_unit(counts, "leaf-1"),
            find_unit(counts, unit_name(counts, Component::leaf_switch, 1)));
  for (const char* name : {"",
                           "node",
                           "node-",
                           "node-4",
                           "node-01",
                           "node-1/",
                           "node-1/gpu-1",
                           "node-1/gpu-00",
                           "node-1/scale-up",
                           "node--1",
                           "node-1 ",
                           "rack-2",
                           "rack-02",
                           "pdu-1",
                           "scratch",
                           "scratch/server-3",
                           "scratch/server-",
                           "tape/server-0",
                           "leaf-9",
                           "node-0/nic-0 -> leaf-9",
                           " -> ",
                           "node-0/nic-0 -> ",
                           "node-99999999999999999999"})
    EXPECT_FALSE(find_unit(counts, name)) << name;
  const std::string cable = unit_name(counts, Component::link, 0);
  EXPECT_TRUE(find_unit(counts, cable));
  EXPECT_FALSE(find_unit(counts, cable + " #0"));  // it has no twin
}

}  // namespace
}  // namespace trainyard::models
