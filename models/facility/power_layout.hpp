#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/power_plant_paths.hpp"
#include "models/facility/power_spec.hpp"
#include "sim/problem.hpp"

/// From what a scenario says to the nodes of the plant: groups become units, every rack becomes a
/// node "rack-3" behind a circuit of each of its feeds, "rack-3/a" and "rack-3/b". A circuit with a
/// breaker is a breaker, one without is plain wire. Other loads are nodes by their own name.
///
///     if (Problems problems = check_power(spec); problems.empty()) {
///       PowerLayout layout = lay_out_power(spec, 512);
///       PowerPlant plant(engine, recorder, layout.nodes, policy, callbacks);
///     }
namespace trainyard::models {

/// What a node may carry at its output.
struct NodeLimits {
  std::optional<Watts> active = {};
  std::optional<VoltAmperes> apparent = {};
  std::optional<Amperes> current = {};  // in each line
  double continuous = 1.0;              // part of the current that may be planned
  Lines lines = Lines::abc;             // those of the node
};

struct PowerLayout {
  std::vector<PlantNode> nodes = {};                  // what feeds stands before what is fed
  std::vector<NodeLimits> limits = {};                // of nodes, in the same order
  std::vector<std::size_t> racks = {};                // rack r is nodes[racks[r]]
  std::vector<std::string> feeds = {};                // names of the feeds of a rack
  std::map<std::size_t, UtilitySpec> utilities = {};  // what PowerPlant::follow wants
  std::map<std::string, std::size_t> loads = {};      // beside racks: nodes[loads.at("pumps")]
};

/// Reactive over active power.
double reactive_share(double power_factor);

/// Unknown names, loops, units that nothing feeds, single-phase circuits that fit no pair of lines,
/// feeds of one node whose voltages differ. Paths are relative to the spec: "nodes.pdu.fed_by".
Problems check_power(const PowerSpec& spec);

/// The spec must have passed describe() and check_power(), else CheckFailed.
PowerLayout lay_out_power(const PowerSpec& spec, int racks);

}  // namespace trainyard::models
