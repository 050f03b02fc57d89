#include "models/network/max_min.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "sim/check.hpp"

namespace trainyard::models {

namespace {

// A link is overloaded above this; a level is right within it. Rates are good to about 1e-15, sums
// of thousands of them to 1e-13.
constexpr double tight = 1e-12;
// A link of infinite level with more room than this cannot be at its limit: changes there are
// ignored.
constexpr double slack = 1e-7;
// Sums that drift by increments are not trusted this near to a decision, nor after so many updates.
constexpr double doubt = 1e-7;
constexpr std::uint32_t updates_before_sum = 1024;

constexpr std::size_t block_class(std::size_t count) {
  return static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(count, 1) - 1));
}

bool later(const auto& a, const auto& b) {
  return a.key != b.key ? a.key > b.key : a.link > b.link;
}

}  // namespace

// ---- Building
// -------------------------------------------------------------------------------------

LinkIndex MaxMin::add_link(double capacity) {
  check(capacity >= 0 && std::isfinite(capacity), "a link capacity is finite and not negative");
  Link& link = links_.emplace_back();
  link.capacity = link.nominal = capacity;
  return LinkIndex(links_.size() - 1);
}

MaxMin::Index MaxMin::take_edges(std::size_t count) {
  const std::size_t c = block_class(count);
  if (c < free_edges_.size() && !free_edges_[c].empty()) {
    const Index first = free_edges_[c].back();
    free_edges_[c].pop_back();
    return first;
  }
  const auto first = static_cast<Index>(edges_.size());
  edges_.resize(edges_.size() + (std::size_t{1} << c));
  return first;
}

void MaxMin::give_back_edges(Index first, Index count) {
  const std::size_t c = block_class(count);
  if (c >= free_edges_.size()) free_edges_.resize(c + 1);
  free_edges_[c].push_back(first);
}

VarIndex MaxMin::add(std::span<const Load> loads, double cap) {
  check(cap >= 0, "a cap is not negative");
  check(!loads.empty() || std::isfinite(cap), "a variable without links has a finite cap");
  Index k;
  if (free_vars_.empty()) {
    k = static_cast<Index>(vars_.size());
    vars_.emplace_back();
    hot_.emplace_back();
  } else {
    k = free_vars_.back();
    free_vars_.pop_back();
  }
  Variable& v = vars_[k];
  v.cap = v.bound = cap;
  v.rate = 0;
  v.is_alive = true;
  v.first = take_edges(loads.size());
  v.count = 0;
  for (const Load& load : loads) {
    check(load.link.index() < links_.size(), "a load names an existing link");
    check(load.weight > 0 && std::isfinite(load.weight), "a weight is finite and above zero");
    const auto l = static_cast<Index>(load.link.index());
    // A link seen before in this list was listed last by this variable: its newest user tells.
    std::vector<User>& users = links_[l].users;
    if (!users.empty() && users.back().var == k) {
      users.back().weight += load.weight;
      edges_[users.back().edge].weight += load.weight;
      links_[l].weight += load.weight;
      continue;
    }
    const Index e = v.first + v.count++;
    if (users.empty()) ++links_in_use_;
    edges_[e] = {l, static_cast<Index>(users.size()), load.weight};
    users.push_back({k, e, load.weight});
    links_[l].weight += load.weight;
  }
  for (Index e = v.first; e != v.first + v.count; ++e)
    v.bound = std::min(v.bound, links_[edges_[e].link].nominal / edges_[e].weight);
  for (Index e = v.first; e != v.first + v.count; ++e)
    links_[edges_[e].link].bound_sum += edges_[e].weight * v.bound;
  hot_[k].x = 0;
  hot_[k].bound = at_cap;
  ++alive_;
  ++batch_;
  edge_count_ += v.count;
  // As fast as the present levels let it: that may overload its links, which the solve repairs.
  Index holder = at_cap;
  const double x = highest(k, at_cap, &holder);
  set(k, x, holder);
  note_change(k);
  return VarIndex(k);
}

void MaxMin::remove(VarIndex var) {
  const auto k = static_cast<Index>(var.index());
  check(k < vars_.size() && vars_[k].is_alive, "only a present variable is removed");
  Variable& v = vars_[k];
  for (Index e = v.first; e != v.first + v.count; ++e) {
    const Edge edge = edges_[e];
    Link& link = links_[edge.link];
    link.load -= edge.weight * hot_[k].x;
    link.weight -= edge.weight;
    link.bound_sum -= edge.weight * v.bound;
    ++link.updates;
    if (hot_[k].bound == edge.link) {
      --link.bound_count;
      link.bound_weight = link.bound_count == 0 ? 0.0 : link.bound_weight - edge.weight;
    }
    const User last = link.users.back();
    link.users[edge.slot] = last;
    edges_[last.edge].slot = edge.slot;
    link.users.pop_back();
    if (link.users.empty()) {
      link.load = link.weight = link.bound_weight = link.bound_sum = 0;
      --links_in_use_;
    } else {
      sum_bounds(edge.link);
    }
    if (link.level != unlimited) touch(edge.link);
  }
  edge_count_ -= v.count;
  give_back_edges(v.first, v.count);
  v.is_alive = false;
  v.count = 0;
  hot_[k].is_changed = false;
  free_vars_.push_back(k);
  --alive_;
  ++batch_;
}

void MaxMin::set_capacity(LinkIndex index, double capacity) {
  check(capacity >= 0 && std::isfinite(capacity), "a link capacity is finite and not negative");
  const auto l = static_cast<Index>(index.index());
  Link& link = links_[l];
  if (link.capacity == capacity) return;
  link.capacity = capacity;
  touch(l);
  if (capacity <= link.nominal) return;
  link.nominal = capacity;
  for (std::size_t i = 0; i < links_[l].users.size(); ++i) renew_bound(links_[l].users[i].var);
}

void MaxMin::set_cap(VarIndex var, double cap) {
  const auto k = static_cast<Index>(var.index());
  check(cap >= 0, "a cap is not negative");
  check(vars_[k].count > 0 || std::isfinite(cap), "a variable without links has a finite cap");
  vars_[k].cap = cap;
  renew_bound(k);
}

void MaxMin::renew_bound(Index k) {
  Variable& v = vars_[k];
  double bound = v.cap;
  for (Index e = v.first; e != v.first + v.count; ++e)
    bound = std::min(bound, links_[edges_[e].link].nominal / edges_[e].weight);
  if (bound == v.bound) return;
  const double change = bound - v.bound;
  v.bound = bound;
  for (Index e = v.first; e != v.first + v.count; ++e) {
    links_[edges_[e].link].bound_sum += edges_[e].weight * change;
    ++links_[edges_[e].link].updates;
    sum_bounds(edges_[e].link);
  }
  if (hot_[k].bound != at_cap && hot_[k].x <= bound) return;
  Index holder = at_cap;
  const double x = highest(k, at_cap, &holder);
  set(k, x, holder);
  note_change(k);
}

// ---- Small parts
// ----------------------------------------------------------------------------------

void MaxMin::touch(Index l) {
  Link& link = links_[l];
  if (link.is_touched) return;
  link.is_touched = true;
  touched_.push_back(l);
  if (link.is_seen) return;
  link.is_seen = true;
  seen_.push_back(l);
}

void MaxMin::note_change(Index k) {
  if (hot_[k].is_changed) return;
  hot_[k].is_changed = true;
  changed_.push_back(k);
  ++counters_.touched;
}

/// Could its users fill it at all? If not, it is right at any rates.
bool MaxMin::is_active(const Link& link) const {
  return link.bound_sum > link.capacity * (1 + tight);
}

/// The rate of k allowed by its cap and the levels of its links but one, and who sets it.
double MaxMin::highest(Index k, Index except, Index* holder) const {
  const Variable& v = vars_[k];
  double x = v.bound;
  *holder = at_cap;
  for (Index e = v.first; e != v.first + v.count; ++e) {
    const Index l = edges_[e].link;
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
  const Variable& v = vars_[k];
  work_ += v.count;
  for (Index e = v.first; e != v.first + v.count; ++e) {
    const Edge& edge = edges_[e];
    Link& link = links_[edge.link];
    link.load += edge.weight * dx;
    ++link.updates;
    if (h.bound != bound) {
      if (edge.link == h.bound) {
        --link.bound_count;
        link.bound_weight = link.bound_count == 0 ? 0.0 : link.bound_weight - edge.weight;
      } else if (edge.link == bound) {
        ++link.bound_count;
        link.bound_weight += edge.weight;
      }
    }
    if (link.is_touched) continue;
    if (link.level == unlimited && (link.load <= link.capacity * (1 - slack) || !is_active(link)))
      continue;
    touch(edge.link);
  }
  h.x = x;
  h.bound = bound;
}

/// Load, weights and bounds from the users as they are.
void MaxMin::sum_afresh(Index l) {
  Link& link = links_[l];
  link.load = link.weight = link.bound_weight = link.bound_sum = 0;
  link.bound_count = 0;
  for (const User& u : link.users) {
    link.load += u.weight * hot_[u.var].x;
    link.weight += u.weight;
    link.bound_sum += u.weight * vars_[u.var].bound;
    if (hot_[u.var].bound == l) {
      link.bound_weight += u.weight;
      ++link.bound_count;
    }
  }
  link.updates = 0;
  ++counters_.looks;
  work_ += static_cast<double>(link.users.size());
}

/// Keeps the sum of bounds honest: afresh when few users make it cheap, or when it was touched
/// often.
void MaxMin::sum_bounds(Index l) {
  Link& link = links_[l];
  if (link.updates >= updates_before_sum) return sum_afresh(l);
  if (link.users.size() > 8) return;
  link.bound_sum = 0;
  for (const User& u : link.users) link.bound_sum += u.weight * vars_[u.var].bound;
}

// ---- Repair, lowest level first
// -------------------------------------------------------------------

void MaxMin::queue(Index l, double key) {
  Link& link = links_[l];
  if (link.queued_key >= 0 && link.queued_key <= key) return;  // a lower bound is queued already
  link.queued_key = key;
  heap_.push_back({key, l});
  std::push_heap(heap_.begin(), heap_.end(),
                 [](const Queued& a, const Queued& b) { return later(a, b); });
  work_ += 4;
}

/// Is the link right as it is? If not, queue it under a lower bound of the level at which it acts.
void MaxMin::classify(Index l) {
  Link& link = links_[l];
  work_ += 1;
  if (link.updates >= updates_before_sum) sum_afresh(l);
  if (link.level == unlimited || link.bound_count == 0) {
    const double excess = link.load - link.capacity;
    if (link.updates > 0 && std::abs(excess) <= doubt * link.capacity) sum_afresh(l);
    if (link.load <= link.capacity * (1 + tight)) {
      link.level = unlimited;
    } else {
      queue(l, std::max(current_key_, link.capacity / link.weight));
    }
    return;
  }
  double level = link.level + (link.capacity - link.load) / link.bound_weight;
  if (link.updates > 0 && std::abs(level - link.level) <= doubt * link.level) {
    sum_afresh(l);
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

bool MaxMin::repair() {
  const double enough =
      tuning_.guard_factor * static_cast<double>(edge_count_ + 8 * links_in_use_) +
      tuning_.guard_base;
  work_ = 0;
  current_key_ = 0;
  classify_touched();
  while (!heap_.empty()) {
    const Queued top = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(),
                  [](const Queued& a, const Queued& b) { return later(a, b); });
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
  sum_afresh(l);
  if (link.level != unlimited && link.bound_count > 0) {
    const double change = (link.capacity - link.load) / link.bound_weight;
    if (std::abs(change) <= tight * link.level + 1e-14 * link.capacity / link.bound_weight) return;
    if (change > 0) return rise(l);
  } else if (link.load <= link.capacity * (1 + tight)) {
    link.level = unlimited;
    return;
  }
  scan_.clear();
  for (const User& u : link.users)
    scan_.push_back({hot_[u.var].bound == l ? unlimited : hot_[u.var].x, u.weight, u.var, l});
  work_ += static_cast<double>(scan_.size());
  const Root root = root_of(link.capacity, 0);
  if (root.level > key && !heap_.empty() && root.level > heap_.front().key)
    return queue(l, root.level);
  fall(l, root);
}

void MaxMin::fall(Index l, const Root& root) {
  ++counters_.steps;
  Link& link = links_[l];
  link.level = root.level;
  link.is_touched = true;  // its own sums are set below, not by touches
  Index held = 0;
  for (const Held& h : scan_) {
    if (h.limit <= root.level) continue;
    set(h.var, root.level, l);
    ++held;
  }
  link.is_touched = false;
  link.load = root.load;
  link.bound_weight = root.weight;
  link.bound_count = held;
  link.updates = 0;
}

void MaxMin::rise(Index l) {
  ++counters_.steps;
  Link& link = links_[l];
  scan_.clear();
  double base = 0;
  for (const User& u : link.users) {
    if (hot_[u.var].bound != l) {
      base += u.weight * hot_[u.var].x;
      continue;
    }
    Held h{0, u.weight, u.var, at_cap};
    h.limit = highest(u.var, l, &h.holder);
    work_ += vars_[u.var].count;
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
  link.is_touched = false;
  link.load = root.load;
  link.bound_weight = root.weight;
  link.bound_count = held;
  link.updates = 0;
}

// ---- Full solve by progressive filling
// --------------------------------------------------------------

/// All that hangs together with the touched links through links that could fill up.
void MaxMin::collect_region() {
  region_links_.clear();
  region_vars_.clear();
  const auto enter_link = [this](Index l) {
    if (links_[l].in_region) return;
    links_[l].in_region = true;
    region_links_.push_back(l);
  };
  const auto enter_var = [&](Index k) {
    if (vars_[k].in_region) return;
    vars_[k].in_region = true;
    region_vars_.push_back(k);
    for (Index e = vars_[k].first; e != vars_[k].first + vars_[k].count; ++e)
      if (is_active(links_[edges_[e].link])) enter_link(edges_[e].link);
  };
  for (const Index l : seen_) enter_link(l);
  for (const Index k : changed_)
    if (vars_[k].is_alive) enter_var(k);
  for (std::size_t i = 0; i < region_links_.size(); ++i)
    for (const User& u : links_[region_links_[i]].users) enter_var(u.var);
}

void MaxMin::fix(Index k, double x, Index bound) {
  fixed_[k] = {x, bound};
  for (Index e = vars_[k].first; e != vars_[k].first + vars_[k].count; ++e) {
    Filling& f = filling_[edges_[e].link];
    f.fixed_load += edges_[e].weight * x;
    f.free_weight -= edges_[e].weight;
    --f.free_users;
  }
}

/// Fixes the still rising users of the link, the lowest of all, at the level that fills it. False,
/// with the level, if others took so little meanwhile that the link is no longer known to be the
/// lowest.
bool MaxMin::fill_link(Index l, double key, double* level) {
  const double estimate = (links_[l].capacity - filling_[l].fixed_load) / filling_[l].free_weight;
  if (estimate > key * (1 + tight)) {
    *level = estimate;
    return false;
  }
  double below = 0, weight = 0;
  for (const User& u : links_[l].users) {
    if (fixed_[u.var].x >= 0)
      below += u.weight * fixed_[u.var].x;
    else
      weight += u.weight;
  }
  const double exact = (links_[l].capacity - below) / weight;
  if (exact > key * (1 + tight)) {
    *level = exact;
    return false;
  }
  *level = std::max(*level, exact);
  links_[l].level = *level;
  for (const User& u : links_[l].users) {
    if (fixed_[u.var].x >= 0) continue;
    const double bound = vars_[u.var].bound;
    fix(u.var, std::min(*level, bound), *level < bound ? l : at_cap);
  }
  return true;
}

void MaxMin::fill_region() {
  for (const Index l : touched_) links_[l].is_touched = false;
  touched_.clear();
  collect_region();
  filling_.resize(links_.size());
  fixed_.resize(vars_.size());
  heap_.clear();
  const auto order = [](const Queued& a, const Queued& b) { return later(a, b); };
  for (const Index l : region_links_) {
    Link& link = links_[l];
    link.level = unlimited;
    filling_[l] = {0, 0, link.users.size()};
    for (const User& u : link.users) filling_[l].free_weight += u.weight;
    if (!link.users.empty()) heap_.push_back({link.capacity / filling_[l].free_weight, l});
  }
  std::make_heap(heap_.begin(), heap_.end(), order);
  by_bound_.clear();
  for (const Index k : region_vars_) {
    fixed_[k] = {};
    by_bound_.push_back({vars_[k].bound, k});
  }
  std::sort(by_bound_.begin(), by_bound_.end());

  double level = 0;
  for (std::size_t next = 0; next < by_bound_.size();) {
    const Index k = by_bound_[next].second;
    if (fixed_[k].x >= 0) {
      ++next;
      continue;
    }
    while (!heap_.empty() && filling_[heap_.front().link].free_users == 0) {
      std::pop_heap(heap_.begin(), heap_.end(), order);
      heap_.pop_back();
    }
    if (heap_.empty() || vars_[k].bound <= heap_.front().key) {
      level = vars_[k].bound;
      fix(k, level, at_cap);
      continue;
    }
    // Keys are lower bounds: the level of a link grows as others fix its users below it.
    std::pop_heap(heap_.begin(), heap_.end(), order);
    double key = level;
    if (fill_link(heap_.back().link, heap_.back().key, &key)) {
      heap_.pop_back();
      level = key;
    } else {
      heap_.back().key = key;
      std::push_heap(heap_.begin(), heap_.end(), order);
    }
  }
  heap_.clear();

  for (const Index k : region_vars_) {
    Hot& h = hot_[k];
    vars_[k].in_region = false;
    const double dx = fixed_[k].x - h.x;
    if (dx != 0) {
      note_change(k);
      for (Index e = vars_[k].first; e != vars_[k].first + vars_[k].count; ++e) {
        Link& link = links_[edges_[e].link];
        link.load += edges_[e].weight * dx;
        ++link.updates;
      }
    }
    h.x = fixed_[k].x;
    h.bound = fixed_[k].bound;
  }
  for (const Index l : region_links_) {
    links_[l].in_region = false;
    sum_afresh(l);
    if (links_[l].bound_count == 0) links_[l].level = unlimited;
  }
}

// ---- Solving
// ----------------------------------------------------------------------------------------

std::span<const MaxMin::Change> MaxMin::solve() {
  published_.clear();
  if (is_solved()) return published_;
  ++counters_.solves;
  const auto batch = static_cast<double>(batch_);
  if (batch_ >= tuning_.batch_least &&
      batch >= tuning_.batch_fraction * static_cast<double>(alive_)) {
    ++counters_.full_solves;
    fill_region();
  } else if (skip_incremental_ > 0) {
    --skip_incremental_;
    ++counters_.full_solves;
    fill_region();
  } else if (repair()) {
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
  published_.clear();
  ++counters_.solves;
  ++counters_.full_solves;
  for (Index l = 0; l < links_.size(); ++l)
    if (!links_[l].users.empty()) touch(l);
  fill_region();
  return publish();
}

std::span<const MaxMin::Change> MaxMin::publish() {
  for (const Index k : changed_) {
    if (!hot_[k].is_changed) continue;  // removed since, or listed twice
    hot_[k].is_changed = false;
    Variable& v = vars_[k];
    if (hot_[k].x == v.rate) continue;
    published_.push_back({VarIndex(k), v.rate});
    v.rate = hot_[k].x;
  }
  counters_.changed += published_.size();
  changed_.clear();
  for (const Index l : seen_) links_[l].is_seen = false;
  seen_.clear();
  batch_ = 0;
  return published_;
}

double MaxMin::load(LinkIndex link) const {
  double sum = 0;
  for (const User& u : links_[link.index()].users) sum += u.weight * vars_[u.var].rate;
  return sum;
}

std::optional<LinkIndex> MaxMin::bottleneck(VarIndex var) const {
  const Index k = static_cast<Index>(var.index());
  if (hot_[k].bound != at_cap) return LinkIndex(hot_[k].bound);
  const Variable& v = vars_[k];
  if (v.bound >= v.cap) return std::nullopt;
  for (Index e = v.first; e != v.first + v.count; ++e)  // alone it fills this link
    if (links_[edges_[e].link].nominal / edges_[e].weight == v.bound)
      return LinkIndex(edges_[e].link);
  return std::nullopt;
}

void MaxMin::check_certificate(double tolerance) const {
  check(is_solved(), "the certificate is asked for after a solve");
  std::vector<double> load(links_.size(), 0.0), fastest(links_.size(), 0.0);
  for (const Variable& v : vars_) {
    for (Index e = v.first; e != v.first + v.count; ++e) {
      load[edges_[e].link] += edges_[e].weight * v.rate;
      fastest[edges_[e].link] = std::max(fastest[edges_[e].link], v.rate);
    }
  }
  for (Index l = 0; l < links_.size(); ++l) {
    check(load[l] <= links_[l].capacity * (1 + tolerance), "no link carries more than its capacity",
          l, load[l], links_[l].capacity);
    // The kept sum has seen tentative loads as large as the sum of bounds.
    check(std::abs(load[l] - links_[l].load) <=
              tolerance * std::max(links_[l].bound_sum, links_[l].nominal),
          "the load of a link is the sum over its users", l, load[l], links_[l].load);
  }
  for (Index k = 0; k < vars_.size(); ++k) {
    const Variable& v = vars_[k];
    if (!v.is_alive) continue;
    check(v.rate <= v.cap * (1 + tolerance), "no variable passes its cap", k, v.rate, v.cap);
    bool is_held = v.rate >= v.cap * (1 - tolerance);
    for (Index e = v.first; !is_held && e != v.first + v.count; ++e) {
      const Index l = edges_[e].link;
      is_held =
          load[l] >= links_[l].capacity * (1 - tolerance) && v.rate >= fastest[l] * (1 - tolerance);
    }
    check(is_held, "every variable is at its cap or has a full link on which nobody is faster", k,
          v.rate);
  }
}

}  // namespace trainyard::models
