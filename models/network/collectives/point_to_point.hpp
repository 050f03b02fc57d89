#pragma once

#include <cstdint>

#include "models/network/collectives/plan.hpp"

/// One rank sends to another: between pipeline stages, or one pair of an exchange.
///
/// One stream, never coupled with those of other replicas, stages or micro-batches: they do not
/// wait for each other at every message, so one variable for all would wait for the slowest (+20 to
/// +30 % on hashed paths). A lone flow beside a throttled collective: FlowTimeline::Options::phi.
namespace trainyard::models {

struct PointToPointOptions {
  int queue_pairs = 1;
  std::uint64_t label = 0;
  MessageCosts costs = {};
};

/// Within a node over the scale-up links, else over the adapters of both.
CollectivePlan plan_point_to_point(double bytes, const Member& from, const Member& to,
                                   const PathSource& paths, const PointToPointOptions& options);

}  // namespace trainyard::models
