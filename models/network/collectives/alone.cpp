#include "models/network/collectives/alone.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {

double alone_s(CollectiveKind kind, double bytes, std::size_t ranks, std::size_t per_domain,
               const AloneConstants& c) {
  check(per_domain >= 1 && bytes >= 0,
        "a domain holds at least one rank and bytes are not negative");
  if (kind == CollectiveKind::point_to_point)
    return alone_point_to_point_s(bytes, per_domain >= 2, c);
  if (ranks < 2) return 0;
  const auto n = static_cast<double>(ranks);
  const double g = std::min(n, static_cast<double>(per_domain));
  const double k = std::ceil(n / g);
  const bool is_all_reduce = kind == CollectiveKind::all_reduce;
  const double inside_s = bus_factor(kind, ranks) * bytes / c.ring_Bps;

  if (kind == CollectiveKind::all_to_all) {
    const double within = bytes * (g - 1) / n, outside = bytes * (n - g) / n;
    return c.base_s + n * c.pair_step_s +
           std::max(within / c.ring_Bps, outside / (c.all_to_all_nic_efficiency * c.nic_Bps));
  }
  if (k == 1) {
    const double steps_s = (n - 1) * c.step_s / 2 * (is_all_reduce ? 2 : 1);
    return c.base_s + steps_s + c.sqrt_s_per_sqrt_B * std::sqrt(bytes) + inside_s;
  }
  const double rail_factor =
      kind == CollectiveKind::broadcast ? 1.0 : (is_all_reduce ? 2 : 1) * (k - 1) / k;
  const double moving_s =
      std::max(rail_factor * bytes / g / (c.nic_efficiency * c.nic_Bps), inside_s);
  const double ring_s = (n - k) * c.step_s + (k - 1) * c.nic_step_s;
  if (!is_all_reduce) return c.base_s + ring_s + moving_s;
  const double fill_s = c.tree_level_s + c.tree_fill_s * bytes / (bytes + c.tree_fill_bytes);
  const double tree_s = c.tree_level_s + std::log2(k) * fill_s;
  return c.base_s + std::min(2 * ring_s, tree_s) + moving_s;
}

double alone_point_to_point_s(double bytes, bool is_inside_domain, const AloneConstants& c) {
  if (is_inside_domain) return c.base_s + c.step_s + bytes / c.ring_Bps;
  return c.base_s + c.nic_step_s + bytes / (c.nic_efficiency * c.nic_Bps);
}

}  // namespace trainyard::models
