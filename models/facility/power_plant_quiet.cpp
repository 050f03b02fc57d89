#include <algorithm>
#include <cmath>

#include "models/facility/power_plant.hpp"
#include "sim/check.hpp"

/// Changes of the load to which no device would answer: flows from memory, no device is told.
namespace trainyard::models {

namespace {
/// Up to here a UPS carries its load for ever, and an overload that it remembers fades.
constexpr double ups_overload = 1.02;
}  // namespace

std::vector<double> PowerPlant::breaker_heating() const {
  std::vector<double> heating;
  heating.reserve(breakers_.size());
  for (const Node n : breakers_) {
    const double ratio = paths_.flow(n).current / devices_[n].breaker->spec().rating;
    heating.push_back(ratio * ratio);
  }
  return heating;
}

/// No device would change its state, whatever came before, as long as this load stays.
bool PowerPlant::is_quiet(const std::vector<double>& heating) const {
  for (std::size_t b = 0; b < breakers_.size(); ++b) {
    const BreakerSpec& spec = devices_[breakers_[b]].breaker->spec();
    const double magnetic = magnetic_limit(spec.curve);
    if (heating[b] >= std::min(spec.trip_level, magnetic * magnetic)) return false;
  }
  for (const Node n : with_device_) {
    const PowerPaths::Flow& flow = paths_.flow(n);
    if (!flow.is_live) continue;
    if (devices_[n].generators) return false;
    if (devices_[n].ups && flow.out_W > ups_overload * devices_[n].ups->rating().value())
      return false;
  }
  return true;
}

/// What devices do at present has nothing to do with the load.
bool PowerPlant::is_calm() const {
  if (next_step_ != Step::none || policy_timer_.is_armed() || release_timer_.is_armed() ||
      !warned_racks_.empty())
    return false;
  for (const Rack& rack : racks_)
    if (rack.order != RackOrder::none || rack.is_cut) return false;
  for (const Node n : with_device_) {
    const Device& device = devices_[n];
    if (device.breaker && device.breaker->is_closed() && device.breaker->next_event()) return false;
    if (device.transfer && (!device.transfer->source() || device.transfer->calls_backup()))
      return false;
    if (device.generators && (device.generators->is_ordered() || device.generators->running() > 0))
      return false;
    if (!device.ups) continue;
    const Ups& ups = *device.ups;
    const bool is_idle = ups.state() == UpsState::on_input || ups.state() == UpsState::on_bypass ||
                         ups.state() == UpsState::off;
    if (!is_idle || ups.next_event() || ups.battery().recharge_power() > Watts(0) ||
        !ups.has_recovered(engine_.now()))
      return false;
  }
  return true;
}

bool PowerPlant::change_quietly(std::span<const RackLoad> loads, std::uint64_t name) {
  const Time now = engine_.now();
  const std::optional<Time> wakes = wake_.expiry();
  if (is_updating_ || tells_all_ || (wakes && *wakes <= now)) return false;
  if (!is_calm_) is_calm_ = is_calm();
  if (!*is_calm_) return false;
  if (memory_.at() == FlowMemory::none) {
    std::vector<double> heating = breaker_heating();
    if (!is_quiet(heating)) return false;
    if (const auto here = memory_.find(paths_.solved().loads))
      memory_.hold(*here);
    else
      memory_.add(std::move(heating), {}, now);
    memory_.settle(now);
  }
  static_assert(std::is_trivially_copyable_v<RackLoad>);
  const FlowMemory::Key key = std::as_bytes(loads);
  std::optional<std::size_t> to = memory_.find(name);
  if (!to) {
    to = memory_.find(key);
    const bool is_known = to || learn(loads, key);
    if (is_known && name != 0) memory_.name_last(name);
    if (!to) return is_known;
  }
  if (*to == memory_.at()) return true;
  integrate(now);
  paths_.exchange(memory_.change_to(*to, now));
  return true;
}

/// A change that did not come before; false if devices have to be told.
bool PowerPlant::learn(std::span<const RackLoad> loads, FlowMemory::Key key) {
  const Time now = engine_.now();
  std::vector<PowerPaths::Load> next = paths_.solved().loads;
  std::vector<bool> is_given(next.size());
  for (const RackLoad& load : loads) {
    const std::size_t place = paths_.consumer(load.rack);
    check(place < next.size(), "only racks and loads have a load");
    next[place] = {load.active.value(), load.reactive.value()};
    is_given[place] = true;
  }
  const bool gives_all = std::find(is_given.begin(), is_given.end(), false) == is_given.end();
  if (next == paths_.solved().loads) return true;
  if (const std::optional<std::size_t> to = memory_.find(next)) {
    memory_.learn(key, gives_all ? FlowMemory::none : memory_.at(), *to);
    integrate(now);
    paths_.exchange(memory_.change_to(*to, now));
    return true;
  }
  integrate(now);
  PowerPaths::Solved before = paths_.start(std::move(next));
  paths_.solve();
  std::vector<double> heating = breaker_heating();
  if (!is_quiet(heating)) {
    paths_.exchange(before);
    return false;
  }
  if (memory_.must_settle()) {
    paths_.exchange(before);  // breakers are told what was in force
    settle_breakers();
    paths_.exchange(before);
  }
  const std::size_t from = memory_.at();
  memory_.add(std::move(heating), std::move(before), now);
  memory_.learn(key, gives_all ? FlowMemory::none : from, memory_.at());
  return true;
}

void PowerPlant::settle_breakers() {
  const Time now = engine_.now();
  memory_.pass(now);
  if (memory_.has_changed())
    for (std::size_t b = 0; b < breakers_.size(); ++b) {
      Breaker& breaker = *devices_[breakers_[b]].breaker;
      if (!breaker.is_closed()) continue;
      const double image = memory_.image(b, breaker.image(memory_.settled()));
      breaker.resume(now, image, paths_.flow(breakers_[b]).current);
    }
  memory_.settle(now);
}

/// Devices know again what is in force.
void PowerPlant::end_quiet() {
  is_calm_.reset();
  if (memory_.at() == FlowMemory::none) return;
  const bool has_changed = memory_.has_changed();
  settle_breakers();
  if (!has_changed) return;
  for (const Node n : with_device_) {
    const PowerPaths::Flow& flow = paths_.flow(n);
    if (devices_[n].ups && flow.is_live)
      devices_[n].ups->set_load(engine_.now(), Watts(flow.out_W), Watts(flow.loss_W));
  }
}

const Breaker& PowerPlant::breaker(Node node) const {
  const Device& device = devices_[node];
  if (!memory_.has_changed() || !device.breaker->is_closed()) return *device.breaker;
  const auto b = std::lower_bound(breakers_.begin(), breakers_.end(), node) - breakers_.begin();
  device.shown_breaker = std::make_unique<Breaker>(*device.breaker);
  const double image = memory_.image(std::size_t(b), device.breaker->image(memory_.settled()));
  device.shown_breaker->resume(memory_.since(), image, paths_.flow(node).current);
  return *device.shown_breaker;
}

const Ups& PowerPlant::ups(Node node) const {
  const Device& device = devices_[node];
  const PowerPaths::Flow& flow = paths_.flow(node);
  if (!memory_.has_changed() || !flow.is_live) return *device.ups;
  device.shown_ups = std::make_unique<Ups>(*device.ups);
  device.shown_ups->set_load(memory_.since(), Watts(flow.out_W), Watts(flow.loss_W));
  return *device.shown_ups;
}

}  // namespace trainyard::models
