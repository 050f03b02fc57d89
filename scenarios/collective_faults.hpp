#pragma once

#include <string>

#include "models/network/fabric_paths.hpp"
#include "topologies/routing.hpp"

/// Links and switches that are down in a sweep.
namespace trainyard::scenarios {

/// By name as `trainyard topology --dot` writes it: a cable ("leaf-0 -> spine-1") or a switch.
struct SweepFault {
  std::string name;
  double factor = 0;  // of capacity, cables only; 0: down
};

/// Both directions of a cable, or a switch. Throws SweepRefused: no such name.
void apply(const SweepFault& fault, topologies::Router& router);

/// "there is no path from node-0/nic-0 to node-9/nic-0; cut by what is down: …"
std::string no_path_text(const topologies::Router& router, const models::FabricPaths::NoPath& pair);

}  // namespace trainyard::scenarios
