#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/network/max_min.hpp"
#include "sim/problem.hpp"

/// Raw flows over given routes: the core of `trainyard flows LINKS.csv FLOWS.csv`.
///
/// Each flow moves its bytes over every link of its route at once, at its max-min fair rate, from
/// its start. finish = start + the latencies of its links + the fluid time. The latency is added at
/// the end and does not delay the sharing: the flow holds its share from `start_s` on. A flow
/// without links has nothing to wait for and finishes at its start.
namespace trainyard::models {

struct RawLink {
  std::uint64_t id = 0;
  std::string name;
  double capacity_Bps = 0;  // one direction; 0: broken
  double latency_s = 0;
};

struct RawFlow {
  std::uint64_t id = 0;
  double bytes = 0;
  double start_s = 0;
  std::vector<std::uint64_t> route;  // link ids
};

struct RawFlowTimes {
  std::uint64_t id = 0;
  double start_s = 0;
  double finish_s = 0;  // infinite: it never finishes
};

struct StalledFlow {
  std::uint64_t id = 0;
  std::vector<std::uint64_t> broken_links;  // of its route
};

struct RawFlowResult {
  std::vector<RawFlowTimes> flows;  // in the order given
  double makespan_s = 0;            // last finish of those that finish
  std::uint64_t solves = 0;
  std::vector<StalledFlow> stalled;  // never a hang
};

/// Mistakes in the tables: an id twice, a route over an unknown link, a number that cannot be.
/// Paths are "links/ROW/column" and "flows/ROW/column", rows counted from 0.
Problems check_raw_flows(const std::vector<RawLink>& links, const std::vector<RawFlow>& flows);

/// The tables must be free of problems.
RawFlowResult run_raw_flows(const std::vector<RawLink>& links, const std::vector<RawFlow>& flows);

}  // namespace trainyard::models
