#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/facility/power_plant.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"

/// A power plant with an owner that does what it is told: dark racks draw nothing, capped racks
/// draw their cap, braked ones half.
namespace trainyard::models {

struct PlantRig {
  struct Fed {
    Time when;
    std::string rack;
    bool is_fed;
    sim::EventIndex cause;
  };
  struct Warning {
    Time when;
    std::size_t racks;
    Duration window;
  };

  PlantRig(std::vector<PlantNode> nodes, PowerPolicySpec policy = {}, std::uint64_t seed = 1)
      : engine(sim::Seed{seed}), list(std::move(nodes)) {
    PowerPlant::Callbacks calls;
    calls.on_fed = [this](std::size_t rack, bool is_fed, sim::EventIndex cause) {
      fed.push_back({engine.now(), list[rack].name, is_fed, cause});
    };
    calls.on_order = [this](std::size_t rack, RackOrder order, Watts watts, sim::EventIndex) {
      orders.push_back(order);
      if (!obeys) return;
      const Watts full = loads[rack];
      const double share = order == RackOrder::brake ? 0.5 : watts / full;
      plant->set_rack_load(rack, full * share, reactive[rack] * share);
    };
    calls.on_warning = [this](const std::vector<std::size_t>& racks, Duration window,
                              sim::EventIndex) {
      warnings.push_back({engine.now(), racks.size(), window});
    };
    plant = std::make_unique<PowerPlant>(engine, recorder, list, policy, calls);
  }

  std::size_t node(const std::string& name) const { return plant->node(name); }
  void load(const std::string& name, Watts active, VoltAmperes q = VoltAmperes(0)) {
    const std::size_t n = node(name);
    loads[n] = active;
    reactive[n] = q;
    plant->set_rack_load(n, active, q);
  }
  void run(Duration until) { engine.run_until(start_of_run + until); }
  /// Kinds of the causes of an event, the event first.
  std::string chain(sim::EventIndex event) const {
    std::string text;
    while (event.is_valid()) {
      const auto& e = recorder.events()[event.index()];
      text += (text.empty() ? "" : " <- ") + recorder.kinds()[e.kind.index()].name;
      event = e.cause;
    }
    return text;
  }
  Time time_of(const std::string& kind) const {
    for (const auto& e : recorder.events())
      if (recorder.kinds()[e.kind.index()].name == kind) return e.when;
    return Time::max();
  }

  sim::Engine engine;
  sim::MemoryRecorder recorder;
  std::vector<PlantNode> list;
  std::map<std::size_t, Watts> loads;
  std::map<std::size_t, VoltAmperes> reactive;
  std::vector<Fed> fed;
  std::vector<RackOrder> orders;
  std::vector<Warning> warnings;
  bool obeys = true;
  std::unique_ptr<PowerPlant> plant;
};

inline PlantNode utility(std::string name) {
  return {.name = std::move(name), .kind = PlantKind::utility};
}

inline PlantNode rack(std::string name, std::vector<std::string> from) {
  return {.name = std::move(name), .kind = PlantKind::rack, .from = std::move(from)};
}

inline PlantNode breaker(std::string name, std::string from, Amperes rating, Volts voltage,
                         int phases) {
  PlantNode node{.name = std::move(name), .kind = PlantKind::breaker, .from = {std::move(from)}};
  node.voltage = voltage;
  node.phases = phases;
  node.breaker.rating = rating;
  return node;
}

/// A UPS without luck: Peukert exponent 1, 300 s at its rating, losses of a modern machine.
inline PlantNode ups(std::string name, std::string from, Watts rating) {
  PlantNode node{.name = std::move(name), .kind = PlantKind::ups, .from = {std::move(from)}};
  node.rating = rating;
  node.ups.battery.peukert = 1.0;
  node.ups.battery.fail_on_demand = 0.0;
  return node;
}

/// Sets without luck that start in `start` and take everything at once.
inline PlantNode generators(std::string name, int sets, Watts rating, Duration start) {
  PlantNode node{.name = std::move(name), .kind = PlantKind::generators};
  node.generators.sets = sets;
  node.generators.rating = rating;
  node.generators.start_median = start;
  node.generators.start_sigma = 0.0;
  node.generators.try_fails = 0.0;
  node.generators.fail_to_start = 0.0;
  node.generators.unavailable = 0.0;
  node.generators.mttf = std::chrono::hours(2'000'000);
  node.generators.block = 1.0;
  return node;
}

inline PlantNode transfer(std::string name, std::vector<std::string> from) {
  PlantNode node{.name = std::move(name), .kind = PlantKind::transfer, .from = std::move(from)};
  node.transfer.fail_to_transfer = 0.0;
  return node;
}

}  // namespace trainyard::models
