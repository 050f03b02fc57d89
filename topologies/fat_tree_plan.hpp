#pragma once

#include <optional>

#include "sim/problem.hpp"
#include "topologies/fabric.hpp"

/// The arithmetic of a fat tree without its cables.
namespace trainyard::topologies {

/// The counts that follow from the input, or the problems that forbid it.
std::optional<FatTreeShape> plan_fat_tree(const FabricSpec&, const HostShape&, Problems&);

}  // namespace trainyard::topologies
