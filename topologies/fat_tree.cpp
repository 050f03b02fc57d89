#include "topologies/fat_tree.hpp"

#include <algorithm>
#include <utility>

#include "sim/check.hpp"
#include "topologies/fat_tree_plan.hpp"

namespace trainyard::topologies {

namespace {

FabricSpec with_counts(FabricSpec spec, const FatTreeShape& shape) {
  spec.leaf_oversubscription.reset();
  spec.spine_oversubscription.reset();
  spec.uplinks_per_leaf = shape.uplinks_per_leaf;
  spec.spines = shape.spines_per_pod;
  if (shape.tiers == 3) {
    spec.leaves_per_pod = shape.leaves_per_pod;
    spec.uplinks_per_spine = shape.uplinks_per_spine;
    spec.cores = shape.cores();
  }
  return spec;
}

/// Lays the cables in the order of the numbering (fabric.hpp): scale-up, NICs, storage ports, leaf
/// uplinks, spine uplinks.
std::vector<Link> cables(const FabricSpec& spec, const HostShape& servers, const FatTreeShape& t) {
  std::vector<Link> links;
  const std::size_t gpus = std::size_t(t.hosts) * std::size_t(t.gpus_per_host);
  links.reserve(2 * (gpus + std::size_t(t.nics()) + std::size_t(t.storage_ports) +
                     std::size_t(t.leaves) * std::size_t(t.uplinks_per_leaf) +
                     std::size_t(t.spines()) * std::size_t(t.uplinks_per_spine)));
  const std::size_t first_scale_up = gpus;
  const std::size_t first_nic = first_scale_up + std::size_t(t.hosts);
  const std::size_t first_leaf = first_nic + std::size_t(t.nics()) + std::size_t(t.storage_ports);
  const std::size_t first_spine = first_leaf + std::size_t(t.leaves);
  const std::size_t first_core = first_spine + std::size_t(t.spines());

  // A switch's own delay is on the links that leave it, so a path adds up each switch once.
  const auto lay = [&](std::size_t lower, std::size_t upper, BytesPerSecond rate, Duration up,
                       Duration down, LinkKind kind, std::uint8_t tier) {
    links.push_back({VertexId(lower), VertexId(upper), rate, up, kind, tier});
    links.push_back({VertexId(upper), VertexId(lower), rate, down, kind, tier});
  };

  for (std::size_t g = 0; g < gpus; ++g)
    lay(g, first_scale_up + g / std::size_t(t.gpus_per_host), servers.scale_up_rate, Duration{},
        servers.scale_up_latency, LinkKind::nvlink, 0);

  for (int n = 0; n < t.nics(); ++n)
    lay(first_nic + std::size_t(n), first_leaf + std::size_t(t.leaf_of_host(n / t.nics_per_host)),
        servers.nic_rate, Duration{}, spec.leaf_switch.latency, LinkKind::nic_leaf, 1);
  for (int s = 0; s < t.storage_ports; ++s)
    lay(first_nic + std::size_t(t.nics()) + std::size_t(s),
        first_leaf + std::size_t(t.leaf_of_storage_port(s)), servers.storage_rate, Duration{},
        spec.leaf_switch.latency, LinkKind::storage, 1);

  const BytesPerSecond to_spine = std::min(spec.leaf_switch.port_rate, spec.spine_switch.port_rate);
  for (int leaf = 0; leaf < t.leaves; ++leaf)
    for (int u = 0; u < t.uplinks_per_leaf; ++u) {
      const int spine = t.pod_of_leaf(leaf) * t.spines_per_pod + u / t.leaf_bundle;
      lay(first_leaf + std::size_t(leaf), first_spine + std::size_t(spine), to_spine,
          spec.leaf_switch.latency + spec.cable_latency,
          spec.spine_switch.latency + spec.cable_latency, LinkKind::leaf_spine, 2);
    }

  const BytesPerSecond to_core = std::min(spec.spine_switch.port_rate, spec.core_switch.port_rate);
  for (int spine = 0; spine < t.spines(); ++spine)
    for (int u = 0; u < t.uplinks_per_spine; ++u) {
      const int group = spine % t.spines_per_pod % t.core_groups;
      const int core = group * t.cores_per_group + u / t.core_bundle;
      lay(first_spine + std::size_t(spine), first_core + std::size_t(core), to_core,
          spec.spine_switch.latency + spec.cable_latency,
          spec.core_switch.latency + spec.cable_latency, LinkKind::spine_core, 3);
    }
  return links;
}

}  // namespace

BuildResult build_fat_tree(const FabricSpec& spec, const HostShape& servers) {
  BuildResult result;
  const auto shape = plan_fat_tree(spec, servers, result.problems);
  if (!shape) {
    check(!result.problems.empty(), "a fabric that is refused is refused for a reason");
    return result;
  }
  result.fabric = std::make_shared<const Fabric>(*shape, with_counts(spec, *shape), servers,
                                                 cables(spec, servers, *shape));
  return result;
}

}  // namespace trainyard::topologies
