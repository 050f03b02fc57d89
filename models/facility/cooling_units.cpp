#include "models/facility/cooling_units.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {

double pump_flow(int running, int normal) {
  check(running >= 0 && normal >= 1, "a bank of pumps");
  if (running >= normal) return 1.0;
  return running == 0 ? 0.0 : std::pow(double(running) / normal, 0.6);
}

double exchanger_share(double flow_hot, double flow_cold) {
  return std::pow(flow_hot * flow_cold, 0.8);
}

Watts fan_power(Watts at_full_speed, double speed) {
  return at_full_speed * (speed * speed * speed);
}

double fan_speed(double draw_W_per_K, int running, double full_W_per_K, double least_speed) {
  if (running == 0) return 0.0;
  return std::clamp(draw_W_per_K / (running * full_W_per_K), least_speed, 1.0);
}

double recirculation(double contained, double supply_W_per_K, double draw_W_per_K) {
  // Doors, floors and cable holes let some air through even with all fans at rest.
  constexpr double most = 0.98;
  if (draw_W_per_K <= 0) return contained;
  return std::min(most, std::max(contained, 1.0 - supply_W_per_K / draw_W_per_K));
}

double inlet_link(double recirculation, double draw_W_per_K) {
  return draw_W_per_K * (1.0 - recirculation) / recirculation;
}

double valve_opening(Watts flowing_in, double full_W_per_K, double set_point_C, double cold_C) {
  if (flowing_in.value() <= 0) return 0.0;
  const double most = full_W_per_K * (set_point_C - cold_C);
  return most <= flowing_in.value() ? 1.0 : flowing_in.value() / most;
}

RearDoor rear_door(double effectiveness, Watts capacity, double draw_W_per_K, Watts heat,
                   double inlet_C, double water_C) {
  RearDoor door{effectiveness, effectiveness * draw_W_per_K};
  const double taken = door.heat_share * heat.value() + door.link_W_per_K * (inlet_C - water_C);
  if (taken <= 0) return {};
  if (taken > capacity.value()) {
    door.heat_share *= capacity.value() / taken;
    door.link_W_per_K *= capacity.value() / taken;
  }
  return door;
}

}  // namespace trainyard::models
