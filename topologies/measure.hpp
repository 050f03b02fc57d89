#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/bisection.hpp"
#include "topologies/fabric.hpp"
#include "topologies/fabric_cost.hpp"

/// What was built, counted on the built graph and not on the input: the figures of a design review.
/// Definitions, rules and sources: docs/models/fabric-measures.md.
namespace trainyard::topologies {

/// The switches of one kind. *Down* is towards the servers: their own cables and those of a lower
/// kind. *Up* is all the rest: to a higher kind, or across to switches of the same.
struct TierReport {
  VertexKind kind = VertexKind::leaf;
  int switches = 0;
  int cables_down = 0;  // storage ports included
  int cables_up = 0;
  int ports_used = 0;
  int ports_free = 0;  // -1: the ports of the switch are not known
  /// Down rate : up rate of the switch that is worst off; 0 where nothing is above.
  double oversubscription = 0.0;
  Watts power;
  Dollars price;
};

/// Ways between NICs that are far apart: each of a sample of NICs with one of those farthest from
/// it. Parallel cables are different ways.
struct PathDiversity {
  int pairs = 0;               // sampled; 0: all NICs are at one switch
  double shortest_least = 0;   // number of shortest routes
  double shortest_median = 0;  // of the lower half the last
  int disjoint_least = 0;      // routes of any length that share no cable between the switches
  int disjoint_median = 0;
};

struct MeasuredFabric {
  int hosts = 0;
  int gpus = 0;
  int nics = 0;
  int storage_ports = 0;
  std::vector<TierReport> tiers;  // kinds of switches that there are, from the servers up
  int switches = 0;
  int cables = 0;  // without scale-up links
  int copper_cables = 0;
  int optic_cables = 0;  // two transceivers each
  std::vector<CableReport> cable_kinds;
  int diameter_hops = 0;  // links of the longest of the shortest routes between two NICs
  PathDiversity diversity;
  Bisection bisection;               // of a torus: across its longest dimension
  Bisection bisection_between_pods;  // pods or groups; leaves or routers where there are none
  std::vector<CostItem> items;       // what the two sums below consist of
  Watts power;                       // switches with their optics, and optics at the servers
  Dollars price;                     // switches, cables and optics; NICs come with the servers
  std::vector<std::string> notes;    // what a reader should know about these figures
};

MeasuredFabric measure(const Fabric&);

}  // namespace trainyard::topologies
