#include "models/network/max_min.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/network/max_min_tolerances.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

using namespace max_min_tolerances;

// ---- The network as the caller says it

void MaxMin::reserve(std::size_t links, std::size_t variables, std::size_t loads) {
  links_.reserve(links);
  doors_.reserve(links);
  hot_.reserve(variables);
  limits_.reserve(variables);
  first_.reserve(variables);
  edges_.reserve(loads);
  users_.reserve(loads + loads / 8);
}

LinkIndex MaxMin::add_link(double capacity) {
  check(capacity >= 0 && std::isfinite(capacity), "a link capacity is finite and not negative");
  links_.emplace_back().capacity = capacity;
  doors_.push_back({capacity, 0});
  return LinkIndex(links_.size() - 1);
}

void MaxMin::become_weighted() {
  is_weighted_ = true;
  edge_weights_.reserve(edges_.capacity());
  edge_weights_.assign(edges_.size(), 1.0);
  user_weights_.reserve(users_.capacity());
  user_weights_.assign(users_.size(), 1.0);
}

MaxMin::Index MaxMin::take_variable() {
  if (!free_vars_.empty()) {
    const Index k = free_vars_.back();
    free_vars_.pop_back();
    return k;
  }
  const std::size_t k = hot_.size();
  lengthen(hot_, k + 1);
  lengthen(limits_, k + 1);
  lengthen(first_, k + 1);
  return static_cast<Index>(k);
}

VarIndex MaxMin::add(std::span<const Load> loads, double cap) {
  check(cap >= 0, "a cap is not negative");
  check(!loads.empty() || std::isfinite(cap), "a variable without links has a finite cap");
  const Index k = take_variable();
  Index first = edge_pool_.take(BlockPool::room(loads.size()));
  lengthen_to_room(edges_, edge_pool_.end());
  if (is_weighted_) lengthen_to_room(edge_weights_, edge_pool_.end());
  if (++stamp_ == 0) {  // after four thousand million
    for (Door& door : doors_) door.stamp = 0;
    stamp_ = 1;
  }
  double limit = cap;
  Index count = 0;
  for (const Load& load : loads) {
    check(load.link.index() < links_.size(), "a load names an existing link");
    check(load.weight > 0 && std::isfinite(load.weight), "a weight is finite and above zero");
    if (load.weight != 1.0 && !is_weighted_) become_weighted();
    const auto l = static_cast<Index>(load.link.index());
    Door& door = doors_[l];
    Index e = first + count;
    double weight = load.weight;
    if (door.stamp == stamp_) {  // named before
      if (!is_weighted_) become_weighted();
      e = static_cast<Index>(std::find(edges_.begin() + first, edges_.end(), l) - edges_.begin());
      weight += edge_weights_[e];
    } else {
      ++count;
    }
    door.stamp = stamp_;
    edges_[e] = l;
    if (is_weighted_) edge_weights_[e] = weight;
    limit = std::min(limit, door.nominal / weight);
  }
  if (const Index room = BlockPool::room(count); room != BlockPool::room(loads.size())) {
    const Index smaller = edge_pool_.take(room);
    lengthen_to_room(edges_, edge_pool_.end());
    lengthen_to_room(edge_weights_, edge_pool_.end());
    std::copy_n(edges_.begin() + first, count, edges_.begin() + smaller);
    std::copy_n(edge_weights_.begin() + first, count, edge_weights_.begin() + smaller);
    edge_pool_.give_back(std::exchange(first, smaller), BlockPool::room(loads.size()));
  }
  Hot& h = hot_[k];
  h = {};
  h.count = count;
  h.is_alive = 1;
  h.is_wide = count >= tuning_.wide_least;
  limits_[k] = limit;
  first_[k] = first;
  if (std::isfinite(cap)) lengthen(caps_, k + std::size_t{1}, unlimited);
  if (k < caps_.size()) caps_[k] = cap;
  if (h.is_wide) lengthen(wide_, k + std::size_t{1});
  ++alive_;
  ++batch_;
  edge_count_ += count;
  arrivals_.push_back(k);
  return VarIndex(k);
}

void MaxMin::remove(VarIndex var) {
  const auto k = static_cast<Index>(var.index());
  check(k < hot_.size() && hot_[k].is_alive, "only a present variable is removed");
  hot_[k].is_alive = 0;
  edge_count_ -= hot_[k].count;
  leaving_edges_ += hot_[k].count;
  --alive_;
  ++batch_;
  leaving_.push_back(k);
}

void MaxMin::set_capacity(LinkIndex index, double capacity) {
  check(capacity >= 0 && std::isfinite(capacity), "a link capacity is finite and not negative");
  const auto l = static_cast<Index>(index.index());
  Link& link = links_[l];
  if (link.capacity == capacity) return;
  link.capacity = capacity;
  link.load_updates = updates_before_sum;  // its scale is another one now
  touch(l);
  if (capacity <= doors_[l].nominal) return;
  doors_[l].nominal = capacity;
  raised_.push_back(l);
}

void MaxMin::set_cap(VarIndex var, double cap) {
  const auto k = static_cast<Index>(var.index());
  check(cap >= 0, "a cap is not negative");
  check(hot_[k].count > 0 || std::isfinite(cap), "a variable without links has a finite cap");
  if (std::isfinite(cap)) lengthen(caps_, k + std::size_t{1}, unlimited);
  if (k < caps_.size()) caps_[k] = cap;
  recapped_.push_back(k);
}

// ---- Solving

void MaxMin::forget_changes() {
  constexpr std::size_t many = 4096;  // as after a full solve: not worth keeping
  if (changed_.capacity() > many && 2 * changed_.capacity() > alive_)
    std::vector<Change>().swap(changed_);
  else
    changed_.clear();
}

std::span<const MaxMin::Change> MaxMin::solve() {
  forget_changes();
  if (is_solved()) return changed_;
  ++counters_.solves;
  const bool is_large =
      batch_ >= tuning_.batch_least &&
      static_cast<double>(batch_) >= tuning_.batch_fraction * static_cast<double>(alive_);
  if (is_large && 2 * (edge_count_ + leaving_edges_) >= links_.size()) {
    ++counters_.full_solves;
    fill_rebuilt();
    return publish();
  }
  if (are_envelopes_loose_) narrow_all();
  if (is_large || skip_incremental_ > 0) {
    if (skip_incremental_ > 0) --skip_incremental_;
    ++counters_.full_solves;
    apply_changes(false);
    fill_region();
    return publish();
  }
  apply_changes(true);
  if (repair()) {
    backoff_ = 0;
  } else {
    // This set is dense: fill it, and do not try again for 1, 3, 7 … 63 solves.
    ++counters_.fallbacks;
    backoff_ = std::min(2 * backoff_ + 1, 63u);
    skip_incremental_ = backoff_;
    fill_region();
  }
  return publish();
}

std::span<const MaxMin::Change> MaxMin::solve_from_scratch() {
  forget_changes();
  ++counters_.solves;
  ++counters_.full_solves;
  if (are_envelopes_loose_) narrow_all();
  apply_changes(false);
  if (!wide_.empty()) deactivate_slack();
  fill_all();
  return publish();
}

std::span<const MaxMin::Change> MaxMin::publish() {
  std::size_t kept = 0;
  for (const Change& change : changed_) {
    const auto k = static_cast<Index>(change.var.index());
    Hot& h = hot_[k];
    h.is_changed = 0;
    if (h.x == change.old_rate) continue;
    if (h.is_wide && !are_envelopes_loose_) narrow_envelope(k);
    changed_[kept++] = change;
  }
  changed_.resize(kept);
  counters_.changed += kept;
  for (const Index l : seen_) {
    links_[l].is_seen = false;
    if (links_[l].is_active) consider(l);
  }
  seen_.clear();
  batch_ = leaving_edges_ = 0;
  return changed_;
}

// ---- Questions

double MaxMin::load(LinkIndex link) const {
  double sum = 0;
  for_each_user(link, [&](VarIndex var, double weight) { sum += weight * rate(var); });
  return sum;
}

std::optional<LinkIndex> MaxMin::bottleneck(VarIndex var) const {
  const auto k = static_cast<Index>(var.index());
  if (hot_[k].bound != at_cap) return LinkIndex(hot_[k].bound);
  if (limits_[k] >= cap(var)) return std::nullopt;
  for (Index e = first_[k]; e != first_[k] + hot_[k].count; ++e)  // alone it fills this link
    if (doors_[edges_[e]].nominal / edge_weight(e) == limits_[k]) return LinkIndex(edges_[e]);
  return std::nullopt;
}

std::size_t MaxMin::memory_bytes() const {
  const auto bytes = [](const auto&... column) {
    return ((column.capacity() * sizeof(column[0])) + ...);
  };
  return bytes(links_, doors_, hot_, limits_, first_, caps_, wide_, free_vars_, edges_, users_,
               edge_weights_, user_weights_, arrivals_, leaving_, raised_, recapped_, touched_,
               seen_, region_links_, over_, changed_, heap_, scan_) +
         edge_pool_.memory_bytes() + user_pool_.memory_bytes();
}

void MaxMin::check_certificate(double tolerance) const {
  check(is_solved(), "the certificate is asked for after a solve");
  std::vector<double> load(links_.size(), 0.0), fastest(links_.size(), 0.0);
  for (Index k = 0; k < hot_.size(); ++k) {
    if (!hot_[k].is_alive) continue;
    check(hot_[k].x <= reach_of(k) * (1 + tolerance), "no variable passes what it can reach", k,
          hot_[k].x, reach_of(k));
    for (Index e = first_[k]; e != first_[k] + hot_[k].count; ++e) {
      load[edges_[e]] += edge_weight(e) * hot_[k].x;
      fastest[edges_[e]] = std::max(fastest[edges_[e]], hot_[k].x);
    }
  }
  for (Index l = 0; l < links_.size(); ++l) {
    const Link& link = links_[l];
    check(load[l] <= link.capacity * (1 + tolerance), "no link carries more than its capacity", l,
          load[l], link.capacity);
    // The kept sum has seen tentative loads as large as the reach.
    if (link.is_active)
      check(std::abs(load[l] - link.load) <= tolerance * std::max(link.reach, doors_[l].nominal),
            "the load of a link is the sum over its users", l, load[l], link.load);
    else
      check(link.level == unlimited && link.reach <= link.capacity * (1 + tolerance),
            "a link that is not looked at cannot bind", l, link.reach, link.capacity);
  }
  for (Index k = 0; k < hot_.size(); ++k) {
    if (!hot_[k].is_alive) continue;
    const double x = hot_[k].x, most = cap(VarIndex(k));
    check(x <= most * (1 + tolerance), "no variable passes its cap", k, x, most);
    bool is_held = x >= most * (1 - tolerance);
    for (Index e = first_[k]; !is_held && e != first_[k] + hot_[k].count; ++e) {
      const Index l = edges_[e];
      is_held =
          load[l] >= links_[l].capacity * (1 - tolerance) && x >= fastest[l] * (1 - tolerance);
    }
    check(is_held, "every variable is at its cap or has a full link on which nobody is faster", k,
          x);
  }
}

}  // namespace trainyard::models
