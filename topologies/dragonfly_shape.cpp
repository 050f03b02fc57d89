#include "topologies/dragonfly_shape.hpp"

namespace trainyard::topologies {

namespace {

std::string in_group(std::size_t index, int per_group, const char* what) {
  const auto n = static_cast<std::size_t>(per_group);
  return "group-" + std::to_string(index / n) + '/' + what + '-' + std::to_string(index % n);
}

}  // namespace

std::size_t DragonflyShape::count(VertexKind kind) const {
  return kind == VertexKind::router ? std::size_t(routers_per_group) * std::size_t(groups) : 0;
}

std::string DragonflyShape::name(VertexKind, std::size_t index) const {
  return in_group(index, routers_per_group, "router");
}

int DragonflyShape::pod_of(VertexKind, std::size_t index) const {
  return static_cast<int>(index) / routers_per_group;
}

std::size_t DragonflyPlusShape::count(VertexKind kind) const {
  if (kind == VertexKind::leaf) return std::size_t(leaves_per_group) * std::size_t(groups);
  if (kind == VertexKind::spine) return std::size_t(spines_per_group) * std::size_t(groups);
  return 0;
}

std::string DragonflyPlusShape::name(VertexKind kind, std::size_t index) const {
  return kind == VertexKind::leaf ? in_group(index, leaves_per_group, "leaf")
                                  : in_group(index, spines_per_group, "spine");
}

int DragonflyPlusShape::pod_of(VertexKind kind, std::size_t index) const {
  return static_cast<int>(index) / (kind == VertexKind::leaf ? leaves_per_group : spines_per_group);
}

}  // namespace trainyard::topologies
