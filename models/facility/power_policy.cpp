#include "models/facility/power_policy.hpp"

#include <algorithm>
#include <map>

namespace trainyard::models {

std::vector<Watts> share_limit(const std::vector<RackDemand>& racks, Watts limit) {
  std::map<int, Watts> can_give;
  Watts excess = -limit;
  for (const RackDemand& rack : racks) {
    excess += rack.load;
    can_give[rack.priority] += std::max(rack.load - rack.floor, Watts(0));
  }
  std::map<int, double> fraction;
  for (const auto& [priority, watts] : can_give) {
    const Watts taken = std::clamp(excess, Watts(0), watts);
    fraction[priority] = watts > Watts(0) ? taken / watts : 0.0;
    excess -= taken;
  }
  std::vector<Watts> caps;
  caps.reserve(racks.size());
  for (const RackDemand& rack : racks)
    caps.push_back(rack.load -
                   std::max(rack.load - rack.floor, Watts(0)) * fraction[rack.priority]);
  return caps;
}

std::vector<std::size_t> racks_to_cut(const std::vector<RackDemand>& racks, Watts limit) {
  std::vector<std::size_t> order(racks.size());
  Watts total{};
  for (std::size_t i = 0; i < racks.size(); ++i) {
    order[i] = racks.size() - 1 - i;
    total += racks[i].load;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return racks[a].priority < racks[b].priority;
  });
  std::vector<std::size_t> cut;
  for (const std::size_t i : order) {
    if (total <= limit) break;
    if (racks[i].load <= Watts(0)) continue;
    total -= racks[i].load;
    cut.push_back(i);
  }
  return cut;
}

}  // namespace trainyard::models
