#pragma once

#include <optional>

#include "sim/problem.hpp"
#include "topologies/fabric.hpp"

namespace trainyard::topologies {

/// All counts, or nothing and at least one problem.
std::optional<DragonflyShape> plan_dragonfly(const FabricSpec&, const HostShape&, Problems&);
std::optional<DragonflyPlusShape> plan_dragonfly_plus(const FabricSpec&, const HostShape&,
                                                      Problems&);

/// Rate of a link between a leaf and a spine of a dragonfly+.
BytesPerSecond leaf_spine_rate(const FabricSpec&);

}  // namespace trainyard::topologies
