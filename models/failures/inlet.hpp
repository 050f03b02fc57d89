#pragma once

#include <cstdint>

#include "models/failures/failure_spec.hpp"
#include "sim/time.hpp"

/// Air or water at the servers' inlet, and what warmth does to a life.
///
/// Temperature in hour h of the run (constant within the hour, from its middle):
///
///     T = mean + day_swing cos(2 pi (clock - 15 h) / 24 h) + year_swing cos(2 pi (day - 182) /
///     365)
///
/// `clock` is the time of day, `day` the day of the year, whole at noon. A mechanism with
/// activation energy E ages faster by the factor of Arrhenius,
///
///     exp(E / k (1 / T_reference - 1 / T)),   k = 8.617333262e-5 eV/K, T in kelvin
///
///     inlet_temperature({.mean = 24, .day_swing = 4}, 14);   // 27.97: 14:30
///     arrhenius(0.7, 25, 35);                                // 2.42
///
/// Source: JEDEC JEP122, "Failure mechanisms and models for semiconductor devices"; Boltzmann
/// constant: SI 2019.
namespace trainyard::models {

/// Degrees Celsius in hour `hour` of the run.
double inlet_temperature(const InletSpec& inlet, std::int64_t hour);

/// Ageing at `celsius` relative to that at `reference`.
double arrhenius(double activation_energy_eV, double reference, double celsius);

}  // namespace trainyard::models
