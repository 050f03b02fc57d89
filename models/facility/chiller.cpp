#include "models/facility/chiller.hpp"

#include <algorithm>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr double zero_celsius = 273.15;
constexpr double far_below = -1000.0;
constexpr double far_above = 10'000.0;
/// Pieces shorter than this are left out: below what any sensor sees, above rounding.
constexpr double shortest_K = 1e-7;

double free_heat(const RemovalInputs& in, double T) {
  return std::clamp(in.free_slope * (T - in.outdoors), 0.0, in.free_most);
}

/// Of the chillers, by the machines or by what towers have left for them.
double most_chilled(const RemovalInputs& in, double T) {
  return std::min(in.mechanical, std::max(0.0, in.towers - free_heat(in, T)) / (1.0 + in.work));
}

double asked(const RemovalInputs& in, double T) {
  return std::max(0.0, in.gain * (T - in.set_point));
}

}  // namespace

double carnot_cop(double efficiency, double evaporator_C, double condenser_C) {
  // Less lift than 10 K no compressor makes use of: oil return and valves need a difference.
  const double lift = std::max(10.0, condenser_C - evaporator_C);
  return efficiency * (evaporator_C + zero_celsius) / lift;
}

double felt(Rejection rejection, const Outdoors& outdoors) {
  return rejection == Rejection::air ? outdoors.dry : outdoors.wet;
}

double chiller_cop(const ChillersSpec& spec, double supply_C, const Outdoors& outdoors) {
  return carnot_cop(spec.second_law(), supply_C - spec.evaporator_approach,
                    felt(spec.rejection, outdoors) + spec.condenser());
}

bool is_too_hot(const ChillersSpec& spec, const Outdoors& outdoors) {
  return felt(spec.rejection, outdoors) >= spec.design_C() + spec.trip_margin;
}

double chiller_share(const ChillersSpec& spec, const Outdoors& outdoors) {
  if (is_too_hot(spec, outdoors)) return 0.0;
  const double above = std::max(0.0, felt(spec.rejection, outdoors) - spec.design_C());
  return std::max(0.0, 1.0 - spec.capacity_loss * above);
}

double able(const RemovalInputs& in, double T) {
  return free_heat(in, T) + most_chilled(in, T);
}

std::vector<RemovalPiece> removal(const RemovalInputs& in) {
  check(in.gain >= 0 && in.mechanical >= 0 && in.free_slope >= 0 && in.free_most >= 0,
        "capacities are not negative");
  std::vector<double> bends{far_below, in.set_point};
  if (in.free_slope > 0 && in.free_most > 0) {
    bends.push_back(in.outdoors);
    bends.push_back(in.outdoors + in.free_most / in.free_slope);
    const double left = in.towers - in.mechanical * (1.0 + in.work);
    if (left > 0 && left < in.free_most) bends.push_back(in.outdoors + left / in.free_slope);
  }
  std::sort(bends.begin(), bends.end());
  // Where what is asked for meets what coolers give, and what all together give.
  std::vector<double> ends = bends;
  for (std::size_t i = 0; i < bends.size(); ++i) {
    const double a = bends[i];
    const double b = i + 1 < bends.size() ? bends[i + 1] : far_above;
    for (const bool with_chillers : {false, true}) {
      const double at_a = asked(in, a) - (with_chillers ? able(in, a) : free_heat(in, a));
      const double at_b = asked(in, b) - (with_chillers ? able(in, b) : free_heat(in, b));
      if ((at_a < 0) != (at_b < 0)) ends.push_back(a + (b - a) * at_a / (at_a - at_b));
    }
  }
  std::sort(ends.begin(), ends.end());
  std::vector<RemovalPiece> pieces;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (i + 1 < ends.size() && ends[i + 1] - ends[i] < shortest_K) continue;
    const double a = ends[i];
    const double b = i + 1 < ends.size() ? ends[i + 1] : a + 10.0;
    const auto all = [&](double T) { return std::min(asked(in, T), able(in, T)); };
    const auto chilled = [&](double T) { return std::max(0.0, all(T) - free_heat(in, T)); };
    RemovalPiece piece{.begin = a, .heat_at_begin = all(a), .chilled_at_begin = chilled(a)};
    // Slopes are taken from the inputs, not from differences: equal bits, equal thermal modes.
    const double middle = 0.5 * (a + b);
    const double free_now = free_heat(in, middle);
    const double free_slope = free_now > 0 && free_now < in.free_most ? in.free_slope : 0.0;
    piece.is_short = asked(in, middle) > all(middle);
    // Of each further watt that towers cool freely, chillers lose 1 / (1 + work).
    const bool towers_bind =
        (in.towers - free_now) / (1.0 + in.work) < in.mechanical && free_now < in.towers;
    const double able_slope = towers_bind ? free_slope * in.work / (1.0 + in.work) : free_slope;
    piece.slope = piece.is_short ? able_slope : asked(in, middle) > 0 ? in.gain : 0.0;
    const bool is_led = piece.slope > 0 && !piece.is_short;
    piece.cold = is_led ? in.set_point : a;
    piece.fixed_W = is_led ? 0.0 : piece.heat_at_begin;
    if (chilled(middle) > 0) piece.chilled_slope = piece.slope - free_slope;
    pieces.push_back(piece);
  }
  return pieces;
}

std::size_t piece_index(const std::vector<RemovalPiece>& pieces, double T) {
  std::size_t i = 0;
  while (i + 1 < pieces.size() && pieces[i + 1].begin <= T) ++i;
  return i;
}

}  // namespace trainyard::models
