#pragma once

#include <vector>

#include "topologies/bisection.hpp"
#include "topologies/fabric.hpp"

/// What was built, counted on the built graph and not on the input: the figures of a design review.
namespace trainyard::topologies {

struct TierReport {
  VertexKind kind = VertexKind::leaf;
  int switches = 0;
  int cables_down = 0;  // towards the servers, storage ports included
  int cables_up = 0;
  int ports_used = 0;
  int ports_free = 0;
  /// Down rate : up rate of the switch that is worst off; 0 at the top tier.
  double oversubscription = 0.0;
  Watts power;
  Dollars price;
};

struct MeasuredFabric {
  int hosts = 0;
  int gpus = 0;
  int nics = 0;
  std::vector<TierReport> tiers;  // leaf, spine, and core with 3 tiers
  int switches = 0;
  int cables = 0;         // server to leaf, leaf to spine, spine to core; without scale-up links
  int copper_cables = 0;  // server to leaf: within the rack, up to about 3 m
  int optic_cables = 0;   // all others; two transceivers each
  int diameter_hops = 0;  // links of the longest route between two NICs
  Bisection bisection;
  Bisection bisection_between_pods;
  Watts power;    // switches with their optics, from SwitchSpec
  Dollars price;  // switches alone; cables and NICs are not in it
};

MeasuredFabric measure(const Fabric&);

}  // namespace trainyard::topologies
