#pragma once

#include <vector>

#include "topologies/fabric.hpp"

/// How much traffic the fabric carries between two sets of servers, by maximum flow (push-relabel,
/// Goldberg and Tarjan 1988; Boost.Graph). One direction, routes of any shape, every NIC sending.
///
/// The bisection of a fabric is the least max-flow over all ways to halve the servers, which is
/// hard to find in general. In a fat tree servers that share switches must be kept together: the
/// first half against the second is that least one if the halves cut along whole leaves or pods.
/// Where they share a leaf or a pod, its inner traffic is in the figure; the second function leaves
/// it out.
///
///     8 leaves of 8 servers, one 50 GB/s NIC each, 2:1:  4 leaves * 4 uplinks * 50 GB/s = 800 GB/s
namespace trainyard::topologies {

struct Bisection {
  BytesPerSecond rate;
  double of_injection =
      0.0;  // rate / what the NICs of the smaller side can send; 1 is full bisection
};

/// First half of the servers against the second; with an odd number the middle one is left out.
Bisection bisection(const Fabric&);
/// The same between whole pods: first half of the pods against the second, an odd middle pod left
/// out. With 2 tiers, or a single pod, between whole leaves.
Bisection bisection_between_pods(const Fabric&);

/// Max-flow from the NICs of `sources` to the NICs of `sinks`. `state` says what failed; none:
/// nothing.
BytesPerSecond max_flow(const Fabric&, const std::vector<HostId>& sources,
                        const std::vector<HostId>& sinks, const LinkState* state = nullptr);

}  // namespace trainyard::topologies
