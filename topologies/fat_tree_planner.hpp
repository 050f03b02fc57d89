#pragma once

#include <string>
#include <vector>

#include "topologies/fat_tree_counts.hpp"
#include "topologies/fat_tree_plan.hpp"

/// Inside fat_tree_plan.cpp and fat_tree_plan_pods.cpp only.
namespace trainyard::topologies::planning {

using Count = std::int64_t;

inline std::string ratio_text(double ratio) {
  return text(ratio) + ":1";
}
/// "2", or "2 or 4".
inline std::string either(Count a, Count b) {
  if (a < 1 || a == b) return text(b);
  return b < 1 ? text(a) : text(a) + " or " + text(b);
}

/// The uplinks of a leaf: of one rate, or of several in turn.
class Uplinks {
 public:
  explicit Uplinks(const FabricSpec&);
  Count pattern() const { return static_cast<Count>(rates_.size()); }
  double rate(Count n) const;  // of the first n together, bytes per second
  /// Ports of one box that n uplinks from number `first` on occupy, each `times` times.
  Count ports(const SwitchSpec& box, Count first, Count n, Count times) const;
  Count most_links_per_port(const SwitchSpec& box) const;

 private:
  std::vector<BytesPerSecond> rates_;
};

class Planner {
 public:
  Planner(const FabricSpec& spec, const HostShape& servers, Problems& problems);
  std::optional<FatTreeShape> plan();

 private:
  std::nullopt_t refuse(std::string path, std::string what, std::string right) {
    problems_.push_back({std::move(path), std::move(what), std::move(right)});
    return std::nullopt;
  }

  // Each false if it refused.
  bool plan_leaf();
  bool plan_lone_unit();
  bool plan_spines();
  bool plan_pod();    // fat_tree_plan_pods.cpp
  bool plan_pods();   // there too
  bool plan_cores();  // there too
  FatTreeShape shape() const;

  // Leaf arithmetic. "Hosts" are servers of a leaf or unit.
  Count leaves_of_unit() const { return rails_ * nic_ports_; }
  Count links_of_host() const { return servers_.nics / rails_; }  // to one leaf
  Count down_ports(Count hosts) const;
  double leaf_ratio(Count hosts, Count uplinks) const;
  Nearest leaf_uplinks(Count hosts) const;
  Count up_ports(Count uplinks) const { return up_.ports(spec_.leaf_switch, 0, uplinks, 1); }
  bool refuse_leaf_ports();

  // Spine arithmetic; `leaves` under one set of `spines`.
  Count spine_down_ports(Count leaves, Count spines) const;
  double spine_ratio(Count leaves, Count spines, Count uplinks) const;
  Nearest spine_uplinks(Count leaves, Count spines) const;
  Count spine_up_ports(Count uplinks) const {
    return ports_for(uplinks, spec_.spine_switch.port_rate, to_core_);
  }
  bool spine_fits(Count leaves, Count spines) const;
  Count most_leaves_per_spine() const;  // whole units, however cabled
  Count most_leaves_per_pod(Count spines) const;
  Count hosts_of(Count leaves) const { return leaves / unit_in_pod_ * hosts_per_leaf_; }

  // Core arithmetic.
  static Count core_groups(Count spines, Count uplinks, Count cores);
  Count core_ports(Count cores) const;

  const FabricSpec& spec_;
  const HostShape& servers_;
  Problems& problems_;
  Uplinks up_;
  BytesPerSecond to_core_;  // rate of one spine-to-core link
  bool is_rail_only_;
  int tiers_ = 2;
  int hosts_per_leaf_ = 0;
  Count rails_ = 1;
  Count nic_ports_ = 1;
  Count unit_in_pod_ = 1;  // leaves of one unit in one pod
  Count units_ = 0;
  Count leaves_ = 0;
  Count uplinks_ = 0;  // of a leaf
  Count spines_ = 0;   // of a pod
  Count leaves_per_pod_ = 0;
  Count pods_ = 1;
  Count spine_uplinks_ = 0;
  Count groups_ = 0;
  Count cores_ = 0;
};

}  // namespace trainyard::topologies::planning
