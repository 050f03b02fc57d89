#include <algorithm>
#include <cmath>
#include <utility>

#include "models/network/max_min.hpp"
#include "models/network/max_min_tolerances.hpp"

/// Which links can bind at all. A link is active if its users could fill it, each at the most it
/// can reach: a narrow variable at its limit, a wide one at its envelope, a little above its
/// present rate. Only active links have a load, can be touched and take part in a full solve, and
/// a wide variable has its active links first, so that a change of its rate costs only those.
namespace trainyard::models {

using namespace max_min_tolerances;

void MaxMin::touch(Index l) {
  Link& link = links_[l];
  if (link.is_touched) return;
  link.is_touched = true;
  touched_.push_back(l);
  if (link.is_seen) return;
  link.is_seen = true;
  seen_.push_back(l);
}

/// Load and what the link holds, from the users as they are.
void MaxMin::sum_load(Index l) {
  Link& link = links_[l];
  double load = 0, weight = 0, bound_weight = 0;
  Index bound_count = 0;
  for (Index u = link.first; u != link.first + link.count; ++u) {
    const Hot& h = hot_[users_[u]];
    const double w = user_weight(u);
    load += w * h.x;
    weight += w;
    if (h.bound == l) {
      bound_weight += w;
      ++bound_count;
    }
  }
  link.load = load;
  link.weight = weight;
  link.bound_weight = bound_weight;
  link.bound_count = bound_count;
  link.load_updates = 0;
  ++counters_.looks;
  work_ += link.count;
}

void MaxMin::sum_reach(Index l) {
  Link& link = links_[l];
  link.reach = 0;
  for (Index u = link.first; u != link.first + link.count; ++u)
    link.reach += user_weight(u) * reach_of(users_[u]);
  link.reach_updates = 0;
}

bool MaxMin::is_over_reached(Index l) {
  Link& link = links_[l];
  if (link.reach_updates > 0 &&
      (link.reach_updates >= updates_before_sum ||
       std::abs(link.reach - link.capacity) <= reach_doubt * (link.capacity + doors_[l].nominal)))
    sum_reach(l);
  return link.reach > link.capacity * (1 + tight);
}

/// After a change of reach or capacity. Wide variables make a change of state dear (each of them
/// searches its list), so there a link must be far below its capacity to go; a full solve, to which
/// every active link is a cost, lets all of them go at once.
void MaxMin::consider(Index l) {
  Link& link = links_[l];
  if (is_over_reached(l)) {
    if (!link.is_active) activate(l);
  } else if (link.is_active && link.level == unlimited) {
    if (wide_.empty() || link.reach <= 0.5 * link.capacity) deactivate(l);
  }
}

void MaxMin::deactivate_slack() {
  bool is_any = false;
  for (Index l = 0; l < links_.size(); ++l) {
    Link& link = links_[l];
    if (!link.is_active || link.level != unlimited || is_over_reached(l)) continue;
    link.is_active = false;
    is_any = true;
  }
  if (is_any) partition_all();
}

void MaxMin::activate(Index l) {
  ++counters_.activations;
  Link& link = links_[l];
  link.is_active = true;
  sum_load(l);
  if (!wide_.empty())
    for (Index u = link.first; u != link.first + link.count; ++u)
      if (hot_[users_[u]].is_wide) move_edge(users_[u], l, true);
  touch(l);
}

void MaxMin::deactivate(Index l) {
  Link& link = links_[l];
  link.is_active = false;
  if (wide_.empty()) return;
  for (Index u = link.first; u != link.first + link.count; ++u)
    if (hot_[users_[u]].is_wide) move_edge(users_[u], l, false);
}

/// Over the border between the active links of a wide variable, which come first, and the others.
void MaxMin::move_edge(Index k, Index l, bool to_active) {
  Wide& wide = wide_[k];
  const Index first = first_[k];
  Index e = to_active ? first + wide.active : first;
  while (edges_[e] != l) ++e;
  const Index border = to_active ? first + wide.active++ : first + --wide.active;
  std::swap(edges_[e], edges_[border]);
  if (is_weighted_) std::swap(edge_weights_[e], edge_weights_[border]);
}

void MaxMin::widen(Index k, double x) {
  Wide& wide = wide_[k];
  const double envelope = std::min(limits_[k], tuning_.envelope_factor * x);
  const double change = std::max(x, envelope) - wide.envelope;
  wide.envelope += change;
  if (wide.envelope < x) wide.envelope = x;
  const Index end = first_[k] + hot_[k].count;
  work_ += hot_[k].count;
  for (Index e = first_[k]; e != end; ++e) {
    Link& link = links_[edges_[e]];
    link.reach += edge_weight(e) * change;
    count_update(link.reach_updates);
    // Going active puts this edge before the border and one already seen here in its place.
    if (!link.is_active && is_over_reached(edges_[e])) activate(edges_[e]);
  }
}

/// Nearer to the rate, if it is far above. A variable that stands still keeps its envelope for its
/// return.
bool MaxMin::tighten(Index k) {
  const double x = hot_[k].x;
  double& envelope = wide_[k].envelope;
  if (x <= 0 || envelope <= std::max(2.0, 1.6 * tuning_.envelope_factor) * x) return false;
  envelope = std::max(x, std::min(limits_[k], tuning_.envelope_factor * x));
  return true;
}

void MaxMin::narrow_envelope(Index k) {
  const double before = wide_[k].envelope;
  if (!tighten(k)) return;
  const double change = wide_[k].envelope - before;
  const Index first = first_[k];
  for (Index e = first; e != first + hot_[k].count; ++e) {
    links_[edges_[e]].reach += edge_weight(e) * change;
    count_update(links_[edges_[e]].reach_updates);
  }
  for (Index e = first + wide_[k].active; e-- != first;) consider(edges_[e]);
}

void MaxMin::partition_all() {
  for (Index k = 0; k < wide_.size(); ++k) {
    if (!hot_[k].is_wide || !hot_[k].is_attached) continue;
    const Index first = first_[k], end = first + hot_[k].count;
    Index border = first;
    for (Index e = first; e != end; ++e) {
      if (!links_[edges_[e]].is_active) continue;
      std::swap(edges_[e], edges_[border]);
      if (is_weighted_) std::swap(edge_weights_[e], edge_weights_[border]);
      ++border;
    }
    wide_[k].active = border - first;
  }
}

/// After a full solve had let every wide variable reach its limit.
void MaxMin::narrow_all() {
  are_envelopes_loose_ = false;
  for (Index k = 0; k < wide_.size(); ++k)
    if (hot_[k].is_wide && hot_[k].is_attached) tighten(k);
  for (Index l = 0; l < links_.size(); ++l) {
    Link& link = links_[l];
    if (link.count == 0) continue;
    sum_reach(l);
    if (link.level != unlimited) continue;
    link.is_active = link.is_active && link.reach > link.capacity * (1 + tight);
  }
  partition_all();
}

}  // namespace trainyard::models
