#include "models/facility/liquid_loop.hpp"

#include "sim/check.hpp"

namespace trainyard::models {

double loop_capacity(double volume_m3) {
  constexpr double density = 997.0;         // kg/m3 at 25 degrees Celsius
  constexpr double heat_capacity = 4180.0;  // J/kg/K
  return volume_m3 * density * heat_capacity;
}

double tank_capacity(double fluid_kg, double heat_capacity_J_per_kg_K) {
  return fluid_kg * heat_capacity_J_per_kg_K;
}

Duration buffer_time(double capacity_J_per_K, double rise_K, Watts heat) {
  if (heat.value() <= 0) return forever;
  check(rise_K >= 0, "a buffer takes up heat by getting warmer", rise_K);
  return seconds(capacity_J_per_K * rise_K / heat.value());
}

double least_coolant(double dew_point_C) {
  return dew_point_C + 2.0;
}

double evaporated_kg(Joules rejected) {
  constexpr double latent = 2.45e6;  // J/kg
  return rejected.value() / latent;
}

double make_up_kg(double evaporated_kg, double cycles) {
  check(cycles > 1, "water is let off", cycles);
  return evaporated_kg * cycles / (cycles - 1.0);
}

}  // namespace trainyard::models
