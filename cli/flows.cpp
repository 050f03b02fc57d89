#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/expect.hpp"
#include "cli/files.hpp"
#include "cli/flow_csv.hpp"
#include "cli/options.hpp"
#include "models/network/raw_flows.hpp"

/// trainyard flows LINKS.csv FLOWS.csv: raw flows over given routes, start and finish of each.
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "flows",
      .arguments = "LINKS.csv FLOWS.csv [OPTIONS]",
      .what =
          "Moves flows over given routes at max-min fair rates and prints start and finish of "
          "each. Columns of LINKS: "
          "id,bytes_per_s,latency_s, one direction a row. Columns of FLOWS: "
          "id,bytes,start_s,route, the route as "
          "link ids with spaces between; with finish_s the largest relative difference to it is "
          "reported.",
      .examples = {{"trainyard flows links.csv flows.csv", "id,start_s,finish_s on the screen"},
                   {"trainyard flows links.csv flows.csv -o out.csv --json",
                    "table to a file, figures as JSON"}},
      .options = {{"output,o", "FILE", "write the table there instead of on stdout"},
                  {"json", "",
                   "print {flows, makespan_s, wall_s, solves} on stdout instead of the table"},
                  {"expect", "PATH>=X",
                   "exit status 3 if a figure of --json misses the bound; repeatable", true}},
      .least = 2,
      .most = 2};
  return table;
}

std::string table_text(const FlowTables& tables, const models::RawFlowResult& result) {
  std::string out = "id,start_s,finish_s\n";
  char numbers[80];
  for (std::size_t i = 0; i < tables.flows.size(); ++i) {
    std::snprintf(numbers, sizeof numbers, ",%.17g,%.17g\n", result.flows[i].start_s,
                  result.flows[i].finish_s);
    out += tables.flows[i].id + numbers;
  }
  return out;
}

/// Largest |ours - theirs| / theirs over the rows that have a finish_s.
struct Comparison {
  std::size_t rows = 0;
  double largest = 0;
};

Comparison compare(const FlowTables& tables, const models::RawFlowResult& result) {
  Comparison out;
  for (std::size_t i = 0; i < tables.flows.size(); ++i) {
    const auto& theirs = tables.flows[i].finish_s;
    if (!theirs) continue;
    ++out.rows;
    const double ours = result.flows[i].finish_s;
    if (ours != *theirs) out.largest = std::max(out.largest, std::abs(ours - *theirs) / *theirs);
  }
  return out;
}

}  // namespace

Exit flows_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const std::vector<Bound> bounds = parse_bounds(args.values("expect"));

  std::ifstream links = open_to_read(args.positional[0]);
  std::ifstream flows = open_to_read(args.positional[1]);
  std::vector<std::string> errors;
  const FlowTables tables =
      read_flow_tables(links, args.positional[0], flows, args.positional[1], errors);
  if (!errors.empty()) {
    for (const std::string& error : errors) std::cerr << error << '\n';
    return Exit::usage;
  }

  // Inside, rows are known by their number; the names come back in the output.
  std::vector<models::RawLink> raw_links;
  for (const LinkRow& link : tables.links)
    raw_links.push_back({raw_links.size(), link.id, link.bytes_per_s, link.latency_s});
  std::vector<models::RawFlow> raw_flows;
  for (const FlowRow& flow : tables.flows)
    raw_flows.push_back(
        {raw_flows.size(), flow.bytes, flow.start_s, {flow.route.begin(), flow.route.end()}});

  const auto start = std::chrono::steady_clock::now();
  const models::RawFlowResult result = models::run_raw_flows(raw_links, raw_flows);
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  nlohmann::ordered_json json;
  json["schema"] = "trainyard-flows-1";
  json["flows"] = tables.flows.size();
  json["makespan_s"] = result.makespan_s;
  json["wall_s"] = wall_s;
  json["solves"] = result.solves;
  json["stalled"] = nlohmann::ordered_json::array();
  for (const models::StalledFlow& stalled : result.stalled)
    json["stalled"].push_back(tables.flows[stalled.id].id);
  const Comparison comparison = compare(tables, result);
  if (comparison.rows > 0)
    json["reference"] = {{"rows", comparison.rows},
                         {"largest_relative_difference", comparison.largest}};

  if (const auto file = args.value("output"))
    write_file(*file, table_text(tables, result));
  else if (!args.has("json"))
    std::cout << table_text(tables, result);
  if (args.has("json")) std::cout << json.dump(2) << '\n';

  for (const models::StalledFlow& stalled : result.stalled) {
    std::string broken;
    for (const std::uint64_t link : stalled.broken_links) broken += ' ' + tables.links[link].id;
    std::cerr << "trainyard flows: flow " << tables.flows[stalled.id].id
              << " never finishes: no rate on link" << broken << '\n';
  }
  if (comparison.rows > 0)
    std::cerr << "trainyard flows: largest relative difference to finish_s of " << comparison.rows
              << " flows: " << comparison.largest << '\n';
  const std::vector<std::string> misses = missed(bounds, json.dump());
  for (const std::string& miss : misses) std::cerr << "trainyard flows: " << miss << '\n';
  if (!misses.empty()) return Exit::expectation_missed;
  return result.stalled.empty() ? Exit::done : Exit::failed;
}

}  // namespace trainyard::cli
