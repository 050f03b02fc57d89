#include <algorithm>
#include <cmath>
#include <functional>

#include "models/network/max_min.hpp"
#include "models/network/max_min_tolerances.hpp"

/// The incremental solve: links that are not right wait in a heap under a lower bound of the level
/// at which they act, and the lowest acts first. Everything below it is final then.
namespace trainyard::models {

using namespace max_min_tolerances;

/// The rate of k allowed by its limit and the levels of its links but one, and who sets it.
double MaxMin::highest(Index k, Index except, Index* holder) const {
  double x = limits_[k];
  *holder = at_cap;
  const Index first = first_[k], end = first + active_links(k);
  for (Index e = first; e != end; ++e) {
    const Index l = edges_[e];
    if (l != except && links_[l].level < x) {
      x = links_[l].level;
      *holder = l;
    }
  }
  return x;
}

void MaxMin::set(Index k, double x, Index bound) {
  Hot& h = hot_[k];
  const double dx = x - h.x;
  if (dx == 0 && bound == h.bound) return;
  if (dx != 0) note_change(k);
  if (h.is_wide && x > wide_[k].envelope) widen(k, x);
  const Index first = first_[k], end = first + active_links(k);
  work_ += end - first;
  for (Index e = first; e != end; ++e) {
    const Index l = edges_[e];
    Link& link = links_[l];
    if (!link.is_active) continue;
    const double weight = edge_weight(e);
    link.load += weight * dx;
    count_update(link.load_updates);
    if (h.bound != bound) {
      if (l == h.bound) {
        --link.bound_count;
        link.bound_weight = link.bound_count == 0 ? 0.0 : link.bound_weight - weight;
      } else if (l == bound) {
        ++link.bound_count;
        link.bound_weight += weight;
      }
    }
    if (link.is_touched) continue;
    if (link.level == unlimited && link.load <= link.capacity * (1 - slack)) continue;
    touch(l);
  }
  h.x = x;
  h.bound = bound;
}

void MaxMin::queue(Index l, double key) {
  Link& link = links_[l];
  if (link.queued_key >= 0 && link.queued_key <= key) return;  // a lower bound is queued already
  link.queued_key = key;
  heap_.push_back({key, l});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  work_ += 4;
}

/// Is the link right as it is? If not, queue it under a lower bound of the level at which it acts.
void MaxMin::classify(Index l) {
  Link& link = links_[l];
  work_ += 1;
  if (!link.is_active) return;
  if (link.load_updates >= updates_before_sum) sum_load(l);
  if (link.level == unlimited || link.bound_count == 0) {
    const double excess = link.load - link.capacity;
    if (link.load_updates > 0 && std::abs(excess) <= load_doubt * link.capacity) sum_load(l);
    if (link.load <= link.capacity * (1 + tight)) {
      link.level = unlimited;
    } else {
      queue(l, std::max(current_key_, link.capacity / link.weight));
    }
    return;
  }
  double level = link.level + (link.capacity - link.load) / link.bound_weight;
  if (link.load_updates > 0 && std::abs(level - link.level) <= load_doubt * link.level) {
    sum_load(l);
    level = link.level + (link.capacity - link.load) / link.bound_weight;
  }
  if (std::abs(level - link.level) <=
      tight * link.level + 1e-14 * link.capacity / link.bound_weight)
    return;
  queue(l, level > link.level ? link.level : std::max(current_key_, level));
}

void MaxMin::classify_touched() {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    links_[touched_[i]].is_touched = false;
    classify(touched_[i]);
  }
  touched_.clear();
}

/// False: it became longer than a full solve.
bool MaxMin::repair() {
  const double enough =
      tuning_.guard_factor * static_cast<double>(edge_count_ + 8 * links_in_use_) +
      tuning_.guard_base;
  work_ = 0;
  current_key_ = 0;
  classify_touched();
  while (!heap_.empty()) {
    const Queued top = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    heap_.pop_back();
    if (links_[top.link].queued_key != top.key) continue;
    links_[top.link].queued_key = -1;
    if (work_ > enough) {
      for (const Queued& q : heap_) links_[q.link].queued_key = -1;
      heap_.clear();
      return false;
    }
    current_key_ = std::max(current_key_, top.key);
    step(top.link, top.key);
    classify_touched();
  }
  return true;
}

/// The level at which base + sum w min(limit, level) over the scan fills the capacity. The sum is
/// concave in the level, so Newton's steps from zero approach from the left and end exactly.
MaxMin::Root MaxMin::root_of(double capacity, double base) const {
  double level = 0;
  std::size_t held_before = scan_.size() + 1;
  for (;;) {
    double below = base, weight = 0;
    std::size_t held = 0;
    for (const Held& h : scan_) {
      if (h.limit > level) {
        weight += h.weight;
        ++held;
      } else {
        below += h.weight * h.limit;
      }
    }
    if (held == 0) return {unlimited, below, 0};
    if (held == held_before) return {level, below + weight * level, weight};
    held_before = held;
    level = std::max(level, (capacity - below) / weight);
  }
}

void MaxMin::step(Index l, double key) {
  Link& link = links_[l];
  sum_load(l);
  if (link.level != unlimited && link.bound_count > 0) {
    const double change = (link.capacity - link.load) / link.bound_weight;
    if (std::abs(change) <= tight * link.level + 1e-14 * link.capacity / link.bound_weight) return;
    if (change > 0) return rise(l);
  } else if (link.load <= link.capacity * (1 + tight)) {
    link.level = unlimited;
    return;
  }
  scan_.clear();
  for (Index u = link.first; u != link.first + link.count; ++u) {
    const Hot& h = hot_[users_[u]];
    scan_.push_back({h.bound == l ? unlimited : h.x, user_weight(u), users_[u], l});
  }
  work_ += static_cast<double>(scan_.size());
  const Root root = root_of(link.capacity, 0);
  if (root.level > key && !heap_.empty() && root.level > heap_.front().key)
    return queue(l, root.level);
  fall(l, root);
}

/// A step sets the sums of its own link at the end, so its own changes do not touch it.
void MaxMin::finish_step(Index l, const Root& root, Index held) {
  Link& link = links_[l];
  link.is_touched = false;
  link.load = root.load;
  link.bound_weight = root.weight;
  link.bound_count = held;
  link.load_updates = 0;
  ++counters_.steps;
}

void MaxMin::fall(Index l, const Root& root) {
  links_[l].level = root.level;
  links_[l].is_touched = true;
  Index held = 0;
  for (const Held& h : scan_) {
    if (h.limit <= root.level) continue;
    set(h.var, root.level, l);
    ++held;
  }
  finish_step(l, root, held);
}

void MaxMin::rise(Index l) {
  Link& link = links_[l];
  scan_.clear();
  double base = 0;
  for (Index u = link.first; u != link.first + link.count; ++u) {
    const Index k = users_[u];
    if (hot_[k].bound != l) {
      base += user_weight(u) * hot_[k].x;
      continue;
    }
    Held h{0, user_weight(u), k, at_cap};
    h.limit = highest(k, l, &h.holder);
    work_ += active_links(k);
    scan_.push_back(h);
  }
  double all = base;
  for (const Held& h : scan_) all += h.weight * h.limit;
  Root root{unlimited, all, 0};
  if (all > link.capacity * (1 + tight)) root = root_of(link.capacity, base);
  link.level = root.level;
  link.is_touched = true;
  Index held = 0;
  for (const Held& h : scan_) {
    if (h.limit <= root.level) {
      set(h.var, h.limit, h.holder);
    } else {
      set(h.var, root.level, l);
      ++held;
    }
  }
  finish_step(l, root, held);
}

}  // namespace trainyard::models
