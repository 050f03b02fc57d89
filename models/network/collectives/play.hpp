#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/network/collectives/collective.hpp"
#include "models/network/flow_timeline.hpp"

/// Collectives in time, beside each other and beside whatever else runs on the links: competing
/// jobs.
///
///     FlowTimeline line;                                  // links added, perhaps other flows
///     std::vector<TimedCollective> jobs{{&a, {0.0}}, {&b, {0.0, 0.002}}};
///     std::vector<PlayedCollective> played = play_collectives(line, jobs);
///
/// A collective starts when its last member is ready. The streams of a phase are variables of the
/// timeline; when the last of them ends, the part of the latency that their rate did not hide
/// passes, then the next phase begins. With K buckets each phase takes them in order, one at a
/// time, and a bucket enters a phase when it has left the one before: phases of different buckets
/// share links as they meet.
///
/// The range of the end. A variable that is faster than its fair share F = min C/W over its links
/// lives on surplus that arrives in bursts, and can not use all of it. At F it would take the sum
/// of x/F · dt instead of the sum of dt: `latest_finish_s`. The slowest of a set is never affected.
namespace trainyard::models {

struct TimedCollective {
  const PhasedPlan* plan = nullptr;
  std::vector<double> ready_s = {};  // of its members, or one for all; none: now
};

struct PlayedPhase {
  std::string name;
  double start_s = 0;   // of its first bucket
  double finish_s = 0;  // of its last
};

struct PlayedCollective {
  double start_s = 0;
  double finish_s = 0;         // infinite: a link without capacity holds it for ever
  double latest_finish_s = 0;  // if it cannot use more than its fair share
  std::vector<PlayedPhase> phases;
  std::vector<std::string> notes;  // those of the plan, and of what happened here
};

struct PlayOptions {
  bool surplus_range = true;  // looks at all links of what runs at each event
  /// False: starts with its first member. Only to see the difference.
  bool last_ready = true;
};

/// Plays all to their ends, in order of the list. Other flows of the timeline go on meanwhile; what
/// ends of them is not reported. Time goes to the last end.
std::vector<PlayedCollective> play_collectives(FlowTimeline& line,
                                               std::span<const TimedCollective> collectives,
                                               const PlayOptions& options = {});

}  // namespace trainyard::models
