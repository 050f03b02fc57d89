#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/network/collectives/plan.hpp"

/// Direct collectives: each rank to every other, all peers in flight at once: one variable, x = the
/// rate of one pair (its largest, if pairs carry different bytes; the others have smaller weights).
///
/// `bytes` is what one rank sends in all, its own part included, so a pair carries bytes / n. With
/// PXN a pair crosses its own node first, to the GPU on the rail of the receiver, and stays on that
/// rail; without, it leaves by the sender's adapter and may change rails in the fabric. An adapter
/// of a node of g among N nodes carries g·(N-1) pairs in each direction either way.
///
/// One variable is right while every pair is in flight (NCCL keeps 64 and more). With Q < 16 peers
/// in flight it is a lower bound on hashed paths, 20 % fast at Q = 4 and 55 % at Q = 1; batches of
/// Q shifts one after another are usually an upper one. `batches_share` mixes the two: a heuristic,
/// fitted to message-by-message simulations (docs/models/collectives.md).
namespace trainyard::models {

struct AllToAllOptions {
  bool pxn = true;
  std::uint64_t label = 0;
  MessageCosts costs = {};
  int queue_pairs = 1;
  /// Bytes from rank i to rank j at i·n + j; empty: bytes/n each.
  std::span<const double> pair_bytes = {};
};

CollectivePlan plan_all_to_all(double bytes, std::span<const Member> group, const PathSource& paths,
                               const AllToAllOptions& options);
/// The same, `peers` shifts at a time: rank i sends to i+1 … i+peers, when all have done so to the
/// next ones. Exact where shifts meet the same links (dragonfly, torus).
std::vector<CollectivePhase> plan_all_to_all_batches(double bytes, std::span<const Member> group,
                                                     const PathSource& paths,
                                                     const AllToAllOptions& options, int peers);
/// What part of the time of the batches is to be mixed with the rest of that of one variable; 0
/// from 16 peers on, or when all are in flight (`peers` 0 or at least ranks-1).
double batches_share(int peers, std::size_t ranks);

/// Reduce-scatter and all-gather by pairs of bytes/n, all-reduce as both in turn, broadcast from
/// the first member to each of the others.
std::vector<CollectivePhase> plan_direct(CollectiveKind kind, double bytes,
                                         std::span<const Member> group, const PathSource& paths,
                                         const AllToAllOptions& options);

}  // namespace trainyard::models
