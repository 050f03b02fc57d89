#pragma once

#include <limits>
#include <vector>

#include "models/facility/cooling_spec.hpp"
#include "models/facility/weather.hpp"
#include "sim/units.hpp"

/// What chillers and coolers take out of a loop, and what that costs.
///
///     COP = efficiency · T_e / (T_c - T_e)      kelvin; T_e = supply - 5 K,
///                                               T_c = dry bulb + 12 K or wet bulb + 8 K
///
/// Capacity falls by 1.5 % per K above the design temperature; 8-10 K above it high pressure trips
/// the machine. A cooler alone removes (T_loop - T_outdoor) / approach of its capacity, at most
/// all.
///
/// How much is taken out depends on the temperature T of the loop, in straight pieces:
///
///     Q(T) = min( gain · (T - set-point),  free(T) + mechanical capacity )
///
/// free cooling first, chillers for the rest. Each piece is a link to a fixed temperature in the
/// thermal network, so time is exact inside it; the loop's crossings of their ends are events.
///
///     auto pieces = removal({.set_point = 18, .gain = 1e6, .mechanical = 1e6});
///     piece_at(pieces, 18.4).heat(18.4);        // 400 kW
///
/// Source of the COP: second-law efficiency of vapour compression, e.g. ASHRAE Handbook,
/// Fundamentals, ch. 2; figures see cooling_spec.hpp.
namespace trainyard::models {

double carnot_cop(double efficiency, double evaporator_C, double condenser_C);
double chiller_cop(const ChillersSpec& spec, double supply_C, const Outdoors& outdoors);
/// Of its capacity; 0 when it cannot run.
double chiller_share(const ChillersSpec& spec, const Outdoors& outdoors);
bool is_too_hot(const ChillersSpec& spec, const Outdoors& outdoors);
/// The outdoor temperature that a bank feels: dry or wet bulb.
double felt(Rejection rejection, const Outdoors& outdoors);

struct RemovalInputs {
  double set_point = 18;  // degrees Celsius
  double gain = 0;        // W/K of the control
  double mechanical = 0;  // W, capacity of the chillers that run
  double free_slope = 0;  // W/K of the coolers that run
  double outdoors = 0;    // degrees Celsius, as the coolers feel it
  double free_most = 0;   // W
  // Towers that carry the heat of the chillers too: W that they reject in all, and the work of the
  // compressors a watt chilled (1 / COP). What free cooling takes is not there for chillers.
  double towers = std::numeric_limits<double>::infinity();
  double work = 0;
  bool operator==(const RemovalInputs&) const = default;
};

/// What chillers and coolers together can remove at T, W.
double able(const RemovalInputs& in, double T);

/// From `begin` up to the begin of the next piece.
struct RemovalPiece {
  double begin = 0;                                // degrees Celsius
  double heat_at_begin = 0, slope = 0;             // W, W/K: all that is removed
  double chilled_at_begin = 0, chilled_slope = 0;  // by chillers
  /// The same line for the network: fixed_W + slope · (T - cold). Where the control leads, `cold`
  /// is the set-point, whatever the weather does to `begin`.
  double fixed_W = 0, cold = 0;
  bool is_short = false;  // all capacity is used, and more is asked for
  double heat(double T) const { return heat_at_begin + slope * (T - begin); }
  double chilled(double T) const { return chilled_at_begin + chilled_slope * (T - begin); }
};

/// In ascending order; the first begins at -1000 degrees.
std::vector<RemovalPiece> removal(const RemovalInputs& in);
std::size_t piece_index(const std::vector<RemovalPiece>& pieces, double T);
inline const RemovalPiece& piece_at(const std::vector<RemovalPiece>& pieces, double T) {
  return pieces[piece_index(pieces, T)];
}

}  // namespace trainyard::models
