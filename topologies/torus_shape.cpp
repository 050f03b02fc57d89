#include "topologies/torus_shape.hpp"

namespace trainyard::topologies {

std::size_t TorusShape::count(VertexKind kind) const {
  if (kind != VertexKind::router) return 0;
  std::size_t nodes = 1;
  for (const int d : dimensions) nodes *= static_cast<std::size_t>(d);
  return nodes;
}

/// By coordinates, the first dimension first and fastest: "router-3-0-7".
std::string TorusShape::name(VertexKind, std::size_t index) const {
  std::string text = "router";
  for (const int d : dimensions) {
    text += '-' + std::to_string(index % static_cast<std::size_t>(d));
    index /= static_cast<std::size_t>(d);
  }
  return text;
}

int TorusShape::pod_of(VertexKind, std::size_t) const {
  return -1;
}

}  // namespace trainyard::topologies
