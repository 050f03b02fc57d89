#pragma once

#include <optional>

#include "topologies/fat_tree.hpp"

/// An n-dimensional torus (k-ary n-cube; Dally 1990): one router a node, cabled to its two
/// neighbours in every dimension.
///
///     nodes               k1 k2 … kn               node = x1 + k1 (x2 + k2 (x3 + …))
///     ports of a router   NICs + 2 n links_per_direction
///     diameter            sum of floor(k/2)
///     bisection           2 N / k links each way, for the longest, even k
///
/// Consecutive NICs fill the nodes: NIC m is on node m / nics_per_router; default: the NICs of one
/// server. In a dimension of 2 both directions lead to the same neighbour: two cables.
///
///     FabricSpec spec{.kind = FabricKind::torus, .router_switch = …, .dimensions = {16, 16, 16}};
///     build_torus(spec, {.hosts = 4096, .gpus = 1, .nics = 1});   // a pod of 4,096 chips
///
/// Page: docs/models/torus.md.
namespace trainyard::topologies {

std::optional<TorusShape> plan_torus(const FabricSpec&, const HostShape&, Problems&);
BuildResult build_torus(const FabricSpec& spec, const HostShape& servers);

}  // namespace trainyard::topologies
