#pragma once

#include <iosfwd>

#include "topologies/fabric.hpp"

/// The fabric as a picture or for other tools: Graphviz DOT, and GraphML (yEd, Gephi, NetworkX,
/// igraph). Both are directed and hold every link. Names are those of Fabric::name; capacities are
/// in Gb/s and latencies in microseconds.
namespace trainyard::topologies {

struct ExportOptions {
  bool servers = true;  // GPUs, NICs and scale-up switches too; false: switches and storage only
};

void write_dot(std::ostream&, const Fabric&, ExportOptions = {});
void write_graphml(std::ostream&, const Fabric&, ExportOptions = {});

}  // namespace trainyard::topologies
