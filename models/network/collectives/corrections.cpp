#include "models/network/collectives/corrections.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {

double expected_collision_slowdown(std::size_t leaves, std::size_t uplinks, double crossing,
                                   int queue_pairs) {
  check(leaves >= 1 && uplinks >= 1 && crossing >= 0 && queue_pairs >= 1,
        "leaves have uplinks and flows have queue pairs", leaves, uplinks, crossing, queue_pairs);
  const auto l = static_cast<double>(leaves), s = static_cast<double>(uplinks);
  const double lambda = crossing / s;
  return std::max(1.0,
                  lambda + std::sqrt(2 * lambda * (1 - 1 / s) * std::log(2 * l * s) / queue_pairs));
}

std::vector<double> contended_capacities(std::span<const double> capacities_Bps,
                                         const std::vector<bool>& is_hashed_fabric,
                                         std::span<const Stream> streams, double factor) {
  check(is_hashed_fabric.size() == capacities_Bps.size(), "every link is hashed fabric or not");
  check(factor > 0 && factor <= 1, "contention leaves a part of the capacity", factor);
  LoadAccumulator flows;
  for (const Stream& s : streams)
    for (const Load& load : s.loads)
      if (is_hashed_fabric[load.link.index()]) flows.add(load.link, load.weight);
  std::vector<double> contended(capacities_Bps.begin(), capacities_Bps.end());
  for (const Load& link : flows.take())
    if (link.weight >= 2) contended[link.link.index()] *= factor;
  return contended;
}

double payload_efficiency(double mtu_bytes, WireFormat format) {
  check(mtu_bytes > 0, "a packet carries bytes", mtu_bytes);
  return mtu_bytes / (mtu_bytes + (format == WireFormat::rocev2 ? 82 : 26));
}

}  // namespace trainyard::models
