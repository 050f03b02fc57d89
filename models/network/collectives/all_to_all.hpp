#pragma once

#include <cstdint>
#include <span>

#include "models/network/collectives/plan.hpp"

/// Every rank sends to every other, all peers in flight at once: one variable, x = the rate of one
/// pair.
///
/// `bytes` is what one rank sends in all, its own part included, so a pair carries bytes / n. With
/// PXN a pair crosses its own node first, to the GPU on the rail of the receiver, and stays on that
/// rail; without, it leaves by the sender's adapter and may change rails in the fabric. An adapter
/// of a node of g among N nodes carries g·(N-1) pairs in each direction either way.
///
/// One variable is right while every pair is in flight (NCCL keeps 64 and more). With few peers in
/// flight on hashed paths it is a lower bound, up to 50 % fast and more
/// (docs/models/collectives.md).
namespace trainyard::models {

struct AllToAllOptions {
  bool pxn = true;
  std::uint64_t label = 0;
  MessageCosts costs = {};
};

CollectivePlan plan_all_to_all(double bytes, std::span<const Member> group, const PathSource& paths,
                               const AllToAllOptions& options);

}  // namespace trainyard::models
