#include "topologies/catalog.hpp"

#include "sim/check.hpp"
#include "topologies/custom.hpp"
#include "topologies/dragonfly.hpp"
#include "topologies/torus.hpp"

namespace trainyard::topologies {

std::span<const Topology> catalog() {
  static constexpr Topology rows[] = {
      {FabricKind::fat_tree, "folded Clos of 2 or 3 tiers, oversubscription per tier",
       build_fat_tree},
      {FabricKind::rail_optimized, "fat tree with a leaf for each rail of a unit of servers",
       build_fat_tree},
      {FabricKind::rail_only, "rails without links between them: one leaf a rail, or with spines",
       build_fat_tree},
      {FabricKind::dragonfly, "groups of fully meshed routers with global links between them",
       build_dragonfly},
      {FabricKind::dragonfly_plus, "groups of leaves and spines with global links between spines",
       build_dragonfly_plus},
      {FabricKind::torus, "nodes in a grid of any dimension, closed around", build_torus},
      {FabricKind::custom, "any graph of switches, from GraphML, DOT or an edge list",
       build_custom},
  };
  return rows;
}

BuildResult build_fabric(const FabricSpec& spec, const HostShape& servers) {
  for (const Topology& row : catalog())
    if (row.kind == spec.kind) return row.build(spec, servers);
  check(false, "every kind of fabric has a row in the catalog");
  return {};
}

}  // namespace trainyard::topologies
