#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "topologies/measure.hpp"

namespace trainyard::cli {

/// A fabric as built: switches, cables, ports, oversubscription, bisection, diameter, power and
/// price.
std::string topology_text(const std::string& scenario, const topologies::Fabric& fabric,
                          const topologies::MeasuredFabric& measured, const Terminal& terminal);

/// The object of `trainyard topology --json`: SI base units, the unit as a suffix of the key.
std::string topology_json(const std::string& scenario, const topologies::Fabric& fabric,
                          const topologies::MeasuredFabric& measured);

}  // namespace trainyard::cli
