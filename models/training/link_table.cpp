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
  constexpr double no_limit_Bps = 1e18;  // faster than any link: all of this variable's are shared
  constexpr std::uint32_t nobody = 0xffffffffu, many = 0xfffffffeu;
  std::vector<std::uint32_t> user(router_.fabric().links().size(), nobody);
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (!variables[v]) continue;
    for (const auto& [link, weight] : *variables[v]) {
      std::uint32_t& u = user[link.index()];
      u = u == nobody ? std::uint32_t(v) : many;
    }
  }
  std::vector<Added> added(variables.size());
  std::vector<Load> shared;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (!variables[v]) continue;
    shared.clear();
    double own_Bps = no_limit_Bps;
    for (const auto& [link, weight] : *variables[v]) {
      if (user[link.index()] == many)
        shared.push_back(Load{index(link), weight});
      else
        own_Bps = std::min(own_Bps, capacity_Bps(link) / weight);
    }
    const LinkIndex own = solver_.add_link(own_Bps);
    shared.push_back(Load{own, 1.0});
    added[v] = {solver_.add(shared), own, own_Bps};
  }
  return added;
}

}  // namespace trainyard::models
