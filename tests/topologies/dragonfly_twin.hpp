#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/topologies/direct_fabrics.hpp"

/// The slow, obvious twin of routing in a dragonfly or dragonfly+: walks the plain graph and keeps
/// the walks whose links are of the kinds that the definition says.
namespace trainyard::topologies::dragonfly_twin {

using direct_fabrics::Loads;
using Path = std::vector<LinkId>;

class Twin {
 public:
  explicit Twin(const Router& router) : f_(router.fabric()), router_(router) {}

  /// Kinds of links by letter: l within a group, g between groups.
  static bool is_minimal(const std::string& kinds, bool same_group, bool is_plus) {
    const std::set<std::string> inside =
        is_plus ? std::set<std::string>{"ll"} : std::set<std::string>{"l"};
    const std::set<std::string> between =
        is_plus ? std::set<std::string>{"lgl"} : std::set<std::string>{"g", "lg", "gl", "lgl"};
    return (same_group ? inside : between).contains(kinds);
  }
  static bool is_detour(const std::string& kinds, bool same_group, bool is_plus) {
    if (same_group) return !is_plus && kinds == "ll";
    if (is_plus) return kinds == "lggl" || kinds == "lgllgl";
    std::string rest = kinds;
    if (!rest.empty() && rest.front() == 'l') rest.erase(0, 1);
    if (!rest.empty() && rest.back() == 'l') rest.pop_back();
    return rest == "gg" || rest == "glg";
  }

  std::vector<Path> minimal(NicId from, NicId to) { return all(from, to, false); }
  std::vector<Path> detours(NicId from, NicId to) { return all(from, to, true); }

  /// Evenly over intermediate groups, in each over its pairs of global links, for each of those
  /// over the parallel ways inside the groups.
  Loads spread(const std::vector<Path>& paths) const {
    std::map<int, std::map<Path, std::vector<Path>>> by;
    for (const Path& p : paths) {
      Path global;
      for (const LinkId l : p)
        if (f_.link(l).kind == LinkKind::global) global.push_back(l);
      const int group = global.size() == 2 ? f_.pod_of(f_.link(global[0]).to) : -1;
      by[group][global].push_back(p);
    }
    Loads loads;
    for (const auto& [group, sets] : by)
      for (const auto& [global, ways] : sets)
        for (const Path& p : ways)
          for (const LinkId l : p) loads[l] += 1.0 / double(by.size() * sets.size() * ways.size());
    return loads;
  }

 private:
  std::vector<Path> all(NicId from, NicId to, bool want_detours) {
    found_.clear();
    target_ = f_.edge_of(to);
    start_ = f_.edge_of(from);
    want_detours_ = want_detours;
    visited_ = {start_};
    walk(start_, {}, "");
    return found_;
  }

  void walk(VertexId at, const Path& path, const std::string& kinds) {
    const bool same_group = f_.pod_of(start_) == f_.pod_of(target_);
    const bool is_plus = f_.kind() == FabricKind::dragonfly_plus;
    if (at == target_) {
      const bool fits = want_detours_ ? is_detour(kinds, same_group, is_plus)
                                      : is_minimal(kinds, same_group, is_plus);
      if (fits) found_.push_back(path);
      return;
    }
    if (kinds.size() == 6) return;
    for (const LinkId l : f_.out_links(at)) {
      const Link& link = f_.link(l);
      if (!f_.is_switch(link.to) || visited_.contains(link.to) || !router_.state().is_up(l))
        continue;
      const bool is_global = link.kind == LinkKind::global;
      if (is_global && f_.pod_of(link.to) == f_.pod_of(start_)) continue;
      if (is_global && f_.pod_of(at) == f_.pod_of(target_)) continue;
      Path longer = path;
      longer.push_back(l);
      visited_.insert(link.to);
      walk(link.to, longer, kinds + (is_global ? 'g' : 'l'));
      visited_.erase(link.to);
    }
  }

  const Fabric& f_;
  const Router& router_;
  VertexId start_, target_;
  bool want_detours_ = false;
  std::set<VertexId> visited_;
  std::vector<Path> found_;
};

inline std::shared_ptr<const Fabric> any_dragonfly(std::mt19937_64& random, bool is_plus) {
  const auto up_to = [&](int n) { return 1 + static_cast<int>(random() % std::uint64_t(n)); };
  FabricSpec spec{.kind = is_plus ? FabricKind::dragonfly_plus : FabricKind::dragonfly};
  spec.arrangement = random() % 2 == 0 ? Arrangement::absolute : Arrangement::palm_tree;
  spec.router_switch = spec.leaf_switch = spec.spine_switch = direct_fabrics::box_of(64);
  HostShape servers{.hosts = 1, .gpus = 2, .nics = up_to(2), .nic_rate = BytesPerSecond(50e9)};
  servers.storage_ports = up_to(3) - 1;
  spec.global_links_per_router = up_to(3);
  int capacity = 0;
  if (is_plus) {
    spec.leaves_per_group = up_to(3);
    spec.spines_per_group = up_to(3);
    spec.uplinks_per_leaf = *spec.spines_per_group * up_to(2);
    spec.hosts_per_leaf = up_to(2);
    const int ports = *spec.spines_per_group * *spec.global_links_per_router;
    spec.groups = std::min(5, up_to(ports + 1));
    capacity = *spec.groups * *spec.leaves_per_group * *spec.hosts_per_leaf;
  } else {
    spec.nics_per_router = up_to(3);
    spec.routers_per_group = up_to(4);
    spec.local_links = up_to(2);
    spec.groups = std::min(6, up_to(*spec.routers_per_group * *spec.global_links_per_router + 1));
    capacity = *spec.groups * *spec.routers_per_group * *spec.nics_per_router / servers.nics;
  }
  if (capacity == 0) {  // one router of one NIC cannot take a server of two
    servers.nics = 1;
    capacity = 1;
  }
  servers.hosts = std::max(1, capacity - static_cast<int>(random() % 2));
  return direct_fabrics::built(is_plus ? build_dragonfly_plus(spec, servers)
                                       : build_dragonfly(spec, servers));
}

/// Every property of routes, on one random fabric with some failures.
inline void check_routes(std::mt19937_64& random, bool is_plus) {
  const auto f = any_dragonfly(random, is_plus);
  const std::size_t nics = f->nic_count() + f->count(VertexKind::storage);
  if (nics < 2) return;
  constexpr RoutingKind kinds[] = {RoutingKind::ecmp, RoutingKind::minimal, RoutingKind::spray,
                                   RoutingKind::valiant, RoutingKind::ugal};
  const RoutingKind kind = kinds[random() % 5];
  SCOPED_TRACE(std::string(name_of(kind)));
  Router router(*f, kind, random(), 3);
  const double failing[] = {0.0, 0.1, 0.4};
  direct_fabrics::fail_some(router, random, failing[random() % 3]);
  if (kind == RoutingKind::ugal) {
    std::vector<Demand> traffic;
    for (int n = 0; n < 20; ++n)
      traffic.push_back({NicId(random() % nics), NicId(random() % nics), 1.0});
    router.adapt_to(traffic);
  }
  const bool may_detour = kind != RoutingKind::ecmp && kind != RoutingKind::minimal;
  Twin twin(router);
  for (int n = 0; n < 12; ++n) {
    const NicId from(random() % nics), to(random() % nics);
    if (from == to) continue;
    SCOPED_TRACE(f->name(f->vertex(from)) + " to " + f->name(f->vertex(to)));
    const bool is_one_switch = f->edge_of(from) == f->edge_of(to);
    const auto minimal = twin.minimal(from, to), detours = twin.detours(from, to);
    const bool ends =
        router.state().is_up(f->uplink(from)) && router.state().is_up(f->downlink(to));
    const bool exists =
        ends && (is_one_switch || !minimal.empty() || (may_detour && !detours.empty()));
    ASSERT_EQ(router.has_path(from, to), exists);

    std::vector<LinkId> path;
    for (int q = 0; q < 3; ++q) {
      ASSERT_EQ(router.path(from, to, 7, path, q), exists);
      if (!exists) continue;
      ASSERT_GE(path.size(), 2u);
      EXPECT_EQ(path.front(), f->uplink(from));
      EXPECT_EQ(path.back(), f->downlink(to));
      const Path inner(path.begin() + 1, path.end() - 1);
      const auto in = [&](const std::vector<Path>& all) {
        return std::find(all.begin(), all.end(), inner) != all.end();
      };
      EXPECT_TRUE(is_one_switch ? inner.empty() : in(minimal) || (may_detour && in(detours)));
    }

    const Loads loads = direct_fabrics::loads_of(router, from, to);
    if (!exists) {
      EXPECT_TRUE(loads.empty());
      direct_fabrics::expect_cut(router, kind, from, to);
      continue;
    }
    EXPECT_TRUE(router.cut(from, to).empty());
    if (kind == RoutingKind::ecmp) continue;  // its loads are its paths
    direct_fabrics::expect_conserved(*f, loads, from, to);
    for (const LinkId l : path) EXPECT_TRUE(loads.contains(l)) << f->name(l);
    if (is_one_switch) continue;
    // The share that goes minimal is seen where no Valiant route of the pair goes: at its direct
    // global links.
    const Loads direct = twin.spread(minimal), valiant = twin.spread(detours);
    double share = minimal.empty() ? 0.0 : 1.0;
    const bool is_between = f->pod_of(f->edge_of(from)) != f->pod_of(f->edge_of(to));
    if (!minimal.empty() && !detours.empty() && is_between &&
        (kind == RoutingKind::valiant || kind == RoutingKind::ugal)) {
      share = 0.0;
      for (const auto& [l, w] : loads)
        if (f->link(l).kind == LinkKind::global && direct.contains(l)) share += w;
      if (kind == RoutingKind::valiant) {
        EXPECT_EQ(share, 0.0);
      }
    }
    Loads expected{{f->uplink(from), 1.0}, {f->downlink(to), 1.0}};
    for (const auto& [l, w] : direct)
      if (share > 0.0) expected[l] += share * w;
    for (const auto& [l, w] : valiant)
      if (share < 1.0 - 1e-12) expected[l] += (1.0 - share) * w;
    ASSERT_EQ(loads.size(), expected.size());
    for (const auto& [l, w] : expected) EXPECT_NEAR(loads.at(l), w, 1e-12) << f->name(l);
  }
}

}  // namespace trainyard::topologies::dragonfly_twin
