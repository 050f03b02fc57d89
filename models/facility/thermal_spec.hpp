#pragma once

#include "sim/describe.hpp"

/// Heat capacities of racks and rooms and the links between their parts. Plain numbers: J/K for
/// capacities, W/K for links and air flows (m·cp), degrees Celsius for temperatures.
namespace trainyard::models {

/// One rack as three lumps: chips - air - mass. The defaults are an air-cooled rack of 32
/// accelerators at 40 kW; air and mass are calibrated on the published test of 5 kW cabinets that
/// reached shut-down 189 s after cooling was lost (Opengate Data Systems for Active Power, about
/// 2007; see docs/models/thermal-network.md).
struct RackThermalSpec {
  double chips_capacity = 25.6e3;      // 32 x 800 J/K, die with air sink: typical figure
  double chips_to_air = 32.0 / 0.065;  // 0.065 K/W each at full fan: typical figure, 700 W parts
  double air_capacity = 25e3;          // air and sheet metal; typical range 25-35 kJ/K
  double mass_capacity = 300e3;        // 600 kg of steel and servers at 0.5 kJ/kg/K
  double air_to_mass = 201.0;          // calibrated: 20 K in 189 s at 5 kW; typical 100-600 W/K
  double air_flow = 40e3 / 12.0;       // 40 kW at 12 K from inlet to outlet
  bool operator==(const RackThermalSpec&) const = default;
};

template <class Visitor>
void describe(Visitor& v, RackThermalSpec& s) {
  v.optional("chips_capacity", s.chips_capacity, "heat capacity of all chips with sinks, J/K",
             above(0));
  v.optional("chips_to_air", s.chips_to_air, "chips to rack air with fans at full speed, W/K",
             at_least(0));
  v.optional("air_capacity", s.air_capacity, "rack air and sheet metal, J/K", above(0));
  v.optional("mass_capacity", s.mass_capacity, "servers and rack steel, J/K", above(0));
  v.optional("air_to_mass", s.air_to_mass, "rack air to servers and steel, W/K", at_least(0));
  v.optional("air_flow", s.air_flow, "air through the rack, mass flow times heat capacity, W/K",
             at_least(0));
}

/// The room around the racks: air and structure.
struct RoomThermalSpec {
  double air_capacity = 1.2e6;       // 1000 m3 of air at 1.2 kJ/m3/K
  double structure_capacity = 10e6;  // slab and walls that take part; typical range 5-20 MJ/K
  double air_to_structure = 2e3;     // typical range 1-5 kW/K
  double to_outside = 0.0;           // a machine hall deep in a building loses next to nothing
  double temperature = 22.0;         // at the start
};

template <class Visitor>
void describe(Visitor& v, RoomThermalSpec& s) {
  v.optional("air_capacity", s.air_capacity, "room air, J/K (1.2 kJ/K a cubic metre)", above(0));
  v.optional("structure_capacity", s.structure_capacity, "slab and walls, J/K", above(0));
  v.optional("air_to_structure", s.air_to_structure, "room air to slab and walls, W/K",
             at_least(0));
  v.optional("to_outside", s.to_outside, "room air to the weather, W/K", at_least(0));
  v.optional("temperature", s.temperature, "at the start, degrees Celsius", between(-20, 60));
}

}  // namespace trainyard::models
