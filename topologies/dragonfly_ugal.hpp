#pragma once

#include <cstdint>
#include <vector>

/// What UGAL (Singh 2005; Kim et al. 2008) settles to under steady traffic, as a fluid.
///
/// UGAL sends a packet the minimal way unless the queues on it, times its hops, are longer than on
/// a Valiant way. Under steady load it therefore shifts traffic until both ways cost the same, or
/// one carries all. Here a way costs the sum over its links of
///
///     (load / capacity) ^ 64
///
/// which is next to nothing for links that are not among the busiest, counts hops where loads are
/// equal, and does not change when all traffic grows alike. The equilibrium of such costs is unique
/// in the loads (Beckmann 1956): it minimises the sum of capacity * utilisation^65. The largest
/// utilisation is then near the least possible: on a dragonfly of 1,056 hosts within 2 % where that
/// is known, and never above it by more than the factor (busy links)^(1/65), 1.12 for 1,500.
///
///     one pair, a direct link and two links of a detour, all equal: the direct one gets
///     1 / (1 + 2^(-1/64)) = 0.503: both come to saturation nearly together
namespace trainyard::topologies {

inline constexpr int ugal_steepness = 64;  // a power of two

struct LinkLoad {
  std::uint32_t link;
  double load;
};

/// Traffic between two groups, and what it puts on links if all of it goes one way or the other.
struct SplitTraffic {
  std::vector<LinkLoad> minimal, indirect;  // a link at most once in each
  double minimal_share = 1.0;               // result
};

/// `base`: loads that have no choice; `capacity`: zero is never loaded.
void balance(std::vector<SplitTraffic>&, std::vector<double> base,
             const std::vector<double>& capacity);

}  // namespace trainyard::topologies
