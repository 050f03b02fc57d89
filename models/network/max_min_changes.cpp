#include <algorithm>
#include <utility>

#include "models/network/max_min.hpp"
#include "models/network/max_min_tolerances.hpp"

/// Taking in what was noted since the last solve: who left, who came, which limits moved. Lists of
/// users are blocks in one array that move to a larger block when they are full.
namespace trainyard::models {

using namespace max_min_tolerances;

void MaxMin::note_change(Index k) {
  Hot& h = hot_[k];
  if (h.is_changed) return;
  h.is_changed = 1;
  changed_.push_back({VarIndex(k), h.x});
  ++counters_.touched;
}

void MaxMin::free_variable(Index k) {
  edge_pool_.give_back(first_[k], BlockPool::room(hot_[k].count));
  hot_[k] = {};
  free_vars_.push_back(k);
}

/// The room for users of one link moves to a larger block.
void MaxMin::move_users(Index l, Index room) {
  Link& link = links_[l];
  const Index first = user_pool_.take(room);
  lengthen_to_room(users_, user_pool_.end());
  std::copy_n(users_.begin() + link.first, link.count, users_.begin() + first);
  if (is_weighted_) {
    lengthen_to_room(user_weights_, user_pool_.end());
    std::copy_n(user_weights_.begin() + link.first, link.count, user_weights_.begin() + first);
  }
  user_pool_.give_back(link.first, link.room);
  link.first = first;
  link.room = room;
}

void MaxMin::push_user(Index l, Index k, double weight) {
  Link& link = links_[l];
  if (link.count == link.room)
    move_users(l, BlockPool::room(std::max<std::size_t>(4, link.count + link.count / 4 + 1)));
  users_[link.first + link.count] = k;
  if (is_weighted_) user_weights_[link.first + link.count] = weight;
  ++link.count;
}

/// A newcomer runs as fast as the present levels let it. That may overload its links, which the
/// repair puts right; before a full solve it is only listed.
void MaxMin::attach(Index k, bool is_tentative) {
  Hot& h = hot_[k];
  h.is_attached = 1;
  double reach = limits_[k];
  if (h.is_wide) {
    if (is_tentative) reach = 0;
    if (!is_tentative) are_envelopes_loose_ = true;
    wide_[k] = {reach, 0};
  }
  const Index first = first_[k];
  for (Index e = first; e != first + h.count; ++e) {
    const Index l = edges_[e];
    const double weight = edge_weight(e);
    push_user(l, k, weight);
    Link& link = links_[l];
    if (link.count == 1) ++links_in_use_;
    link.weight += weight;
    link.reach += weight * reach;
    count_update(link.reach_updates);
    if (!link.is_active) {
      if (is_over_reached(l)) activate(l);
    } else if (h.is_wide) {  // active ones first
      const Index border = first + wide_[k].active++;
      std::swap(edges_[e], edges_[border]);
      if (is_weighted_) std::swap(edge_weights_[e], edge_weights_[border]);
    }
  }
  note_change(k);
  if (!is_tentative) return;
  Index holder = at_cap;
  const double x = highest(k, at_cap, &holder);
  set(k, x, holder);
}

void MaxMin::detach(Index k) {
  const Hot h = hot_[k];
  const Index first = first_[k];
  const double reach = reach_of(k);
  for (Index e = first; e != first + h.count; ++e) {
    const Index l = edges_[e];
    const double weight = edge_weight(e);
    Link& link = links_[l];
    const auto begin = users_.begin() + link.first;
    const auto at = static_cast<Index>(std::find(begin, begin + link.count, k) - users_.begin());
    const Index last = link.first + --link.count;
    users_[at] = users_[last];
    if (is_weighted_) user_weights_[at] = user_weights_[last];
    if (link.count == 0) {
      link.load = link.weight = link.bound_weight = link.reach = 0;
      link.bound_count = 0;
      link.load_updates = link.reach_updates = 0;
      --links_in_use_;
    } else {
      link.weight -= weight;
      if (link.weight < 1e-6 * weight) {  // little is left of a large sum
        link.weight = 0;
        for (Index u = link.first; u != last; ++u) link.weight += user_weight(u);
      }
      link.reach -= weight * reach;
      count_update(link.reach_updates);
      if (link.is_active) {
        link.load -= weight * h.x;
        count_update(link.load_updates);
      }
      if (h.bound == l) {
        --link.bound_count;
        link.bound_weight = link.bound_count == 0 ? 0.0 : link.bound_weight - weight;
      }
    }
    if (link.level != unlimited)
      touch(l);
    else
      consider(l);
  }
}

double MaxMin::least_share(Index k) const {
  double share = unlimited;
  for (Index e = first_[k]; e != first_[k] + hot_[k].count; ++e)
    share = std::min(share, doors_[edges_[e]].nominal / edge_weight(e));
  return share;
}

void MaxMin::renew_limit(Index k, bool is_tentative) {
  const double limit = std::min(cap(VarIndex(k)), least_share(k));
  const double change = limit - std::exchange(limits_[k], limit);
  if (change == 0) return;
  Hot& h = hot_[k];
  if (!h.is_wide) {
    for (Index e = first_[k]; e != first_[k] + h.count; ++e) {
      links_[edges_[e]].reach += edge_weight(e) * change;
      count_update(links_[edges_[e]].reach_updates);
      consider(edges_[e]);
    }
  }
  if (h.bound != at_cap && h.x <= limit) return;
  note_change(k);
  if (!is_tentative) return;
  Index holder = at_cap;
  const double x = highest(k, at_cap, &holder);
  set(k, x, holder);
}

void MaxMin::apply_changes(bool is_tentative) {
  for (const Index k : leaving_) {
    if (hot_[k].is_attached) detach(k);
    free_variable(k);
  }
  leaving_.clear();
  for (const Index k : arrivals_)
    if (hot_[k].is_alive && !hot_[k].is_attached) attach(k, is_tentative);
  arrivals_.clear();
  for (const Index l : raised_)
    for (Index u = 0; u < links_[l].count; ++u)
      renew_limit(users_[links_[l].first + u], is_tentative);
  raised_.clear();
  for (const Index k : recapped_)
    if (hot_[k].is_attached) renew_limit(k, is_tentative);
  recapped_.clear();
  for (std::size_t i = 0; i < touched_.size(); ++i) consider(touched_[i]);
}

}  // namespace trainyard::models
