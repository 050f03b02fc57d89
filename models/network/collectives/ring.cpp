#include "models/network/collectives/ring.hpp"

#include <algorithm>
#include <cmath>

#include "models/network/collectives/grouping.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

namespace {

double steps_of(CollectiveKind kind, double n) {
  return kind == CollectiveKind::all_reduce ? 2 * (n - 1) : n - 1;
}

/// Walks one channel around the ring and adds its edges.
class Channel {
 public:
  Channel(std::size_t number, const PathSource& paths, const RingOptions& options)
      : number_(number), paths_(paths), options_(options) {}

  std::vector<Load> walk(const std::vector<NodeMembers>& nodes, std::size_t entry) {
    const std::size_t first = entry;
    for (std::size_t v = 0; v < nodes.size(); ++v) {
      const NodeMembers& node = nodes[v];
      const NodeMembers& next = nodes[(v + 1) % nodes.size()];
      const std::size_t k = node.size();
      const std::size_t last = (entry + k - 1) % k;
      for (std::size_t i = 0; i + 1 < k; ++i)
        scale_up(node[(entry + i) % k], node[(entry + i + 1) % k]);
      if (nodes.size() == 1) {
        scale_up(node[last], node[entry]);
        break;
      }
      const std::size_t exit = options_.pxn ? entry : last;
      if (exit != last) scale_up(node[last], node[exit]);
      entry = v + 1 == nodes.size() ? first : exit % next.size();
      for (int q = 0; q < options_.queue_pairs; ++q)
        paths_.add_path(node[exit].nic, next[entry].nic,
                        connection_label(options_.label, number_, v, static_cast<std::uint64_t>(q)),
                        1, loads_);
    }
    return loads_.take();
  }

 private:
  void scale_up(const Member& from, const Member& to) {
    paths_.add_scale_up(from.gpu, to.gpu, options_.queue_pairs, loads_);
  }

  std::size_t number_;
  const PathSource& paths_;
  const RingOptions& options_;
  LoadAccumulator loads_;
};

}  // namespace

CollectivePlan plan_ring(CollectiveKind kind, double bytes, std::span<const Member> group,
                         const PathSource& paths, const RingOptions& options) {
  check(kind != CollectiveKind::all_to_all && kind != CollectiveKind::point_to_point,
        "a ring does reductions, gathers and broadcasts");
  check(options.channels_per_nic > 0 && options.queue_pairs > 0,
        "a ring has channels and queue pairs");
  CollectivePlan plan{kind, bytes, group.size(), {}, {}};
  if (group.size() < 2) return plan;

  const std::vector<NodeMembers> nodes = by_node(group);
  const std::size_t k = least_members(nodes);
  const std::size_t channels = k * static_cast<std::size_t>(options.channels_per_nic);
  const double channel_bytes =
      bus_factor(kind, group.size()) * bytes / static_cast<double>(channels);

  for (std::size_t c = 0; c < channels; ++c)
    plan.streams.push_back(
        {Channel(c, paths, options).walk(nodes, c % k), channel_bytes / options.queue_pairs});
  if (options.merge_channels) plan.streams = {merged(plan.streams)};

  const auto n = static_cast<double>(group.size());
  const double between = nodes.size() > 1 ? static_cast<double>(nodes.size()) : 0.0;
  LatencyTerms& t = plan.latency;
  t.base_s = options.costs.base_s;
  t.steps = steps_of(kind, n);
  t.alpha_s = ((n - between) * options.costs.scale_up_s + between * options.costs.nic_s) / n;
  t.slices = options.costs.slices;
  t.loops =
      std::max(1.0, std::ceil(channel_bytes / t.steps / (t.slices * options.costs.slice_bytes)));
  // A broadcast is cut as finely as needed to fill the chain: only the steps to fill it show.
  t.form = kind == CollectiveKind::broadcast ? LatencyForm::additive : options.costs.form;
  return plan;
}

}  // namespace trainyard::models
