#pragma once

#include "models/facility/cooling_spec.hpp"
#include "sim/units.hpp"

/// Air units, rear doors, exchangers and pumps as formulas.
///
///     pumps       flow = (n / normal)^0.6 for n of `normal` on one system curve
///     exchanger   UA = UA_design · (flow hot · flow cold)^0.8, turbulent films on both sides
///     air         recirculation r at the inlet: T_inlet = T_supply + r / (1 - r) · Q / (m cp);
///                 r grows when supply units give less air than servers draw: r >= 1 - supply/draw
///     fans        power ~ speed^3
///     valve       opens so far that what flows in also flows out at the set-point
///
///     pump_flow(1, 2);                      // 0.660: one of two is left
///     fan_power(4_kW, 0.5);                 // 500 W
///
/// Sources: affinity laws and parallel pumps, ASHRAE Handbook, HVAC Systems and Equipment; the
/// exponent 0.8 is that of Dittus and Boelter.
namespace trainyard::models {

double pump_flow(int running, int normal);
double exchanger_share(double flow_hot, double flow_cold);
Watts fan_power(Watts at_full_speed, double speed);

/// Speed of `running` of equal fans that together have to move `draw`, each at most `full`.
double fan_speed(double draw_W_per_K, int running, double full_W_per_K, double least_speed);
double recirculation(double contained, double supply_W_per_K, double draw_W_per_K);
/// Link between the air before a rack and the room, which makes the inlet what r says.
double inlet_link(double recirculation, double draw_W_per_K);

/// Between 0 (shut) and 1 (open).
double valve_opening(Watts flowing_in, double full_W_per_K, double set_point_C, double cold_C);

/// What a rear door takes: a share of the rack's heat at once, and a link between inlet air and
/// water. Both scaled down where the door reaches its capacity.
struct RearDoor {
  double heat_share = 0.0;
  double link_W_per_K = 0.0;
};
RearDoor rear_door(double effectiveness, Watts capacity, double draw_W_per_K, Watts heat,
                   double inlet_C, double water_C);

}  // namespace trainyard::models
