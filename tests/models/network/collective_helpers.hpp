#pragma once

#include <cstddef>
#include <map>
#include <numeric>
#include <vector>

#include "models/network/collectives/plan.hpp"

/// Numbers and short-hands of the tests of collectives.
namespace trainyard::models {

inline constexpr double adapter_Bps = 50e9;
inline constexpr double MiB = 1048576, GiB = 1073741824;
/// Oracles are given to six decimals of a millisecond, some of them cut off and not rounded.
inline constexpr double given_ms = 1e-6;

inline double ms(double s) {
  return s * 1e3;
}
inline std::vector<std::size_t> in_order(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}
/// Weights by link, all streams together.
inline std::map<std::size_t, double> weights(const CollectivePlan& plan) {
  std::map<std::size_t, double> sum;
  for (const Stream& s : plan.streams)
    for (const Load& load : s.loads) sum[load.link.index()] += load.weight;
  return sum;
}

}  // namespace trainyard::models
