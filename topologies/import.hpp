#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/problem.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// A graph from a file: GraphML, Graphviz DOT, or an edge list (CSV). What the file says, before
/// anyone asks whether it is a fabric; that is custom.hpp.
///
///     # an edge list: a row is a cable, the first stands for eight
///     from,to,capacity,latency,count
///     node-0,leaf-0,400 Gb/s,,8
///     leaf-0,spine-0,800 Gb/s,350 ns,
///
/// Edges know these attributes, in all three formats: capacity ("400 Gb/s") or capacity_gbps,
/// latency ("350 ns") or latency_us, count (parallel cables). Vertices: name, kind. Others are
/// ignored in GraphML and DOT, whose files carry colours and positions too, and refused in an edge
/// list, where they are slips.
///
/// The readers are our own: Boost.Graph's (1.74) give no line numbers, create vertices that nobody
/// declared, overflow the stack on deep nesting and need a gigabyte for 100,000 edges of GraphML.
/// They read our exports back in the tests. Nothing in a file makes these crash. Page:
/// docs/models/custom-fabric.md.
namespace trainyard::topologies {

struct GraphVertex {
  std::string name;
  std::string kind;
  int line = 0;  // of the file, from 1
};

struct GraphEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool is_directed = false;  // else it stands for both directions
  int count = 1;
  std::optional<BytesPerSecond> capacity{};
  std::optional<Duration> latency{};
  int line = 0;
};

struct GraphFile {
  std::string file;  // for messages
  std::vector<GraphVertex> vertices;
  std::vector<GraphEdge> edges;
};

enum class GraphFormat { graphml, dot, edge_list };

/// By the ending (.graphml, .xml, .dot, .gv, .csv, .txt); failing that, by how the text begins.
GraphFormat format_of(std::string_view file, std::string_view text);

/// What the text says. With problems the result is not complete. Problems are those of
/// FabricSpec::graph; their text begins with file and line.
GraphFile parse_graph(std::string_view text, const std::string& file, GraphFormat, Problems&);

/// Opens the file and reads it.
GraphFile read_graph(const std::string& file, Problems&);

}  // namespace trainyard::topologies
