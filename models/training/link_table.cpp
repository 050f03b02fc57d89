#include "models/training/link_table.hpp"

#include <algorithm>

namespace trainyard::models {

double connection_latency_s(const topologies::Router& router, topologies::GpuId from,
                            topologies::GpuId to, std::uint64_t label) {
  const topologies::Fabric& fabric = router.fabric();
  std::vector<topologies::LinkId> path;
  if (fabric.host_of(from) == fabric.host_of(to))
    fabric.scale_up_path(from, to, path);
  else
    router.path(fabric.nic_of(from), fabric.nic_of(to), label, path);
  return to_seconds(router.latency(path));
}

double FabricSolver::capacity_Bps(topologies::LinkId link) const {
  const bool inside = router_.fabric().link(link).kind == topologies::LinkKind::nvlink;
  return router_.state().capacity(link).value() * (inside ? scale_up_efficiency_ : nic_efficiency_);
}

LinkIndex FabricSolver::index(topologies::LinkId link) {
  if (of_.empty()) of_.resize(router_.fabric().links().size());
  LinkIndex& known = of_[link.index()];
  if (!known.is_valid()) known = solver_.add_link(capacity_Bps(link));
  return known;
}

std::vector<FabricSolver::Added> FabricSolver::add_together(
    std::span<const LinkLoads* const> variables) {
  // No rate can pass the share of the most loaded link of its own: limit = min C/w. A link that can
  // carry all its users at their limits never binds and is left out; the set of possible rates is
  // the same without it, and with it the max-min rates.
  std::vector<double> limit_Bps(variables.size(), 0.0);
  std::vector<double> most_Bps(router_.fabric().links().size(), 0.0);
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (!variables[v]) continue;
    double limit = MaxMin::unlimited;
    for (const auto& [link, weight] : *variables[v])
      limit = std::min(limit, capacity_Bps(link) / weight);
    limit_Bps[v] = limit;
    for (const auto& [link, weight] : *variables[v]) most_Bps[link.index()] += weight * limit;
  }
  constexpr double rounding = 1 - 1e-12;  // a link full to the last bit is kept
  std::vector<Added> added(variables.size());
  std::vector<Load> binding;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (!variables[v]) continue;
    binding.clear();
    for (const auto& [link, weight] : *variables[v])
      if (most_Bps[link.index()] > capacity_Bps(link) * rounding)
        binding.push_back(Load{index(link), weight});
    const LinkIndex own = solver_.add_link(limit_Bps[v]);
    binding.push_back(Load{own, 1.0});
    added[v] = {solver_.add(binding), own, limit_Bps[v]};
  }
  return added;
}

}  // namespace trainyard::models
