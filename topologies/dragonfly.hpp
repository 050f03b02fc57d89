#pragma once

#include "topologies/fat_tree.hpp"

/// Dragonfly (Kim, Dally, Scott, Abts 2008): groups of routers, each router cabled to all others of
/// its group and by h global links to other groups; p NICs, a routers a group, g groups. And
/// dragonfly+ (Shpiner et al. 2017): a group is a leaf-spine network whose spines hold the global
/// links.
///
///     NICs                p a g                     consecutive NICs fill a router: NIC n is on
///     n/p ports of a router   p + (a-1) local + h groups              g <= a h + 1 fewer: parallel
///     global links, spread evenly balanced            a = 2 p = 2 h             (Kim et al.: local
///     links carry twice as much)
///
/// Which router has the link to which group: dragonfly_cables.hpp. What is not given is derived:
/// from one or two of p, a, h the others by balance, from none the largest balanced ones that the
/// router's ports allow; g as many as the servers need.
///
///     FabricSpec spec{.kind = FabricKind::dragonfly, .nics_per_router = 4, .routers_per_group = 8,
///                     .global_links_per_router = 4, .groups = 33, .router_switch = …};
///     build_dragonfly(spec, {.hosts = 1056, .gpus = 1, .nics = 1});   // 264 routers
///
/// Page: docs/models/dragonfly.md.
namespace trainyard::topologies {

BuildResult build_dragonfly(const FabricSpec& spec, const HostShape& servers);
BuildResult build_dragonfly_plus(const FabricSpec& spec, const HostShape& servers);

}  // namespace trainyard::topologies
