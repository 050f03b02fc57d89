#include <algorithm>
#include <functional>

#include "models/network/max_min.hpp"
#include "models/network/max_min_tolerances.hpp"

/// The full solve by progressive filling, of everything or of what hangs together with the changes
/// through active links. All rates rise together; the link that is full first fixes its users. In
/// the meantime a link keeps the load of its fixed users in `load` and the others in `bound_weight`
/// and `bound_count`, so that nothing has to be set up but a heap.
namespace trainyard::models {

using namespace max_min_tolerances;

namespace {

// Kept sums of weights are good to far better than this; keys must be lower bounds.
constexpr double below = 1 - 1e-6;
// … if they are not what little is left of a large sum.
constexpr double trust = 1e-6;

template <class T>
void forget_if_large(std::vector<T>& list) {
  if (list.capacity() > 4096) std::vector<T>().swap(list);
}

}  // namespace

/// For a large batch: the changes are taken in and all lists of users written anew, one behind the
/// other and no longer than they are.
void MaxMin::rebuild_users() {
  for (const Index k : leaving_) free_variable(k);
  if (!raised_.empty() || !recapped_.empty())
    for (Index k = 0; k < hot_.size(); ++k)
      if (hot_[k].is_alive) limits_[k] = std::min(cap(VarIndex(k)), least_share(k));
  user_pool_.clear();
  links_in_use_ = 0;
  are_envelopes_loose_ = false;
  for (Link& link : links_) {
    const double capacity = link.capacity;
    link = {};
    link.capacity = capacity;
  }
  for (Index k = 0; k < hot_.size(); ++k)
    if (hot_[k].is_alive)
      for (Index e = first_[k]; e != first_[k] + hot_[k].count; ++e) ++links_[edges_[e]].room;
  for (Link& link : links_) {
    links_in_use_ += link.room > 0 ? 1 : 0;
    link.room = BlockPool::room(link.room);
    link.first = user_pool_.take(link.room);
  }
  lengthen_to_room(users_, user_pool_.end());
  if (is_weighted_) lengthen_to_room(user_weights_, user_pool_.end());
  for (Index k = 0; k < hot_.size(); ++k) {
    Hot& h = hot_[k];
    if (!h.is_alive) continue;
    h.is_attached = 1;
    if (h.is_wide) {
      wide_[k].envelope = limits_[k];
      are_envelopes_loose_ = true;
    }
    for (Index e = first_[k]; e != first_[k] + h.count; ++e) {
      const double weight = edge_weight(e);
      Link& link = links_[edges_[e]];
      const Index u = link.first + link.count++;
      users_[u] = k;
      if (is_weighted_) user_weights_[u] = weight;
      link.weight += weight;
      link.reach += weight * limits_[k];
    }
  }
  for (Link& link : links_) link.is_active = link.reach > link.capacity * (1 + tight);
  partition_all();
  for (std::vector<Index>* list :
       {&leaving_, &arrivals_, &raised_, &recapped_, &touched_, &seen_}) {
    list->clear();
    forget_if_large(*list);
  }
}

void MaxMin::enter_region(Index l) {
  Link& link = links_[l];
  if (link.in_region || !link.is_active) return;
  link.in_region = true;
  region_links_.push_back(l);
}

void MaxMin::collect_all() {
  region_links_.clear();
  for (const Index l : seen_) enter_region(l);
  changed_.reserve(alive_);
  for (Index k = 0; k < hot_.size(); ++k) {
    if (!hot_[k].is_alive) continue;
    note_change(k);
    for (Index e = first_[k]; e != first_[k] + active_links(k); ++e) enter_region(edges_[e]);
  }
}

/// Variables are listed with their old rates among the changed ones, where they would be listed in
/// the end.
void MaxMin::collect_region() {
  region_links_.clear();
  for (const Index l : seen_) enter_region(l);
  std::size_t next_link = 0, next_var = 0;
  while (next_link < region_links_.size() || next_var < changed_.size()) {
    for (; next_link < region_links_.size(); ++next_link) {
      const Link& link = links_[region_links_[next_link]];
      for (Index u = link.first; u != link.first + link.count; ++u) note_change(users_[u]);
    }
    for (; next_var < changed_.size(); ++next_var) {
      const auto k = static_cast<Index>(changed_[next_var].var.index());
      for (Index e = first_[k]; e != first_[k] + active_links(k); ++e) enter_region(edges_[e]);
    }
  }
}

void MaxMin::fix(Index k, double x, Index bound) {
  hot_[k].x = x;
  hot_[k].bound = bound;
  const Index first = first_[k], end = first + active_links(k);
  for (Index e = first; e != end; ++e) {
    Link& link = links_[edges_[e]];
    if (!link.is_active) continue;
    const double weight = edge_weight(e);
    link.load += weight * x;
    link.bound_weight = --link.bound_count == 0 ? 0.0 : link.bound_weight - weight;
  }
}

/// The link with the lowest key, a lower bound of its level, which grows as others fix its users
/// below it. If it is still the lowest, its users are fixed.
void MaxMin::fill_link(const Queued& lowest) {
  const Index l = lowest.link;
  Link& link = links_[l];
  if (link.bound_count == 0) return;
  const auto wait_until = [&](double key) {
    heap_.push_back({key, l});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  };
  if (link.bound_weight > trust * link.weight) {
    const double estimate = below * (link.capacity - link.load) / link.bound_weight;
    if (!heap_.empty() && estimate > heap_.front().key && estimate > lowest.key)
      return wait_until(estimate);
  }
  double base = 0;
  scan_.clear();
  for (Index u = link.first; u != link.first + link.count; ++u) {
    const Index k = users_[u];
    if (hot_[k].bound == rising)
      scan_.push_back({limits_[k], user_weight(u), k, l});
    else
      base += user_weight(u) * hot_[k].x;
  }
  Root root = root_of(link.capacity, base);
  if (root.level == unlimited) return;  // it is never full
  if (root.level > lowest.key && !heap_.empty() && root.level > heap_.front().key)
    return wait_until(root.level);
  current_key_ = root.level = std::max(root.level, current_key_);
  Index held = 0;
  for (const Held& h : scan_) {
    if (h.limit <= root.level) {
      fix(h.var, h.limit, at_cap);
    } else {
      fix(h.var, root.level, l);
      ++held;
    }
  }
  if (held == 0) return;
  link.level = root.level;
  link.bound_weight = root.weight;
  link.bound_count = held;
}

void MaxMin::fill() {
  heap_.clear();
  for (const Index l : region_links_) {
    Link& link = links_[l];
    link.level = unlimited;
    link.load = 0;
    link.bound_weight = link.weight;
    link.bound_count = link.count;
    link.load_updates = 0;
    if (link.count > 0) heap_.push_back({below * link.capacity / link.weight, l});
  }
  counters_.looks += region_links_.size();
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>{});
  for (const Change& change : changed_) hot_[change.var.index()].bound = rising;
  current_key_ = 0;
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    const Queued lowest = heap_.back();
    heap_.pop_back();
    fill_link(lowest);
  }
  for (const Change& change : changed_) {
    const auto k = static_cast<Index>(change.var.index());
    if (hot_[k].bound == rising) fix(k, limits_[k], at_cap);
  }
  for (const Index l : region_links_) links_[l].in_region = false;
}

/// Wide variables that came out above their envelopes may fill links that were left out.
bool MaxMin::widen_changed() {
  if (wide_.empty()) return false;
  for (const Change& change : changed_) {
    const auto k = static_cast<Index>(change.var.index());
    if (hot_[k].is_wide && hot_[k].x > wide_[k].envelope) widen(k, hot_[k].x);
  }
  return !touched_.empty();
}

void MaxMin::fill_rebuilt() {
  rebuild_users();
  collect_all();
  fill();
  forget_if_large(region_links_);
  forget_if_large(heap_);
}

void MaxMin::fill_all() {
  do {
    forget_touched();
    collect_all();
    fill();
  } while (widen_changed());
}

void MaxMin::fill_region() {
  do {
    forget_touched();
    collect_region();
    fill();
  } while (widen_changed());
}

void MaxMin::forget_touched() {
  for (const Index l : touched_) links_[l].is_touched = false;
  touched_.clear();
}

}  // namespace trainyard::models
