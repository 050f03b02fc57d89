#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/gpu_power.hpp"
#include "scenarios/scenario.hpp"
#include "sim/problem.hpp"

/// Scenario → what the models of the plant want: which servers are in which rack, and which racks
/// are cooled alike.
///
///     rack r      servers r * servers_per_rack … (as cluster.parents counts them)
///     zone z      the racks of one room on one CDU, or of one room: they breathe the same air and
///                 drink the same coolant, so the cooling plant sees them as equal racks that share
///                 their heat
namespace trainyard::scenarios {

struct FacilityZone {
  std::string name;  // "cdu-7", "hall", or "hall/cdu-7" if a CDU serves two rooms
  std::vector<std::size_t> racks;
};

struct FacilityLayout {
  explicit FacilityLayout(const Scenario& scenario);

  std::size_t racks = 0;
  std::int64_t servers_per_rack = 1;
  std::vector<FacilityZone> zones;         // empty: no cooling
  std::vector<std::size_t> zone_of;        // of each rack
  std::vector<models::CooledRack> cooled;  // of each zone
  models::GpuPowerSpec gpu;
  models::GpuCoolerSpec cooler;  // of a GPU: cold plate, or air
  double idle_C = 25;            // inlet at which a plant without cooling keeps GPUs
  Watts rack_power{};            // at full load, GPUs at their limit

  std::size_t rack_of(std::size_t server) const { return server / std::size_t(servers_per_rack); }
};

/// Every part of the plant that can fail: nodes of the power graph beside racks, units of cooling.
std::vector<std::string> plant_parts(const Scenario& scenario);

/// Cooling units among the parts that a name of PowerLoadSpec::units stands for: one, a bank, or
/// all of a loop, room or CDU.
std::vector<std::string> cooling_units_named(const std::string& name,
                                             const std::vector<std::string>& parts);

/// What is no mistake of a checked scenario, but hardly meant: loops laid out for more heat than
/// their machines remove.
std::vector<std::string> cooling_warnings(const Scenario& scenario);

/// Whether the plant fits the cluster. Paths are those of the scenario.
Problems check_facility(const Scenario& scenario);

}  // namespace trainyard::scenarios
