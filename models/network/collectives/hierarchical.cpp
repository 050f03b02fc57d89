#include "models/network/collectives/hierarchical.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

namespace {

/// One ring for each of the sets, all at once.
CollectivePlan rings(CollectiveKind kind, double bytes,
                     const std::vector<std::vector<Member>>& sets, const PathSource& paths,
                     RingOptions options) {
  CollectivePlan all;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    RingOptions own = options;
    own.label = connection_label(options.label, i, sets.size(), 0);
    CollectivePlan one = plan_ring(kind, bytes, sets[i], paths, own);
    if (options.merge_channels && one.streams.size() > 1) one.streams = {merged(one.streams)};
    std::vector<Stream> streams = std::move(all.streams);
    std::move(one.streams.begin(), one.streams.end(), std::back_inserter(streams));
    all = std::move(one);
    all.streams = std::move(streams);
  }
  return all;
}

}  // namespace

HierarchicalPlan plan_hierarchical(CollectiveKind kind, double bytes, std::span<const Member> group,
                                   const PathSource& paths, const RingOptions& options) {
  check(kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
            kind == CollectiveKind::reduce_scatter,
        "all-reduce, all-gather and reduce-scatter have a hierarchical form");
  std::map<std::size_t, std::size_t> place;
  std::vector<std::vector<Member>> nodes;
  for (const Member& m : group) {
    const auto [at, is_new] = place.try_emplace(m.node, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[at->second].push_back(m);
  }
  HierarchicalPlan plan{kind, bytes, group.size(), {}};
  if (group.size() < 2) return plan;
  const std::size_t g = nodes.front().size();
  std::vector<std::vector<Member>> rails(g);
  for (const std::vector<Member>& node : nodes) {
    check(node.size() == g, "every node brings as many members", node.size(), g);
    for (std::size_t j = 0; j < g; ++j) rails[j].push_back(node[j]);
  }

  // Inside a node one ring fills the links: channels are per adapter, and there is none.
  RingOptions inside = options;
  inside.channels_per_nic = 1;
  const auto node_phase = [&](CollectiveKind k, const char* name) {
    if (g < 2) return;
    plan.phases.push_back({name, true, rings(k, bytes, nodes, paths, inside)});
  };
  const auto rail_phase = [&](CollectiveKind k) {
    if (nodes.size() < 2) return;
    plan.phases.push_back(
        {"rails", false, rings(k, bytes / static_cast<double>(g), rails, paths, options)});
  };
  if (kind != CollectiveKind::all_gather)
    node_phase(CollectiveKind::reduce_scatter, "reduce in node");
  rail_phase(kind);
  if (kind != CollectiveKind::reduce_scatter)
    node_phase(CollectiveKind::all_gather, "gather in node");
  return plan;
}

double hierarchical_time_s(double node_s, double rail_s, int buckets) {
  check(buckets >= 1, "there is at least one bucket");
  const double k = buckets;
  return (node_s + rail_s) / k + (k - 1) / k * std::max(node_s, rail_s);
}

double time_alone_s(const HierarchicalPlan& plan, std::span<const double> capacities_Bps,
                    int buckets) {
  double node_s = 0, rail_s = 0;
  for (const HierarchicalPlan::Phase& phase : plan.phases)
    (phase.is_inside_node ? node_s : rail_s) += time_alone(phase.plan, capacities_Bps).time_s;
  return hierarchical_time_s(node_s, rail_s, buckets);
}

}  // namespace trainyard::models
