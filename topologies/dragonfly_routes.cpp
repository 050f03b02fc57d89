#include "topologies/dragonfly_routes.hpp"

#include <algorithm>

#include "sim/check.hpp"
#include "topologies/flow_hash.hpp"

namespace trainyard::topologies {

/// The working global links towards and from an intermediate group, by its gateways.
struct DragonflyRoutes::Legs {
  std::vector<Gateway> in, out;
  std::vector<char> joined;  // in x out
  double routes = 0.0;       // pairs of links that make a route

  bool is_joined(std::size_t i, std::size_t o) const { return joined[i * out.size() + o] != 0; }
};

DragonflyRoutes::DragonflyRoutes(const Fabric& fabric, const LinkState& state, RoutePolicy policy)
    : Routes(fabric, state, policy), groups_(fabric) {}

int DragonflyRoutes::flows_of_pair() const {
  return policy_.kind == RoutingKind::ecmp ? policy_.flows_per_pair : 1;
}

bool DragonflyRoutes::may_detour() const {
  return policy_.kind == RoutingKind::spray || policy_.kind == RoutingKind::valiant ||
         policy_.kind == RoutingKind::ugal;
}

double DragonflyRoutes::minimal_share(int from_group, int to_group) const {
  if (policy_.kind == RoutingKind::valiant) return 0.0;
  if (shares_.empty()) return 1.0;
  return shares_[std::size_t(from_group) * std::size_t(groups_.groups()) + std::size_t(to_group)];
}

/// The n-th of the groups that are neither the sender's nor the receiver's.
int DragonflyRoutes::intermediate(Place from, Place to, int n) const {
  if (n >= std::min(from.group, to.group)) ++n;
  if (n >= std::max(from.group, to.group)) ++n;
  return n;
}

// What works

bool DragonflyRoutes::is_joined(int group, int a, int b) const {
  if (a == b || state_.is_all_up()) return true;
  const int n = groups_.ways(a, b);
  for (int i = 0; i < n; ++i) {
    const DragonflyGroups::Way w = groups_.way(group, a, b, i);
    if (is_up(w.links[0]) && (w.hops < 2 || is_up(w.links[1]))) return true;
  }
  return false;
}

bool DragonflyRoutes::leaves(Place from, const GlobalLink& l) const {
  return is_up(l.link) && is_joined(from.group, from.at, l.from);
}

bool DragonflyRoutes::arrives(const GlobalLink& l, Place to) const {
  return is_up(l.link) && is_joined(to.group, l.to, to.at);
}

bool DragonflyRoutes::has_minimal(Place from, Place to) const {
  if (state_.is_all_up()) return true;
  if (from.group == to.group) return is_joined(from.group, from.at, to.at);
  for (int n = 0; n < groups_.links_between(from.group, to.group); ++n) {
    const GlobalLink l = groups_.global_link(from.group, to.group, n);
    if (leaves(from, l) && arrives(l, to)) return true;
  }
  return false;
}

bool DragonflyRoutes::has_detour(Place from, Place to) const {
  if (from.group != to.group) {
    if (state_.is_all_up()) return groups_.groups() > 2;
    for (int n = 0; n < groups_.groups() - 2; ++n)
      if (legs(from, to, intermediate(from, to, n)).routes > 0.0) return true;
    return false;
  }
  for (int n = 0; n < groups_.detours(from.at, to.at); ++n) {
    const DragonflyGroups::Way w = groups_.detour(from.group, from.at, to.at, n);
    if (is_up(w.links[0]) && is_up(w.links[1])) return true;
  }
  return false;
}

DragonflyRoutes::Legs DragonflyRoutes::legs(Place from, Place to, int group) const {
  Legs l;
  const auto add = [](std::vector<Gateway>& gateways, int at) {
    for (Gateway& g : gateways)
      if (g.at == at) {
        g.links += 1.0;
        return;
      }
    gateways.push_back({at, 1.0});
  };
  for (int n = 0; n < groups_.links_between(from.group, group); ++n) {
    const GlobalLink first = groups_.global_link(from.group, group, n);
    if (leaves(from, first)) add(l.in, first.to);
  }
  for (int n = 0; n < groups_.links_between(group, to.group); ++n) {
    const GlobalLink second = groups_.global_link(group, to.group, n);
    if (arrives(second, to)) add(l.out, second.from);
  }
  l.joined.reserve(l.in.size() * l.out.size());
  for (const Gateway& i : l.in)
    for (const Gateway& o : l.out) {
      const bool works = is_joined(group, i.at, o.at);
      l.joined.push_back(works ? 1 : 0);
      if (works) l.routes += i.links * o.links;
    }
  return l;
}

double DragonflyRoutes::share_of_minimal(Place from, Place to) const {
  const double wanted = from.group == to.group ? 1.0 : minimal_share(from.group, to.group);
  const bool is_minimal = has_minimal(from, to);
  if (wanted == 1.0 && is_minimal) return 1.0;
  const bool is_detour = may_detour() && has_detour(from, to);
  if (!is_detour) return is_minimal ? 1.0 : -1.0;
  return is_minimal ? wanted : 0.0;
}

bool DragonflyRoutes::has_path(NicId from, NicId to) const {
  if (state_.is_all_up()) return true;
  if (!is_up(fabric_.uplink(from)) || !is_up(fabric_.downlink(to))) return false;
  const Place a = groups_.place(from), b = groups_.place(to);
  return has_minimal(a, b) || (may_detour() && has_detour(a, b));
}

std::vector<LinkId> DragonflyRoutes::cut(NicId from, NicId to) const {
  return cut_by_trial(fabric_, state_, policy_, from, to);
}

// One hashed path

namespace step {  // which draw of the hash decides what
enum : int { way, global, first_local, middle_local, last_local };
}

void DragonflyRoutes::hop(int group, int a, int b, std::uint64_t hash, int draw,
                          std::vector<LinkId>& out) const {
  if (a == b) return;
  const auto n = choose(hash, draw, groups_.ways(a, b), [&](int i) {
    const DragonflyGroups::Way w = groups_.way(group, a, b, i);
    return is_up(w.links[0]) && (w.hops < 2 || is_up(w.links[1]));
  });
  check(n.has_value(), "a route that was chosen works");
  const DragonflyGroups::Way w = groups_.way(group, a, b, *n);
  out.insert(out.end(), w.links.begin(), w.links.begin() + w.hops);
}

void DragonflyRoutes::minimal_path(Place from, Place to, std::uint64_t hash,
                                   std::vector<LinkId>& out) const {
  if (from.group == to.group) return hop(from.group, from.at, to.at, hash, step::first_local, out);
  const auto n =
      choose(hash, step::global, groups_.links_between(from.group, to.group), [&](int i) {
        const GlobalLink l = groups_.global_link(from.group, to.group, i);
        return leaves(from, l) && arrives(l, to);
      });
  check(n.has_value(), "a minimal route that was chosen works");
  const GlobalLink l = groups_.global_link(from.group, to.group, *n);
  hop(from.group, from.at, l.from, hash, step::first_local, out);
  out.push_back(l.link);
  hop(to.group, l.to, to.at, hash, step::last_local, out);
}

void DragonflyRoutes::detour_path(Place from, Place to, std::uint64_t hash,
                                  std::vector<LinkId>& out) const {
  if (from.group == to.group) {
    const auto n = choose(hash, step::first_local, groups_.detours(from.at, to.at), [&](int i) {
      const DragonflyGroups::Way w = groups_.detour(from.group, from.at, to.at, i);
      return is_up(w.links[0]) && is_up(w.links[1]);
    });
    check(n.has_value(), "a detour that was chosen works");
    const DragonflyGroups::Way w = groups_.detour(from.group, from.at, to.at, *n);
    out.insert(out.end(), w.links.begin(), w.links.end());
    return;
  }
  const auto chosen = choose(hash, step::way, groups_.groups() - 2, [&](int n) {
    return state_.is_all_up() || legs(from, to, intermediate(from, to, n)).routes > 0.0;
  });
  check(chosen.has_value(), "a Valiant route that was chosen works");
  const int group = intermediate(from, to, *chosen);
  const int seconds = groups_.links_between(group, to.group);
  const auto pair =
      choose(hash, step::global, groups_.links_between(from.group, group) * seconds, [&](int i) {
        const GlobalLink in = groups_.global_link(from.group, group, i / seconds);
        const GlobalLink onward = groups_.global_link(group, to.group, i % seconds);
        return leaves(from, in) && is_joined(group, in.to, onward.from) && arrives(onward, to);
      });
  check(pair.has_value(), "a group that was chosen has a route over it");
  const GlobalLink in = groups_.global_link(from.group, group, *pair / seconds);
  const GlobalLink onward = groups_.global_link(group, to.group, *pair % seconds);
  hop(from.group, from.at, in.from, hash, step::first_local, out);
  out.push_back(in.link);
  hop(group, in.to, onward.from, hash, step::middle_local, out);
  out.push_back(onward.link);
  hop(to.group, onward.to, to.at, hash, step::last_local, out);
}

bool DragonflyRoutes::path(NicId from, NicId to, std::uint64_t label, int queue_pair,
                           std::vector<LinkId>& out) const {
  out.clear();
  if (!is_up(fabric_.uplink(from)) || !is_up(fabric_.downlink(to))) return false;
  const Place a = groups_.place(from), b = groups_.place(to);
  const double share = a == b ? 1.0 : share_of_minimal(a, b);
  if (share < 0.0) return false;
  const std::uint64_t hash = hash_flow(policy_.seed, from, to, label, queue_pair);
  // The share of flows that go minimal is that of the traffic: 32 bits of a hash of its own.
  const bool is_minimal =
      share == 1.0 || (share > 0.0 && double(mix(~hash) >> 32) < share * 4294967296.0);
  out.push_back(fabric_.uplink(from));
  if (a != b && is_minimal) minimal_path(a, b, hash, out);
  if (a != b && !is_minimal) detour_path(a, b, hash, out);
  out.push_back(fabric_.downlink(to));
  return true;
}

// Loads

void DragonflyRoutes::spread(int group, int a, int b, double w, LoadVisitor visit) const {
  if (a == b || w == 0.0) return;
  const auto works = [&](const DragonflyGroups::Way& way) {
    return is_up(way.links[0]) && (way.hops < 2 || is_up(way.links[1]));
  };
  const int n = groups_.ways(a, b);
  int working = 0;
  for (int i = 0; i < n; ++i) working += works(groups_.way(group, a, b, i)) ? 1 : 0;
  check(working > 0, "traffic is only spread over what works");
  for (int i = 0; i < n; ++i) {
    const DragonflyGroups::Way way = groups_.way(group, a, b, i);
    if (!works(way)) continue;
    for (int h = 0; h < way.hops; ++h) visit(way.links[std::size_t(h)], w / working);
  }
}

void DragonflyRoutes::visit_minimal(Place from, Place to, double w, LoadVisitor visit) const {
  if (from.group == to.group) return spread(from.group, from.at, to.at, w, visit);
  std::vector<GlobalLink> working;
  for (int n = 0; n < groups_.links_between(from.group, to.group); ++n) {
    const GlobalLink l = groups_.global_link(from.group, to.group, n);
    if (leaves(from, l) && arrives(l, to)) working.push_back(l);
  }
  const double each = w / double(working.size());
  for (const GlobalLink& l : working) {
    spread(from.group, from.at, l.from, each, visit);
    visit(l.link, each);
    spread(to.group, l.to, to.at, each, visit);
  }
}

void DragonflyRoutes::visit_over(Place from, Place to, int group, double w,
                                 LoadVisitor visit) const {
  const Legs l = legs(from, to, group);
  const double each = w / l.routes;
  std::vector<double> in(l.in.size(), 0.0);  // on one link of each gateway
  std::vector<double> out(l.out.size(), 0.0);
  for (std::size_t i = 0; i < l.in.size(); ++i)
    for (std::size_t o = 0; o < l.out.size(); ++o) {
      if (!l.is_joined(i, o)) continue;
      in[i] += each * l.out[o].links;
      out[o] += each * l.in[i].links;
      spread(group, l.in[i].at, l.out[o].at, each * l.in[i].links * l.out[o].links, visit);
    }
  const auto on = [](const std::vector<Gateway>& gateways, const std::vector<double>& weight,
                     int at) {
    for (std::size_t i = 0; i < gateways.size(); ++i)
      if (gateways[i].at == at) return weight[i];
    return 0.0;
  };
  for (int n = 0; n < groups_.links_between(from.group, group); ++n) {
    const GlobalLink first = groups_.global_link(from.group, group, n);
    const double share = on(l.in, in, first.to);
    if (share == 0.0 || !leaves(from, first)) continue;
    spread(from.group, from.at, first.from, share, visit);
    visit(first.link, share);
  }
  for (int n = 0; n < groups_.links_between(group, to.group); ++n) {
    const GlobalLink second = groups_.global_link(group, to.group, n);
    const double share = on(l.out, out, second.from);
    if (share == 0.0 || !arrives(second, to)) continue;
    visit(second.link, share);
    spread(to.group, second.to, to.at, share, visit);
  }
}

void DragonflyRoutes::visit_detour(Place from, Place to, double w, LoadVisitor visit) const {
  if (from.group != to.group) {
    std::vector<int> over;
    for (int n = 0; n < groups_.groups() - 2; ++n) {
      const int group = intermediate(from, to, n);
      if (state_.is_all_up() || legs(from, to, group).routes > 0.0) over.push_back(group);
    }
    for (const int group : over) visit_over(from, to, group, w / double(over.size()), visit);
    return;
  }
  std::vector<DragonflyGroups::Way> working;
  for (int n = 0; n < groups_.detours(from.at, to.at); ++n) {
    const DragonflyGroups::Way way = groups_.detour(from.group, from.at, to.at, n);
    if (is_up(way.links[0]) && is_up(way.links[1])) working.push_back(way);
  }
  for (const DragonflyGroups::Way& way : working)
    for (const LinkId l : way.links) visit(l, w / double(working.size()));
}

bool DragonflyRoutes::visit_loads(NicId from, NicId to, std::uint64_t label, double flows,
                                  LoadVisitor visit) const {
  if (policy_.kind == RoutingKind::ecmp)
    return visit_hashed_loads(*this, policy_.flows_per_pair, from, to, label, flows, visit);
  if (!is_up(fabric_.uplink(from)) || !is_up(fabric_.downlink(to))) return false;
  const Place a = groups_.place(from), b = groups_.place(to);
  const double share = a == b ? 1.0 : share_of_minimal(a, b);
  if (share < 0.0) return false;
  visit(fabric_.uplink(from), flows);
  if (a != b && share > 0.0) visit_minimal(a, b, flows * share, visit);
  if (share < 1.0) visit_detour(a, b, flows * (1.0 - share), visit);
  visit(fabric_.downlink(to), flows);
  return true;
}

}  // namespace trainyard::topologies
