#pragma once

#include <span>
#include <string_view>

#include "topologies/fat_tree.hpp"

/// Every topology that can be built, one row each.
namespace trainyard::topologies {

struct Topology {
  FabricKind kind;
  std::string_view summary;
  BuildResult (*build)(const FabricSpec&, const HostShape&);
};

std::span<const Topology> catalog();

/// Builds what spec.kind names.
BuildResult build_fabric(const FabricSpec& spec, const HostShape& servers);

}  // namespace trainyard::topologies
