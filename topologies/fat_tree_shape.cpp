#include "topologies/fat_tree_shape.hpp"

namespace trainyard::topologies {

namespace {

std::string numbered(const char* what, int n) {
  return std::string(what) + '-' + std::to_string(n);
}

}  // namespace

std::size_t FatTreeShape::count(VertexKind kind) const {
  switch (kind) {
    case VertexKind::leaf:
      return static_cast<std::size_t>(leaves);
    case VertexKind::spine:
      return static_cast<std::size_t>(spines());
    case VertexKind::core:
      return static_cast<std::size_t>(cores());
    default:
      return 0;
  }
}

/// "pod-2/leaf-12" and, without pods, "leaf-12". With several leaves in a unit by unit and rail:
/// "pod-2/unit-1/leaf-4"; rail-only by rail and unit: "rail-4/leaf-1". The leaves of a NIC's two
/// ports are -4a and -4b.
std::string FatTreeShape::leaf_name(int leaf) const {
  const std::string pod = tiers == 3 ? numbered("pod", pod_of_leaf(leaf)) + '/' : "";
  const int in_pod = tiers == 3 ? leaf % leaves_per_pod : leaf;
  if (leaves_per_unit() == 1 && !is_rail_only) return pod + numbered("leaf", in_pod);
  const int pair = in_pod / ports_per_nic;
  const int per_outer = is_rail_only ? units() : rails;
  std::string text = pod + numbered(is_rail_only ? "rail" : "unit", pair / per_outer) + '/' +
                     numbered("leaf", pair % per_outer);
  if (ports_per_nic > 1) text += static_cast<char>('a' + leaf % ports_per_nic);
  return text;
}

std::string FatTreeShape::name(VertexKind kind, std::size_t index) const {
  const int i = static_cast<int>(index);
  switch (kind) {
    case VertexKind::leaf:
      return leaf_name(i);
    case VertexKind::spine:
      if (tiers < 3 && !is_rail_only) return numbered("spine", i);
      return numbered(is_rail_only ? "rail" : "pod", i / spines_per_pod) + '/' +
             numbered("spine", i % spines_per_pod);
    default:
      return numbered("core", i);
  }
}

int FatTreeShape::pod_of(VertexKind kind, std::size_t index) const {
  const int i = static_cast<int>(index);
  switch (kind) {
    case VertexKind::leaf:
      return pod_of_leaf(i);
    case VertexKind::spine:
      return i / spines_per_pod;
    default:
      return -1;
  }
}

}  // namespace trainyard::topologies
