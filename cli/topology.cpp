#include <iostream>
#include <sstream>

#include "cli/files.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/topology_report.hpp"
#include "scenarios/world.hpp"
#include "topologies/export.hpp"

/// trainyard topology SCENARIO: the fabric as built.
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "topology",
      .arguments = "SCENARIO [OPTIONS]",
      .what =
          "Builds the fabric of a scenario and counts it: switches, cables and ports by tier, "
          "oversubscription and bisection as measured on the graph, diameter, ways between far "
          "NICs, power and price item by item. A written graph can be read back: kind \"custom\".",
      .examples = {{"trainyard topology big.json", "a design review on one screen"},
                   {"trainyard topology big.json --dot fabric.dot --switches",
                    "a picture: sfdp -Tsvg fabric.dot > fabric.svg"}},
      .options = {{"dot", "FILE", "write the graph for Graphviz"},
                  {"graphml", "FILE", "write the graph for yEd, Gephi, NetworkX or igraph"},
                  {"switches", "", "leave servers out of the written graph"},
                  {"set", "PATH=VALUE",
                   "override a value of the scenario; repeatable, the last one wins", true},
                  {"json", "", "print the figures as one JSON object"}},
      .least = 1,
      .most = 1};
  return table;
}

template <class Write>
void write_graph(const std::optional<std::string>& file, const Write& write) {
  if (!file) return;
  std::ostringstream text;
  write(text);
  write_file(*file, text.str());
}

}  // namespace

Exit topology_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const std::string& file = args.positional[0];
  const auto read = load_or_complain(file, args.values("set"));
  if (!read) return Exit::usage;

  const scenarios::Site site(read->scenario);
  const topologies::Fabric& fabric = *site.fabric;
  const topologies::MeasuredFabric measured = topologies::measure(fabric);
  const std::string name = name_of_scenario(read->scenario, file);
  const topologies::ExportOptions graph{.servers = !args.has("switches")};
  write_graph(args.value("dot"),
              [&](std::ostream& out) { topologies::write_dot(out, fabric, graph); });
  write_graph(args.value("graphml"),
              [&](std::ostream& out) { topologies::write_graphml(out, fabric, graph); });
  std::cout << (args.has("json") ? topology_json(name, fabric, measured)
                                 : topology_text(name, fabric, measured, stdout_terminal()));
  return Exit::done;
}

}  // namespace trainyard::cli
