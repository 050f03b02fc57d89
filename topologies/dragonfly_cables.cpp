#include "topologies/dragonfly_cables.hpp"

#include <algorithm>

#include "sim/check.hpp"

namespace trainyard::topologies {

GlobalCables::GlobalCables(int groups, int routers, int ports_per_router, Arrangement arrangement)
    : groups_(groups), ports_per_router_(ports_per_router), arrangement_(arrangement) {
  if (groups < 2) return;
  const std::int64_t ports = std::int64_t{routers} * ports_per_router;
  rounds_ = static_cast<int>(ports / (groups - 1));
  const int left = static_cast<int>(ports % (groups - 1));
  half_ = left / 2;
  has_opposite_ = left % 2 == 1 && groups % 2 == 0;
}

std::size_t GlobalCables::count() const {
  const std::size_t g = static_cast<std::size_t>(groups_);
  return static_cast<std::size_t>(rounds_) * (g * (g - 1) / 2) +
         static_cast<std::size_t>(half_) * g + (has_opposite_ ? g / 2 : 0);
}

bool GlobalCables::is_extra(int here, int there) const {
  const int d = offset(here, there);
  return d <= half_ || d >= groups_ - half_ || (has_opposite_ && 2 * d == groups_);
}

/// Place of `there` among the groups that `here` reaches in a round.
int GlobalCables::rank(int here, int there, bool in_full_round) const {
  const int d = offset(here, there);
  if (arrangement_ == Arrangement::palm_tree) {
    if (in_full_round || d >= groups_ - half_) return groups_ - 1 - d;
    if (d > half_) return half_;  // opposite
    return half_ + (has_opposite_ ? 1 : 0) + half_ - d;
  }
  if (in_full_round) return there < here ? there : there - 1;
  // How many of first … last, taken around the circle, have a number below `there`.
  const auto below = [&](int first, int last) {
    int n = 0;
    for (const int turn : {-groups_, 0, groups_})
      n += std::max(0, std::min(last + 1, turn + there) - std::max(first, turn));
    return n;
  };
  return below(here - half_, here - 1) + below(here + 1, here + half_) +
         (has_opposite_ ? below(here + groups_ / 2, here + groups_ / 2) : 0);
}

GlobalCables::Cable GlobalCables::cable(int here, int there, int n) const {
  check(here != there && n < between(here, there), "a global cable joins two groups", here, there,
        n);
  const bool is_full = n < rounds_;
  const std::int64_t first = std::int64_t{n} * (groups_ - 1);
  const auto router = [&](int a, int b) {
    return static_cast<int>((first + rank(a, b, is_full)) / ports_per_router_);
  };
  const std::size_t g = static_cast<std::size_t>(groups_);
  const std::size_t low = static_cast<std::size_t>(std::min(here, there));
  const std::size_t high = static_cast<std::size_t>(std::max(here, there));
  std::size_t index = static_cast<std::size_t>(n) * (g * (g - 1) / 2);
  if (is_full) {
    index += low * (2 * g - low - 1) / 2 + (high - low - 1);
  } else {  // distance by distance around the circle, from the group that is that far before
    const int d = offset(here, there);
    const bool is_forward = 2 * d < groups_ || (2 * d == groups_ && here < there);
    const std::size_t distance = static_cast<std::size_t>(std::min(d, groups_ - d));
    const std::size_t at = 2 * distance == g ? static_cast<std::size_t>(half_) : distance - 1;
    index += at * g + static_cast<std::size_t>(is_forward ? here : there);
  }
  return {index, router(here, there), router(there, here)};
}

}  // namespace trainyard::topologies
