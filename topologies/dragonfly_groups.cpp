#include "topologies/dragonfly_groups.hpp"

#include <algorithm>

namespace trainyard::topologies {

namespace {

GlobalCables cables_of(const Fabric& f) {
  if (f.kind() == FabricKind::dragonfly_plus) {
    const auto& d = f.shape<DragonflyPlusShape>();
    return {d.groups, d.spines_per_group, d.global_links_per_router, d.arrangement};
  }
  const auto& d = f.shape<DragonflyShape>();
  return {d.groups, d.routers_per_group, d.global_links_per_router, d.arrangement};
}

std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

DragonflyGroups::DragonflyGroups(const Fabric& fabric)
    : fabric_(fabric), cables_(cables_of(fabric)) {
  std::size_t inner = 0;  // cables within groups
  if (fabric.kind() == FabricKind::dragonfly_plus) {
    const auto& d = fabric.shape<DragonflyPlusShape>();
    is_plus_ = true;
    edges_ = d.leaves_per_group;
    spines_ = d.spines_per_group;
    bundle_ = d.uplinks_per_leaf / d.spines_per_group;
    inner = d.count(VertexKind::leaf) * size(d.uplinks_per_leaf);
  } else {
    const auto& d = fabric.shape<DragonflyShape>();
    edges_ = d.routers_per_group;
    bundle_ = d.local_links;
    inner = size(d.groups) * (size(edges_) * size(edges_ - 1) / 2) * size(bundle_);
  }
  first_global_ = fabric.first_trunk().index() + 2 * inner;
}

DragonflyGroups::Place DragonflyGroups::place(NicId n) const {
  const int edge = static_cast<int>(fabric_.index_in_kind(fabric_.edge_of(n)));
  return {edge / edges_, edge % edges_};
}

DragonflyGroups::GlobalLink DragonflyGroups::global_link(int group, int other, int n) const {
  const GlobalCables::Cable c = cables_.cable(group, other, n);
  const int first_gateway = is_plus_ ? edges_ : 0;
  return {LinkId(first_global_ + 2 * c.index + (group < other ? 0 : 1)),
          first_gateway + c.router_here, first_gateway + c.router_there};
}

LinkId DragonflyGroups::local(int group, int a, int b, int n) const {
  const int low = std::min(a, b), high = std::max(a, b);
  const int pair = low * (2 * edges_ - low - 1) / 2 + (high - low - 1);
  const std::size_t pairs = size(edges_) * size(edges_ - 1) / 2;
  return LinkId(fabric_.first_trunk().index() +
                2 * ((size(group) * pairs + size(pair)) * size(bundle_) + size(n)) +
                (a < b ? 0 : 1));
}

LinkId DragonflyGroups::uplink(int group, int leaf, int spine, int n) const {
  const std::size_t leaves = size(group) * size(edges_) + size(leaf);
  const std::size_t up = size(spine) * size(bundle_) + size(n);
  return LinkId(fabric_.first_trunk().index() + 2 * (leaves * size(spines_ * bundle_) + up));
}

int DragonflyGroups::ways(int a, int b) const {
  if (a == b) return 1;
  if (!is_plus_ || (a < edges_) != (b < edges_)) return bundle_;
  return (a < edges_ ? spines_ : edges_) * bundle_ * bundle_;
}

DragonflyGroups::Way DragonflyGroups::way(int group, int a, int b, int n) const {
  if (a == b) return {{}, 0};
  if (!is_plus_) return {{local(group, a, b, n)}, 1};
  const bool is_up = a < edges_, is_down = b < edges_;
  if (is_up && !is_down) return {{uplink(group, a, b - edges_, n)}, 1};
  if (!is_up && is_down) return {{Fabric::reverse(uplink(group, b, a - edges_, n))}, 1};
  const int first = n % bundle_, second = n / bundle_ % bundle_, middle = n / bundle_ / bundle_;
  if (is_up)
    return {{uplink(group, a, middle, first), Fabric::reverse(uplink(group, b, middle, second))},
            2};
  return {{Fabric::reverse(uplink(group, middle, a - edges_, first)),
           uplink(group, middle, b - edges_, second)},
          2};
}

int DragonflyGroups::detours(int a, int b) const {
  return is_plus_ || a == b ? 0 : (edges_ - 2) * bundle_ * bundle_;
}

DragonflyGroups::Way DragonflyGroups::detour(int group, int a, int b, int n) const {
  const int first = n % bundle_, second = n / bundle_ % bundle_;
  int middle = n / bundle_ / bundle_;
  if (middle >= std::min(a, b)) ++middle;
  if (middle >= std::max(a, b)) ++middle;
  return {{local(group, a, middle, first), local(group, middle, b, second)}, 2};
}

}  // namespace trainyard::topologies
