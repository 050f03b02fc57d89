#pragma once

#include "sim/time.hpp"
#include "sim/units.hpp"

/// Water and coolant: what a volume can take up, and for how long.
///
///     t = rho V cp dT / Q         rho cp = 997 kg/m3 · 4.18 kJ/kg/K
///
///     buffer_time(loop_capacity(100), 6, 5_MW);       // 500 s: a tank of 100 m3
///     buffer_time(loop_capacity(0.1), 15, 120_kW);    // 52 s: the loop of one rack
///     buffer_time(72 * 300.0, 30, 72_kW);             // 9 s: 72 dies with plates, no flow
///
/// An immersion tank is the same with its fluid: 1-2 t at 1.5-2.2 kJ/kg/K are 2-4 MJ/K.
namespace trainyard::models {

double loop_capacity(double volume_m3);                                  // J/K of water
double tank_capacity(double fluid_kg, double heat_capacity_J_per_kg_K);  // J/K
/// `forever` without heat.
Duration buffer_time(double capacity_J_per_K, double rise_K, Watts heat);

/// The lowest coolant temperature that does not sweat: 2 K above the dew point of the room.
double least_coolant(double dew_point_C);

/// Evaporated by a tower that rejects so much, kg: 2.45 MJ/kg near 20 degrees, all of it by
/// evaporation (a tower in cool air loses part of it as sensible heat: an upper bound).
double evaporated_kg(Joules rejected);
/// With what is let off at `cycles` of concentration: evaporated · cycles / (cycles - 1).
double make_up_kg(double evaporated_kg, double cycles);

}  // namespace trainyard::models
