#pragma once

#include "topologies/fat_tree.hpp"
#include "topologies/import.hpp"

/// A fabric from a file (import.hpp reads it). Names say what a vertex is:
///
///     node-7/nic-2   NIC 2 of server 7: its cables are the NIC's ports
///     node-7         server 7 as a whole: cable i goes to NIC i mod n, as its port floor(i / n)
///     storage-3      storage port 3
///     anything else  a switch
///
/// GPUs and scale-up switches in the file (names node-7/…, kind gpu or scale-up) are passed over:
/// what is inside a server is the scenario's. An undirected edge is a cable; of directed edges two
/// opposite ones make one, the k-th from a to b with the k-th from b to a.
///
///     FabricSpec spec{.kind = FabricKind::custom, .graph = "fabric.graphml"};
///     BuildResult r = build_custom(spec, {.hosts = 128});
///
/// Every server must have its NICs, all with equally many ports, at the rate that the scenario
/// gives; and every two servers a way between them. What is not given: a trunk has the port rate
/// of router_switch; a link that leaves a switch has its latency, between switches with that of the
/// cable; one that leaves a server has none. Page: docs/models/custom-fabric.md.
namespace trainyard::topologies {

/// Of FabricSpec::graph, a path as it can be opened.
BuildResult build_custom(const FabricSpec& spec, const HostShape& servers);

/// The same of a graph that was read.
BuildResult build_custom(const FabricSpec& spec, const HostShape& servers, const GraphFile& graph);

/// Whether FabricSpec::router_switch says anything; if not, ports are not counted against it.
bool is_given(const SwitchSpec&);

}  // namespace trainyard::topologies
