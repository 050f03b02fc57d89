#pragma once

#include <string>

#include "topologies/fabric_spec.hpp"
#include "topologies/vertex.hpp"

namespace trainyard::topologies {

/// The counts of a dragonfly (Kim et al. 2008).
struct DragonflyShape {
  int nics_per_router = 0;          // p
  int routers_per_group = 0;        // a
  int global_links_per_router = 0;  // h
  int groups = 0;                   // g
  int local_links = 1;              // parallel cables between two routers of a group
  Arrangement arrangement = Arrangement::absolute;

  std::size_t count(VertexKind) const;
  std::string name(VertexKind, std::size_t index) const;
  int pod_of(VertexKind, std::size_t index) const;
  static constexpr VertexKind edge = VertexKind::router;

  bool operator==(const DragonflyShape&) const = default;
};

/// The counts of a dragonfly+ (Shpiner et al. 2017): groups are leaf-spine networks.
struct DragonflyPlusShape {
  int hosts_per_leaf = 0;
  int leaves_per_group = 0;
  int spines_per_group = 0;
  int uplinks_per_leaf = 0;         // a multiple of spines_per_group
  int global_links_per_router = 0;  // of a spine
  int groups = 0;
  Arrangement arrangement = Arrangement::absolute;

  std::size_t count(VertexKind) const;
  std::string name(VertexKind, std::size_t index) const;
  int pod_of(VertexKind, std::size_t index) const;
  static constexpr VertexKind edge = VertexKind::leaf;

  bool operator==(const DragonflyPlusShape&) const = default;
};

}  // namespace trainyard::topologies
