#include "topologies/fat_tree_routes.hpp"

#include <algorithm>
#include <array>

#include "sim/check.hpp"
#include "topologies/flow_hash.hpp"

namespace trainyard::topologies {

using Ways = FatTreeWays;

FatTreeRoutes::FatTreeRoutes(const Fabric& fabric, const LinkState& state, RoutePolicy policy)
    : Routes(fabric, state, policy), tree_(fabric.shape<FatTreeShape>()) {
  const auto& rates = fabric.spec().uplink_rates;
  is_even_ = std::all_of(rates.begin(), rates.end(),
                         [&](BytesPerSecond rate) { return rate == rates.front(); });
}

int FatTreeRoutes::flows_of_pair() const {
  return policy_.kind == RoutingKind::ecmp ? policy_.flows_per_pair : 1;
}

bool FatTreeRoutes::counts(const Ways& ways, const Ways::Hop& hop) const {
  return is_up(hop.link) && leads(ways, hop.next);
}

bool FatTreeRoutes::leads(const Ways& ways, Place at) const {
  if (at.stage == Ways::end) return true;
  const int n = ways.hops(at);
  for (int i = 0; i < n; ++i)
    if (counts(ways, ways.hop(at, i))) return true;
  return false;
}

std::optional<Ways> FatTreeRoutes::working_ways(NicId from, NicId to) const {
  Ways ways(fabric_, from, to);
  if (ways.top() == Ways::Top::none) return {};
  if (state_.is_all_up() || leads(ways, Ways::start)) return ways;
  if (!ways.may_rise()) return {};
  ways.rise();
  if (leads(ways, Ways::start)) return ways;
  return {};
}

bool FatTreeRoutes::has_path(NicId from, NicId to) const {
  return working_ways(from, to).has_value();
}

bool FatTreeRoutes::is_wired(NicId from, NicId to) const {
  return Ways(fabric_, from, to).top() != Ways::Top::none;
}

// One path

int FatTreeRoutes::position(NicId n) const {
  const auto nics = static_cast<int>(fabric_.nic_count());
  const int i = static_cast<int>(n.index());
  if (i >= nics) return i;  // storage ports come after all NICs
  const int host = i / tree_.nics_per_host;
  const int local = i % tree_.nics_per_host;
  const int per_rail = tree_.nics_per_host / tree_.rails;
  const int pair = tree_.leaf_of_nic(i, 0) / tree_.ports_per_nic;
  return (pair * tree_.hosts_per_leaf + host % tree_.hosts_per_leaf) * per_rail + local % per_rail;
}

namespace {

/// D-mod-k: the hop that a destination at position `d` takes.
int fixed_hop(const FatTreeShape& t, const Ways& ways, Ways::Place at, int d) {
  const int ports = t.ports_per_nic;
  const int rest = d / ports;
  const auto up_leaf = [&] { return rest % t.uplinks_per_leaf; };
  const auto up_spine = [&] { return rest / t.uplinks_per_leaf % t.uplinks_per_spine; };
  switch (at.stage) {
    case Ways::nic:
      return d % ways.from_ports();
    case Ways::leaf_up:
      return ways.top() == Ways::Top::leaf ? 0 : up_leaf();
    case Ways::spine_up:
      return up_spine();
    case Ways::core:  // down by the cables that the way up would have used
      return up_leaf() / t.leaf_bundle / t.core_groups * t.core_bundle + up_spine() % t.core_bundle;
    case Ways::spine_down:
      return d % ways.to_ports() * t.leaf_bundle + up_leaf() % t.leaf_bundle;
    default:
      return 0;
  }
}

/// The wanted hop; if that one does not work, one of those that do, by the same number.
template <class Works>
std::optional<int> choose_from(int wanted, int n, Works works) {
  if (works(wanted)) return wanted;
  std::vector<int> working;
  for (int i = 0; i < n; ++i)
    if (works(i)) working.push_back(i);
  if (working.empty()) return {};
  return working[std::size_t(wanted) % working.size()];
}

/// Each stage draws with a hash of its own.
constexpr int draw_of(Ways::Stage stage) {
  constexpr std::array<int, Ways::stages> draws{4, 0, 1, 2, 3, 0, 0};
  return draws[stage];
}

}  // namespace

bool FatTreeRoutes::path(NicId from, NicId to, std::uint64_t label, int queue_pair,
                         std::vector<LinkId>& out) const {
  out.clear();
  const auto ways = working_ways(from, to);
  if (!ways) return false;
  const bool is_fixed = policy_.kind == RoutingKind::fixed;
  const std::uint64_t hash = is_fixed ? 0 : hash_flow(policy_.seed, from, to, label, queue_pair);
  const int destination = is_fixed ? position(to) : 0;
  const bool all_up = state_.is_all_up();
  for (Place at = Ways::start; at.stage != Ways::end;) {
    const auto works = [&](int i) {
      // On an intact fabric only a port can be the wrong one: it may not lead to a shared leaf.
      return (all_up && at.stage != Ways::nic) || counts(*ways, ways->hop(at, i));
    };
    const int n = ways->hops(at);
    int chosen = 0;
    if (n > 1) {
      const auto choice = is_fixed ? choose_from(fixed_hop(tree_, *ways, at, destination), n, works)
                                   : choose(hash, draw_of(at.stage), n, works);
      check(choice.has_value(), "a hop that was chosen has a way on");
      chosen = *choice;
    }
    const Ways::Hop hop = ways->hop(at, chosen);
    out.push_back(hop.link);
    at = hop.next;
  }
  return true;
}

bool FatTreeRoutes::visit_loads(NicId from, NicId to, std::uint64_t label, double flows,
                                LoadVisitor visit) const {
  if (policy_.kind == RoutingKind::ecmp)
    return visit_hashed_loads(*this, policy_.flows_per_pair, from, to, label, flows, visit);
  if (policy_.kind == RoutingKind::fixed)
    return visit_hashed_loads(*this, 1, from, to, label, flows, visit);
  const auto ways = working_ways(from, to);
  if (!ways) return false;
  const bool is_even =
      policy_.kind == RoutingKind::spray ? state_.is_all_up() : is_even_ && !state_.is_changed();
  if (is_even && ways->top() != Ways::Top::leaf)
    spread_evenly(*ways, flows, visit);
  else
    spread(*ways, flows, visit);
  return true;
}

// Why there is none

std::vector<LinkId> FatTreeRoutes::cut(NicId from, NicId to) const {
  Ways ways(fabric_, from, to);
  if (ways.top() == Ways::Top::none || working_ways(from, to)) return {};
  // Nothing arrives at a dead NIC: that is all there is to say, if anything is sent.
  std::vector<LinkId> dead;
  for (int q = 0; q < ways.to_ports(); ++q)
    if (const LinkId l = fabric_.downlink(to, q); !is_up(l)) dead.push_back(l);
  bool is_sent = false;
  for (int p = 0; p < ways.from_ports(); ++p) is_sent = is_sent || is_up(fabric_.uplink(from, p));
  const bool may_use_all_ports = ways.top() != Ways::Top::leaf || ways.may_rise();
  if (is_sent && may_use_all_ports && static_cast<int>(dead.size()) == ways.to_ports()) return dead;
  if (ways.may_rise()) ways.rise();
  ways.show_short_cuts();

  // Walk from `from` as far as it works, noting the failed links met on the way …
  std::array<std::vector<char>, Ways::stages> reached;
  for (std::size_t s = 0; s < Ways::stages; ++s)
    reached[s].assign(std::size_t(ways.places(Ways::Stage(s))), 0);
  const auto is_reached = [&](Place p) -> char& { return reached[p.stage][std::size_t(p.index)]; };
  std::vector<Ways::Hop> failed;
  is_reached(Ways::start) = 1;
  for (std::size_t s = 0; s < Ways::stages; ++s)
    for (Place at{Ways::Stage(s), 0}; at.index < ways.places(at.stage); ++at.index) {
      if (!is_reached(at)) continue;
      if (at.stage == Ways::leaf_up && ways.port_below(at.index) >= 0)
        is_reached({Ways::leaf_down, ways.port_below(at.index)}) = 1;  // it is the same switch
      for (int i = 0; i < ways.hops(at); ++i) {
        const Ways::Hop hop = ways.hop(at, i);
        if (is_up(hop.link))
          is_reached(hop.next) = 1;
        else
          failed.push_back(hop);
      }
    }
  check(!is_reached({Ways::end, 0}), "a pair without a path is separated");

  // … and keep those that would lead on to `to` by ground not reached already: what only rejoins
  // ground that was reached is broken, but does not separate.
  std::array<std::vector<char>, Ways::stages> open;
  open[Ways::end] = {1};
  for (std::size_t s = Ways::end; s-- > 0;) {
    const auto stage = Ways::Stage(s);
    open[s].assign(reached[s].size(), 0);
    for (Place at{stage, 0}; at.index < ways.places(stage); ++at.index)
      for (int i = 0; i < ways.hops(at) && !is_reached(at); ++i) {
        const Place next = ways.hop(at, i).next;
        if (open[next.stage][std::size_t(next.index)]) open[s][std::size_t(at.index)] = 1;
      }
  }
  std::vector<LinkId> separating;
  for (const Ways::Hop& hop : failed)
    if (open[hop.next.stage][std::size_t(hop.next.index)] &&
        std::find(separating.begin(), separating.end(), hop.link) == separating.end())
      separating.push_back(hop.link);
  check(!separating.empty(), "a pair without a path is separated by failed links");
  return separating;
}

}  // namespace trainyard::topologies
