#pragma once

#include <memory>

#include "sim/problem.hpp"
#include "topologies/fabric.hpp"

/// A folded Clos network ("fat tree") of 2 or 3 tiers: Leiserson 1985, Al-Fares et al. 2008.
///
///     2 tiers   servers – leaves – spines                every leaf to every spine
///     3 tiers   servers – leaves – spines – cores        every leaf to every spine of its pod,
///                                                        spine j of each pod to core group j mod q
///
/// Oversubscription of a switch is downlink rate : uplink rate. From a ratio r the uplinks follow,
///
///     uplinks = nearest whole number to  down * down_rate / (r * up_rate),   at least 1,
///
/// and the ratio as built is what measure() reports; more than 10 % off what was asked is refused.
/// What is left open is chosen so that ports are filled: the fewest spines and cores that have the
/// ports (parallel cables then form bundles), and pods as large as their spines allow.
///
///     FabricSpec spec{.tiers = 3, .hosts_per_leaf = 2, .leaves_per_pod = 192,
///                     .spine_oversubscription = 7, …};
///     BuildResult r = build_fat_tree(spec, {.hosts = 2112});
///     for (const Problem& p : r.problems) …   // path, what is wrong, what would be right
///
/// Rail-optimised and rail-only fabrics are built here too: their leaves serve one rail of a unit
/// of servers (fat_tree_shape.hpp).
///
/// Rules: docs/models/fat-tree.md, docs/models/rails.md.
namespace trainyard::topologies {

struct BuildResult {
  std::shared_ptr<const Fabric> fabric;  // null if there are problems
  Problems problems;                     // paths within FabricSpec; "server.…" is in HostShape
};

/// Of kind fat_tree, rail_optimized or rail_only.
BuildResult build_fat_tree(const FabricSpec& spec, const HostShape& servers);

}  // namespace trainyard::topologies
