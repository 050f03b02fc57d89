#include "models/facility/power_plant.hpp"

#include "sim/check.hpp"

namespace trainyard::models {

PowerPlant::PowerPlant(sim::Engine& engine, sim::Recorder& recorder,
                       const std::vector<PlantNode>& nodes, const PowerPolicySpec& policy,
                       Callbacks callbacks)
    : engine_(engine),
      recorder_(recorder),
      policy_(policy),
      callbacks_(std::move(callbacks)),
      paths_(nodes),
      devices_(nodes.size()),
      told_(nodes.size()),
      integrated_to_(engine.now()),
      wake_(engine, sim::Phase::failure, [this] { update(); }),
      policy_timer_(engine, sim::Phase::decision, [this] { take_step(); }),
      release_timer_(engine, sim::Phase::decision, [this] { try_release(); }) {
  for (Node n = 0; n < nodes.size(); ++n) {
    const PlantNode& node = nodes[n];
    subjects_.push_back(recorder.subject(node.name));
    Device& device = devices_[n];
    const sim::Stream luck = engine.random("plant/" + node.name);
    switch (node.kind) {
      case PlantKind::breaker:
        device.breaker = std::make_unique<Breaker>(node.breaker);
        break;
      case PlantKind::ups:
        device.ups = std::make_unique<Ups>(node.ups, node.rating, luck);
        energy_.battery_at_start += device.ups->battery().stored(engine.now());
        break;
      case PlantKind::generators:
        device.generators = std::make_unique<Generators>(node.generators, luck);
        break;
      case PlantKind::transfer:
        device.transfer = std::make_unique<TransferSwitch>(node.transfer, node.from.size(), luck);
        break;
      case PlantKind::rack:
        racks_[n] = {};
        break;
      case PlantKind::utility:
      case PlantKind::bus:
        break;
    }
  }
  update();
}

void PowerPlant::set_rack_load(Node rack, Watts active, VoltAmperes reactive) {
  check(racks_.contains(rack), "only racks have a load");
  if (paths_.load(rack) == active && paths_.reactive(rack) == reactive) return;
  integrate(engine_.now());
  paths_.set_load(rack, active, reactive);
  update();
}

void PowerPlant::set_rack_limits(Node rack, Watts cap_floor, Watts idle, int priority) {
  Rack& r = racks_.at(rack);
  r.cap_floor = cap_floor;
  r.idle = idle;
  r.priority = priority;
}

PowerPlant::Cause PowerPlant::fail(Node node, Cause cause) {
  const Time now = engine_.now();
  Device& device = devices_.at(node);
  device.has_failed = true;
  device.event = last_change_ = record("power node failed", node, sim::Phase::failure, cause);
  if (device.breaker) device.breaker->open(now);
  if (device.ups) device.ups->fail(now);
  if (device.transfer) device.transfer->fail(now);
  if (device.generators) device.generators->fail_all(now);
  update();
  return device.event;
}

PowerPlant::Cause PowerPlant::restore(Node node, Cause cause) {
  const Time now = engine_.now();
  Device& device = devices_.at(node);
  device.has_failed = false;
  device.event = {};
  const Cause event = record("power node restored", node, sim::Phase::completion, cause);
  if (device.breaker) device.breaker->close(now);
  if (device.ups) device.ups->restore(now);
  if (device.transfer) device.transfer->restore(now);
  if (device.generators) device.generators->repair_all(now);
  update();
  return event;
}

PowerPlant::Cause PowerPlant::return_by_hand(Node ups, Cause cause) {
  const Cause event = record("ups returned by hand", ups, sim::Phase::decision, cause);
  devices_.at(ups).ups->return_by_hand(engine_.now());
  update();
  return event;
}

PowerPlant::Energy PowerPlant::energy() const {
  const Time now = engine_.now();
  Energy sum = energy_;
  const double dt_s = to_seconds(now - integrated_to_);
  for (Node n = 0; n < paths_.size(); ++n) {
    const PowerPaths::Flow& flow = paths_.flow(n);
    if (paths_.feeds(n).empty()) sum.from_sources += Joules(flow.in_W * dt_s);
    if (racks_.contains(n)) sum.to_racks += Joules(flow.out_W * dt_s);
    sum.losses += Joules(flow.loss_W * dt_s);
    if (!devices_[n].ups) continue;
    const Battery& battery = devices_[n].ups->battery();
    sum.battery_given += battery.given(now);
    sum.battery_taken += battery.taken(now);
    sum.battery_stored += battery.stored(now);
    sum.battery_lost += battery.lost(now);
  }
  return sum;
}

}  // namespace trainyard::models
