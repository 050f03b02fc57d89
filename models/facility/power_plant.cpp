#include "models/facility/power_plant.hpp"

#include <algorithm>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

std::vector<double> time_constants_s(const std::vector<PlantNode>& nodes) {
  std::vector<double> all;
  for (const PlantNode& node : nodes)
    if (node.kind == PlantKind::breaker) all.push_back(to_seconds(node.breaker.time_constant));
  return all;
}

}  // namespace

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
      rack_at_(nodes.size(), nowhere),
      load_at_(nodes.size(), nowhere),
      memory_(time_constants_s(nodes), nodes.size()),
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
        breakers_.push_back(n);
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
        rack_at_[n] = racks_.size();
        racks_.emplace_back().node = n;
        break;
      case PlantKind::load:
        load_at_[n] = loads_.size();
        loads_.emplace_back().node = n;
        break;
      default:
        break;
    }
    if (device.is_any()) with_device_.push_back(n);
  }
  for (const Node n : paths_.order())
    if (devices_[n].is_any()) sources_first_.push_back(n);
  update();
}

bool PowerPlant::is_fed(Node rack) const {
  if (load_at_[rack] != nowhere) return loads_[load_at_[rack]].is_fed;
  return racks_.at(rack_at_[rack]).is_fed;
}

void PowerPlant::set_rack_load(Node rack, Watts active, VoltAmperes reactive) {
  const RackLoad load{rack, active, reactive};
  set_rack_loads({&load, 1});
}

void PowerPlant::set_rack_loads(std::span<const RackLoad> loads, std::uint64_t name) {
  if (loads.empty()) return;
  if (change_quietly(loads, name)) {
    ++quiet_changes_;
    return;
  }
  const bool is_same = std::all_of(loads.begin(), loads.end(), [this](const RackLoad& load) {
    check(rack_at_[load.rack] != nowhere || load_at_[load.rack] != nowhere,
          "only racks and loads have a load");
    return paths_.load(load.rack) == load.active && paths_.reactive(load.rack) == load.reactive;
  });
  if (is_same) return;
  integrate(engine_.now());
  end_quiet();
  if (memory_.at() != FlowMemory::none) memory_.leave(paths_.solved());
  for (const RackLoad& load : loads) paths_.set_load(load.rack, load.active, load.reactive);
  update();
}

void PowerPlant::tell_all_devices() {
  tells_all_ = true;
  end_quiet();
}

void PowerPlant::set_rack_limits(Node rack, Watts cap_floor, Watts idle, int priority) {
  Rack& r = racks_.at(rack_at_.at(rack));
  r.cap_floor = cap_floor;
  r.idle = idle;
  r.priority = priority;
}

PowerPlant::Cause PowerPlant::fail(Node node, Cause cause) {
  const Time now = engine_.now();
  end_quiet();
  Device& device = devices_.at(node);
  device.has_failed = has_switched_ = true;
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
  end_quiet();
  Device& device = devices_.at(node);
  device.has_failed = false;
  has_switched_ = true;
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
  end_quiet();
  devices_.at(ups).ups->return_by_hand(engine_.now());
  update();
  return event;
}

PowerPlant::Energy PowerPlant::energy() const {
  const Time now = engine_.now();
  const double dt_s = to_seconds(now - integrated_to_);
  const PowerPaths::Totals& totals = paths_.totals();
  Energy sum = energy_;
  sum.from_sources += Joules(totals.from_sources_W * dt_s);
  sum.to_racks += Joules(totals.to_racks_W * dt_s);
  sum.to_loads += Joules(totals.to_loads_W * dt_s);
  for (const auto& [kind, lost] : losses_by_kind()) sum.losses += lost;
  for (const Node n : with_device_) {
    if (!devices_[n].ups) continue;
    const Battery& battery = devices_[n].ups->battery();
    sum.battery_given += battery.given(now);
    sum.battery_taken += battery.taken(now);
    sum.battery_stored += battery.stored(now);
    sum.battery_lost += battery.lost(now);
  }
  return sum;
}

Watts PowerPlant::losses() const {
  double sum_W = 0;
  for (const double lost_W : paths_.totals().losses_W) sum_W += lost_W;
  return Watts(sum_W);
}

std::map<PlantKind, Joules> PowerPlant::losses_by_kind() const {
  const double dt_s = to_seconds(engine_.now() - integrated_to_);
  std::map<PlantKind, Joules> lost;
  for (std::size_t kind = 0; kind < plant_kinds; ++kind) {
    const Joules sum = losses_[kind] + Joules(paths_.totals().losses_W[kind] * dt_s);
    if (sum > Joules(0)) lost[PlantKind(kind)] = sum;
  }
  return lost;
}

}  // namespace trainyard::models
