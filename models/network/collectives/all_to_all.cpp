#include "models/network/collectives/all_to_all.hpp"

#include <map>
#include <vector>

namespace trainyard::models {

CollectivePlan plan_all_to_all(double bytes, std::span<const Member> group, const PathSource& paths,
                               const AllToAllOptions& options) {
  CollectivePlan plan{CollectiveKind::all_to_all, bytes, group.size(), {}, {}};
  if (group.size() < 2) return plan;

  // Position within its node stands for the rail.
  std::map<std::size_t, std::vector<std::size_t>> nodes;
  std::vector<std::size_t> rail(group.size());
  for (std::size_t i = 0; i < group.size(); ++i) {
    std::vector<std::size_t>& node = nodes[group[i].node];
    rail[i] = node.size();
    node.push_back(i);
  }

  LoadAccumulator loads;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::vector<std::size_t>& node = nodes[group[i].node];
    for (std::size_t j = 0; j < group.size(); ++j) {
      if (i == j) continue;
      if (group[i].node == group[j].node) {
        paths.add_scale_up(group[i].gpu, group[j].gpu, 1, loads);
        continue;
      }
      const std::size_t exit = options.pxn && rail[j] < node.size() ? node[rail[j]] : i;
      if (exit != i) paths.add_scale_up(group[i].gpu, group[exit].gpu, 1, loads);
      paths.add_path(group[exit].nic, group[j].nic, connection_label(options.label, i, j, 0), 1,
                     loads);
    }
  }
  plan.streams.push_back({loads.take(), bytes / static_cast<double>(group.size())});
  plan.latency.base_s = options.costs.base_s;
  plan.latency.steps = 1;
  plan.latency.alpha_s = nodes.size() > 1 ? options.costs.nic_s : options.costs.scale_up_s;
  plan.latency.form = LatencyForm::additive;
  return plan;
}

}  // namespace trainyard::models
