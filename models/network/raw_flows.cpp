#include "models/network/raw_flows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "models/network/flow_timeline.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

namespace {

bool is_amount(double x) {
  return std::isfinite(x) && x >= 0;
}

}  // namespace

Problems check_raw_flows(const std::vector<RawLink>& links, const std::vector<RawFlow>& flows) {
  Problems problems;
  const auto say = [&](const char* table, std::size_t row, const char* column, std::string what,
                       std::string right) {
    problems.push_back({std::string(table) + "/" + std::to_string(row) + "/" + column,
                        std::move(what), std::move(right)});
  };
  std::unordered_map<std::uint64_t, std::size_t> link_rows, flow_rows;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (const auto [at, is_new] = link_rows.try_emplace(links[i].id, i); !is_new)
      say("links", i, "id",
          "link " + std::to_string(links[i].id) + " is also in row " + std::to_string(at->second),
          "each link once");
    if (!is_amount(links[i].capacity_Bps))
      say("links", i, "bytes_per_s", "not a finite number of at least 0",
          "bytes per second, for example 50e9");
    if (!is_amount(links[i].latency_s))
      say("links", i, "latency_s", "not a finite number of at least 0", "seconds");
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (const auto [at, is_new] = flow_rows.try_emplace(flows[i].id, i); !is_new)
      say("flows", i, "id",
          "flow " + std::to_string(flows[i].id) + " is also in row " + std::to_string(at->second),
          "each flow once");
    if (!is_amount(flows[i].bytes))
      say("flows", i, "bytes", "not a finite number of at least 0", "bytes");
    if (!is_amount(flows[i].start_s))
      say("flows", i, "start_s", "not a finite number of at least 0", "seconds");
    for (const std::uint64_t id : flows[i].route)
      if (!link_rows.contains(id))
        say("flows", i, "route", "there is no link " + std::to_string(id),
            "ids of the link table, separated by spaces");
  }
  return problems;
}

RawFlowResult run_raw_flows(const std::vector<RawLink>& links, const std::vector<RawFlow>& flows) {
  FlowTimeline line(FlowTimeline::Options{.takes_places = true});
  std::unordered_map<std::uint64_t, std::uint32_t> link_rows;
  for (std::size_t i = 0; i < links.size(); ++i) {
    line.add_link(links[i].capacity_Bps);
    link_rows.emplace(links[i].id, static_cast<std::uint32_t>(i));
  }

  RawFlowResult result;
  result.flows.reserve(flows.size());
  for (const RawFlow& flow : flows)
    result.flows.push_back({flow.id, flow.start_s, std::numeric_limits<double>::infinity()});
  const auto finish = [&](std::size_t i, double at_s) {
    for (const std::uint64_t id : flows[i].route) at_s += links[link_rows.at(id)].latency_s;
    result.flows[i].finish_s = at_s;
    result.makespan_s = std::max(result.makespan_s, at_s);
  };

  std::vector<std::size_t> by_start(flows.size());
  std::iota(by_start.begin(), by_start.end(), std::size_t{0});
  std::stable_sort(by_start.begin(), by_start.end(), [&](std::size_t a, std::size_t b) {
    return flows[a].start_s < flows[b].start_s;
  });
  // What starts together, as in an exchange of all with all, needs room at once.
  std::size_t together = 0, loads_together = 0;
  for (const std::size_t i : by_start) {
    if (flows[i].start_s > flows[by_start[0]].start_s) break;
    ++together;
    loads_together += flows[i].route.size();
  }
  line.reserve(links.size(), together, loads_together);

  std::vector<std::size_t> flow_of(together);  // by variable
  std::vector<Load> loads;
  std::size_t next = 0;
  for (;;) {
    const std::optional<double> completion_s = line.next_completion_s();
    if (!completion_s && next == by_start.size()) break;
    const double start_s = next < by_start.size() ? flows[by_start[next]].start_s
                                                  : std::numeric_limits<double>::infinity();
    for (const VarIndex var : line.advance(std::min(start_s, completion_s.value_or(start_s))))
      finish(flow_of[var.index()], line.now_s());
    for (; next < by_start.size() && flows[by_start[next]].start_s <= line.now_s(); ++next) {
      const std::size_t i = by_start[next];
      if (flows[i].route.empty()) {
        finish(i, flows[i].start_s);
        continue;
      }
      loads.clear();
      for (const std::uint64_t id : flows[i].route)
        loads.push_back({LinkIndex(link_rows.at(id)), 1.0});
      const VarIndex var = line.add(flows[i].bytes, loads);
      if (var.index() >= flow_of.size()) flow_of.resize(var.index() + 1);
      flow_of[var.index()] = i;
    }
  }

  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (std::isfinite(result.flows[i].finish_s)) continue;
    StalledFlow& stalled = result.stalled.emplace_back();
    stalled.id = flows[i].id;
    for (const std::uint64_t id : flows[i].route)
      if (links[link_rows.at(id)].capacity_Bps == 0) stalled.broken_links.push_back(id);
  }
  result.solves = line.solver().counters().solves;
  return result;
}

}  // namespace trainyard::models
