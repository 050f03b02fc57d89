#include <algorithm>
#include <utility>

#include "models/facility/power_plant.hpp"
#include "sim/check.hpp"

/// One change of the plant, followed until nothing changes any more.
namespace trainyard::models {

namespace {

/// Rounds in one instant after which something must be going in circles.
constexpr int most_rounds = 1000;

}  // namespace

void PowerPlant::integrate(Time now) {
  const double dt_s = to_seconds(now - integrated_to_);
  integrated_to_ = now;
  if (dt_s <= 0.0) return;
  const PowerPaths::Totals& totals = paths_.totals();
  energy_.from_sources += Joules(totals.from_sources_W * dt_s);
  energy_.to_racks += Joules(totals.to_racks_W * dt_s);
  energy_.to_loads += Joules(totals.to_loads_W * dt_s);
  for (std::size_t kind = 0; kind < plant_kinds; ++kind)
    losses_[kind] += Joules(totals.losses_W[kind] * dt_s);
}

UpsInput PowerPlant::input_of(Node node) const {
  if (!paths_.has_live_feed(node)) return UpsInput::none;
  for (;;) {
    if (paths_.feeds(node).empty())
      return paths_.node(node).kind == PlantKind::generators ? UpsInput::backup : UpsInput::utility;
    if (const auto& transfer = devices_[node].transfer) {
      if (!transfer->source()) return UpsInput::none;
      node = paths_.feeds(node)[*transfer->source()];
      continue;
    }
    const auto& feeds = paths_.feeds(node);
    node = *std::find_if(feeds.begin(), feeds.end(),
                         [&](Node feed) { return paths_.flow(feed).is_live; });
  }
}

void PowerPlant::lock_out_utility(Node ups, bool is_locked) {
  std::vector<Node> open = paths_.feeds(ups);
  while (!open.empty()) {
    const Node n = open.back();
    open.pop_back();
    if (devices_[n].transfer && paths_.feeds(n).size() > 1)
      devices_[n].transfer->lock_out(engine_.now(), 0, is_locked);
    else
      open.insert(open.end(), paths_.feeds(n).begin(), paths_.feeds(n).end());
  }
}

/// True if something differs from what the paths were last solved with.
bool PowerPlant::tell_paths() {
  bool has_changed = false;
  const auto tell = [&](auto& known, auto value, auto&& apply) {
    if (known == value) return;
    known = value;
    apply();
    has_changed = true;
  };
  const bool has_switched = std::exchange(has_switched_, false);
  for (Node n = 0; has_switched && n < paths_.size(); ++n) {
    const Device& device = devices_[n];
    if (device.is_any()) continue;
    Told& told = told_[n];
    bool gate = !device.has_failed && device.disturbances == 0;
    if (rack_at_[n] != nowhere) {
      const Rack& rack = racks_[rack_at_[n]];
      gate = gate && !rack.is_cut;
      tell(told.draws, rack.is_fed, [&] { paths_.set_draws(n, told.draws); });
    }
    tell(told.gate, gate, [&] { paths_.set_gate(n, gate); });
  }
  for (const Node n : with_device_) {
    const Device& device = devices_[n];
    Told& told = told_[n];
    bool gate = true;
    if (device.breaker) gate = device.breaker->is_closed();
    if (device.generators) gate = device.carries;
    if (device.transfer) {
      gate = device.transfer->source().has_value();
      tell(told.source, device.transfer->source(),
           [&] { paths_.set_source(n, device.transfer->source()); });
    }
    if (device.ups) {
      const Ups& ups = *device.ups;
      gate = ups.is_live();
      const bool needs_input =
          ups.state() == UpsState::on_input || ups.state() == UpsState::on_bypass;
      tell(told.ups, std::tuple(needs_input, ups.input_share(), ups.recharge_power().value()),
           [&] { paths_.set_ups(n, needs_input, ups.input_share(), ups.recharge_power()); });
    }
    tell(told.gate, gate, [&] { paths_.set_gate(n, gate); });
  }
  if (has_changed) memory_.forget();
  return has_changed;
}

void PowerPlant::tell_devices(Time now) {
  for (const Node n : sources_first_) {
    Device& device = devices_[n];
    const PowerPaths::Flow& flow = paths_.flow(n);
    if (device.breaker) {
      const bool held = !device.breaker->next_event();
      device.breaker->set_current(now, flow.current);
      if (held && device.breaker->next_event()) device.trigger = last_change_;
    }
    if (device.ups) {
      device.ups->set_input(now, input_of(n));
      if (flow.is_live) device.ups->set_load(now, Watts(flow.out_W), Watts(flow.loss_W));
    }
    if (device.transfer)
      for (std::size_t i = 0; i < paths_.feeds(n).size(); ++i)
        device.transfer->set_live(now, i, paths_.flow(paths_.feeds(n)[i]).is_live);
  }
  tell_generators(now);
}

void PowerPlant::tell_generators(Time now) {
  for (const Node n : with_device_) {
    if (!devices_[n].generators) continue;
    Generators& sets = *devices_[n].generators;
    Watts demand{};
    bool is_called = false;
    for (const Node t : with_device_) {
      const auto& feeds = paths_.feeds(t);
      if (!devices_[t].transfer || std::find(feeds.begin(), feeds.end(), n) == feeds.end())
        continue;
      if (!devices_[t].transfer->calls_backup()) continue;
      demand += Watts(paths_.flow(t).full_W);
      is_called = true;
    }
    if (is_called && !devices_[n].has_failed) sets.start(now);
    if (!is_called) sets.stop(now);
    sets.set_load(now, Watts(paths_.flow(n).in_W));
    // The bus is given to the load when it can take all of it, or when no more will come.
    devices_[n].demand = demand;
    const bool is_ready = sets.capacity() >= demand || sets.is_settled(now);
    devices_[n].carries = sets.running() > 0 && is_called && (devices_[n].carries || is_ready);
  }
}

void PowerPlant::update_loads() {
  for (Load& load : loads_) {
    const bool is_fed = paths_.flow(load.node).is_live;
    if (load.is_fed == is_fed) continue;
    load.is_fed = is_fed;
    Cause& event = devices_[load.node].event;
    const Cause cause = is_fed ? std::exchange(event, {}) : why(load.node);
    const Cause told = record(is_fed ? "load fed" : "load unfed", load.node,
                              is_fed ? sim::Phase::completion : sim::Phase::failure, cause);
    if (!is_fed) event = told;
    if (callbacks_.on_fed) callbacks_.on_fed(load.node, is_fed, told);
  }
}

void PowerPlant::update_racks(Time now) {
  for (Rack& rack : racks_) {
    const Node n = rack.node;
    if (!paths_.flow(n).is_live) {
      rack.start_at.reset();
      if (!rack.is_fed) continue;
      if (!rack.dark_at) rack.dark_at = rack.is_cut ? now : add(now, policy_.hold_up);
      if (*rack.dark_at > now) continue;
      rack.dark_at.reset();
      rack.is_fed = false;
      has_switched_ = true;
      devices_[n].event = record("rack unfed", n, sim::Phase::failure, why(n));
      if (callbacks_.on_fed) callbacks_.on_fed(n, false, devices_[n].event);
      continue;
    }
    rack.dark_at.reset();
    if (rack.is_fed) continue;
    if (!rack.start_at) {
      // Groups of racks, one after the other, so that they do not all start in one instant.
      if (restart_slot_ < now) {
        restart_slot_ = now;
        restarted_in_slot_ = 0;
      }
      if (restarted_in_slot_ == policy_.restart_group) {
        restart_slot_ = add(restart_slot_, policy_.restart_delay);
        restarted_in_slot_ = 0;
      }
      ++restarted_in_slot_;
      rack.start_at = restart_slot_;
    }
    if (*rack.start_at > now) continue;
    rack.start_at.reset();
    rack.is_fed = has_switched_ = true;
    const Cause event = record("rack fed", n, sim::Phase::completion, devices_[n].event);
    devices_[n].event = {};
    if (callbacks_.on_fed) callbacks_.on_fed(n, true, event);
  }
}

std::optional<Time> PowerPlant::next_device_event() const {
  std::optional<Time> next;
  const auto take = [&](std::optional<Time> t) {
    if (t && (!next || *t < *next)) next = t;
  };
  for (const Node n : with_device_) {
    const Device& device = devices_[n];
    if (device.breaker) take(device.breaker->next_event());
    if (device.ups) take(device.ups->next_event());
    if (device.generators) take(device.generators->next_event());
    if (device.transfer) take(device.transfer->next_event());
  }
  return next;
}

void PowerPlant::arm() {
  std::optional<Time> next = next_device_event();
  for (const Rack& rack : racks_)
    for (const auto& t : {rack.dark_at, rack.start_at})
      if (t && (!next || *t < *next)) next = t;
  if (next)
    wake_.arm_at(*next);
  else
    wake_.cancel();
}

void PowerPlant::update() {
  is_dirty_ = true;
  if (is_updating_) return;  // a callback changed something: the loop below sees it
  is_updating_ = true;
  const Time now = engine_.now();
  integrate(now);
  end_quiet();
  for (int round = 0; is_dirty_; ++round) {
    check(round < most_rounds, "the power plant comes to rest within an instant");
    is_dirty_ = false;
    for (const Node n : with_device_) {
      Device& device = devices_[n];
      if (device.breaker) device.breaker->advance(now);
      if (device.ups) device.ups->advance(now);
      if (device.generators) device.generators->advance(now);
      if (device.transfer) device.transfer->advance(now);
    }
    record_changes();
    tell_paths();
    paths_.solve();
    tell_devices(now);
    record_changes();
    if (tell_paths()) is_dirty_ = true;
    if (!is_dirty_) {
      update_loads();
      update_racks(now);
    }
    if (tell_paths()) is_dirty_ = true;
    if (is_dirty_) continue;
    watch_overloads();
    if (!is_dirty_) warn();  // of what is left of the instant's changes
  }
  is_updating_ = false;
  arm();
}

}  // namespace trainyard::models
