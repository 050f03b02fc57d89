#include "topologies/fat_tree_ways.hpp"

#include "sim/check.hpp"

namespace trainyard::topologies {

FatTreeWays::FatTreeWays(const Fabric& fabric, NicId from, NicId to)
    : fabric_(&fabric), tree_(&fabric.shape<FatTreeShape>()), from_(from), to_(to) {
  const std::size_t nics = fabric.nic_count() + fabric.count(VertexKind::storage);
  check(from.index() < nics && to.index() < nics, "a route joins NICs of the fabric", from.index(),
        to.index());
  from_ports_ = fabric.ports_of(from);
  to_ports_ = fabric.ports_of(to);
  is_dual_ = from_ports_ > 1 || to_ports_ > 1;
  const std::size_t first = fabric.first_switch().index();  // the leaves come first
  const auto leaf = [&](NicId n, int port) {
    return static_cast<int>(fabric.edge_of(n, port).index() - first);
  };
  for (int p = 0; p < from_ports_; ++p) from_leaf_[std::size_t(p)] = leaf(from, p);
  for (int p = 0; p < to_ports_; ++p) to_leaf_[std::size_t(p)] = leaf(to, p);
  from_pod_ = tree_->pod_of_leaf(from_leaf_[0]);
  to_pod_ = tree_->pod_of_leaf(to_leaf_[0]);

  for (int p = 0; p < from_ports_; ++p)
    for (int q = 0; q < to_ports_; ++q)
      if (from_leaf(p) == to_leaf(q)) {
        shared_[std::size_t(p)] = q;
        top_ = Top::leaf;
      }
  if (top_ == Top::leaf) return;
  if (from_pod_ == to_pod_) {
    if (tree_->spines_per_pod > 0) top_ = Top::spine;
  } else if (tree_->cores() > 0) {
    top_ = Top::core;
  }
}

int FatTreeWays::places(Stage stage) const {
  switch (stage) {
    case leaf_up:
      return from_ports_;
    case leaf_down:
      return to_ports_;
    case spine_up:
      return top_ == Top::core ? tree_->spines_per_pod : 0;
    case core:
      return top_ == Top::core ? tree_->cores() : 0;
    case spine_down:
      return top_ == Top::leaf ? 0 : tree_->spines_per_pod;
    default:
      return 1;
  }
}

int FatTreeWays::hops(Place at) const {
  switch (at.stage) {
    case nic:
      return top_ == Top::none ? 0 : from_ports_;
    case leaf_up: {
      const bool is_joined = port_below(at.index) >= 0;
      if (top_ == Top::leaf) return is_joined ? 1 : 0;
      return tree_->uplinks_per_leaf + (shows_short_cuts_ && is_joined ? 1 : 0);
    }
    case spine_up:
      return tree_->uplinks_per_spine;
    case core:
      return tree_->spines_per_group() * tree_->core_bundle;
    case spine_down:
      return to_ports_ * tree_->leaf_bundle;
    case leaf_down:
      return 1;
    case end:
      break;
  }
  return 0;
}

FatTreeWays::Hop FatTreeWays::hop(Place at, int i) const {
  const FatTreeShape& t = *tree_;
  const int spines = t.spines_per_pod;
  switch (at.stage) {
    case nic:
      return {fabric_->uplink(from_, i), {leaf_up, i}};
    case leaf_up:
      if (top_ == Top::leaf || i == t.uplinks_per_leaf)
        return {fabric_->downlink(to_, port_below(at.index)), {end, 0}};
      return {fabric_->leaf_uplink(from_leaf(at.index), i),
              {top_ == Top::core ? spine_up : spine_down, i / t.leaf_bundle}};
    case spine_up: {
      const int group = at.index % t.core_groups;
      return {fabric_->spine_uplink(from_pod_ * spines + at.index, i),
              {core, group * t.cores_per_group + i / t.core_bundle}};
    }
    case core: {
      const int in_pod = at.index / t.cores_per_group + t.core_groups * (i / t.core_bundle);
      const int uplink = at.index % t.cores_per_group * t.core_bundle + i % t.core_bundle;
      return {Fabric::reverse(fabric_->spine_uplink(to_pod_ * spines + in_pod, uplink)),
              {spine_down, in_pod}};
    }
    case spine_down: {
      const int port = i / t.leaf_bundle;
      const int uplink = at.index * t.leaf_bundle + i % t.leaf_bundle;
      return {Fabric::reverse(fabric_->leaf_uplink(to_leaf(port), uplink)), {leaf_down, port}};
    }
    case leaf_down:
      return {fabric_->downlink(to_, at.index), {end, 0}};
    case end:
      break;
  }
  check(false, "a route ends at its NIC");
  return {};
}

}  // namespace trainyard::topologies
