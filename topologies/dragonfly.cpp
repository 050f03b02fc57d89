#include "topologies/dragonfly.hpp"

#include <utility>

#include "sim/check.hpp"
#include "topologies/dragonfly_cables.hpp"
#include "topologies/dragonfly_plan.hpp"
#include "topologies/server_side.hpp"

namespace trainyard::topologies {

namespace {

/// Global cables in the order of their index; `first` is the first switch that holds some.
void lay_global(std::vector<Link>& links, const GlobalCables& cables, std::size_t first,
                std::size_t per_group, const SwitchSpec& box, Duration cable_latency) {
  std::vector<std::pair<std::size_t, std::size_t>> ends(cables.count());
  for (int i = 0; i < cables.groups(); ++i)
    for (int j = i + 1; j < cables.groups(); ++j)
      for (int n = 0; n < cables.between(i, j); ++n) {
        const GlobalCables::Cable c = cables.cable(i, j, n);
        ends[c.index] = {first + std::size_t(i) * per_group + std::size_t(c.router_here),
                         first + std::size_t(j) * per_group + std::size_t(c.router_there)};
      }
  const Duration delay = box.latency + cable_latency;
  for (const auto& [from, to] : ends)
    lay(links, {from, to, box.port_rate, delay, delay, LinkKind::global, 3});
}

}  // namespace

BuildResult build_dragonfly(const FabricSpec& spec, const HostShape& servers_asked) {
  BuildResult result;
  HostShape servers = servers_asked;
  servers.ports_per_nic = 1;
  const auto d = plan_dragonfly(spec, servers, result.problems);
  if (!d) {
    check(!result.problems.empty(), "a fabric that is refused is refused for a reason");
    return result;
  }
  FabricSpec built = spec;
  built.nics_per_router = d->nics_per_router;
  built.routers_per_group = d->routers_per_group;
  built.global_links_per_router = d->global_links_per_router;
  built.groups = d->groups;
  built.local_links = d->local_links;
  built.arrangement = d->arrangement;

  const SwitchSpec& box = spec.router_switch;
  const std::size_t routers = d->count(VertexKind::router);
  const std::size_t first = first_switch_of(servers);
  const Duration delay = box.latency + spec.cable_latency;
  std::vector<Link> links;
  lay_server_cables(links, servers, box.latency, routers,
                    [&](std::size_t nic) { return nic / std::size_t(d->nics_per_router); });
  const std::size_t a = std::size_t(d->routers_per_group);
  for (std::size_t group = 0; group < std::size_t(d->groups); ++group)
    for (std::size_t i = 0; i < a; ++i)
      for (std::size_t j = i + 1; j < a; ++j)
        for (int n = 0; n < d->local_links; ++n)
          lay(links, {first + group * a + i, first + group * a + j, box.port_rate, delay, delay,
                      LinkKind::local, 2});
  lay_global(
      links,
      GlobalCables(d->groups, d->routers_per_group, d->global_links_per_router, d->arrangement),
      first, a, box, spec.cable_latency);
  result.fabric = std::make_shared<const Fabric>(*d, std::move(built), servers, std::move(links));
  return result;
}

BuildResult build_dragonfly_plus(const FabricSpec& spec, const HostShape& servers_asked) {
  BuildResult result;
  HostShape servers = servers_asked;
  servers.ports_per_nic = 1;
  const auto d = plan_dragonfly_plus(spec, servers, result.problems);
  if (!d) {
    check(!result.problems.empty(), "a fabric that is refused is refused for a reason");
    return result;
  }
  FabricSpec built = spec;
  built.hosts_per_leaf = d->hosts_per_leaf;
  built.leaves_per_group = d->leaves_per_group;
  built.spines_per_group = d->spines_per_group;
  built.leaf_oversubscription.reset();
  built.uplinks_per_leaf = d->uplinks_per_leaf;
  built.global_links_per_router = d->global_links_per_router;
  built.groups = d->groups;
  built.arrangement = d->arrangement;

  const std::size_t leaves = d->count(VertexKind::leaf);
  const std::size_t first = first_switch_of(servers);
  const std::size_t leaves_per_group = std::size_t(d->leaves_per_group);
  const std::size_t spines_per_group = std::size_t(d->spines_per_group);
  const std::size_t bundle = std::size_t(d->uplinks_per_leaf) / spines_per_group;
  const std::size_t nics_per_leaf = std::size_t(d->hosts_per_leaf) * std::size_t(servers.nics);
  std::vector<Link> links;
  lay_server_cables(links, servers, spec.leaf_switch.latency, leaves,
                    [&](std::size_t nic) { return nic / nics_per_leaf; });
  for (std::size_t leaf = 0; leaf < leaves; ++leaf)
    for (std::size_t u = 0; u < std::size_t(d->uplinks_per_leaf); ++u) {
      const std::size_t spine = leaf / leaves_per_group * spines_per_group + u / bundle;
      lay(links, {first + leaf, first + leaves + spine, leaf_spine_rate(spec),
                  spec.leaf_switch.latency + spec.cable_latency,
                  spec.spine_switch.latency + spec.cable_latency, LinkKind::leaf_spine, 2});
    }
  lay_global(
      links,
      GlobalCables(d->groups, d->spines_per_group, d->global_links_per_router, d->arrangement),
      first + leaves, spines_per_group, spec.spine_switch, spec.cable_latency);
  result.fabric = std::make_shared<const Fabric>(*d, std::move(built), servers, std::move(links));
  return result;
}

}  // namespace trainyard::topologies
