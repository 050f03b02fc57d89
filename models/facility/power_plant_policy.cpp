#include <algorithm>
#include <utility>

#include "models/facility/power_plant.hpp"
#include "models/facility/power_policy.hpp"

/// What the operator does: limits, their order and their end, and the warning before a loss.
namespace trainyard::models {

namespace {
/// A predicted loss that moves by less than this is not announced again.
constexpr Duration same_time = std::chrono::seconds(1);
constexpr double ups_overload = 1.02;
}  // namespace

std::vector<PowerPlant::Overload> PowerPlant::overloads(const PowerPaths& paths) const {
  std::vector<Overload> found;
  for (const Node n : with_device_) {
    const Device& device = devices_[n];
    const PowerPaths::Flow& flow = paths.flow(n);
    if (!flow.is_live) continue;
    if (device.breaker) {
      const double ratio = flow.current / device.breaker->spec().rating;
      if (ratio * ratio > device.breaker->spec().trip_level)
        found.push_back({n, policy_.target / ratio, device.breaker->next_event()});
    } else if (device.ups) {
      const double ratio = flow.out_W / device.ups->rating().value();
      if (ratio > ups_overload)
        found.push_back({n, policy_.target / ratio, device.ups->next_event()});
    } else if (device.generators) {
      const double capacity_W = device.generators->capacity().value();
      const bool is_settled = device.generators->is_settled(engine_.now());
      const double load_W = is_settled ? std::max(flow.in_W, flow.full_W) : flow.in_W;
      if (load_W > capacity_W * (1.0 + 1e-9))
        found.push_back({n, policy_.target * capacity_W / load_W, device.generators->next_event()});
    }
  }
  return found;
}

PowerPaths PowerPlant::without_limits() const {
  PowerPaths trial = paths_;
  for (const Rack& rack : racks_) {
    const Node n = rack.node;
    if (rack.order == RackOrder::none && !rack.is_cut) continue;
    trial.set_load(n, rack.wanted, rack.wanted_reactive);
    if (!rack.is_cut) continue;
    trial.set_gate(n, true);
    trial.set_draws(n, true);
  }
  trial.solve();
  return trial;
}

void PowerPlant::go_to(Step step, Duration after) {
  if (step == Step::brake && !policy_.brake) step = Step::cap;
  if (step == Step::cap && !policy_.cap) step = Step::suspend;
  if (step == Step::suspend && !policy_.suspend) step = Step::cut;
  if (step == Step::cut && !policy_.cut) step = Step::none;
  next_step_ = step;
  if (step == Step::none)
    policy_timer_.cancel();
  else
    policy_timer_.arm(after);
}

void PowerPlant::watch_overloads() {
  const std::vector<Overload> over = overloads(paths_);
  const bool is_limited = std::any_of(racks_.begin(), racks_.end(), [](const Rack& rack) {
    return rack.order != RackOrder::none || rack.is_cut;
  });
  if (!over.empty()) {
    release_timer_.cancel();
    if (next_step_ != Step::none) return;
    std::optional<Time> first;
    for (const Overload& o : over)
      if (o.until && (!first || *o.until < *first)) first = o.until;
    const bool is_urgent = !policy_.cap || (first && *first <= engine_.now() + policy_.cap_delay);
    if (policy_.brake && is_urgent)
      go_to(Step::brake, policy_.brake_delay);
    else
      go_to(Step::cap, policy_.cap_delay);
    return;
  }
  const bool is_braked = std::any_of(racks_.begin(), racks_.end(), [](const Rack& rack) {
    return rack.order == RackOrder::brake;
  });
  // The brake is coarse: the cap that follows it gives back what can be given back.
  if (!(is_braked && next_step_ == Step::cap)) go_to(Step::none, {});
  if (!is_limited || !overloads(without_limits()).empty())
    release_timer_.cancel();
  else if (!release_timer_.is_armed())
    release_timer_.arm(policy_.release_delay);
}

void PowerPlant::take_step() {
  const Step step = std::exchange(next_step_, Step::none);
  if (step == Step::none) return;
  is_updating_ = true;  // what the owner changes meanwhile counts when all orders are given
  switch (step) {
    case Step::brake:
      go_to(Step::cap, std::max(policy_.cap_delay - policy_.brake_delay, Duration::zero()));
      brake_racks();
      break;
    case Step::cap:
      go_to(Step::suspend, policy_.suspend_delay);
      cap_racks();
      break;
    case Step::suspend:
      go_to(Step::cut, policy_.cut_delay);
      suspend_racks();
      break;
    case Step::cut:
      go_to(Step::cut, policy_.cut_delay + std::chrono::seconds(1));
      cut_racks();
      break;
    case Step::none:
      break;
  }
  is_updating_ = false;
  update();
}

void PowerPlant::give(Node rack, RackOrder order, Watts watts, Cause cause) {
  Rack& r = racks_.at(rack_at_[rack]);
  if (r.order == RackOrder::none && !r.is_cut) {
    r.wanted = paths_.load(rack);
    r.wanted_reactive = paths_.reactive(rack);
  }
  r.order = order;
  const char* kind = order == RackOrder::cap     ? "rack capped"
                     : order == RackOrder::brake ? "rack braked"
                     : order == RackOrder::none  ? "rack limit ended"
                                                 : "rack suspended";
  const Cause event = record(kind, rack, sim::Phase::decision, cause, watts.value());
  if (callbacks_.on_order) callbacks_.on_order(rack, order, watts, event);
}

double PowerPlant::part_for_racks(const Overload& over, const PowerPaths::Behind& behind) {
  if (behind.loads_W <= 0.0 || behind.racks_W <= 0.0) return over.ratio;
  const double all_W = (behind.racks_W + behind.loads_W) * over.ratio;
  return std::max(all_W - behind.loads_W, 0.0) / behind.racks_W;
}

void PowerPlant::brake_racks() {
  for (const Overload& over : overloads(paths_))
    for (const Node rack : paths_.racks_behind(over.node))
      if (order(rack) == RackOrder::none)
        give(rack, RackOrder::brake, paths_.load(rack), last_change_);
}

void PowerPlant::cap_racks() {
  const PowerPaths trial = without_limits();
  std::map<Node, Watts> caps;
  for (const Overload& over : overloads(trial)) {
    const PowerPaths::Behind behind = trial.behind(over.node);
    const std::vector<Node>& racks = behind.racks;
    std::vector<RackDemand> demands;
    Watts total{};
    for (const Node n : racks) {
      const Rack& rack = racks_[rack_at_[n]];
      demands.push_back({trial.load(n), rack.cap_floor, rack.priority});
      total += trial.load(n);
    }
    const std::vector<Watts> limits = share_limit(demands, total * part_for_racks(over, behind));
    for (std::size_t i = 0; i < racks.size(); ++i) {
      if (limits[i] >= demands[i].load) continue;
      const auto [entry, is_new] = caps.emplace(racks[i], limits[i]);
      if (!is_new) entry->second = std::min(entry->second, limits[i]);
    }
  }
  for (const auto& [rack, watts] : caps) give(rack, RackOrder::cap, watts, last_change_);
  for (const Rack& rack : racks_)
    if (rack.order == RackOrder::brake && !caps.contains(rack.node))
      give(rack.node, RackOrder::none, rack.wanted, last_change_);
}

void PowerPlant::suspend_racks() {
  for (const Overload& over : overloads(paths_)) {
    const PowerPaths::Behind behind = paths_.behind(over.node);
    const std::vector<Node>& racks = behind.racks;
    std::vector<RackDemand> gains;
    Watts total{}, idle{};
    for (const Node n : racks) {
      const Watts load = paths_.load(n);
      const Rack& rack = racks_[rack_at_[n]];
      const Watts rest = std::min(rack.idle, load);
      gains.push_back({load - rest, Watts(0), rack.priority});
      total += load;
      idle += rest;
    }
    for (const std::size_t i : racks_to_cut(gains, total * part_for_racks(over, behind) - idle))
      if (order(racks[i]) != RackOrder::suspend)
        give(racks[i], RackOrder::suspend, racks_[rack_at_[racks[i]]].idle, last_change_);
  }
}

void PowerPlant::cut_racks() {
  for (const Overload& over : overloads(paths_)) {
    const PowerPaths::Behind behind = paths_.behind(over.node);
    const std::vector<Node>& racks = behind.racks;
    std::vector<RackDemand> demands;
    Watts total{};
    for (const Node n : racks) {
      demands.push_back({paths_.load(n), Watts(0), racks_[rack_at_[n]].priority});
      total += paths_.load(n);
    }
    for (const std::size_t i : racks_to_cut(demands, total * part_for_racks(over, behind))) {
      Rack& rack = racks_[rack_at_[racks[i]]];
      if (rack.is_cut) continue;
      if (rack.order == RackOrder::none) {
        rack.wanted = paths_.load(racks[i]);
        rack.wanted_reactive = paths_.reactive(racks[i]);
      }
      rack.is_cut = has_switched_ = true;
      devices_[racks[i]].event =
          record("rack cut off", racks[i], sim::Phase::decision, last_change_);
    }
  }
}

void PowerPlant::try_release() {
  if (!overloads(without_limits()).empty()) return;
  has_switched_ = true;
  is_updating_ = true;
  for (Rack& rack : racks_) {
    rack.is_cut = false;
    if (rack.order != RackOrder::none) give(rack.node, RackOrder::none, rack.wanted, {});
  }
  is_updating_ = false;
  update();
}

void PowerPlant::warn() {
  std::vector<std::pair<Time, Node>> losses;
  for (const Node n : with_device_) {
    const Device& device = devices_[n];
    if (device.breaker && device.breaker->is_closed() && device.breaker->next_event())
      losses.emplace_back(*device.breaker->next_event(), n);
    if (device.ups)
      if (const auto loss = device.ups->predicted_loss()) losses.emplace_back(*loss, n);
  }
  std::sort(losses.begin(), losses.end());
  std::vector<Node> racks;
  Time when = Time::max();
  if (!losses.empty()) {
    PowerPaths trial = paths_;
    for (const Node n : with_device_)  // batteries carry on when their input goes
      if (devices_[n].ups && devices_[n].ups->is_live() && !devices_[n].ups->battery().is_empty())
        trial.set_ups(n, false, 0.0, Watts(0));
    for (std::size_t i = 0; i < losses.size() && racks.empty(); ++i) {
      when = losses[i].first;
      trial.set_gate(losses[i].second, false);
      if (i + 1 < losses.size() && losses[i + 1].first == when) continue;
      trial.solve();
      for (const Rack& rack : racks_)
        if (rack.is_fed && !rack.dark_at && !trial.flow(rack.node).is_live)
          racks.push_back(rack.node);
    }
    if (racks.empty()) when = Time::max();
  }
  const bool is_same =
      racks == warned_racks_ &&
      (when == warned_loss_ ||
       (when < warned_loss_ ? warned_loss_ - when : when - warned_loss_) < same_time);
  if (is_same) return;
  warned_racks_ = racks;
  warned_loss_ = when;
  const Duration window = racks.empty() ? forever : when - engine_.now();
  Cause event = last_change_;
  if (!racks.empty())
    event = record("power loss predicted", racks.front(), sim::Phase::observation, last_change_,
                   to_seconds(window));
  if (callbacks_.on_warning) callbacks_.on_warning(racks, window, event);
}

}  // namespace trainyard::models
