#include "models/network/collectives/point_to_point.hpp"

#include "sim/check.hpp"

namespace trainyard::models {

CollectivePlan plan_point_to_point(double bytes, const Member& from, const Member& to,
                                   const PathSource& paths, const PointToPointOptions& options) {
  check(options.queue_pairs > 0, "a connection has a queue pair");
  const bool is_inside = from.node == to.node;
  CollectivePlan plan{CollectiveKind::point_to_point, bytes, 2, {}, {}};
  plan.latency.base_s = options.costs.base_s;
  plan.latency.steps = 1;
  plan.latency.alpha_s = is_inside ? options.costs.scale_up_s : options.costs.nic_s;
  plan.latency.form = LatencyForm::additive;
  LoadAccumulator loads;
  if (is_inside) {
    if (from.gpu != to.gpu) paths.add_scale_up(from.gpu, to.gpu, options.queue_pairs, loads);
  } else {
    for (int q = 0; q < options.queue_pairs; ++q)
      paths.add_path(
          from.nic, to.nic,
          connection_label(options.label, from.gpu, to.gpu, static_cast<std::uint64_t>(q)), 1,
          loads);
  }
  plan.streams.push_back({loads.take(), bytes / options.queue_pairs});
  return plan;
}

}  // namespace trainyard::models
