#include "topologies/fat_tree_plan.hpp"

#include <algorithm>
#include <utility>

#include "topologies/fat_tree_planner.hpp"

namespace trainyard::topologies {

namespace planning {

namespace {

constexpr Count most_links = 100'000'000;  // 3 GB of graph; a slip of the keyboard, not a cluster

}  // namespace

Uplinks::Uplinks(const FabricSpec& spec) : rates_(spec.uplink_rates) {
  if (rates_.empty())
    rates_.push_back(std::min(spec.leaf_switch.port_rate, spec.spine_switch.port_rate));
}

double Uplinks::rate(Count n) const {
  double round = 0.0;
  double rest = 0.0;
  for (Count i = 0; i < pattern(); ++i) {
    round += rates_[std::size_t(i)].value();
    if (i < n % pattern()) rest += rates_[std::size_t(i)].value();
  }
  return double(n / pattern()) * round + rest;
}

Count Uplinks::ports(const SwitchSpec& box, Count first, Count n, Count times) const {
  // Links of one rate share split ports.
  Count ports = 0;
  for (Count i = 0; i < pattern(); ++i) {
    const BytesPerSecond rate = rates_[std::size_t(i)];
    if (std::find(rates_.begin(), rates_.begin() + i, rate) != rates_.begin() + i) continue;
    Count links = 0;
    for (Count j = i; j < pattern(); ++j)
      if (rates_[std::size_t(j)] == rate) {
        const Count offset = ((j - first) % pattern() + pattern()) % pattern();
        links += offset < n ? (n - offset - 1) / pattern() + 1 : 0;
      }
    ports += ports_for(links * times, box.port_rate, rate);
  }
  return ports;
}

Count Uplinks::most_links_per_port(const SwitchSpec& box) const {
  return links_per_port(box.port_rate, *std::min_element(rates_.begin(), rates_.end()));
}

Planner::Planner(const FabricSpec& spec, const HostShape& servers, Problems& problems)
    : spec_(spec),
      servers_(servers),
      problems_(problems),
      up_(spec),
      is_rail_only_(spec.kind == FabricKind::rail_only) {}

std::optional<FatTreeShape> Planner::plan() {
  if (!is_sound_fat_tree_input(spec_, servers_, problems_)) return {};
  tiers_ = spec_.tiers.value_or(2);
  hosts_per_leaf_ = *spec_.hosts_per_leaf;
  if (spec_.kind != FabricKind::fat_tree) rails_ = spec_.rails.value_or(servers_.nics);
  nic_ports_ = spec_.dual_homed.value_or(false) ? 2 : 1;
  unit_in_pod_ = is_rail_only_ ? nic_ports_ : leaves_of_unit();
  to_core_ = std::min(spec_.spine_switch.port_rate, spec_.core_switch.port_rate);
  units_ = ceil_div(servers_.hosts, hosts_per_leaf_);
  leaves_ = units_ * leaves_of_unit();
  if (!(tiers_ == 1 ? plan_lone_unit() : plan_leaf())) return {};
  if (tiers_ == 2 && !plan_spines()) return {};
  if (tiers_ == 3 && !(plan_pod() && plan_pods() && plan_cores())) return {};
  const Count links =
      2 * (Count{servers_.hosts} * (servers_.gpus + servers_.nics * nic_ports_) +
           servers_.storage_ports + leaves_ * uplinks_ + pods_ * spines_ * spine_uplinks_);
  if (links > most_links)
    return refuse(spec_.pods ? "pods" : "server.hosts",
                  "the fabric would have " + text(links) + " links",
                  "at most " + text(most_links) + " links");
  return shape();
}

// Leaves

Count Planner::down_ports(Count hosts) const {
  const SwitchSpec& box = spec_.leaf_switch;
  Count ports =
      ports_for(hosts * links_of_host(), box.port_rate, servers_.nic_rate / double(nic_ports_));
  if (servers_.storage_ports > 0) {
    const Count leaves = spec_.pods && spec_.leaves_per_pod
                             ? Count{*spec_.pods} * *spec_.leaves_per_pod
                             : ceil_div(servers_.hosts, hosts) * leaves_of_unit();
    ports +=
        ports_for(ceil_div(servers_.storage_ports, leaves), box.port_rate, servers_.storage_rate);
  }
  return ports;
}

double Planner::leaf_ratio(Count hosts, Count uplinks) const {
  return double(hosts * links_of_host()) * servers_.nic_rate.value() / double(nic_ports_) /
         up_.rate(uplinks);
}

/// As given, or from the ratio; a multiple of the spines where both are given.
Nearest Planner::leaf_uplinks(Count hosts) const {
  if (spec_.uplinks_per_leaf) return {.best = *spec_.uplinks_per_leaf, .is_close = true};
  const double one = up_.rate(1);
  const double ideal = leaf_ratio(hosts, 1) / spec_.leaf_oversubscription.value_or(1.0);
  return nearest(
      ideal,
      [&](Count n) {
        return n % spec_.spines.value_or(1) == 0 && (n >= up_.pattern() || up_.pattern() == 1);
      },
      [&](Count n) { return up_.rate(n) / one; });
}

bool Planner::plan_lone_unit() {
  if (units_ > 1) {
    refuse("tiers",
           "leaves without spines serve one unit of " + text(Count{hosts_per_leaf_}) +
               " servers, there are " + text(Count{servers_.hosts}),
           "2 tiers, or hosts_per_leaf at least " + text(Count{servers_.hosts}));
    return false;
  }
  const Count ports = spec_.leaf_switch.ports;
  if (down_ports(hosts_per_leaf_) > ports) {
    Count most = hosts_per_leaf_ - 1;
    while (most >= 1 && down_ports(most) > ports) --most;
    refuse("hosts_per_leaf",
           text(Count{hosts_per_leaf_}) + " servers need " + text(down_ports(hosts_per_leaf_)) +
               " ports, the leaf has " + text(ports),
           most >= 1 ? "at most " + text(most)
                     : "a leaf switch of at least " + text(down_ports(1)) + " ports");
    return false;
  }
  leaves_per_pod_ = unit_in_pod_;
  pods_ = rails_;
  return true;
}

bool Planner::plan_leaf() {
  const Count ports = spec_.leaf_switch.ports;
  const Count hosts = hosts_per_leaf_;
  if (down_ports(hosts) >= ports) {
    Count most = hosts - 1;
    while (most >= 1 && down_ports(most) >= ports) --most;
    refuse("hosts_per_leaf",
           text(hosts) + " servers of " + text(links_of_host()) +
               (rails_ > 1 ? " NICs a rail need " : " NICs need ") + text(down_ports(hosts)) +
               " ports and an uplink, the leaf has " + text(ports),
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
  if (uplinks_ < up_.pattern()) {
    refuse(
        "uplink_rates",
        "a leaf has " + text(uplinks_) + " uplinks, and rates are given for " + text(up_.pattern()),
        "at most " + text(uplinks_) + " rates, or uplinks_per_leaf at least " +
            text(up_.pattern()));
    return false;
  }
  if (down_ports(hosts) + up_ports(uplinks_) > ports) return refuse_leaf_ports();
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

bool Planner::refuse_leaf_ports() {
  const Count ports = spec_.leaf_switch.ports;
  const Count hosts = hosts_per_leaf_;
  const Count step = spec_.spines.value_or(1);
  const Count free = ports - down_ports(hosts);
  Count most_uplinks = free * up_.most_links_per_port(spec_.leaf_switch) / step * step;
  while (most_uplinks > 0 && up_ports(most_uplinks) > free) most_uplinks -= step;

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
  return false;
}

// Spines

Count Planner::spine_down_ports(Count leaves, Count spines) const {
  const Count bundle = uplinks_ / spines;
  Count most = 0;  // spines see the pattern of rates from different places on
  for (Count s = 0; s < std::min(spines, up_.pattern()); ++s)
    most = std::max(most, up_.ports(spec_.spine_switch, s * bundle, bundle, leaves));
  return most;
}

Count Planner::most_leaves_per_spine() const {
  return Count{spec_.spine_switch.ports} * up_.most_links_per_port(spec_.spine_switch) /
         unit_in_pod_ * unit_in_pod_;
}

bool Planner::plan_spines() {
  leaves_per_pod_ = units_ * unit_in_pod_;
  if (is_rail_only_) pods_ = rails_;
  const Count ports = spec_.spine_switch.ports;
  Count fewest = 0;
  for (const Count d : divisors(uplinks_))
    if (fewest == 0 && spine_down_ports(leaves_per_pod_, d) <= ports) fewest = d;
  spines_ = spec_.spines.value_or(static_cast<int>(fewest));
  if (fewest == 0) {
    Count most = most_leaves_per_spine();
    while (most > 0 && spine_down_ports(most, uplinks_) > ports) most -= unit_in_pod_;
    const std::string fewer = most > 0 ? "at most " + text(hosts_of(most)) + " servers"
                                       : std::string("a spine switch with more ports");
    refuse(is_rail_only_ ? "server.hosts" : "tiers",
           text(leaves_per_pod_) + " leaves" + (is_rail_only_ ? " of a rail" : "") +
               " need spines of " + text(spine_down_ports(leaves_per_pod_, uplinks_)) +
               " ports, they have " + text(ports),
           is_rail_only_ ? fewer : "3 tiers, or " + fewer);
    return false;
  }
  if (spine_down_ports(leaves_per_pod_, spines_) > ports) {
    refuse("spines",
           "each of " + text(spines_) + " spines needs " +
               text(spine_down_ports(leaves_per_pod_, spines_)) + " ports, it has " + text(ports),
           "at least " + text(fewest));
    return false;
  }
  return true;
}

FatTreeShape Planner::shape() const {
  const auto n = [](Count c) { return static_cast<int>(c); };
  FatTreeShape t;
  t.tiers = tiers_;
  t.hosts = servers_.hosts;
  t.gpus_per_host = servers_.gpus;
  t.nics_per_host = servers_.nics;
  t.storage_ports = servers_.storage_ports;
  t.hosts_per_leaf = hosts_per_leaf_;
  t.rails = n(rails_);
  t.ports_per_nic = n(nic_ports_);
  t.is_rail_only = is_rail_only_;
  t.leaves = n(leaves_);
  t.leaves_per_pod = n(leaves_per_pod_);
  t.pods = n(pods_);
  t.spines_per_pod = n(spines_);
  t.leaf_bundle = spines_ == 0 ? 0 : n(uplinks_ / spines_);
  t.uplinks_per_leaf = n(uplinks_);
  if (tiers_ == 3) {
    t.core_groups = n(groups_);
    t.cores_per_group = n(cores_ / groups_);
    t.core_bundle = n(spine_uplinks_ / t.cores_per_group);
    t.uplinks_per_spine = n(spine_uplinks_);
  }
  return t;
}

}  // namespace planning

std::optional<FatTreeShape> plan_fat_tree(const FabricSpec& spec, const HostShape& servers,
                                          Problems& problems) {
  return planning::Planner(spec, servers, problems).plan();
}

}  // namespace trainyard::topologies
