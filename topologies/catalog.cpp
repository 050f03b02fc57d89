#include "topologies/catalog.hpp"

#include "sim/check.hpp"

namespace trainyard::topologies {

std::span<const Topology> catalog() {
  static constexpr Topology rows[] = {
      {FabricKind::fat_tree, "folded Clos of 2 or 3 tiers, oversubscription per tier",
       build_fat_tree},
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
