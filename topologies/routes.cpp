#include "topologies/routes.hpp"

#include <algorithm>

#include "sim/check.hpp"
#include "topologies/dragonfly_routes.hpp"
#include "topologies/fat_tree_routes.hpp"
#include "topologies/graph_routes.hpp"
#include "topologies/torus_routes.hpp"

namespace trainyard::topologies {

bool offers(FabricKind fabric, RoutingKind routing) {
  using F = FabricKind;
  using R = RoutingKind;
  switch (routing) {
    case R::ecmp:
    case R::spray:
      return true;
    case R::adaptive:
    case R::fixed:
      return fabric == F::fat_tree || fabric == F::rail_optimized || fabric == F::rail_only ||
             fabric == F::custom;
    case R::minimal:
    case R::valiant:
      return fabric == F::dragonfly || fabric == F::dragonfly_plus || fabric == F::torus;
    case R::ugal:
      return fabric == F::dragonfly || fabric == F::dragonfly_plus;
  }
  return false;
}

std::unique_ptr<Routes> make_routes(const Fabric& fabric, const LinkState& state,
                                    RoutePolicy policy) {
  switch (fabric.kind()) {
    case FabricKind::fat_tree:
    case FabricKind::rail_optimized:
    case FabricKind::rail_only:
      return std::make_unique<FatTreeRoutes>(fabric, state, policy);
    case FabricKind::dragonfly:
    case FabricKind::dragonfly_plus:
      return std::make_unique<DragonflyRoutes>(fabric, state, policy);
    case FabricKind::torus:
      return std::make_unique<TorusRoutes>(fabric, state, policy);
    case FabricKind::custom:
      return std::make_unique<GraphRoutes>(fabric, state, policy);
    default:
      break;
  }
  check(false, "every kind of fabric has routes", name_of(fabric.kind()));
  return nullptr;
}

bool visit_hashed_loads(const Routes& routes, int flows_per_pair, NicId from, NicId to,
                        std::uint64_t label, double flows, LoadVisitor visit) {
  if (!routes.has_path(from, to)) return false;
  std::vector<LinkId> links;
  links.reserve(8);
  for (int q = 0; q < flows_per_pair; ++q) {
    check(routes.path(from, to, label, q, links),
          "a pair that has a path has one for every queue pair");
    for (const LinkId l : links) visit(l, flows);
  }
  return true;
}

namespace {

/// Which switches are reached from `start` over links that work; against their direction if
/// `backward`. Traffic does not pass through servers.
std::vector<char> reached(const Fabric& f, const LinkState& state, VertexId start, bool backward) {
  std::vector<char> seen(f.vertex_count(), 0);
  std::vector<VertexId> queue{start};
  seen[start.index()] = 1;
  for (std::size_t next = 0; next < queue.size(); ++next)
    for (const LinkId l : f.out_links(queue[next])) {
      const VertexId to = f.link(l).to;
      if (!f.is_switch(to) || seen[to.index()]) continue;
      if (!state.is_up(backward ? Fabric::reverse(l) : l)) continue;
      seen[to.index()] = 1;
      queue.push_back(to);
    }
  return seen;
}

}  // namespace

std::vector<LinkId> cut_on_graph(const Fabric& f, const LinkState& state, NicId from, NicId to) {
  const auto all_dead = [&](NicId n, bool up) {
    std::vector<LinkId> dead;
    for (int p = 0; p < f.ports_of(n); ++p) {
      const LinkId l = up ? f.uplink(n, p) : f.downlink(n, p);
      if (state.is_up(l)) return std::vector<LinkId>{};
      dead.push_back(l);
    }
    return dead;
  };
  if (auto dead = all_dead(from, true); !dead.empty()) return dead;
  if (auto dead = all_dead(to, false); !dead.empty()) return dead;
  // The failed links that leave what `from` reaches separate the pair; of them, those from whose
  // heads the far side can be reached at all, over ground that `from` does not reach.
  const std::vector<char> near = reached(f, state, f.vertex(from), false);
  std::vector<char> leads = reached(f, state, f.vertex(to), true);
  std::vector<VertexId> queue;
  for (std::size_t v = f.first_switch().index(); v < f.vertex_count(); ++v)
    if (leads[v]) queue.push_back(VertexId(v));
  for (std::size_t next = 0; next < queue.size(); ++next)
    for (const LinkId l : f.out_links(queue[next])) {
      const VertexId before = f.link(l).to;
      if (!f.is_switch(before) || leads[before.index()] || near[before.index()]) continue;
      leads[before.index()] = 1;
      queue.push_back(before);
    }
  std::vector<LinkId> cut;
  for (std::size_t v = f.first_switch().index(); v < f.vertex_count(); ++v) {
    if (!near[v]) continue;
    for (const LinkId l : f.out_links(VertexId(v)))
      if (f.is_switch(f.link(l).to) && leads[f.link(l).to.index()] && !state.is_up(l))
        cut.push_back(l);
  }
  return cut;
}

std::vector<LinkId> cut_by_trial(const Fabric& f, const LinkState& state, RoutePolicy policy,
                                 NicId from, NicId to) {
  // Links in the order in which a search from `from` meets them, whether they work or not.
  std::vector<LinkId> failed;
  std::vector<char> seen(f.vertex_count(), 0);
  std::vector<VertexId> queue{f.vertex(from)};
  seen[queue.front().index()] = 1;
  for (std::size_t next = 0; next < queue.size(); ++next)
    for (const LinkId l : f.out_links(queue[next])) {
      const VertexId head = f.link(l).to;
      if (!f.is_switch(head) && head != f.vertex(to)) continue;
      if (!state.is_up(l)) failed.push_back(l);
      if (seen[head.index()]) continue;
      seen[head.index()] = 1;
      queue.push_back(head);
    }
  LinkState trial(f);
  for (const LinkId l : failed) trial.set_up(l, false);
  const auto routes = make_routes(f, trial, policy);
  if (routes->has_path(from, to)) return {};
  std::vector<LinkId> cut;
  for (std::size_t i = failed.size(); i-- > 0;) {
    trial.set_up(failed[i], true);
    if (!routes->has_path(from, to)) continue;
    trial.set_up(failed[i], false);
    cut.push_back(failed[i]);
  }
  std::reverse(cut.begin(), cut.end());
  return cut;
}

}  // namespace trainyard::topologies
