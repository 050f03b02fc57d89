#include <algorithm>
#include <limits>

#include "sim/check.hpp"
#include "topologies/fat_tree_routes.hpp"

/// How spray and adaptive routing divide a flow.
namespace trainyard::topologies {

using Ways = FatTreeWays;

/// An intact tree is symmetric: each tier's links share evenly.
void FatTreeRoutes::spread_evenly(const Ways& ways, double flows, LoadVisitor visit) const {
  const double out = flows / ways.from_ports();
  const double in = flows / ways.to_ports();
  for (int p = 0; p < ways.from_ports(); ++p) visit(ways.hop(Ways::start, p).link, out);
  for (int u = 0; u < tree_.uplinks_per_leaf; ++u) {
    for (int p = 0; p < ways.from_ports(); ++p)
      visit(fabric_.leaf_uplink(ways.from_leaf(p), u), out / tree_.uplinks_per_leaf);
    for (int q = 0; q < ways.to_ports(); ++q)
      visit(Fabric::reverse(fabric_.leaf_uplink(ways.to_leaf(q), u)), in / tree_.uplinks_per_leaf);
  }
  if (ways.top() == Ways::Top::core) {
    const int spines = tree_.spines_per_pod;
    const double per_link = flows / (double(spines) * tree_.uplinks_per_spine);
    for (int s = 0; s < spines; ++s)
      for (int u = 0; u < tree_.uplinks_per_spine; ++u) {
        visit(fabric_.spine_uplink(ways.from_pod() * spines + s, u), per_link);
        visit(Fabric::reverse(fabric_.spine_uplink(ways.to_pod() * spines + s, u)), per_link);
      }
  }
  for (int q = 0; q < ways.to_ports(); ++q) visit(ways.hop({Ways::leaf_down, q}, 0).link, in);
}

/// Stage by stage: what arrives at a place is divided over its hops by weight.
void FatTreeRoutes::spread(const Ways& ways, double flows, LoadVisitor visit) const {
  const bool is_adaptive = policy_.kind == RoutingKind::adaptive;
  const PlaceValues behind = is_adaptive ? what_lies_behind(ways) : PlaceValues{};
  PlaceValues share;
  for (std::size_t s = 0; s < Ways::stages; ++s)
    share[s].assign(std::size_t(ways.places(Ways::Stage(s))), 0.0);
  share[Ways::nic][0] = flows;
  std::vector<double> weights;
  for (std::size_t s = 0; s < Ways::end; ++s)
    for (Place at{Ways::Stage(s), 0}; at.index < ways.places(at.stage); ++at.index) {
      const double here = share[s][std::size_t(at.index)];
      if (here == 0.0) continue;
      weigh(ways, at, is_adaptive ? &behind : nullptr, weights);
      double sum = 0.0;
      for (const double w : weights) sum += w;
      check(sum > 0.0, "a share is only sent where it can go on");
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] == 0.0) continue;
        const Ways::Hop hop = ways.hop(at, int(i));
        const double part = here * weights[i] / sum;
        visit(hop.link, part);
        share[hop.next.stage][std::size_t(hop.next.index)] += part;
      }
    }
}

void FatTreeRoutes::weigh(const Ways& ways, Place at, const PlaceValues* behind,
                          std::vector<double>& out) const {
  const auto n = std::size_t(ways.hops(at));
  out.assign(n, 0.0);
  if (!behind) {
    for (std::size_t i = 0; i < n; ++i) out[i] = counts(ways, ways.hop(at, int(i))) ? 1.0 : 0.0;
    return;
  }
  double best_port = 0.0;  // of the receiver
  for (int q = 0; q < ways.to_ports() && at.stage == Ways::spine_down; ++q)
    best_port =
        std::max(best_port, state_.capacity(ways.hop({Ways::leaf_down, q}, 0).link).value());
  // Parallel cables follow each other.
  for (std::size_t first = 0; first < n;) {
    const Place next = ways.hop(at, int(first)).next;
    double sum = 0.0;
    std::size_t last = first;
    for (; last < n; ++last) {
      const Ways::Hop hop = ways.hop(at, int(last));
      if (hop.next.index != next.index) break;
      out[last] = state_.capacity(hop.link).value();
      if (at.stage == Ways::spine_down && best_port > 0.0)
        out[last] *=
            state_.capacity(ways.hop({Ways::leaf_down, next.index}, 0).link).value() / best_port;
      sum += out[last];
    }
    const double limit = (*behind)[next.stage][std::size_t(next.index)];
    if (sum > limit)
      for (std::size_t i = first; i < last; ++i) out[i] *= limit / sum;
    first = last;
  }
}

FatTreeRoutes::PlaceValues FatTreeRoutes::what_lies_behind(const Ways& ways) const {
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  PlaceValues behind;
  behind[Ways::end] = {unlimited};
  std::vector<double> weights;
  for (std::size_t s = Ways::end; s-- > Ways::leaf_up;) {
    const auto stage = Ways::Stage(s);
    behind[s].assign(std::size_t(ways.places(stage)), 0.0);
    for (Place at{stage, 0}; at.index < ways.places(stage); ++at.index) {
      weigh(ways, at, &behind, weights);
      double& sum = behind[s][std::size_t(at.index)];
      for (const double w : weights) sum += w;
      if (sum == 0.0) continue;
      if (ways.hop(at, 0).next.stage == Ways::end) {
        // The receiver's own links do not count behind a spine: they only must work.
        if (stage == Ways::leaf_down) sum = unlimited;
        continue;
      }
      // Next switches that lead to the same ones after them share what these have.
      std::vector<char> seen;
      double further = 0.0;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] == 0.0) continue;
        const Place next = ways.hop(at, int(i)).next;
        for (int k = 0; k < ways.hops(next); ++k) {
          const Ways::Hop hop = ways.hop(next, k);
          seen.resize(behind[hop.next.stage].size(), 0);
          char& is_seen = seen[std::size_t(hop.next.index)];
          if (is_seen || !is_up(hop.link)) continue;
          is_seen = 1;
          further += behind[hop.next.stage][std::size_t(hop.next.index)];
        }
      }
      sum = std::min(sum, further);
    }
  }
  return behind;
}

}  // namespace trainyard::topologies
