#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/network/collectives/collective.hpp"
#include "models/network/collectives/tuner.hpp"
#include "topologies/fabric.hpp"
#include "topologies/routing.hpp"

/// What a group does, as plans and the tuner have to know it.
namespace trainyard::scenarios {

/// A kind of collective, or the permutation: rank i sends to the rank half way round, i + n/2.
/// Point to point: the first rank to the last.
struct SweepTraffic {
  models::CollectiveKind kind = models::CollectiveKind::all_reduce;
  bool is_permutation = false;
  std::string name() const;
};
/// By name; none: there is no such kind.
std::optional<SweepTraffic> traffic_of(const std::string& name);
std::vector<std::string> traffic_names();

struct RankGroup {
  std::vector<models::Member> members;
  std::size_t per_node = 1;  // members of the first server; of the last perhaps fewer
  double nic_share = 1;      // of an adapter, for each rank
  std::size_t nodes() const { return (members.size() + per_node - 1) / per_node; }
  bool is_even() const { return members.size() % per_node == 0; }
};
RankGroup rank_group(std::vector<models::Member> members);

/// Traffic on one group: who really takes part, and what the tuner has to know.
struct Exchange {
  SweepTraffic traffic;
  RankGroup group;
  models::CollectiveGroup shape;    // of one collective
  models::LinkConstants constants;  // nic_Bps: of a rank
};
Exchange exchange_of(const SweepTraffic& traffic, const RankGroup& group,
                     const models::LinkConstants& constants);

/// Plans of SHARP reduce inside a node from GPU to GPU. Where the scale-up switch can reduce, NCCL
/// lets it: every GPU sends all of the bytes and its own share, and receives as much.
bool reduces_in_scale_up_switch(const Exchange& exchange, models::CollectiveAlgorithm algorithm);
/// Puts the one in the place of the other, in a plan of SHARP.
void reduce_in_scale_up_switch(models::PhasedPlan& plan, const Exchange& exchange,
                               const topologies::Fabric& fabric);

/// Who sends how much to whom over adapters, for routing that looks at it (UGAL).
std::vector<topologies::Demand> demands_of(const Exchange& exchange,
                                           models::CollectiveAlgorithm algorithm,
                                           const models::CollectiveOptions& options);

/// No time can be shorter, with every adapter and scale-up link at its nominal rate. Even groups.
double closed_bound_s(const Exchange& exchange, models::CollectiveAlgorithm algorithm,
                      double bytes);

}  // namespace trainyard::scenarios
