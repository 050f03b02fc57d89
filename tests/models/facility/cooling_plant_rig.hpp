#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/facility/cooling_plant.hpp"

/// A hall of ten racks of 40 kW on one loop with four air-cooled chillers of 200 kW, and its owner.
namespace trainyard::models {

struct CoolingRig {
  struct Told {
    Time when;
    std::size_t rack;
    RackCondition condition;
    sim::EventIndex cause;
  };
  struct Cooled {
    Time when;
    std::size_t rack;
    bool is_cooled;
    sim::EventIndex cause;
  };
  struct Warning {
    Time when;
    std::size_t racks;
    Duration window;
  };

  static CoolingPlantSpec hall(double outdoors_C = 25) {
    CoolingPlantSpec spec;
    spec.weather = {.mean = outdoors_C, .day_swing = 0, .year_swing = 0};
    WaterLoopSpec loop{.volume = 20, .design_heat = Watts(600e3)};
    loop.chillers = ChillersSpec{.units = 4, .capacity = Watts(200e3)};
    loop.chillers->restart.start_failure = 0;
    spec.loops["north"] = loop;
    CooledRoomSpec room{.loop = "north"};
    room.units = 8;
    room.difference = 4;
    room.capacity = Watts(80e3);
    spec.rooms["hall"] = room;
    return spec;
  }
  static std::vector<CooledRack> ten_racks() { return {{"row", {.room = "hall", .count = 10}}}; }
  /// With a CDU "cdu" and an NVL72-like rack of 72 kW on plates.
  static CoolingPlantSpec with_cdu(double outdoors_C = 25) {
    CoolingPlantSpec spec = hall(outdoors_C);
    spec.cdus["cdu"] = {.loop = "north", .capacity = Watts(150e3), .volume = 0.2};
    return spec;
  }
  static std::vector<CooledRack> liquid_rack(double share = 1.0) {
    return {{"rack", {.room = "hall", .cdu = "cdu", .liquid_share = share}}};
  }

  CoolingRig(const CoolingPlantSpec& spec, const std::vector<CooledRack>& racks,
             std::optional<WeatherSeries> series = {}, std::uint64_t seed = 1)
      : engine(sim::Seed{seed}) {
    CoolingPlant::Callbacks calls;
    calls.on_inlet = [this](std::size_t rack, const RackCondition& c, sim::EventIndex cause) {
      told.push_back({engine.now(), rack, c, cause});
    };
    calls.on_cooled = [this](std::size_t rack, bool is_cooled, sim::EventIndex cause) {
      cooled.push_back({engine.now(), rack, is_cooled, cause});
      if (stops_when_hot && !is_cooled) plant->set_rack_heat(rack, Watts(0), cause);
    };
    calls.on_warning = [this](const std::vector<std::size_t>& list, Duration window,
                              sim::EventIndex) {
      warnings.push_back({engine.now(), list.size(), window});
    };
    calls.on_leak = [this](std::size_t, const Leak& leak, sim::EventIndex) {
      leaks.push_back(leak);
    };
    plant = std::make_unique<CoolingPlant>(engine, recorder, spec, racks, calls, std::move(series));
  }

  void run(Duration until) { engine.run_until(start_of_run + until); }
  std::string chain(sim::EventIndex event) const {
    std::string text;
    while (event.is_valid()) {
      const auto& e = recorder.events()[event.index()];
      text += (text.empty() ? "" : " <- ") + recorder.kinds()[e.kind.index()].name;
      event = e.cause;
    }
    return text;
  }
  std::optional<Time> time_of(const std::string& kind) const {
    for (const auto& e : recorder.events())
      if (recorder.kinds()[e.kind.index()].name == kind) return e.when;
    return {};
  }
  /// Heat in = heat out + stored, of the whole site, as a part of what went in. `from_network`: by
  /// the accounts of the thermal network; else by those of the plant.
  double imbalance() {
    const auto e = plant->energy();
    const double in = (e.racks + e.fans + e.pumps).value();
    return (in - (e.rejected + plant->balance().stored).value()) / in;
  }

  sim::Engine engine;
  sim::MemoryRecorder recorder;
  std::vector<Told> told;
  std::vector<Cooled> cooled;
  std::vector<Warning> warnings;
  std::vector<Leak> leaks;
  bool stops_when_hot = true;
  std::unique_ptr<CoolingPlant> plant;
};

}  // namespace trainyard::models
