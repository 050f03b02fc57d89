#include <algorithm>

#include "topologies/fat_tree_planner.hpp"

/// Pods and cores of three tiers.
namespace trainyard::topologies::planning {

/// Of the pod's mean spine: with uplinks of several rates, spines may differ.
double Planner::spine_ratio(Count leaves, Count spines, Count uplinks) const {
  return double(leaves) * up_.rate(uplinks_) / double(spines) /
         (double(uplinks) * to_core_.value());
}

Nearest Planner::spine_uplinks(Count leaves, Count spines) const {
  if (spec_.uplinks_per_spine) return {.best = *spec_.uplinks_per_spine, .is_close = true};
  const double ideal = spine_ratio(leaves, spines, 1) / spec_.spine_oversubscription.value_or(1.0);
  return nearest(ideal,
                 [&](Count n) { return !spec_.cores || core_groups(spines, n, *spec_.cores) > 0; });
}

bool Planner::spine_fits(Count leaves, Count spines) const {
  const Count up = spine_uplinks(leaves, spines).best;
  return up > 0 &&
         spine_down_ports(leaves, spines) + spine_up_ports(up) <= spec_.spine_switch.ports;
}

Count Planner::most_leaves_per_pod(Count spines) const {
  for (Count n = most_leaves_per_spine(); n >= 1; n -= unit_in_pod_)
    if (spine_fits(n, spines)) return n;
  return 0;
}

bool Planner::plan_pod() {
  // Prefer counts that fit and keep the ratio; fall back to counts that fit, to name what is off.
  if (spec_.leaves_per_pod) {
    leaves_per_pod_ = *spec_.leaves_per_pod;
    if (leaves_per_pod_ % unit_in_pod_ != 0) {
      const Count below = leaves_per_pod_ / unit_in_pod_ * unit_in_pod_;
      refuse(
          "leaves_per_pod",
          text(leaves_per_pod_) + " leaves are no whole number of units of " + text(unit_in_pod_),
          either(below, below + unit_in_pod_));
      return false;
    }
    spines_ = spec_.spines.value_or(0);
    Count fits_only = 0;
    for (const Count d : divisors(uplinks_)) {
      if (spines_ != 0 || !spine_fits(leaves_per_pod_, d)) continue;
      if (fits_only == 0) fits_only = d;
      if (spine_uplinks(leaves_per_pod_, d).is_close) spines_ = d;
    }
    if (spines_ == 0) spines_ = fits_only != 0 ? fits_only : uplinks_;
  } else {
    spines_ = spec_.spines.value_or(static_cast<int>(uplinks_));
    for (Count n = most_leaves_per_spine(); n >= 1 && leaves_per_pod_ == 0; n -= unit_in_pod_)
      if (spine_fits(n, spines_) && spine_uplinks(n, spines_).is_close) leaves_per_pod_ = n;
    if (leaves_per_pod_ == 0)
      leaves_per_pod_ = std::max<Count>(unit_in_pod_, most_leaves_per_pod(spines_));
  }

  const Nearest choice = spine_uplinks(leaves_per_pod_, spines_);
  spine_uplinks_ = choice.best;
  if (choice.best == 0 || !choice.is_close) {
    const auto option = [&](Count n) {
      return text(n) + " (" + ratio_text(spine_ratio(leaves_per_pod_, spines_, n)) + ")";
    };
    std::string right = choice.below ? "uplinks_per_spine " + option(choice.below) : "";
    if (choice.above)
      right += (choice.below ? " or " : "uplinks_per_spine ") + option(choice.above);
    if (right.empty()) right = "another number of cores";
    refuse(
        "spine_oversubscription",
        "no whole number of uplinks" +
            (spec_.cores ? " that " + text(Count{*spec_.cores}) + " cores divide" : std::string()) +
            " comes within 10 % of " + ratio_text(spec_.spine_oversubscription.value_or(1.0)),
        right);
    return false;
  }
  if (!spine_fits(leaves_per_pod_, spines_)) {
    const Count most = most_leaves_per_pod(spines_);
    Count more_spines = 0;
    for (const Count d : divisors(uplinks_))
      if (more_spines == 0 && spine_fits(leaves_per_pod_, d)) more_spines = d;
    std::string right;
    if (most >= 1) right = "leaves_per_pod at most " + text(most);
    if (more_spines > 0)
      right += (right.empty() ? "" : ", or ") + ("spines at least " + text(more_spines));
    if (right.empty()) right = "a spine switch with more ports";
    refuse(spec_.leaves_per_pod ? "leaves_per_pod" : "spines",
           "each of " + text(spines_) + " spines needs " +
               text(spine_down_ports(leaves_per_pod_, spines_)) + " ports down and " +
               text(spine_up_ports(spine_uplinks_)) + " up, it has " +
               text(Count{spec_.spine_switch.ports}),
           right);
    return false;
  }
  return true;
}

bool Planner::plan_pods() {
  const Count needed = ceil_div(leaves_, leaves_per_pod_);
  pods_ = spec_.pods.value_or(static_cast<int>(needed));
  if (pods_ < needed) {
    refuse("pods",
           text(Count{servers_.hosts}) + " servers need " + text(needed) + " pods of " +
               text(hosts_of(leaves_per_pod_)),
           "at least " + text(needed) + ", or at most " + text(hosts_of(pods_ * leaves_per_pod_)) +
               " servers");
    return false;
  }
  if (spec_.pods) leaves_ = pods_ * leaves_per_pod_;  // whoever counts pods means whole ones
  return true;
}

/// The fewest groups q in which every spine reaches all cores of its group by whole bundles; 0:
/// none.
Count Planner::core_groups(Count spines, Count uplinks, Count cores) {
  for (Count q = 1; q <= spines; ++q)
    if (spines % q == 0 && cores % q == 0 && uplinks % (cores / q) == 0) return q;
  return 0;
}

Count Planner::core_ports(Count cores) const {
  return ports_for(pods_ * spines_ * spine_uplinks_ / cores, spec_.core_switch.port_rate, to_core_);
}

bool Planner::plan_cores() {
  const Count ports = spec_.core_switch.ports;
  std::vector<Count> valid;  // numbers of cores that can be cabled evenly
  for (const Count q : divisors(spines_))
    for (const Count per_group : divisors(spine_uplinks_)) valid.push_back(q * per_group);
  std::sort(valid.begin(), valid.end());
  const auto fewest =
      std::find_if(valid.begin(), valid.end(), [&](Count n) { return core_ports(n) <= ports; });

  if (fewest == valid.end()) {
    const Count most_pods = Count{ports} * links_per_port(spec_.core_switch.port_rate, to_core_);
    refuse("core_switch.ports",
           text(pods_) + " pods need cores of " + text(core_ports(valid.back())) +
               " ports, they have " + text(ports),
           "at least " + text(core_ports(valid.back())) + " ports, or at most " +
               (spec_.pods ? text(most_pods) + " pods"
                           : text(most_pods * hosts_of(leaves_per_pod_)) + " servers"));
    return false;
  }
  cores_ = spec_.cores.value_or(static_cast<int>(*fewest));
  groups_ = core_groups(spines_, spine_uplinks_, cores_);
  if (groups_ == 0) {
    const auto above = std::lower_bound(valid.begin(), valid.end(), cores_);
    refuse("cores",
           text(cores_) + " cores cannot be cabled evenly to " + text(spines_) +
               " spines a pod with " + text(spine_uplinks_) + " uplinks each",
           either(above == valid.begin() ? 0 : *(above - 1), above == valid.end() ? 0 : *above) +
               " cores");
    return false;
  }
  if (core_ports(cores_) > ports) {
    refuse("cores",
           "each of " + text(cores_) + " cores needs " + text(core_ports(cores_)) +
               " ports, it has " + text(ports),
           "at least " + text(*fewest));
    return false;
  }
  return true;
}

}  // namespace trainyard::topologies::planning
