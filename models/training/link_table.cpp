#include "models/training/link_table.hpp"

#include <algorithm>

namespace trainyard::models {

void LinkTable::set_background(std::vector<Background> background) {
  for (const Background& b : background)
    check(b.flow_Bps > 0 && b.flows.size() == slot_.size(),
          "a background has a rate and a number of flows for every link", b.flow_Bps);
  std::stable_sort(
      background.begin(), background.end(),
      [](const Background& a, const Background& b) { return a.flow_Bps < b.flow_Bps; });
  if (background.empty() && background_.empty()) return;
  background_ = std::move(background);
  ++background_number_;
}

// Water-filling with one level: flows whose rate is below it have their rate, all others have it.
double LinkTable::left_Bps(topologies::LinkId link, double capacity_Bps, double flows) const {
  double left = capacity_Bps, sharing = flows;
  for (const Background& b : background_) sharing += b.flows[link.index()];
  for (const Background& b : background_) {
    const double here = b.flows[link.index()];
    if (here == 0) continue;
    if (b.flow_Bps * sharing >= left) break;
    left -= b.flow_Bps * here;
    sharing -= here;
  }
  return sharing == flows ? left : left * flows / sharing;
}

topologies::GpuId relay_of(const topologies::Router& router, topologies::GpuId from,
                           topologies::GpuId to) {
  const topologies::Fabric& fabric = router.fabric();
  if (router.is_wired(fabric.nic_of(from), fabric.nic_of(to))) return from;
  for (int local = 0; local < fabric.servers().gpus; ++local) {
    const topologies::GpuId relay = fabric.gpu(fabric.host_of(from), std::size_t(local));
    if (router.is_wired(fabric.nic_of(relay), fabric.nic_of(to))) return relay;
  }
  return from;
}

double connection_latency_s(const topologies::Router& router, topologies::GpuId from,
                            topologies::GpuId to, std::uint64_t label) {
  const topologies::Fabric& fabric = router.fabric();
  std::vector<topologies::LinkId> path;
  if (fabric.host_of(from) == fabric.host_of(to))
    fabric.scale_up_path(from, to, path);
  else
    router.path(fabric.nic_of(relay_of(router, from, to)), fabric.nic_of(to), label, path);
  return to_seconds(router.latency(path));
}

double FabricSolver::capacity_Bps(topologies::LinkId link) const {
  const bool inside = router_.fabric().link(link).kind == topologies::LinkKind::nvlink;
  return router_.state().capacity(link).value() * (inside ? scale_up_efficiency_ : nic_efficiency_);
}

namespace {

/// On every numbered link, of those variables that run at once: what weighs most.
template <class NumberOf>
std::vector<double> most_flows(std::span<const LinkLoads* const> variables, std::size_t at_once,
                               std::size_t links, NumberOf number_of) {
  std::vector<double> most(links, 0.0), together(links, 0.0);
  for (std::size_t first = 0; first < variables.size();) {
    const std::size_t end =
        at_once == 0 ? variables.size() : std::min(first + at_once, variables.size());
    std::fill(together.begin(), together.end(), 0.0);
    for (; first < end; ++first)
      if (variables[first])
        for (const auto& [link, weight] : *variables[first]) together[number_of(link)] += weight;
    for (std::size_t l = 0; l < links; ++l) most[l] = std::max(most[l], together[l]);
  }
  return most;
}

}  // namespace

std::vector<FabricSolver::Added> FabricSolver::add_together(
    std::span<const LinkLoads* const> variables, std::size_t at_once) {
  check(solver_.links() == 0, "all variables of a fabric's solver are added together");
  std::vector<Added> added(variables.size());
  table_.with_numbers(variables, [&](const std::vector<topologies::LinkId>& links, auto number_of) {
    std::vector<double> capacity(links.size());
    for (std::size_t l = 0; l < links.size(); ++l) capacity[l] = capacity_Bps(links[l]);
    if (table_.background() != 0) {
      const std::vector<double> flows = most_flows(variables, at_once, links.size(), number_of);
      for (std::size_t l = 0; l < links.size(); ++l)
        capacity[l] = table_.left_Bps(links[l], capacity[l], flows[l]);
    }
    // No rate can pass the share of the most loaded link of its own: limit = min C/w. A link that
    // can carry all its users at their limits never binds and is left out; the set of possible
    // rates is the same without it, and with it the max-min rates.
    std::vector<double> limit(variables.size(), 0.0);
    std::vector<double> most(links.size(), 0.0);
    for (std::size_t v = 0; v < variables.size(); ++v) {
      if (!variables[v]) continue;
      limit[v] = MaxMin::unlimited;
      for (const auto& [link, weight] : *variables[v])
        limit[v] = std::min(limit[v], capacity[number_of(link)] / weight);
      for (const auto& [link, weight] : *variables[v]) most[number_of(link)] += weight * limit[v];
    }
    std::size_t loads = variables.size();
    for (const LinkLoads* variable : variables) loads += variable ? variable->size() : 0;
    solver_.reserve(links.size() + variables.size(), variables.size(), loads);
    constexpr double rounding = 1 - 1e-12;  // a link full to the last bit is kept
    std::vector<LinkIndex> of_solver(links.size());
    std::vector<Load> binding;
    for (std::size_t v = 0; v < variables.size(); ++v) {
      if (!variables[v]) continue;
      binding.clear();
      for (const auto& [link, weight] : *variables[v]) {
        const std::uint32_t l = number_of(link);
        if (most[l] <= capacity[l] * rounding) continue;
        if (!of_solver[l].is_valid()) of_solver[l] = solver_.add_link(capacity[l]);
        binding.push_back(Load{of_solver[l], weight});
      }
      const LinkIndex own = solver_.add_link(limit[v]);
      binding.push_back(Load{own, 1.0});
      added[v] = {solver_.add(binding), own, limit[v]};
    }
  });
  return added;
}

}  // namespace trainyard::models
