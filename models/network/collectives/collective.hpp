#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/network/collectives/algorithm.hpp"
#include "models/network/collectives/corrections.hpp"
#include "models/network/collectives/plan.hpp"

/// Any collective by any algorithm, through one door.
///
///     std::string why_not;
///     if (!supports(kind, algorithm, group, fabric, &why_not)) …            // tell the user
///     PhasedPlan plan = plan_collective(kind, algorithm, 1_GiB, group, fabric, {});
///     double alone_s = time_alone_s(plan, capacities);                      // or play.hpp
///
/// What can be done, and its bound with N nodes of g GPUs, n = N·g, each with an adapter of NIC
/// bytes/s and a scale-up link of UP, for S bytes (f = factor of nccl-tests: 2(n-1)/n all-reduce,
/// (n-1)/n reduce-scatter and all-gather, 1 broadcast):
///
///     ring                all-reduce, rs, ag, broadcast     max(f·S/(g·NIC), f·S/UP)
///     tree                all-reduce, broadcast             max(2·S/(g·NIC), 2(g-1)/g·S/UP)   N >=
///     4 halving-doubling    all-reduce, rs, ag                sum over its steps direct all;
///     all-to-all and transfers     (n-g)/n·S/NIC [all-reduce twice] hierarchical all-reduce, rs,
///     ag                2(g-1)/g·S/UP + 2(N-1)/N·(S/g)/NIC sharp               all-reduce
///     max(S/(g·NIC), 2(g-1)/g·S/UP) nvls                all-reduce, rs, ag; one node (1+1/g)·S/UP
///     nvls-tree           all-reduce                        max(2·S/(g·NIC), (1+1/g)·S/UP)
///
/// Page: docs/models/collectives.md.
namespace trainyard::models {

struct PhasedPlan {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  double bytes = 0;
  std::size_t ranks = 0;
  /// In order, each for all bytes; empty with fewer than two ranks.
  std::vector<CollectivePhase> phases;
  /// The bytes are cut into so many parts, which follow each other through the phases.
  int buckets = 1;
  /// Corrections that were applied, by name, and "outside validated range: …".
  std::vector<std::string> notes;
  /// All-to-all with few peers in flight: this part of the time of these phases is mixed with the
  /// rest of the time of `phases`.
  std::vector<CollectivePhase> batches = {};
  double batches_share = 0;
};

struct CollectiveOptions {
  int channels_per_nic = 1;
  int queue_pairs = 1;
  bool pxn = true;
  bool merge_channels = false;
  int buckets = 1;
  int peers_in_flight = 0;  // of an all-to-all; 0: all
  /// All-to-all whose shifts meet the same links on this fabric (dragonfly, torus): with few peers
  /// in flight plan the batches alone, which are exact there.
  bool has_systematic_shifts = false;
  std::uint64_t label = 0;
  MessageCosts costs = {};
  /// All-to-all: bytes from rank i to rank j at i·n + j; empty: bytes/n each.
  std::vector<double> pair_bytes = {};
  Corrections corrections = {};
};

/// Whether the group can do this; `why_not` (if given) says what would be right. With `paths` also
/// whether the fabric can.
bool supports(CollectiveKind kind, CollectiveAlgorithm algorithm, std::span<const Member> group,
              std::string* why_not);
bool supports(CollectiveKind kind, CollectiveAlgorithm algorithm, std::span<const Member> group,
              const PathSource& paths, std::string* why_not);

/// Only what is supported. A point-to-point transfer goes from the first member to the second, a
/// broadcast starts at the first.
PhasedPlan plan_collective(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                           std::span<const Member> group, const PathSource& paths,
                           const CollectiveOptions& options);

/// Alone on links of these capacities, latency included. Never below bound_s: a check.
double time_alone_s(const PhasedPlan& plan, std::span<const double> capacities_Bps);
/// No time can be shorter: in each phase the bytes of the busiest link over its capacity, added up;
/// with buckets those of all phases on the busiest link.
double bound_s(const PhasedPlan& plan, std::span<const double> capacities_Bps);
/// The link that holds the slowest phase, if any.
std::optional<LinkIndex> bottleneck(const PhasedPlan& plan, std::span<const double> capacities_Bps);
/// What these capacities put outside the validated range, as sentences for the notes.
std::vector<std::string> range_notes(const PhasedPlan& plan,
                                     std::span<const double> capacities_Bps);

/// The bound in the table above, for even groups: adapters and scale-up links are the only limits,
/// one adapter a GPU. `nodes` of `per_node` members.
double closed_form_bound_s(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                           std::size_t nodes, std::size_t per_node, double nic_Bps,
                           double scale_up_Bps, bool pxn = true, int buckets = 1);

}  // namespace trainyard::models
