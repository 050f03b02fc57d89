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
std::vector<double> most_flows(const LinkTable::Numbered& variables, std::size_t at_once) {
  const std::size_t links = variables.links.size(), n = variables.variables();
  std::vector<double> most(links, 0.0), together(links, 0.0);
  for (std::size_t first = 0; first < n;) {
    const std::size_t end = at_once == 0 ? n : std::min(first + at_once, n);
    std::fill(together.begin(), together.end(), 0.0);
    for (; first < end; ++first)
      for (const auto& [link, weight] : variables.of(first)) together[link] += weight;
    for (std::size_t l = 0; l < links; ++l) most[l] = std::max(most[l], together[l]);
  }
  return most;
}

}  // namespace

LinkTable::Numbered LinkTable::number(std::span<const LinkLoads* const> variables) {
  check(!is_collecting_, "a link table does one thing at a time");
  Numbered numbered;
  std::size_t loads = 0;
  for (const LinkLoads* variable : variables) loads += variable ? variable->size() : 0;
  numbered.entries.reserve(loads);
  numbered.first.reserve(variables.size() + 1);
  numbered.first.push_back(0);
  for (const LinkLoads* variable : variables) {
    if (variable)
      for (const auto& [link, weight] : *variable) {
        std::uint32_t& at = slot_[link.index()];
        if (at == none) {
          at = static_cast<std::uint32_t>(numbered.links.size());
          numbered.links.push_back(link);
        }
        numbered.entries.push_back({at, weight});
      }
    numbered.first.push_back(static_cast<std::uint32_t>(numbered.entries.size()));
    numbered.is_there.push_back(variable != nullptr);
  }
  for (const topologies::LinkId link : numbered.links) slot_[link.index()] = none;
  return numbered;
}

std::vector<FabricSolver::Added> FabricSolver::add_together(const LinkTable::Numbered& variables,
                                                            std::size_t at_once) {
  check(solver_.links() == 0, "all variables of a fabric's solver are added together");
  const std::size_t links = variables.links.size(), n = variables.variables();
  std::vector<Added> added(n);
  std::vector<double> capacity(links);
  for (std::size_t l = 0; l < links; ++l) capacity[l] = capacity_Bps(variables.links[l]);
  if (table_.background() != 0) {
    const std::vector<double> flows = most_flows(variables, at_once);
    for (std::size_t l = 0; l < links; ++l)
      capacity[l] = table_.left_Bps(variables.links[l], capacity[l], flows[l]);
  }
  // No rate can pass the share of the most loaded link of its own: limit = min C/w. A link that can
  // carry all its users at their limits never binds and is left out; the set of possible rates is
  // the same without it, and with it the max-min rates.
  std::vector<double> limit(n, 0.0);
  std::vector<double> most(links, 0.0);
  for (std::size_t v = 0; v < n; ++v) {
    if (!variables.is_there[v]) continue;
    limit[v] = MaxMin::unlimited;
    for (const auto& [link, weight] : variables.of(v))
      limit[v] = std::min(limit[v], capacity[link] / weight);
    for (const auto& [link, weight] : variables.of(v)) most[link] += weight * limit[v];
  }
  constexpr double rounding = 1 - 1e-12;  // a link full to the last bit is kept
  std::vector<bool> may_bind(links);
  std::size_t binding_links = 0, loads = n;
  for (std::size_t l = 0; l < links; ++l) {
    may_bind[l] = most[l] > capacity[l] * rounding;
    binding_links += may_bind[l];
  }
  for (const auto& entry : variables.entries) loads += may_bind[entry.link];
  solver_.reserve(binding_links + n, n, loads);
  std::vector<LinkIndex> of_solver(links);
  std::vector<Load> binding;
  for (std::size_t v = 0; v < n; ++v) {
    if (!variables.is_there[v]) continue;
    binding.clear();
    for (const auto& [link, weight] : variables.of(v)) {
      if (!may_bind[link]) continue;
      if (!of_solver[link].is_valid()) of_solver[link] = solver_.add_link(capacity[link]);
      binding.push_back(Load{of_solver[link], weight});
    }
    const LinkIndex own = solver_.add_link(limit[v]);
    binding.push_back(Load{own, 1.0});
    added[v] = {solver_.add(binding), own, limit[v]};
  }
  return added;
}

}  // namespace trainyard::models
