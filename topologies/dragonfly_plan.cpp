#include "topologies/dragonfly_plan.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "topologies/dragonfly_cables.hpp"
#include "topologies/fat_tree_counts.hpp"
#include "topologies/server_side.hpp"

namespace trainyard::topologies {

namespace {

using Count = std::int64_t;

std::nullopt_t refuse(Problems& problems, std::string path, std::string what, std::string right) {
  problems.push_back({std::move(path), std::move(what), std::move(right)});
  return std::nullopt;
}

/// "at most" for each setting that could be changed alone.
class Ways {
 public:
  void add(const char* setting, Count most) {
    if (most < 1) return;
    text_ += (text_.empty() ? "" : ", or ") + std::string(setting) + " at most " + text(most);
  }
  void add(const std::string& other) { text_ += (text_.empty() ? "" : ", or ") + other; }
  const std::string& right() const { return text_; }

 private:
  std::string text_;
};

bool are_positive(const std::vector<std::pair<const char*, std::optional<int>>>& counts,
                  Problems& problems) {
  const std::size_t before = problems.size();
  for (const auto& [path, n] : counts)
    if (n && *n < 1)
      refuse(problems, path, "is " + text(Count{*n}), "1 or more, or left out to be derived");
  return problems.size() == before;
}

/// What both kinds ask of their global links: every group a cable to every other, not too many
/// links in all. `ports` are the global ports of a group.
bool are_groups_joined(const FabricSpec& spec, Count groups, Count routers, Count links_per_router,
                       Count cables_of_servers, Count local_cables, Problems& problems) {
  const Count ports = routers * links_per_router;
  if (groups - 1 > ports) {
    const std::string what = text(groups) + " groups need " + text(groups - 1) +
                             " global links a group, it has " + text(routers) + " x " +
                             text(links_per_router) + " = " + text(ports);
    const std::string more =
        "global_links_per_router at least " + text(ceil_div(groups - 1, routers));
    if (spec.groups)
      refuse(problems, "groups", what, "at most " + text(ports + 1) + ", or " + more);
    else
      refuse(problems, "server.hosts", what, "fewer servers, larger groups, or " + more);
    return false;
  }
  const Count links = 2 * (cables_of_servers + local_cables) + (groups > 1 ? groups * ports : 0);
  if (links <= most_links) return true;
  refuse(problems, "server.hosts", "the fabric would have " + text(links) + " links",
         "at most " + text(most_links) + " links");
  return false;
}

Count cables_of(const HostShape& s) {
  return Count{s.hosts} * (s.gpus + s.nics) + s.storage_ports;
}

/// p, a, h of which some are given.
struct Balance {
  Count p, a, h;
};
Balance balanced(const FabricSpec& spec, Count largest_p) {
  const auto& p = spec.nics_per_router;
  const auto& a = spec.routers_per_group;
  const auto& h = spec.global_links_per_router;
  const Count half = p ? *p : h ? *h : a ? std::max(1, *a / 2) : largest_p;
  const Count hp = h ? *h : half;
  const Count pp = p ? *p : half;
  return {pp, a ? Count{*a} : 2 * std::max(pp, hp), hp};
}

}  // namespace

std::optional<DragonflyShape> plan_dragonfly(const FabricSpec& spec, const HostShape& servers,
                                             Problems& problems) {
  const SwitchSpec& box = spec.router_switch;
  bool is_sound = are_sound_servers(servers, problems);
  is_sound &= is_sound_switch("router_switch", box, problems);
  is_sound &= are_positive({{"nics_per_router", spec.nics_per_router},
                            {"routers_per_group", spec.routers_per_group},
                            {"global_links_per_router", spec.global_links_per_router},
                            {"groups", spec.groups},
                            {"local_links", spec.local_links}},
                           problems);
  if (!is_sound || !fits_servers("router_switch", box, servers, problems)) return {};

  const Count nics = Count{servers.hosts} * servers.nics;
  const Count local = spec.local_links.value_or(1);
  const auto groups_for = [&](const Balance& b) {
    return spec.groups ? Count{*spec.groups} : ceil_div(nics, b.p * b.a);
  };
  const auto ports = [&](const Balance& b) {
    return server_ports(b.p, b.a * groups_for(b), box, servers) + (b.a - 1) * local + b.h;
  };
  Count largest = 1;
  while (ports(balanced(spec, largest + 1)) <= box.ports && largest < box.ports) ++largest;
  const Balance b = balanced(spec, largest);
  const Count groups = groups_for(b);

  if (ports(b) > box.ports) {
    const auto most = [&](Count Balance::*setting) {
      Balance less = b;
      while (less.*setting >= 1 && ports(less) > box.ports) --(less.*setting);
      return less.*setting;
    };
    Ways ways;
    ways.add("nics_per_router", most(&Balance::p));
    ways.add("routers_per_group", most(&Balance::a));
    ways.add("global_links_per_router", most(&Balance::h));
    if (b.a > 1 && local > 1)
      ways.add("local_links", local - ceil_div(ports(b) - box.ports, b.a - 1));
    ways.add("a router of at least " + text(ports(b)) + " ports");
    const char* path = spec.nics_per_router           ? "nics_per_router"
                       : spec.routers_per_group       ? "routers_per_group"
                       : spec.global_links_per_router ? "global_links_per_router"
                                                      : "router_switch.ports";
    return refuse(problems, path,
                  "a router needs " + text(server_ports(b.p, b.a * groups, box, servers)) +
                      " ports for servers, " + text((b.a - 1) * local) + " local and " + text(b.h) +
                      " global, it has " + text(Count{box.ports}),
                  ways.right());
  }
  if (groups * b.a * b.p < nics)
    return refuse(problems, "groups",
                  text(groups) + " groups of " + text(b.a) + " routers with " + text(b.p) +
                      " NICs each hold " + text(groups * b.a * b.p) + " NICs, the servers have " +
                      text(nics),
                  "at least " + text(ceil_div(nics, b.a * b.p)));
  if (!are_groups_joined(spec, groups, b.a, b.h, cables_of(servers),
                         groups * (b.a * (b.a - 1) / 2) * local, problems))
    return {};
  const auto n = [](Count c) { return static_cast<int>(c); };
  return DragonflyShape{n(b.p),    n(b.a),   n(b.h),
                        n(groups), n(local), spec.arrangement.value_or(Arrangement::absolute)};
}

BytesPerSecond leaf_spine_rate(const FabricSpec& spec) {
  return std::min(spec.leaf_switch.port_rate, spec.spine_switch.port_rate);
}

std::optional<DragonflyPlusShape> plan_dragonfly_plus(const FabricSpec& spec,
                                                      const HostShape& servers,
                                                      Problems& problems) {
  const SwitchSpec& leaf = spec.leaf_switch;
  const SwitchSpec& spine = spec.spine_switch;
  bool is_sound = are_sound_servers(servers, problems);
  is_sound &= is_sound_switch("leaf_switch", leaf, problems);
  is_sound &= is_sound_switch("spine_switch", spine, problems);
  is_sound &= are_positive({{"hosts_per_leaf", spec.hosts_per_leaf},
                            {"leaves_per_group", spec.leaves_per_group},
                            {"spines_per_group", spec.spines_per_group},
                            {"uplinks_per_leaf", spec.uplinks_per_leaf},
                            {"global_links_per_router", spec.global_links_per_router},
                            {"groups", spec.groups}},
                           problems);
  const double ratio = spec.leaf_oversubscription.value_or(1.0);
  if (!(ratio > 0)) {
    refuse(problems, "leaf_oversubscription", "is " + text(ratio), "a ratio above zero, such as 2");
    is_sound = false;
  }
  if (spec.leaf_oversubscription && spec.uplinks_per_leaf) {
    refuse(problems, "leaf_oversubscription", "the uplinks of a leaf are given twice",
           "either the ratio or uplinks_per_leaf");
    is_sound = false;
  }
  if (!is_sound || !fits_servers("leaf_switch", leaf, servers, problems)) return {};

  // A leaf: half of its ports for servers, and uplinks by the ratio.
  const BytesPerSecond rate = leaf_spine_rate(spec);
  const Count half = Count{leaf.ports / 2} * links_per_port(leaf.port_rate, servers.nic_rate);
  const Count hosts =
      spec.hosts_per_leaf ? Count{*spec.hosts_per_leaf} : std::max<Count>(1, half / servers.nics);
  const Count leaves_needed = ceil_div(servers.hosts, hosts);
  const auto down = [&](Count n) {
    return server_ports(n * servers.nics, ceil_div(servers.hosts, n), leaf, servers);
  };
  const auto uplinks_at = [&](Count n) {
    return double(n * servers.nics) * servers.nic_rate.value() / (ratio * rate.value());
  };
  const auto divides = [&](Count n) { return n % spec.spines_per_group.value_or(1) == 0; };
  Nearest up = nearest(uplinks_at(hosts), divides);
  if (spec.uplinks_per_leaf) up = {.best = *spec.uplinks_per_leaf, .is_close = true};
  const auto up_ports = [&](Count n) { return ports_for(n, leaf.port_rate, rate); };
  if (!up.is_close) {
    std::string right =
        up.below ? "uplinks_per_leaf " + text(up.below) + " or " : "uplinks_per_leaf ";
    return refuse(problems, "leaf_oversubscription",
                  "no whole number of uplinks" +
                      (spec.spines_per_group
                           ? " that " + text(Count{*spec.spines_per_group}) + " spines divide"
                           : std::string()) +
                      " comes within 10 % of " + text(ratio) + ":1",
                  right + text(up.above));
  }
  if (down(hosts) + up_ports(up.best) > leaf.ports) {
    Ways ways;
    Count fewer = hosts - 1;
    while (fewer >= 1 && down(fewer) + up_ports(spec.uplinks_per_leaf
                                                    ? up.best
                                                    : nearest(uplinks_at(fewer), divides).best) >
                             leaf.ports)
      --fewer;
    ways.add("hosts_per_leaf", fewer);
    Count fewer_up = up.best - 1;
    while (fewer_up >= 1 && (!divides(fewer_up) || down(hosts) + up_ports(fewer_up) > leaf.ports))
      --fewer_up;
    ways.add("uplinks_per_leaf", fewer_up);
    ways.add("a leaf of at least " + text(down(hosts) + up_ports(up.best)) + " ports");
    return refuse(problems, "hosts_per_leaf",
                  "a leaf needs " + text(down(hosts)) + " ports down and " +
                      text(up_ports(up.best)) + " up, it has " + text(Count{leaf.ports}),
                  ways.right());
  }
  const Count spines = spec.spines_per_group.value_or(static_cast<int>(up.best));
  if (up.best % spines != 0) {
    Count below = 0, above = 0;
    for (const Count d : divisors(up.best)) {
      if (d < spines) below = d;
      if (d > spines && above == 0) above = d;
    }
    return refuse(
        problems, "spines_per_group",
        text(spines) + " spines do not divide the " + text(up.best) + " uplinks of a leaf evenly",
        above == 0 ? text(below) : text(below) + " or " + text(above));
  }

  // A spine: half of its ports for leaves, and as many global links as links down.
  const Count bundle = up.best / spines;
  const auto spine_down = [&](Count leaves) {
    return ports_for(leaves * bundle, spine.port_rate, rate);
  };
  const Count half_spine = Count{spine.ports / 2} * links_per_port(spine.port_rate, rate) / bundle;
  const Count leaves = spec.leaves_per_group ? Count{*spec.leaves_per_group}
                                             : std::clamp<Count>(half_spine, 1, leaves_needed);
  const Count groups = spec.groups ? Count{*spec.groups} : ceil_div(leaves_needed, leaves);
  const Count global =
      spec.global_links_per_router
          ? Count{*spec.global_links_per_router}
          : std::max<Count>(1, std::min(spine.ports - spine_down(leaves), leaves * bundle));
  if (spine_down(leaves) + global > spine.ports) {
    Ways ways;
    Count fewer = leaves - 1;
    while (fewer >= 1 && spine_down(fewer) + global > spine.ports) --fewer;
    ways.add("leaves_per_group", fewer);
    ways.add("global_links_per_router", spine.ports - spine_down(leaves));
    ways.add("a spine of at least " + text(spine_down(leaves) + global) + " ports");
    return refuse(problems, "leaves_per_group",
                  "a spine needs " + text(spine_down(leaves)) + " ports down and " + text(global) +
                      " global, it has " + text(Count{spine.ports}),
                  ways.right());
  }
  if (groups * leaves < leaves_needed)
    return refuse(problems, "groups",
                  text(groups) + " groups of " + text(leaves) + " leaves hold " +
                      text(groups * leaves * hosts) + " servers, there are " +
                      text(Count{servers.hosts}),
                  "at least " + text(ceil_div(leaves_needed, leaves)));
  if (!are_groups_joined(spec, groups, spines, global, cables_of(servers),
                         groups * leaves * up.best, problems))
    return {};
  const auto n = [](Count c) { return static_cast<int>(c); };
  return DragonflyPlusShape{n(hosts),
                            n(leaves),
                            n(spines),
                            n(up.best),
                            n(global),
                            n(groups),
                            spec.arrangement.value_or(Arrangement::absolute)};
}

}  // namespace trainyard::topologies
