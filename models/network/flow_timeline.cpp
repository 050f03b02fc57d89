#include "models/network/flow_timeline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::models {

namespace {

/// The one place where two computed times are held to be the same: the last time that counts as
/// `first_s` for a flow on its present leg since `settled_s`.
double last_of_instant(double first_s, double settled_s) {
  constexpr double ulp = std::numeric_limits<double>::epsilon();
  return first_s + (1e-13 * (first_s - settled_s) + 4 * ulp * first_s);
}

}  // namespace

void FlowTimeline::reserve(std::size_t links, std::size_t flows, std::size_t loads) {
  solver_.reserve(links, flows, loads);
  flows_.reserve(flows);
  states_.reserve(flows);
  completions_.reserve(flows);
}

VarIndex FlowTimeline::add(double bytes, std::span<const Load> loads, double cap_Bps,
                           FlowKind kind) {
  check(bytes >= 0 && std::isfinite(bytes), "a flow has a finite number of bytes", bytes);
  if (options_.takes_places && has_leaving_)
    if (const auto ended = place_of_ended(loads, cap_Bps, kind)) {
      restart(*ended, bytes);
      return *ended;
    }
  const VarIndex var = solver_.add(loads, cap_Bps);
  const std::size_t i = var.index();
  lengthen(flows_, i + 1);
  lengthen(states_, i + 1);
  flows_[i] = {bytes, now_s_};
  states_[i] = {kind, true, false};
  if (options_.phi > 0) {
    lengthen(corrected_Bps_, i + 1);
    corrected_Bps_[i] = 0;
  }
  ++running_;
  if (bytes == 0) completions_.set(i, now_s_);
  return var;
}

/// Newcomers mostly come in the order in which the others ended, so a few looks behind the last
/// place are enough; whoever is missed is simply added.
std::optional<VarIndex> FlowTimeline::place_of_ended(std::span<const Load> loads, double cap_Bps,
                                                     FlowKind kind) {
  constexpr std::size_t looks = 4;
  for (std::size_t look = 0; look < std::min(looks, finished_.size()); ++look) {
    const std::size_t at = (next_place_ + look) % finished_.size();
    const VarIndex var = finished_[at];
    const State& state = states_[var.index()];
    if (!state.is_finished || state.kind != kind || solver_.cap(var) != cap_Bps) continue;
    std::size_t same = 0, all = 0;
    solver_.for_each_load(var, [&](const Load& load) {
      if (all < loads.size() && loads[all].link == load.link && loads[all].weight == load.weight)
        ++same;
      ++all;
    });
    if (same != all || all != loads.size()) continue;
    next_place_ = at + 1;
    return var;
  }
  return std::nullopt;
}

void FlowTimeline::restart(VarIndex var, double bytes) {
  check(bytes >= 0 && std::isfinite(bytes), "a flow has a finite number of bytes", bytes);
  const std::size_t i = var.index();
  if (!states_[i].is_running) {
    check(states_[i].is_finished, "only a running or just finished flow is restarted", i);
    states_[i].is_finished = false;
    states_[i].is_running = true;
    ++running_;
  }
  flows_[i] = {bytes, now_s_};
  aim(i, progress_of(i));
}

void FlowTimeline::remove(VarIndex var) {
  State& state = states_[var.index()];
  if (state.is_running) --running_;
  state.is_running = state.is_finished = false;
  completions_.erase(var.index());
  solver_.remove(var);
}

/// As of the last solve.
double FlowTimeline::progress_of(std::size_t index) const {
  return options_.phi > 0 ? corrected_Bps_[index] : solver_.rate(VarIndex(index));
}

double FlowTimeline::left_at(const Flow& flow, double progress_Bps) const {
  return std::max(0.0, flow.bytes_left - progress_Bps * (now_s_ - flow.settled_s));
}

/// From its bytes left, which are settled, at this rate.
void FlowTimeline::aim(std::size_t index, double progress_Bps) {
  const Flow& flow = flows_[index];
  if (flow.bytes_left == 0) {
    completions_.set(index, now_s_);
  } else if (progress_Bps > 0) {
    completions_.set(index, now_s_ + flow.bytes_left / progress_Bps);
  } else {
    completions_.erase(index);
  }
}

void FlowTimeline::proceed(std::size_t index, double old_progress_Bps, double progress_Bps) {
  Flow& flow = flows_[index];
  if (flow.settled_s != now_s_) flow = {left_at(flow, old_progress_Bps), now_s_};
  if (options_.phi > 0) corrected_Bps_[index] = progress_Bps;
  aim(index, progress_Bps);
}

void FlowTimeline::solve() {
  if (has_leaving_) {
    has_leaving_ = false;
    for (const VarIndex var : finished_) {
      if (!states_[var.index()].is_finished) continue;
      states_[var.index()].is_finished = false;
      solver_.remove(var);
    }
  }
  if (solver_.is_solved()) return;
  for (const MaxMin::Change& change : solver_.solve()) {
    const std::size_t i = change.var.index();
    if (options_.phi == 0)
      proceed(i, change.old_rate, solver_.rate(change.var));
    else if (states_[i].kind == FlowKind::collective)
      proceed(i, corrected_Bps_[i], solver_.rate(change.var));
  }
  if (options_.phi > 0) correct_lone_flows();
}

void FlowTimeline::correct_lone_flows() {
  is_bursty_.assign(solver_.links(), 0);
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (!states_[i].is_running || states_[i].kind != FlowKind::collective) continue;
    const std::optional<LinkIndex> bottleneck = solver_.bottleneck(VarIndex(i));
    solver_.for_each_load(VarIndex(i), [&](const Load& load) {
      if (load.link != bottleneck) is_bursty_[load.link.index()] = 1;
    });
  }
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (!states_[i].is_running || states_[i].kind != FlowKind::lone) continue;
    const double x = solver_.rate(VarIndex(i));
    double share = MaxMin::unlimited;
    int bursty = 0;
    solver_.for_each_load(VarIndex(i), [&](const Load& load) {
      share = std::min(share, solver_.capacity(load.link) / solver_.weight(load.link));
      bursty += is_bursty_[load.link.index()];
    });
    const double progress = bursty >= 2 && x > share ? x - options_.phi * (x - share) : x;
    if (progress != corrected_Bps_[i]) proceed(i, corrected_Bps_[i], progress);
  }
}

std::optional<double> FlowTimeline::next_completion_s() {
  solve();
  if (completions_.is_empty()) return std::nullopt;
  return completions_.first_time();
}

std::span<const VarIndex> FlowTimeline::advance(double to_s) {
  solve();
  check(to_s >= now_s_, "time goes forward", to_s, now_s_);
  finished_.clear();
  if (completions_.is_empty() || completions_.first_time() > to_s) {
    now_s_ = to_s;
    return finished_;
  }
  now_s_ = std::max(now_s_, completions_.first_time());
  for (const std::uint32_t i :
       completions_.take_due(last_of_instant(now_s_, 0), [this](std::size_t flow, double at_s) {
         return at_s <= last_of_instant(now_s_, flows_[flow].settled_s);
       })) {
    flows_[i] = {0, now_s_};
    states_[i].is_running = false;
    states_[i].is_finished = true;
    finished_.push_back(VarIndex(i));
  }
  running_ -= finished_.size();
  has_leaving_ = true;
  next_place_ = 0;
  return finished_;
}

double FlowTimeline::bytes_left(VarIndex var) {
  solve();
  return left_at(flows_[var.index()], progress_of(var.index()));
}

double FlowTimeline::progress_Bps(VarIndex var) {
  solve();
  return progress_of(var.index());
}

std::size_t FlowTimeline::memory_bytes() const {
  return flows_.capacity() * sizeof(Flow) + states_.capacity() * sizeof(State) +
         completions_.memory_bytes() + finished_.capacity() * sizeof(VarIndex) +
         corrected_Bps_.capacity() * sizeof(double) + is_bursty_.capacity() +
         solver_.memory_bytes();
}

}  // namespace trainyard::models
