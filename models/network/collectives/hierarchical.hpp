#pragma once

#include <span>
#include <vector>

#include "models/network/collectives/plan.hpp"

/// Hierarchical collectives: inside the node first, then one ring a rail across nodes.
///
/// With g GPUs a node and N nodes an all-reduce of S bytes is a reduce-scatter in the node, an
/// all-reduce of S/g on each of g rails, and an all-gather in the node. One after another they take
///     2 (g-1)/g · S / scale-up + 2 (N-1)/N · (S/g) / adapter.
/// Cut into K buckets that follow each other through the phases, with R for both node phases (they
/// share the same links) and A for the rails:
///     (R + A)/K + (K-1)/K · max(R, A).
/// Exact for K = 1; else up to 3 % too long when the rails are the limit. When the node is, its
/// links need not idle while the last bucket is on the rails: 9 to 13 % too long at K = 4. An
/// all-gather is rails then node, a reduce-scatter node then rails. The adapter carries 2(N-1)/N ·
/// S/g here, not 2(n-1)/n · S/g as with a flat ring.
namespace trainyard::models {

/// Every node of the group brings the same number of members; member i of a node is on rail i.
std::vector<CollectivePhase> plan_hierarchical(CollectiveKind kind, double bytes,
                                               std::span<const Member> group,
                                               const PathSource& paths,
                                               const StreamOptions& options);

/// The bucket form for phases of any number. `phases`: in order, each for *one* bucket. Once the
/// pipeline is full a bucket leaves whenever the most used link has done its work for all phases.
double pipelined_s(std::span<const CollectivePhase> phases, std::span<const double> capacities_Bps,
                   int buckets);

}  // namespace trainyard::models
