#include "models/network/collectives/hierarchical.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "models/network/collectives/grouping.hpp"
#include "models/network/collectives/ring.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

namespace {

/// One ring for each of the sets, all at once.
CollectivePlan rings(CollectiveKind kind, double bytes,
                     const std::vector<std::vector<Member>>& sets, const PathSource& paths,
                     const StreamOptions& options) {
  CollectivePlan all;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    StreamOptions own = options;
    own.label = connection_label(options.label, i, sets.size(), 0);
    CollectivePlan one = plan_ring(kind, bytes, sets[i], paths, own);
    std::vector<Stream> streams = std::move(all.streams);
    std::move(one.streams.begin(), one.streams.end(), std::back_inserter(streams));
    all = std::move(one);
    all.streams = std::move(streams);
  }
  return all;
}

}  // namespace

std::vector<CollectivePhase> plan_hierarchical(CollectiveKind kind, double bytes,
                                               std::span<const Member> group,
                                               const PathSource& paths,
                                               const StreamOptions& options) {
  check(kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
            kind == CollectiveKind::reduce_scatter,
        "all-reduce, all-gather and reduce-scatter have a hierarchical form");
  std::vector<CollectivePhase> phases;
  if (group.size() < 2) return phases;
  const std::vector<NodeMembers> nodes = by_node(group);
  const std::vector<std::vector<Member>> rails = by_rail(nodes);
  const std::size_t g = rails.size();

  // Inside a node one ring fills the links: channels are per adapter, and there is none.
  StreamOptions inside = options;
  inside.channels_per_nic = 1;
  const auto node_phase = [&](CollectiveKind k, const char* name) {
    if (g > 1) phases.push_back({name, rings(k, bytes, nodes, paths, inside)});
  };
  if (kind != CollectiveKind::all_gather)
    node_phase(CollectiveKind::reduce_scatter, "reduce in node");
  if (nodes.size() > 1)
    phases.push_back({"rails", rings(kind, bytes / static_cast<double>(g), rails, paths, options)});
  if (kind != CollectiveKind::reduce_scatter)
    node_phase(CollectiveKind::all_gather, "gather in node");
  return phases;
}

double pipelined_s(std::span<const CollectivePhase> phases, std::span<const double> capacities_Bps,
                   int buckets) {
  check(buckets >= 1, "there is at least one bucket");
  double sum_s = 0, steady_s = 0;
  LoadAccumulator busy_s;  // of each link, by one bucket: its phases' times, as far as they use it
  for (const CollectivePhase& phase : phases) {
    const PlanTime time = time_alone(phase.plan, capacities_Bps);
    sum_s += time.time_s;
    steady_s = std::max(steady_s, time.time_s);
    if (time.fluid_s == 0) continue;
    for (const auto& [link, bytes] : bytes_by_link(phase.plan))
      busy_s.add(link, bytes == 0
                           ? 0.0
                           : bytes / capacities_Bps[link.index()] / time.fluid_s * time.time_s);
  }
  for (const Load& link : busy_s.take()) steady_s = std::max(steady_s, link.weight);
  return buckets == 1 ? sum_s : sum_s + (buckets - 1) * steady_s;
}

}  // namespace trainyard::models
