#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/network/collectives/plan.hpp"

/// Recursive halving, then doubling: log2(n) steps each way instead of n-1.
///
/// In step s of the halving, rank i and the rank whose number differs in bit s-1 exchange halves of
/// what they still hold, S/2^s, and reduce. The doubling goes back the same way. Distances double
/// while the bytes halve, so neighbours exchange the most. With n a power of two a rank moves
/// 2(n-1)/n·S, as in a ring. Otherwise p = the power of two below; 2(n-p) ranks first fold in
/// pairs (S bytes from the even to the odd one) and the result goes back at the end: 2S more.
///
/// Every step is a phase with its own pairs and bytes: they are not one flow. Pairs of a step are
/// one variable, since each waits for its partner in every step, and so for everybody.
///
///     auto phases = plan_halving_doubling(CollectiveKind::all_reduce, 1_GiB, group, fabric, {});
///
/// Source: R. Thakur, R. Rabenseifner, W. Gropp, *Optimization of collective communication
/// operations in MPICH*, IJHPCA 19(1), 2005.
namespace trainyard::models {

struct ExchangeStep {
  std::string name;
  double fraction;                                         // of S, in each direction given
  std::vector<std::pair<std::size_t, std::size_t>> sends;  // from, to: positions in the group
};
/// The steps for n ranks; reduce-scatter and all-gather are the halves of a power of two.
std::vector<ExchangeStep> halving_doubling_steps(CollectiveKind kind, std::size_t n);

/// All-reduce for any n; reduce-scatter and all-gather if n is a power of two.
std::vector<CollectivePhase> plan_halving_doubling(CollectiveKind kind, double bytes,
                                                   std::span<const Member> group,
                                                   const PathSource& paths,
                                                   const StreamOptions& options);

}  // namespace trainyard::models
