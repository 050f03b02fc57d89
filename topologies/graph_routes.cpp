#include "topologies/graph_routes.hpp"

#include <algorithm>
#include <limits>

#include "sim/check.hpp"
#include "topologies/flow_hash.hpp"

namespace trainyard::topologies {

namespace {

constexpr std::uint32_t unreachable = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t most_bytes = 64u << 20;

/// Rendezvous hashing: the link whose hash with the flow is the highest.
LinkId highest(const std::vector<LinkId>& links, std::uint64_t flow_hash) {
  LinkId best = links.front();
  std::uint64_t best_hash = 0;
  for (const LinkId l : links) {
    const std::uint64_t h = mix(flow_hash ^ mix(l.index()));
    if (h < best_hash) continue;
    best_hash = h;
    best = l;
  }
  return best;
}

}  // namespace

GraphRoutes::GraphRoutes(const Fabric& fabric, const LinkState& state, RoutePolicy policy)
    : Routes(fabric, state, policy),
      first_switch_(fabric.first_switch().index()),
      most_entries_(std::max<std::size_t>(
          16,
          most_bytes / (sizeof(std::uint32_t) * std::max<std::size_t>(1, fabric.switch_count())))),
      share_(fabric.switch_count(), 0.0) {}

int GraphRoutes::flows_of_pair() const {
  return policy_.kind == RoutingKind::ecmp ? policy_.flows_per_pair : 1;
}

void GraphRoutes::state_changed() {
  known_.clear();
  used_.clear();
}

GraphRoutes::Target GraphRoutes::target(NicId to) const {
  Target switches;
  for (int p = 0; p < fabric_.ports_of(to); ++p)
    if (is_up(fabric_.downlink(to, p)))
      switches.push_back(std::uint32_t(index(fabric_.edge_of(to, p))));
  std::sort(switches.begin(), switches.end());
  switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
  return switches;
}

const GraphRoutes::Hops& GraphRoutes::hops_to(NicId to) const {
  Target key = target(to);
  const auto found = known_.find(key);
  if (found != known_.end()) {
    used_.splice(used_.begin(), used_, found->second.use);
    return found->second.hops;
  }
  if (known_.size() >= most_entries_) {
    const auto oldest = known_.find(*used_.back());
    used_.pop_back();
    known_.erase(oldest);
  }
  Hops hops = search(key);
  const auto [at, is_new] = known_.emplace(std::move(key), Entry{std::move(hops), {}});
  check(is_new, "a destination is searched for once");
  used_.push_front(&at->first);
  at->second.use = used_.begin();
  return at->second.hops;
}

GraphRoutes::Hops GraphRoutes::search(const Target& targets) const {
  Hops hops(fabric_.switch_count(), unreachable);
  std::vector<std::uint32_t> queue(targets.begin(), targets.end());
  for (const std::uint32_t t : targets) hops[t] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const std::uint32_t v = queue[next];
    for (const LinkId out : fabric_.out_links(VertexId(first_switch_ + v))) {
      const VertexId before = fabric_.link(out).to;
      if (!fabric_.is_switch(before) || hops[index(before)] != unreachable) continue;
      if (!is_up(Fabric::reverse(out))) continue;
      hops[index(before)] = hops[v] + 1;
      queue.push_back(std::uint32_t(index(before)));
    }
  }
  return hops;
}

void GraphRoutes::first_hops(NicId from, const Hops& hops, std::vector<LinkId>& out) const {
  out.clear();
  std::uint32_t nearest = unreachable;
  for (int p = 0; p < fabric_.ports_of(from); ++p) {
    const LinkId l = fabric_.uplink(from, p);
    const std::uint32_t d = hops[index(fabric_.link(l).to)];
    if (d == unreachable || d > nearest || !is_up(l)) continue;
    if (d < nearest) out.clear();
    nearest = d;
    out.push_back(l);
  }
}

void GraphRoutes::next_hops(VertexId at, NicId to, const Hops& hops,
                            std::vector<LinkId>& out) const {
  out.clear();
  const std::uint32_t d = hops[index(at)];
  if (d == 0) {  // down to the NIC, by any of its ports here
    for (int p = 0; p < fabric_.ports_of(to); ++p)
      if (const LinkId l = fabric_.downlink(to, p); fabric_.link(l).from == at && is_up(l))
        out.push_back(l);
    return;
  }
  for (const LinkId l : fabric_.out_links(at)) {
    const VertexId next = fabric_.link(l).to;
    if (fabric_.is_switch(next) && hops[index(next)] == d - 1 && is_up(l)) out.push_back(l);
  }
}

bool GraphRoutes::has_path(NicId from, NicId to) const {
  std::vector<LinkId> first;
  first_hops(from, hops_to(to), first);
  return !first.empty();
}

std::vector<LinkId> GraphRoutes::cut(NicId from, NicId to) const {
  if (has_path(from, to)) return {};
  return cut_on_graph(fabric_, state_, from, to);
}

bool GraphRoutes::path(NicId from, NicId to, std::uint64_t label, int queue_pair,
                       std::vector<LinkId>& out) const {
  out.clear();
  const Hops& hops = hops_to(to);
  std::vector<LinkId> choices;
  first_hops(from, hops, choices);
  if (choices.empty()) return false;
  const std::uint64_t flow = policy_.kind == RoutingKind::fixed
                                 ? hash_flow(policy_.seed, to, to, 0, 0)
                                 : hash_flow(policy_.seed, from, to, label, queue_pair);
  for (;;) {
    check(!choices.empty(), "a switch from which a NIC is reached has a next hop");
    const LinkId l = highest(choices, flow);
    out.push_back(l);
    const VertexId at = fabric_.link(l).to;
    if (!fabric_.is_switch(at)) return true;
    next_hops(at, to, hops, choices);
  }
}

bool GraphRoutes::visit_loads(NicId from, NicId to, std::uint64_t label, double flows,
                              LoadVisitor visit) const {
  if (policy_.kind == RoutingKind::ecmp || policy_.kind == RoutingKind::fixed)
    return visit_hashed_loads(*this, flows_of_pair(), from, to, label, flows, visit);
  if (!has_path(from, to)) return false;
  if (flows > 0.0) split(from, to, flows, visit);
  return true;
}

/// Level by level towards the destination: what arrives at a switch is divided over its next hops.
void GraphRoutes::split(NicId from, NicId to, double flows, LoadVisitor visit) const {
  const Hops& hops = hops_to(to);
  std::vector<LinkId> choices;
  std::vector<VertexId> level, next;
  const auto divide = [&](double amount) {
    double sum = 0.0;
    const auto weight = [&](LinkId l) {
      return policy_.kind == RoutingKind::adaptive ? state_.capacity(l).value() : 1.0;
    };
    for (const LinkId l : choices) sum += weight(l);
    for (const LinkId l : choices) {
      const double part = amount * (weight(l) / sum);
      visit(l, part);
      const VertexId at = fabric_.link(l).to;
      if (!fabric_.is_switch(at)) continue;
      if (share_[index(at)] == 0.0) next.push_back(at);
      share_[index(at)] += part;
    }
  };
  first_hops(from, hops, choices);
  divide(flows);
  while (!next.empty()) {
    level.swap(next);
    next.clear();
    for (const VertexId at : level) {
      next_hops(at, to, hops, choices);
      const double amount = share_[index(at)];
      share_[index(at)] = 0.0;
      divide(amount);
    }
  }
}

}  // namespace trainyard::topologies
