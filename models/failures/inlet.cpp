#include "models/failures/inlet.hpp"

#include <cmath>
#include <numbers>

namespace trainyard::models {

double inlet_temperature(const InletSpec& inlet, std::int64_t hour) {
  const double clock_h = double(hour % 24) + 0.5;
  const double day = inlet.start_day + (double(hour) + 0.5) / 24.0 - 0.5;
  constexpr double turn = 2.0 * std::numbers::pi;
  return inlet.mean + inlet.day_swing * std::cos(turn * (clock_h - 15.0) / 24.0) +
         inlet.year_swing * std::cos(turn * (day - 182.0) / 365.0);
}

double arrhenius(double activation_energy_eV, double reference, double celsius) {
  constexpr double boltzmann = 8.617333262e-5;  // eV/K
  constexpr double zero_celsius = 273.15;
  return std::exp(activation_energy_eV / boltzmann *
                  (1.0 / (reference + zero_celsius) - 1.0 / (celsius + zero_celsius)));
}

}  // namespace trainyard::models
