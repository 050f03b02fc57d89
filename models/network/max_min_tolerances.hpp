#pragma once

#include <cstdint>

/// What counts as equal inside MaxMin. Rates are good to about 1e-15, sums of thousands of them to
/// 1e-13.
namespace trainyard::models::max_min_tolerances {

// A link is overloaded above this; a level is right within it.
inline constexpr double tight = 1e-12;
// A link of infinite level with more room than this is not at its limit: changes there are ignored.
inline constexpr double slack = 1e-7;
// Sums that drift by increments are not trusted this near to a decision, nor after so many updates.
inline constexpr double load_doubt = 1e-7;
inline constexpr double reach_doubt = 1e-9;
inline constexpr std::uint16_t updates_before_sum = 1024;

inline void count_update(std::uint16_t& updates) {
  updates = static_cast<std::uint16_t>(updates + (updates < updates_before_sum ? 1 : 0));
}

}  // namespace trainyard::models::max_min_tolerances
