#include "topologies/fat_tree_plan.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "topologies/fat_tree_counts.hpp"

namespace trainyard::topologies {

namespace {

using Count = std::int64_t;

constexpr Count most_links = 100'000'000;  // 3 GB of graph; a slip of the keyboard, not a cluster

std::string ratio_text(double ratio) {
  return text(ratio) + ":1";
}
/// "2", or "2 or 4".
std::string either(Count a, Count b) {
  if (a < 1 || a == b) return text(b);
  return b < 1 ? text(a) : text(a) + " or " + text(b);
}

class Planner {
 public:
  Planner(const FabricSpec& spec, const HostShape& servers, Problems& problems)
      : spec_(spec), servers_(servers), problems_(problems) {}

  std::optional<FatTreeShape> plan() {
    if (!is_sound_fat_tree_input(spec_, servers_, problems_)) return {};
    to_spine_ = std::min(spec_.leaf_switch.port_rate, spec_.spine_switch.port_rate);
    to_core_ = std::min(spec_.spine_switch.port_rate, spec_.core_switch.port_rate);
    leaves_ = ceil_div(servers_.hosts, spec_.hosts_per_leaf);
    if (!plan_leaf()) return {};
    if (!(spec_.tiers == 2 ? plan_spines() : plan_pod() && plan_cores())) return {};
    const Count links =
        2 * (Count{servers_.hosts} * (servers_.gpus + servers_.nics) + servers_.storage_ports +
             leaves_ * uplinks_ + pods_ * spines_ * spine_uplinks_);
    if (links > most_links)
      return refuse("server.hosts", "the fabric would have " + text(links) + " links",
                    "at most " + text(most_links) + " links");
    return shape();
  }

 private:
  std::nullopt_t refuse(std::string path, std::string what, std::string right) {
    problems_.push_back({std::move(path), std::move(what), std::move(right)});
    return std::nullopt;
  }

  bool plan_leaf();
  bool plan_spines();
  bool plan_pod();
  bool plan_cores();
  FatTreeShape shape() const;

  // Leaf arithmetic.
  Count down_ports(Count hosts_per_leaf) const {
    const Count leaves = ceil_div(servers_.hosts, hosts_per_leaf);
    const SwitchSpec& box = spec_.leaf_switch;
    Count ports = ports_for(hosts_per_leaf * servers_.nics, box.port_rate, servers_.nic_rate);
    if (servers_.storage_ports > 0)
      ports +=
          ports_for(ceil_div(servers_.storage_ports, leaves), box.port_rate, servers_.storage_rate);
    return ports;
  }
  Count up_ports(Count uplinks) const {
    return ports_for(uplinks, spec_.leaf_switch.port_rate, to_spine_);
  }
  double leaf_ratio(Count hosts_per_leaf, Count uplinks) const {
    return double(hosts_per_leaf * servers_.nics) * servers_.nic_rate.value() /
           (double(uplinks) * to_spine_.value());
  }
  /// Uplinks of a leaf: as given, or from the ratio; a multiple of the spines where both are given.
  Nearest leaf_uplinks(Count hosts_per_leaf) const {
    if (spec_.uplinks_per_leaf) return {.best = *spec_.uplinks_per_leaf, .is_close = true};
    const double ideal = leaf_ratio(hosts_per_leaf, 1) / spec_.leaf_oversubscription.value_or(1.0);
    return nearest(ideal, [&](Count n) { return n % spec_.spines.value_or(1) == 0; });
  }
  void refuse_leaf_ports();

  // Spine arithmetic; `leaves` under one set of `spines`.
  Count spine_down_ports(Count leaves, Count spines) const {
    return ports_for(leaves * uplinks_ / spines, spec_.spine_switch.port_rate, to_spine_);
  }
  double spine_ratio(Count leaves, Count spines, Count uplinks) const {
    return double(leaves * uplinks_ / spines) * to_spine_.value() /
           (double(uplinks) * to_core_.value());
  }
  Nearest spine_uplinks(Count leaves, Count spines) const {
    if (spec_.uplinks_per_spine) return {.best = *spec_.uplinks_per_spine, .is_close = true};
    const double ideal =
        spine_ratio(leaves, spines, 1) / spec_.spine_oversubscription.value_or(1.0);
    return nearest(
        ideal, [&](Count n) { return !spec_.cores || core_groups(spines, n, *spec_.cores) > 0; });
  }
  bool spine_fits(Count leaves, Count spines) const {
    const Count up = spine_uplinks(leaves, spines).best;
    return up > 0 && spine_down_ports(leaves, spines) +
                             ports_for(up, spec_.spine_switch.port_rate, to_core_) <=
                         spec_.spine_switch.ports;
  }
  Count most_leaves_per_pod(Count spines) const {
    for (Count n = most_leaves_per_spine(); n >= 1; --n)
      if (spine_fits(n, spines)) return n;
    return 0;
  }
  Count most_leaves_per_spine() const {
    return Count{spec_.spine_switch.ports} *
           links_per_port(spec_.spine_switch.port_rate, to_spine_);
  }

  /// The fewest groups q in which every spine reaches all cores of its group by whole bundles; 0:
  /// none.
  static Count core_groups(Count spines, Count uplinks, Count cores) {
    for (Count q = 1; q <= spines; ++q)
      if (spines % q == 0 && cores % q == 0 && uplinks % (cores / q) == 0) return q;
    return 0;
  }
  Count core_ports(Count cores) const {
    return ports_for(pods_ * spines_ * spine_uplinks_ / cores, spec_.core_switch.port_rate,
                     to_core_);
  }

  const FabricSpec& spec_;
  const HostShape& servers_;
  Problems& problems_;
  BytesPerSecond to_spine_, to_core_;  // rates of one switch-to-switch link
  Count leaves_ = 0;
  Count uplinks_ = 0;  // of a leaf
  Count spines_ = 0;   // of a pod
  Count leaves_per_pod_ = 0;
  Count pods_ = 1;
  Count spine_uplinks_ = 0;
  Count groups_ = 0;
  Count cores_ = 0;
};

bool Planner::plan_leaf() {
  const Count ports = spec_.leaf_switch.ports;
  const Count hosts = spec_.hosts_per_leaf;
  if (down_ports(hosts) >= ports) {
    Count most = hosts - 1;
    while (most >= 1 && down_ports(most) >= ports) --most;
    refuse("hosts_per_leaf",
           text(hosts) + " servers of " + text(Count{servers_.nics}) + " NICs need " +
               text(down_ports(hosts)) + " ports and an uplink, the leaf has " + text(ports),
           most >= 1 ? "at most " + text(most)
                     : "a leaf switch of at least " + text(down_ports(1) + 1) + " ports");
    return false;
  }

  const Nearest choice = leaf_uplinks(hosts);
  uplinks_ = choice.best;
  if (!choice.is_close) {
    const std::string with =
        spec_.spines ? " that " + text(Count{*spec_.spines}) + " spines divide" : "";
    const auto option = [&](Count n) {
      return text(n) + " (" + ratio_text(leaf_ratio(hosts, n)) + ")";
    };
    refuse("leaf_oversubscription",
           "no whole number of uplinks" + with + " comes within 10 % of " +
               ratio_text(spec_.leaf_oversubscription.value_or(1.0)),
           "uplinks_per_leaf " + (choice.below ? option(choice.below) + " or " : "") +
               option(choice.above));
    return false;
  }
  if (down_ports(hosts) + up_ports(uplinks_) > ports) {
    refuse_leaf_ports();
    return false;
  }
  if (spec_.spines && uplinks_ % *spec_.spines != 0) {
    Count below = 0;
    Count above = 0;
    for (const Count d : divisors(uplinks_)) {
      if (d < *spec_.spines) below = d;
      if (d > *spec_.spines && above == 0) above = d;
    }
    refuse("spines",
           text(Count{*spec_.spines}) + " spines do not divide the " + text(uplinks_) +
               " uplinks of a leaf evenly",
           either(below, above) + " spines");
    return false;
  }
  return true;
}

void Planner::refuse_leaf_ports() {
  const Count ports = spec_.leaf_switch.ports;
  const Count hosts = spec_.hosts_per_leaf;
  const Count step = spec_.spines.value_or(1);
  const Count free_links =
      (ports - down_ports(hosts)) * links_per_port(spec_.leaf_switch.port_rate, to_spine_);
  const Count most_uplinks = free_links / step * step;

  Count fewer_hosts = hosts - 1;
  for (; fewer_hosts >= 1; --fewer_hosts) {
    const Nearest n = leaf_uplinks(fewer_hosts);
    if (n.is_close && down_ports(fewer_hosts) + up_ports(n.best) <= ports) break;
  }
  std::string right;
  if (most_uplinks >= 1)
    right = spec_.uplinks_per_leaf ? "at most " + text(most_uplinks)
                                   : "at least " + text(leaf_ratio(hosts, most_uplinks));
  if (fewer_hosts >= 1)
    right += (right.empty() ? "" : ", or ") + ("hosts_per_leaf at most " + text(fewer_hosts));
  if (right.empty()) right = "a leaf switch with more ports";
  refuse(spec_.uplinks_per_leaf ? "uplinks_per_leaf" : "leaf_oversubscription",
         "a leaf needs " + text(down_ports(hosts)) + " ports down and " + text(up_ports(uplinks_)) +
             " up, it has " + text(ports),
         right);
}

bool Planner::plan_spines() {
  leaves_per_pod_ = leaves_;
  const Count ports = spec_.spine_switch.ports;
  Count fewest = 0;
  for (const Count d : divisors(uplinks_))
    if (fewest == 0 && spine_down_ports(leaves_, d) <= ports) fewest = d;
  spines_ = spec_.spines.value_or(static_cast<int>(fewest));
  if (fewest == 0) {
    refuse(
        "tiers",
        text(leaves_) + " leaves need spines of " + text(spine_down_ports(leaves_, uplinks_)) +
            " ports, they have " + text(ports),
        "3 tiers, or at most " + text(most_leaves_per_spine() * spec_.hosts_per_leaf) + " servers");
    return false;
  }
  if (spine_down_ports(leaves_, spines_) > ports) {
    refuse("spines",
           "each of " + text(spines_) + " spines needs " +
               text(spine_down_ports(leaves_, spines_)) + " ports, it has " + text(ports),
           "at least " + text(fewest));
    return false;
  }
  return true;
}

bool Planner::plan_pod() {
  // Prefer counts that fit and keep the ratio; fall back to counts that fit, to name what is off.
  if (spec_.leaves_per_pod) {
    leaves_per_pod_ = *spec_.leaves_per_pod;
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
    for (Count n = most_leaves_per_spine(); n >= 1 && leaves_per_pod_ == 0; --n)
      if (spine_fits(n, spines_) && spine_uplinks(n, spines_).is_close) leaves_per_pod_ = n;
    if (leaves_per_pod_ == 0) leaves_per_pod_ = std::max<Count>(1, most_leaves_per_pod(spines_));
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
    const Count down = spine_down_ports(leaves_per_pod_, spines_);
    const Count up = ports_for(spine_uplinks_, spec_.spine_switch.port_rate, to_core_);
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
           "each of " + text(spines_) + " spines needs " + text(down) + " ports down and " +
               text(up) + " up, it has " + text(Count{spec_.spine_switch.ports}),
           right);
    return false;
  }
  pods_ = ceil_div(leaves_, leaves_per_pod_);
  return true;
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
               text(most_pods * leaves_per_pod_ * spec_.hosts_per_leaf) + " servers");
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

FatTreeShape Planner::shape() const {
  const auto n = [](Count c) { return static_cast<int>(c); };
  FatTreeShape t;
  t.tiers = spec_.tiers;
  t.hosts = servers_.hosts;
  t.gpus_per_host = servers_.gpus;
  t.nics_per_host = servers_.nics;
  t.storage_ports = servers_.storage_ports;
  t.hosts_per_leaf = spec_.hosts_per_leaf;
  t.leaves = n(leaves_);
  t.leaves_per_pod = n(leaves_per_pod_);
  t.pods = n(pods_);
  t.spines_per_pod = n(spines_);
  t.leaf_bundle = n(uplinks_ / spines_);
  t.uplinks_per_leaf = n(uplinks_);
  if (spec_.tiers == 3) {
    t.core_groups = n(groups_);
    t.cores_per_group = n(cores_ / groups_);
    t.core_bundle = n(spine_uplinks_ / t.cores_per_group);
    t.uplinks_per_spine = n(spine_uplinks_);
  }
  return t;
}

}  // namespace

std::optional<FatTreeShape> plan_fat_tree(const FabricSpec& spec, const HostShape& servers,
                                          Problems& problems) {
  return Planner(spec, servers, problems).plan();
}

}  // namespace trainyard::topologies
