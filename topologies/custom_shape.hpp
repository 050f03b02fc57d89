#pragma once

#include <string>
#include <vector>

#include "topologies/vertex.hpp"

namespace trainyard::topologies {

/// A fabric from a file: its switches by name, in the order of the file.
struct CustomShape {
  std::vector<std::string> switches;

  std::size_t count(VertexKind) const;
  std::string name(VertexKind, std::size_t index) const;
  int pod_of(VertexKind, std::size_t index) const;
  static constexpr VertexKind edge = VertexKind::router;

  bool operator==(const CustomShape&) const = default;
};

}  // namespace trainyard::topologies
