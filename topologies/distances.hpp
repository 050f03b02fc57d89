#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topologies/fabric.hpp"

/// How far apart NICs are, and how many shortest routes join them, on the intact fabric.
namespace trainyard::topologies {

struct Diameter {
  int hops = 0;          // links, from NIC to NIC; of the pairs that are joined at all
  bool is_exact = true;  // searched from every place, not from a sample
  bool joins_all_pairs = true;
};

/// Breadth first from every set of switches at which some NIC is plugged, 64 searches at once, as
/// bits of a word (Then et al. 2014). A torus full of NICs is searched from one place, since all
/// are alike. Beyond about 10^10 steps from a sample of places.
Diameter diameter(const Fabric&);

/// A NIC and one of those farthest from it, `n` times, drawn by a fixed seed; fewer if all NICs
/// are at one switch.
std::vector<std::pair<NicId, NicId>> far_pairs(const Fabric&, int n);

/// Shortest routes from one NIC to the other; parallel cables are different routes.
double shortest_routes(const Fabric&, NicId from, NicId to);

}  // namespace trainyard::topologies
