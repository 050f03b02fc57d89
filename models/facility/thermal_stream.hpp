#pragma once

#include <cstddef>
#include <span>
#include <vector>

/// What a flow of air or water does to the nodes that it passes, per W/K of its rate m·cp.
///
/// The flow holds no heat of its own (quasi-steady). At a stop it gives the node
///
///     Q = e · m cp · (T_stream - T_node),        and goes on at T_stream - e (T_stream - T_node),
///
/// so its temperature at any place is a mean of its inlet and of the nodes it has passed. In a
/// circuit the temperature that comes back must be the one that set out, which fixes it.
///
///     StreamShape two = stream_shape(std::vector{1.0, 1.0}, true);   // supply -> rack -> aisle
///     two.heat(1, 0);      // 1: the aisle gets T_rack
///     two.heat(1, 1);      // -1: and gives its own
///
/// Source: effectiveness of a stream against a lump, e.g. Incropera and DeWitt ch. 11 with
/// C_min = m cp.
namespace trainyard::models {

struct StreamShape {
  std::size_t stops = 0;
  std::vector<double> to_stop = {};     // [stop][stop]: W into a stop per W/K and degree of another
  std::vector<double> from_inlet = {};  // [stop]: per degree of the inlet; empty for a circuit
  std::vector<double> outlet = {};      // [stop]: share of each node in the outlet temperature
  double outlet_inlet = 0.0;            // share of the inlet

  double heat(std::size_t into, std::size_t of) const { return to_stop[into * stops + of]; }
};

/// Effectivenesses in the order of flow, each above 0 and at most 1. `open`: enters from a
/// boundary.
StreamShape stream_shape(std::span<const double> effectiveness, bool open);

}  // namespace trainyard::models
