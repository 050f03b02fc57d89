#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/id.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"
#include "topologies/fabric_spec.hpp"

/// The fabric as a plain graph: every GPU, NIC and switch, and two directed links for every cable.
/// Immutable once built; what fails or degrades later is in a LinkState beside it.
///
/// Vertices and links are numbered so that regular structure can be computed instead of stored:
///
///     server h     GPUs h*g .. h*g+g-1, NICs h*n .. h*n+n-1; GPU i of a server uses NIC
///     floor(i*n/g) link         a cable is two links, the even one upwards (away from the GPUs),
///     the odd one down rack         all NICs of a server are plugged into the one leaf switch of
///     its rack
///
///     const Fabric& f = *build_fat_tree(spec, servers).fabric;
///     f.name(f.vertex(f.nic_of(GpuId(11))));      // "node-1/nic-3"
///     f.name(f.uplink(NicId(0)));                 // "node-0/nic-0 -> pod-0/leaf-0"
///     for (LinkId l : f.out_links(f.leaf_of(HostId(0)))) use(f.link(l).capacity);
///
/// The way from a GPU to its NIC (PCIe) is not a link: a NIC is never faster than its slot here.
namespace trainyard::topologies {

using VertexId = Id<struct VertexTag>;
using LinkId = Id<struct LinkTag>;
using HostId = Id<struct HostTag>;  // a server
using GpuId = Id<struct GpuTag>;
using NicId =
    Id<struct NicTag>;  // a port towards the leaves: the servers' NICs, then the storage ports

enum class VertexKind : std::uint8_t { gpu, scale_up_switch, nic, storage, leaf, spine, core };
enum class LinkKind : std::uint8_t { nvlink, nic_leaf, storage, leaf_spine, spine_core };

/// What a builder needs to know of the servers. Spare servers are servers: count them in `hosts`,
/// they occupy ports at the end of the fabric like any other.
struct HostShape {
  int hosts = 1;
  int gpus = 8;  // one scale-up domain
  int nics = 8;
  BytesPerSecond nic_rate{50e9};
  BytesPerSecond scale_up_rate{450e9};  // of one GPU, one direction
  Duration scale_up_latency{};
  int storage_ports = 0;  // of storage servers, spread evenly over the leaves
  BytesPerSecond storage_rate{50e9};
};

struct Link {
  VertexId from;
  VertexId to;
  BytesPerSecond capacity;
  Duration latency;  // of the switch it leaves, and its cable
  LinkKind kind;
  std::uint8_t tier;  // 0 inside a server, 1 server to leaf, 2 leaf to spine, 3 spine to core
};

/// The counts that describe a fat tree completely. "Of a pod" is "of the whole" with 2 tiers.
struct FatTreeShape {
  int tiers = 2;
  int hosts = 0;
  int gpus_per_host = 0;
  int nics_per_host = 0;
  int storage_ports = 0;
  int hosts_per_leaf = 0;
  int leaves = 0;  // in all; the last pod may have fewer than leaves_per_pod
  int leaves_per_pod = 0;
  int pods = 1;
  int spines_per_pod = 0;    // every pod has all of them
  int leaf_bundle = 0;       // parallel cables between a leaf and each spine of its pod
  int uplinks_per_leaf = 0;  // spines_per_pod * leaf_bundle
  int core_groups = 0;  // spine j of each pod is cabled to the cores of group j mod core_groups
  int cores_per_group = 0;
  int core_bundle = 0;        // parallel cables between a spine and each core of its group
  int uplinks_per_spine = 0;  // cores_per_group * core_bundle

  int spines() const { return pods * spines_per_pod; }
  int cores() const { return core_groups * cores_per_group; }
  int spines_per_group() const { return core_groups == 0 ? 0 : spines_per_pod / core_groups; }
  int nics() const { return hosts * nics_per_host; }
  int leaf_of_host(int host) const { return host / hosts_per_leaf; }
  int leaf_of_storage_port(int port) const {
    return static_cast<int>(std::int64_t{port} * leaves / storage_ports);
  }
  int pod_of_leaf(int leaf) const { return leaf / leaves_per_pod; }

  bool operator==(const FatTreeShape&) const = default;
};

class Fabric {
 public:
  /// `as_built` is the input with every derived count filled in; `links` in the order of the
  /// numbering.
  Fabric(FatTreeShape shape, FabricSpec as_built, HostShape servers, std::vector<Link> links);

  const FatTreeShape& shape() const { return shape_; }
  const FabricSpec& spec() const { return spec_; }
  const HostShape& servers() const { return servers_; }

  // The graph.
  std::size_t vertex_count() const { return first_.back(); }
  std::size_t count(VertexKind kind) const;
  VertexId vertex(VertexKind kind, std::size_t index) const;  // "leaf 12" of all leaves, 0-based
  VertexKind kind(VertexId) const;
  std::size_t index_in_kind(VertexId) const;
  std::span<const Link> links() const { return links_; }
  const Link& link(LinkId l) const { return links_[l.index()]; }
  std::span<const LinkId> out_links(VertexId) const;
  static LinkId reverse(LinkId l) {
    return LinkId(l.index() ^ 1u);
  }  // the other direction of a cable
  static bool is_upward(LinkId l) { return (l.index() & 1u) == 0; }

  // Servers and their parts.
  std::size_t host_count() const { return count(VertexKind::scale_up_switch); }
  std::size_t gpu_count() const { return count(VertexKind::gpu); }
  std::size_t nic_count() const { return count(VertexKind::nic); }  // without storage ports
  GpuId gpu(HostId, std::size_t local) const;
  NicId nic(HostId, std::size_t local) const;
  NicId storage_port(std::size_t index) const;
  HostId host_of(GpuId) const;
  HostId host_of(NicId) const;  // a NIC of a server, not a storage port
  NicId nic_of(GpuId) const;
  VertexId vertex(GpuId) const;
  VertexId vertex(NicId) const;
  VertexId scale_up_switch(HostId) const;
  VertexId leaf_of(HostId) const;
  VertexId leaf_of(NicId) const;
  int pod_of(HostId) const;

  // Links by place. Leaves, spines: index among all leaves, all spines; uplink: 0-based, for a leaf
  // spine_in_pod * leaf_bundle + parallel, for a spine core_in_group * core_bundle + parallel.
  LinkId scale_up_uplink(GpuId g) const { return LinkId(2 * g.index()); }
  LinkId uplink(NicId n) const { return LinkId(first_nic_link_ + 2 * n.index()); }
  LinkId downlink(NicId n) const { return reverse(uplink(n)); }
  LinkId leaf_uplink(int leaf, int uplink) const {
    return LinkId(first_leaf_link_ + 2 * (std::size_t(leaf) * std::size_t(shape_.uplinks_per_leaf) +
                                          std::size_t(uplink)));
  }
  LinkId spine_uplink(int spine, int uplink) const {
    return LinkId(
        first_spine_link_ +
        2 * (std::size_t(spine) * std::size_t(shape_.uplinks_per_spine) + std::size_t(uplink)));
  }
  /// GPU to GPU inside one server: up to the scale-up switch and down.
  void scale_up_path(GpuId from, GpuId to, std::vector<LinkId>& out) const;

  // Names for people, and back.
  std::string name(VertexId) const;  // "node-17/gpu-3", "pod-2/leaf-12", "core-9"
  std::string name(LinkId) const;    // "pod-2/leaf-12 -> pod-2/spine-3", with " #1" in a bundle
  static std::string name(HostId h) { return "node-" + std::to_string(h.index()); }
  std::optional<VertexId> find_vertex(std::string_view name) const;
  std::optional<LinkId> find_link(std::string_view name) const;

 private:
  int parallel_of(LinkId) const;  // number within its bundle, -1 if it has no twin

  FatTreeShape shape_;
  FabricSpec spec_;
  HostShape servers_;
  std::vector<std::size_t> first_;  // first vertex of each kind, and the end
  std::vector<Link> links_;
  std::vector<std::uint32_t> out_first_;
  std::vector<LinkId> out_links_;
  std::size_t first_nic_link_ = 0;
  std::size_t first_leaf_link_ = 0;
  std::size_t first_spine_link_ = 0;
};

/// What works and how well: up or down and a factor of capacity for each link, up or down for each
/// vertex. A link works when it, its two ends are up. Switches and links keep their own flags, so a
/// switch that comes back does not revive a broken cable.
class LinkState {
 public:
  explicit LinkState(const Fabric& fabric) : fabric_(&fabric) {}

  void set_up(LinkId, bool up);        // one direction
  void set_cable_up(LinkId, bool up);  // both directions
  void set_up(VertexId, bool up);
  /// A link trained to half rate: 0.5. Above zero; a dead link is set_up(link, false).
  void set_capacity_factor(LinkId, double factor);

  bool is_all_up() const { return down_ == 0; }
  bool is_up(LinkId l) const {
    if (down_ == 0) return true;
    const Link& link = fabric_->link(l);
    return !has(links_down_, l.index()) && !has(vertices_down_, link.from.index()) &&
           !has(vertices_down_, link.to.index());
  }
  BytesPerSecond capacity(LinkId) const;  // zero when down

 private:
  static bool has(const std::vector<bool>& bits, std::size_t i) { return !bits.empty() && bits[i]; }
  void set(std::vector<bool>& bits, std::size_t size, std::size_t i, bool down);

  const Fabric* fabric_;
  std::size_t down_ = 0;          // links and vertices that are down
  std::vector<bool> links_down_;  // empty until the first failure
  std::vector<bool> vertices_down_;
  std::vector<double> factor_;
};

}  // namespace trainyard::topologies

namespace trainyard {
template <>
struct Names<topologies::VertexKind> {
  using K = topologies::VertexKind;
  static constexpr auto all = names<K>({{K::gpu, "gpu"},
                                        {K::scale_up_switch, "scale-up"},
                                        {K::nic, "nic"},
                                        {K::storage, "storage"},
                                        {K::leaf, "leaf"},
                                        {K::spine, "spine"},
                                        {K::core, "core"}});
};
template <>
struct Names<topologies::LinkKind> {
  using K = topologies::LinkKind;
  static constexpr auto all = names<K>({{K::nvlink, "nvlink"},
                                        {K::nic_leaf, "nic-leaf"},
                                        {K::storage, "storage"},
                                        {K::leaf_spine, "leaf-spine"},
                                        {K::spine_core, "spine-core"}});
};
}  // namespace trainyard
