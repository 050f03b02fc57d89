#include "models/network/collectives/in_network.hpp"

#include <algorithm>
#include <vector>

#include "models/network/collectives/grouping.hpp"
#include "models/network/collectives/tree_walk.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

namespace {

std::vector<std::size_t> gpus_of(const NodeMembers& node) {
  std::vector<std::size_t> gpus;
  for (const Member& m : node) gpus.push_back(m.gpu);
  return gpus;
}

/// NVLS inside one node for the part of the bytes whose head is member j. The other GPUs send to
/// reduce and receive the result; the head receives the sum and sends what came back as well.
void add_nvls(const NodeMembers& node, std::size_t head, double flows, const PathSource& paths,
              LoadAccumulator& loads) {
  const std::vector<std::size_t> gpus = gpus_of(node);
  paths.add_scale_up_switch(gpus, flows, flows, loads);
  paths.add_scale_up_switch(std::span(gpus).subspan(head, 1), flows, flows, loads);
}

}  // namespace

std::optional<CollectivePlan> plan_sharp(double bytes, std::span<const Member> group,
                                         const PathSource& paths, const StreamOptions& options) {
  CollectivePlan plan{CollectiveKind::all_reduce, bytes, group.size(), {}, {}};
  if (group.size() < 2) return plan;
  const std::vector<NodeMembers> nodes = by_node(group);
  const std::vector<std::vector<Member>> rails = by_rail(nodes);
  const std::size_t k = rails.size();
  const std::size_t streams = k * static_cast<std::size_t>(options.channels_per_nic);
  for (std::size_t c = 0; c < streams; ++c) {
    const std::size_t j = c % k;
    LoadAccumulator loads;
    std::vector<std::size_t> nics;
    for (const Member& m : rails[j]) nics.push_back(m.nic);
    if (!paths.add_reduction_tree(nics, connection_label(options.label, c, 0, 0), 1, loads))
      return std::nullopt;
    for (const NodeMembers& node : nodes)
      for (std::size_t i = 0; i < k; ++i) {
        if (i == j) continue;
        paths.add_scale_up(node[i].gpu, node[j].gpu, 1, loads);
        paths.add_scale_up(node[j].gpu, node[i].gpu, 1, loads);
      }
    plan.streams.push_back({loads.take(), bytes / static_cast<double>(streams)});
  }
  const double inside = k > 1 ? 2 : 0;
  LatencyTerms& t = plan.latency;
  t.base_s = options.costs.base_s;
  t.form = LatencyForm::additive;
  t.steps = 2 + inside;
  t.alpha_s = (2 * options.costs.nic_s + inside * options.costs.scale_up_s) / t.steps;
  t.fill_chunks =
      3;  // adapter to leaf, to spine, to leaf, to adapter: three before the last is busy
  t.chunk_bytes = options.costs.slice_bytes;
  if (options.merge_channels) plan.streams = {merged(plan.streams)};
  return plan;
}

CollectivePlan plan_nvls(CollectiveKind kind, double bytes, std::span<const Member> group,
                         const PathSource& paths, const StreamOptions& options) {
  check(kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
            kind == CollectiveKind::all_gather,
        "scale-up switches do reductions and gathers");
  CollectivePlan plan{kind, bytes, group.size(), {}, {}};
  if (group.size() < 2) return plan;
  const std::vector<NodeMembers> nodes = by_node(group);
  check(nodes.size() == 1, "NVLS stays in one scale-up domain", nodes.size());
  const double part = 1 / static_cast<double>(group.size());
  const bool reduces = kind != CollectiveKind::all_gather;
  const bool gathers = kind != CollectiveKind::reduce_scatter;
  LoadAccumulator loads;
  paths.add_scale_up_switch(gpus_of(nodes.front()), (reduces ? 1 : 0) + (gathers ? part : 0),
                            (reduces ? part : 0) + (gathers ? 1 : 0), loads);
  plan.streams.push_back({loads.take(), bytes});
  LatencyTerms& t = plan.latency;
  t.base_s = options.costs.base_s;
  t.form = LatencyForm::additive;
  t.steps = (reduces ? 1 : 0) + (gathers ? 1 : 0);
  t.alpha_s = options.costs.scale_up_s;
  t.fill_chunks = t.steps - 1;  // the first chunk is reduced before its gather begins
  t.chunk_bytes = options.costs.slice_bytes;
  return plan;
}

CollectivePlan plan_nvls_tree(double bytes, std::span<const Member> group, const PathSource& paths,
                              const StreamOptions& options) {
  CollectivePlan plan{CollectiveKind::all_reduce, bytes, group.size(), {}, {}};
  if (group.size() < 2) return plan;
  const std::vector<NodeMembers> nodes = by_node(group);
  check(is_even(nodes), "every node brings as many members");
  const std::size_t k = nodes.front().size();
  const std::size_t channels = k * static_cast<std::size_t>(options.channels_per_nic);
  for (std::size_t c = 0; c < channels; ++c) {
    for (const int number : {0, 1}) {
      LoadAccumulator loads;
      add_tree_edges(nodes, c, number, paths, options, loads);
      for (const NodeMembers& node : nodes)
        if (k > 1) add_nvls(node, c % k, options.queue_pairs, paths, loads);
      plan.streams.push_back(
          {loads.take(), bytes / static_cast<double>(2 * channels) / options.queue_pairs});
    }
  }
  set_tree_latency(plan, nodes.size(), k > 1 ? 1 : 0, true, options);
  if (options.merge_channels) plan.streams = {merged(plan.streams)};
  return plan;
}

}  // namespace trainyard::models
