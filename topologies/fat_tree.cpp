#include "topologies/fat_tree.hpp"

#include <algorithm>
#include <utility>

#include "sim/check.hpp"
#include "topologies/fat_tree_plan.hpp"

namespace trainyard::topologies {

namespace {

FabricSpec with_counts(FabricSpec spec, const FatTreeShape& shape) {
  spec.tiers = shape.tiers;
  spec.leaf_oversubscription.reset();
  spec.spine_oversubscription.reset();
  if (spec.kind != FabricKind::fat_tree) spec.rails = shape.rails;
  if (shape.tiers > 1) {
    spec.uplinks_per_leaf = shape.uplinks_per_leaf;
    spec.spines = shape.spines_per_pod;
  }
  if (shape.tiers == 3) {
    spec.leaves_per_pod = shape.leaves_per_pod;
    spec.uplinks_per_spine = shape.uplinks_per_spine;
    spec.cores = shape.cores();
  }
  return spec;
}

/// Lays the cables in the order of the numbering (fabric.hpp): scale-up, NICs, storage ports, leaf
/// uplinks, spine uplinks.
class Cabling {
 public:
  Cabling(const FabricSpec& spec, const HostShape& servers, const FatTreeShape& shape)
      : spec_(spec), servers_(servers), t_(shape) {}

  std::vector<Link> lay_all() && {
    const std::size_t nic_links = n(t_.nics()) * n(t_.ports_per_nic);
    links_.reserve(2 * (gpus() + nic_links + n(t_.storage_ports) +
                        n(t_.leaves) * n(t_.uplinks_per_leaf) +
                        n(t_.spines()) * n(t_.uplinks_per_spine)));
    lay_servers();
    lay_leaf_uplinks();
    lay_spine_uplinks();
    return std::move(links_);
  }

 private:
  static std::size_t n(int count) { return static_cast<std::size_t>(count); }
  std::size_t gpus() const { return n(t_.hosts) * n(t_.gpus_per_host); }
  std::size_t first_nic() const { return gpus() + n(t_.hosts); }
  std::size_t first_leaf() const { return first_nic() + n(t_.nics()) + n(t_.storage_ports); }
  std::size_t first_spine() const { return first_leaf() + n(t_.leaves); }
  std::size_t first_core() const { return first_spine() + n(t_.spines()); }

  // A switch's own delay is on the links that leave it, so a path adds up each switch once.
  void lay(std::size_t lower, std::size_t upper, BytesPerSecond rate, Duration up, Duration down,
           LinkKind kind, std::uint8_t tier) {
    links_.push_back({VertexId(lower), VertexId(upper), rate, up, kind, tier});
    links_.push_back({VertexId(upper), VertexId(lower), rate, down, kind, tier});
  }

  void lay_servers() {
    for (std::size_t g = 0; g < gpus(); ++g)
      lay(g, gpus() + g / n(t_.gpus_per_host), servers_.scale_up_rate, Duration{},
          servers_.scale_up_latency, LinkKind::nvlink, 0);
    const BytesPerSecond port_rate = servers_.nic_rate / double(t_.ports_per_nic);
    for (int nic = 0; nic < t_.nics(); ++nic)
      for (int port = 0; port < t_.ports_per_nic; ++port)
        lay(first_nic() + n(nic), first_leaf() + n(t_.leaf_of_nic(nic, port)), port_rate,
            Duration{}, spec_.leaf_switch.latency, LinkKind::nic_leaf, 1);
    for (int port = 0; port < t_.storage_ports; ++port)
      lay(first_nic() + n(t_.nics()) + n(port), first_leaf() + n(t_.leaf_of_storage_port(port)),
          servers_.storage_rate, Duration{}, spec_.leaf_switch.latency, LinkKind::storage, 1);
  }

  void lay_leaf_uplinks() {
    const BytesPerSecond common =
        std::min(spec_.leaf_switch.port_rate, spec_.spine_switch.port_rate);
    const auto& rates = spec_.uplink_rates;
    for (int leaf = 0; leaf < t_.leaves; ++leaf)
      for (int u = 0; u < t_.uplinks_per_leaf; ++u) {
        const int spine = t_.pod_of_leaf(leaf) * t_.spines_per_pod + u / t_.leaf_bundle;
        lay(first_leaf() + n(leaf), first_spine() + n(spine),
            rates.empty() ? common : rates[n(u) % rates.size()],
            spec_.leaf_switch.latency + spec_.cable_latency,
            spec_.spine_switch.latency + spec_.cable_latency, LinkKind::leaf_spine, 2);
      }
  }

  void lay_spine_uplinks() {
    const BytesPerSecond rate = std::min(spec_.spine_switch.port_rate, spec_.core_switch.port_rate);
    for (int spine = 0; spine < t_.spines(); ++spine)
      for (int u = 0; u < t_.uplinks_per_spine; ++u) {
        const int group = spine % t_.spines_per_pod % t_.core_groups;
        const int core = group * t_.cores_per_group + u / t_.core_bundle;
        lay(first_spine() + n(spine), first_core() + n(core), rate,
            spec_.spine_switch.latency + spec_.cable_latency,
            spec_.core_switch.latency + spec_.cable_latency, LinkKind::spine_core, 3);
      }
  }

  const FabricSpec& spec_;
  const HostShape& servers_;
  const FatTreeShape& t_;
  std::vector<Link> links_;
};

}  // namespace

BuildResult build_fat_tree(const FabricSpec& spec, const HostShape& servers) {
  BuildResult result;
  const auto shape = plan_fat_tree(spec, servers, result.problems);
  if (!shape) {
    check(!result.problems.empty(), "a fabric that is refused is refused for a reason");
    return result;
  }
  HostShape as_built = servers;
  as_built.ports_per_nic = shape->ports_per_nic;
  result.fabric = std::make_shared<const Fabric>(*shape, with_counts(spec, *shape), as_built,
                                                 Cabling(spec, as_built, *shape).lay_all());
  return result;
}

}  // namespace trainyard::topologies
