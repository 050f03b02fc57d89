#include "topologies/export.hpp"

#include <cstdio>
#include <ostream>
#include <string>

namespace trainyard::topologies {

namespace {

// Written by hand, line by line: Boost.Graph's writers want a second copy of the graph with a
// string for every property, a gigabyte at 65,536 GPUs. The tests read the files back with
// Boost.Graph.

bool is_shown(const Fabric& f, VertexId v, ExportOptions options) {
  const VertexKind k = f.kind(v);
  return options.servers ||
         (k != VertexKind::gpu && k != VertexKind::nic && k != VertexKind::scale_up_switch);
}

std::string number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}
double gigabits(const Link& l) {
  return l.capacity.value() * 8e-9;
}
double microseconds(const Link& l) {
  return double(l.latency.count()) * 1e-3;
}

// Names of a custom fabric may hold any character but controls.
std::string dot_text(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}
std::string xml_text(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

template <class Visit>
void for_each_shown_vertex(const Fabric& f, ExportOptions options, Visit visit) {
  for (std::size_t i = 0; i < f.vertex_count(); ++i)
    if (is_shown(f, VertexId(i), options)) visit(VertexId(i));
}
template <class Visit>
void for_each_shown_link(const Fabric& f, ExportOptions options, Visit visit) {
  for (const Link& l : f.links())
    if (is_shown(f, l.from, options) && is_shown(f, l.to, options)) visit(l);
}

}  // namespace

void write_dot(std::ostream& out, const Fabric& f, ExportOptions options) {
  out << "digraph fabric {\n  rankdir=BT;\n";
  for_each_shown_vertex(f, options, [&](VertexId v) {
    out << "  \"" << dot_text(f.name(v)) << "\" [kind=\"" << name_of(f.kind(v)) << "\"];\n";
  });
  for_each_shown_link(f, options, [&](const Link& l) {
    out << "  \"" << dot_text(f.name(l.from)) << "\" -> \"" << dot_text(f.name(l.to))
        << "\" [kind=\"" << name_of(l.kind) << "\", tier=" << int{l.tier}
        << ", capacity_gbps=" << number(gigabits(l)) << ", latency_us=" << number(microseconds(l))
        << "];\n";
  });
  out << "}\n";
}

void write_graphml(std::ostream& out, const Fabric& f, ExportOptions options) {
  out << R"(<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="name" for="node" attr.name="name" attr.type="string"/>
  <key id="kind" for="node" attr.name="kind" attr.type="string"/>
  <key id="link_kind" for="edge" attr.name="link_kind" attr.type="string"/>
  <key id="tier" for="edge" attr.name="tier" attr.type="int"/>
  <key id="capacity_gbps" for="edge" attr.name="capacity_gbps" attr.type="double"/>
  <key id="latency_us" for="edge" attr.name="latency_us" attr.type="double"/>
  <graph id="fabric" edgedefault="directed">
)";
  for_each_shown_vertex(f, options, [&](VertexId v) {
    out << "    <node id=\"n" << v.index() << "\"><data key=\"name\">" << xml_text(f.name(v))
        << "</data><data key=\"kind\">" << name_of(f.kind(v)) << "</data></node>\n";
  });
  for_each_shown_link(f, options, [&](const Link& l) {
    out << "    <edge source=\"n" << l.from.index() << "\" target=\"n" << l.to.index()
        << "\"><data key=\"link_kind\">" << name_of(l.kind) << "</data><data key=\"tier\">"
        << int{l.tier} << "</data><data key=\"capacity_gbps\">" << number(gigabits(l))
        << "</data><data key=\"latency_us\">" << number(microseconds(l)) << "</data></edge>\n";
  });
  out << "  </graph>\n</graphml>\n";
}

}  // namespace trainyard::topologies
