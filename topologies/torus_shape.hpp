#pragma once

#include <string>
#include <vector>

#include "topologies/vertex.hpp"

namespace trainyard::topologies {

/// The counts of a torus: one router a node, neighbours in both directions of every dimension.
struct TorusShape {
  std::vector<int> dimensions;
  int nics_per_router = 0;
  int links_per_direction = 1;

  std::size_t count(VertexKind) const;
  std::string name(VertexKind, std::size_t index) const;
  int pod_of(VertexKind, std::size_t index) const;
  static constexpr VertexKind edge = VertexKind::router;

  bool operator==(const TorusShape&) const = default;
};

}  // namespace trainyard::topologies
