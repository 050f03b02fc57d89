#include "models/network/flow_timeline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::models {

namespace {

/// The one place where two computed times are held to be the same.
bool is_same_instant(double later_s, double first_s, double settled_s) {
  constexpr double ulp = std::numeric_limits<double>::epsilon();
  return later_s - first_s <= 1e-13 * (first_s - settled_s) + 4 * ulp * first_s;
}

}  // namespace

VarIndex FlowTimeline::add(double bytes, std::span<const Load> loads, double cap_Bps,
                           FlowKind kind) {
  check(bytes >= 0 && std::isfinite(bytes), "a flow has a finite number of bytes", bytes);
  const VarIndex var = solver_.add(loads, cap_Bps);
  if (var.index() >= flows_.size()) flows_.resize(var.index() + 1);
  flows_[var.index()] = {bytes, now_s_, 0, kind, true, false};
  ++running_;
  if (bytes == 0) completions_.set(var.index(), now_s_);
  return var;
}

void FlowTimeline::restart(VarIndex var, double bytes) {
  check(bytes >= 0 && std::isfinite(bytes), "a flow has a finite number of bytes", bytes);
  Flow& flow = flows_[var.index()];
  if (!flow.is_running) {
    check(flow.is_finished, "only a running or just finished flow is restarted", var.index());
    flow.is_finished = false;
    flow.is_running = true;
    ++running_;
  }
  flow.bytes_left = bytes;
  flow.settled_s = now_s_;
  proceed(var.index(), flow.progress_Bps);
}

void FlowTimeline::remove(VarIndex var) {
  Flow& flow = flows_[var.index()];
  if (flow.is_running) --running_;
  flow.is_running = flow.is_finished = false;
  completions_.erase(var.index());
  solver_.remove(var);
}

void FlowTimeline::settle(Flow& flow) const {
  flow.bytes_left = std::max(0.0, flow.bytes_left - flow.progress_Bps * (now_s_ - flow.settled_s));
  flow.settled_s = now_s_;
}

/// From now on at this rate.
void FlowTimeline::proceed(std::size_t index, double progress_Bps) {
  Flow& flow = flows_[index];
  if (flow.settled_s != now_s_) settle(flow);
  flow.progress_Bps = progress_Bps;
  if (flow.bytes_left == 0) {
    completions_.set(index, now_s_);
  } else if (progress_Bps > 0) {
    completions_.set(index, now_s_ + flow.bytes_left / progress_Bps);
  } else {
    completions_.erase(index);
  }
}

void FlowTimeline::solve() {
  for (const VarIndex var : leaving_) {
    if (!flows_[var.index()].is_finished) continue;
    flows_[var.index()].is_finished = false;
    solver_.remove(var);
  }
  leaving_.clear();
  if (solver_.is_solved()) return;
  for (const MaxMin::Change& change : solver_.solve())
    if (options_.phi == 0 || flows_[change.var.index()].kind == FlowKind::collective)
      proceed(change.var.index(), solver_.rate(change.var));
  if (options_.phi > 0) correct_lone_flows();
}

void FlowTimeline::correct_lone_flows() {
  is_bursty_.assign(solver_.links(), 0);
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (!flows_[i].is_running || flows_[i].kind != FlowKind::collective) continue;
    const std::optional<LinkIndex> bottleneck = solver_.bottleneck(VarIndex(i));
    solver_.for_each_load(VarIndex(i), [&](const Load& load) {
      if (load.link != bottleneck) is_bursty_[load.link.index()] = 1;
    });
  }
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (!flows_[i].is_running || flows_[i].kind != FlowKind::lone) continue;
    const double x = solver_.rate(VarIndex(i));
    double share = MaxMin::unlimited;
    int bursty = 0;
    solver_.for_each_load(VarIndex(i), [&](const Load& load) {
      share = std::min(share, solver_.capacity(load.link) / solver_.weight(load.link));
      bursty += is_bursty_[load.link.index()];
    });
    const double progress = bursty >= 2 && x > share ? x - options_.phi * (x - share) : x;
    if (progress != flows_[i].progress_Bps) proceed(i, progress);
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
  now_s_ =
      completions_.is_empty() ? to_s : std::min(to_s, std::max(now_s_, completions_.first_time()));
  while (!completions_.is_empty()) {
    const std::size_t i = completions_.first();
    if (!is_same_instant(completions_.first_time(), now_s_, flows_[i].settled_s)) break;
    completions_.erase(i);
    flows_[i].bytes_left = 0;
    flows_[i].settled_s = now_s_;
    flows_[i].is_running = false;
    flows_[i].is_finished = true;
    --running_;
    finished_.push_back(VarIndex(i));
    leaving_.push_back(VarIndex(i));
  }
  return finished_;
}

double FlowTimeline::bytes_left(VarIndex var) {
  solve();
  Flow& flow = flows_[var.index()];
  return std::max(0.0, flow.bytes_left - flow.progress_Bps * (now_s_ - flow.settled_s));
}

double FlowTimeline::progress_Bps(VarIndex var) {
  solve();
  return flows_[var.index()].progress_Bps;
}

}  // namespace trainyard::models
