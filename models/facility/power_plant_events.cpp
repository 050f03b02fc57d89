#include <algorithm>
#include <string>

#include "models/facility/power_plant.hpp"

/// What devices did, as recorded events with their causes.
namespace trainyard::models {

namespace {
/// What was seen of a transfer switch, beside the number of its source.
constexpr int has_failed = -2;
constexpr int is_moving = -3;
}  // namespace

PowerPlant::Cause PowerPlant::record(std::string_view kind, Node node, sim::Phase phase,
                                     Cause cause, double value) {
  return recorder_.event(engine_.now(), phase, recorder_.kind(kind, ""), subjects_[node], cause,
                         value);
}

/// The latest abnormal event on the way from the sources to a node, itself included.
PowerPlant::Cause PowerPlant::why(Node node) const {
  Cause latest = devices_[node].event;
  for (const Node feed : paths_.feeds(node)) {
    const Cause cause = why(feed);
    if (cause.is_valid() && (!latest.is_valid() || cause > latest)) latest = cause;
  }
  return latest;
}

void PowerPlant::record_changes() {
  for (const Node n : sources_first_) {
    if (devices_[n].breaker) record_breaker(n);
    if (devices_[n].ups) record_ups(n);
    if (devices_[n].transfer) record_transfer(n);
    if (devices_[n].generators) record_generators(n);
  }
}

void PowerPlant::record_breaker(Node n) {
  Device& device = devices_[n];
  const int state = device.breaker->is_closed() ? 1 : device.breaker->has_tripped() ? 2 : 0;
  if (state == device.seen) return;
  const bool is_first = !device.seen;
  device.seen = state;
  if (is_first) return;
  if (state == 2)
    device.event = last_change_ = record("breaker tripped", n, sim::Phase::failure, device.trigger);
  if (state == 1) {
    record("breaker closed", n, sim::Phase::completion, device.event);
    device.event = {};
  }
}

void PowerPlant::record_ups(Node n) {
  Device& device = devices_[n];
  const Ups& ups = *device.ups;
  if (ups.is_latched() != device.seen_flag) {
    device.seen_flag = ups.is_latched();
    if (ups.is_latched()) record("ups latched off the utility", n, sim::Phase::decision, why(n));
    lock_out_utility(n, ups.is_latched());
  }
  const int state = int(ups.state());
  if (state == device.seen) return;
  const bool is_first = !device.seen;
  device.seen = state;
  if (is_first) return;
  const bool is_normal = ups.state() == UpsState::on_input || ups.state() == UpsState::walking_in;
  const Cause event = record("ups " + std::string(name_of(ups.state())), n,
                             is_normal ? sim::Phase::completion : sim::Phase::failure, why(n),
                             ups.battery().charge(engine_.now()));
  device.event = is_normal ? Cause{} : event;
  if (!is_normal) last_change_ = event;
}

void PowerPlant::record_transfer(Node n) {
  Device& device = devices_[n];
  const TransferSwitch& transfer = *device.transfer;
  if (transfer.calls_backup() != device.seen_flag) {
    device.seen_flag = transfer.calls_backup();
    if (device.seen_flag) {
      const Cause called = record("backup called", n, sim::Phase::decision, why(n));
      for (const Node feed : paths_.feeds(n))
        if (devices_[feed].generators) devices_[feed].trigger = called;
    }
  }
  const int state = transfer.has_failed() ? has_failed
                    : transfer.source()   ? int(*transfer.source())
                                          : is_moving;
  if (state == device.seen) return;
  const bool is_first = !device.seen;
  device.seen = state;
  if (is_first) return;
  if (state == has_failed) {
    if (!device.has_failed)  // else fail() has said so
      device.event = last_change_ = record("transfer failed", n, sim::Phase::failure, why(n));
  } else if (state == is_moving) {
    device.event = record("transfer begins", n, sim::Phase::decision, why(n));
  } else {
    record("transferred", n, sim::Phase::completion, device.event, double(state));
    device.event = {};
  }
}

void PowerPlant::record_generators(Node n) {
  Device& device = devices_[n];
  const int running = device.generators->running();
  const int before = device.seen.value_or(0);
  device.seen = running;
  if (running == before) return;
  if (running > before) {
    record("generator started", n, sim::Phase::completion, device.trigger, running);
  } else if (running == 0 && !device.generators->is_ordered()) {
    record("generators stopped", n, sim::Phase::completion, device.trigger);
    device.event = {};
  } else {
    device.event = last_change_ =
        record("generator failed", n, sim::Phase::failure,
               device.event.is_valid() ? device.event : device.trigger, running);
  }
}

}  // namespace trainyard::models
