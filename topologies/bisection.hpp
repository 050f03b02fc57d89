#pragma once

#include <utility>
#include <vector>

#include "topologies/fabric.hpp"

/// How much traffic the fabric carries between two sets of servers, by maximum flow (push-relabel,
/// Goldberg and Tarjan 1988; Boost.Graph). One direction, routes of any shape, every NIC sending.
///
/// The bisection of a fabric is the least max-flow over all ways to halve the servers, which is
/// hard to find in general. The first half against the second is that least one where the halves
/// cut along whole leaves, pods or groups; where they share one, its inner traffic is in the
/// figure, and the second function leaves it out. A torus is cut across its longest dimension.
///
///     8 leaves of 8 servers, one 50 GB/s NIC each, 2:1:  4 leaves * 4 uplinks * 50 GB/s = 800 GB/s
///     16 x 16 x 16 torus, both directions of a ring cut: 2 * 16 * 16 links
namespace trainyard::topologies {

struct Bisection {
  BytesPerSecond rate{};
  double of_injection =
      0.0;  // rate / what the NICs of the smaller side can send; 1 is full bisection
};

/// First half of the servers against the second; with an odd number the middle one is left out.
Bisection bisection(const Fabric&);
/// The same between whole pods or dragonfly groups: the first half of them against the second, an
/// odd middle one left out. Where there is only one, or none, between whole leaves or routers.
Bisection bisection_between_pods(const Fabric&);
/// Of a torus: the NICs in the first half of its longest dimension against the second; of an odd
/// number the middle layer is left out.
Bisection bisection_across_longest_dimension(const Fabric&);

/// Max-flow from the NICs of `sources` to the NICs of `sinks`. `state` says what failed; none:
/// nothing.
BytesPerSecond max_flow(const Fabric&, const std::vector<HostId>& sources,
                        const std::vector<HostId>& sinks, const LinkState* state = nullptr);
BytesPerSecond max_flow(const Fabric&, const std::vector<NicId>& sources,
                        const std::vector<NicId>& sinks, const LinkState* state = nullptr);

/// Routes that share no cable, of any length, between the switches of each two NICs (Menger 1927).
/// The two are at different switches.
std::vector<int> disjoint_routes(const Fabric&, const std::vector<std::pair<NicId, NicId>>&);

}  // namespace trainyard::topologies
