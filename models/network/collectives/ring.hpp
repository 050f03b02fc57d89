#pragma once

#include <span>

#include "models/network/collectives/plan.hpp"

/// Ring collectives over several rails and channels, as NCCL lays them out.
///
/// n ranks on N nodes, at least k on each; m channels an adapter, so k·m rings, each with 1/(k·m)
/// of the bytes. Channel c enters a node at local member c mod k, visits all members over the
/// scale-up links, and goes on to the next node
///   with PXN      by the adapter of the member at which it entered (one more scale-up hop to get
///   there); without PXN   by the adapter of the last member visited: the next node is entered on
///   *that* rail.
/// Every edge carries V bytes in all: 2(n-1)/n·S for all-reduce, (n-1)/n·S for reduce-scatter and
/// all-gather, S for broadcast (whose chain is charged the closing edge too).
///
/// So each adapter carries m rings in each direction, each GPU's scale-up link k·m (k·m·(k-1)/k
/// without PXN), and alone the bus bandwidth is min(k · adapter, scale-up [· k/(k-1)]).
///
///     CollectivePlan plan = plan_ring(CollectiveKind::all_reduce, 1_GiB, group, fabric, {});
///     time_alone(plan, capacities).time_s;
namespace trainyard::models {

using RingOptions = StreamOptions;

/// Members in ring order; those of one node are visited together, in the order given. Fewer than
/// two: nothing to do.
CollectivePlan plan_ring(CollectiveKind kind, double bytes, std::span<const Member> group,
                         const PathSource& paths, const RingOptions& options);

}  // namespace trainyard::models
