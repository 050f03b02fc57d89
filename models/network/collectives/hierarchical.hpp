#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/network/collectives/plan.hpp"
#include "models/network/collectives/ring.hpp"

/// Hierarchical collectives: inside the node first, then one ring a rail across nodes.
///
/// With g GPUs a node and N nodes an all-reduce of S bytes is a reduce-scatter in the node, an
/// all-reduce of S/g on each of g rails, and an all-gather in the node. One after another they take
///     2 (g-1)/g · S / scale-up + 2 (N-1)/N · (S/g) / adapter.
/// Cut into K buckets that follow each other through the phases, with R for both node phases (they
/// share the same links) and A for the rails:
///     (R + A)/K + (K-1)/K · max(R, A).
/// Exact for K = 1; up to 3 % fast when the rails are the limit, 9 % when the node is (K = 4).
/// An all-gather is rails then node, a reduce-scatter node then rails. The adapter carries 2(N-1)/N
/// · S/g here, not 2(n-1)/n · S/g as with a flat ring.
namespace trainyard::models {

struct HierarchicalPlan {
  struct Phase {
    std::string name;
    bool is_inside_node;
    CollectivePlan plan;
  };
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;
  std::size_t ranks = 0;
  std::vector<Phase> phases;  // in order; each begins when the one before has ended
};

/// Every node of the group brings the same number of members; member i of a node is on rail i.
HierarchicalPlan plan_hierarchical(CollectiveKind kind, double bytes, std::span<const Member> group,
                                   const PathSource& paths, const RingOptions& options);

/// The bucket form above.
double hierarchical_time_s(double node_s, double rail_s, int buckets);
/// Alone on the fabric.
double time_alone_s(const HierarchicalPlan& plan, std::span<const double> capacities_Bps,
                    int buckets);

}  // namespace trainyard::models
