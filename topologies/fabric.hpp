#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/time.hpp"
#include "sim/units.hpp"
#include "topologies/custom_shape.hpp"
#include "topologies/dragonfly_shape.hpp"
#include "topologies/fabric_spec.hpp"
#include "topologies/fat_tree_shape.hpp"
#include "topologies/torus_shape.hpp"
#include "topologies/vertex.hpp"

/// The fabric as a plain graph: every GPU, NIC and switch, and two directed links for every cable.
/// Immutable once built; what fails or degrades later is in a LinkState beside it.
///
/// Vertices and links are numbered so that regular structure can be computed instead of stored:
///
///     server h   GPUs h*g .. h*g+g-1, NICs h*n .. h*n+n-1; GPU i of a server uses NIC floor(i*n/g)
///     cable      two links, the even one upwards (away from the GPUs; between equals: from the
///                lower number), the odd one back
///     links      scale-up (one cable a GPU), NICs (one cable a port), storage ports, then the
///                trunks between switches in the order of the kind's own shape
///     switches   by kind; a NIC port is plugged into an *edge* switch: leaf or router
///
///     const Fabric& f = *build_fat_tree(spec, servers).fabric;
///     f.name(f.vertex(f.nic_of(GpuId(11))));      // "node-1/nic-3"
///     f.name(f.uplink(NicId(0)));                 // "node-0/nic-0 -> pod-0/leaf-0"
///     for (LinkId l : f.out_links(f.edge_of(HostId(0)))) use(f.link(l).capacity);
///
/// The way from a GPU to its NIC (PCIe) is not a link: a NIC is never faster than its slot here.
namespace trainyard::topologies {

/// What a builder needs to know of the servers. Spare servers are servers: count them in `hosts`,
/// they occupy ports at the end of the fabric like any other.
struct HostShape {
  int hosts = 1;
  int gpus = 8;  // one scale-up domain
  int nics = 8;
  int ports_per_nic = 1;          // set by the builder: 2 if dual-homed, each with half of the rate
  BytesPerSecond nic_rate{50e9};  // of all ports of a NIC
  BytesPerSecond scale_up_rate{450e9};  // of one GPU, one direction
  Duration scale_up_latency{};
  int storage_ports = 0;  // of storage servers, spread evenly over the edge switches
  BytesPerSecond storage_rate{50e9};
};

struct Link {
  VertexId from;
  VertexId to;
  BytesPerSecond capacity;
  Duration latency;  // of the switch it leaves, and its cable
  LinkKind kind;
  std::uint8_t tier;  // 0 inside a server, 1 server to edge, 2 leaf to spine or between routers of
                      // one place, 3 spine to core or between groups
};

using Shape =
    std::variant<FatTreeShape, DragonflyShape, DragonflyPlusShape, TorusShape, CustomShape>;

class Fabric {
 public:
  /// `as_built` is the input with every derived count filled in; `links` in the order of the
  /// numbering.
  Fabric(Shape shape, FabricSpec as_built, HostShape servers, std::vector<Link> links);

  FabricKind kind() const { return spec_.kind; }
  /// The counts of the kind that this fabric is; asking for another is our mistake.
  template <class S>
  const S& shape() const {
    const S* found = std::get_if<S>(&shape_);
    if (!found) wrong_shape();
    return *found;
  }
  const Shape& any_shape() const { return shape_; }
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

  // Switches. They are numbered without gaps from first_switch().
  VertexId first_switch() const { return VertexId(first_[std::size_t(VertexKind::leaf)]); }
  std::size_t switch_count() const { return vertex_count() - first_switch().index(); }
  bool is_switch(VertexId v) const { return v.index() >= first_switch().index(); }
  /// To which NICs are attached: leaf or router.
  VertexKind edge_kind() const { return edge_kind_; }
  std::size_t edge_count() const { return count(edge_kind_); }
  /// Pod, dragonfly group, … of a switch; -1 if it belongs to none (cores).
  int pod_of(VertexId switch_vertex) const;

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
  VertexId edge_of(HostId) const;  // of the first port of its first NIC
  VertexId edge_of(NicId, int port = 0) const;
  int pod_of(HostId h) const { return pod_of(edge_of(h)); }

  // Links by place.
  LinkId scale_up_uplink(GpuId g) const { return LinkId(2 * g.index()); }
  int ports_of(NicId n) const { return n.index() < nic_count() ? servers_.ports_per_nic : 1; }
  LinkId uplink(NicId n, int port = 0) const {
    const std::size_t nics = nic_count(), ports = std::size_t(servers_.ports_per_nic);
    return LinkId(first_nic_link_ + 2 * (n.index() < nics ? n.index() * ports + std::size_t(port)
                                                          : nics * (ports - 1) + n.index()));
  }
  LinkId downlink(NicId n, int port = 0) const { return reverse(uplink(n, port)); }
  /// The links between switches are numbered from here to the end.
  LinkId first_trunk() const { return LinkId(first_trunk_); }
  // Of a fat tree. Leaves, spines: index among all leaves, all spines; uplink: 0-based, for a leaf
  // spine_in_pod * leaf_bundle + parallel, for a spine core_in_group * core_bundle + parallel.
  LinkId leaf_uplink(int leaf, int uplink) const {
    return LinkId(first_trunk_ + 2 * (std::size_t(leaf) * uplinks_per_leaf_ + std::size_t(uplink)));
  }
  LinkId spine_uplink(int spine, int uplink) const {
    return LinkId(first_spine_link_ +
                  2 * (std::size_t(spine) * uplinks_per_spine_ + std::size_t(uplink)));
  }
  /// GPU to GPU inside one server: up to the scale-up switch and down.
  void scale_up_path(GpuId from, GpuId to, std::vector<LinkId>& out) const;

  // Names for people, and back.
  std::string name(VertexId) const;  // "node-17/gpu-3", "pod-2/leaf-12", "group-3/router-1"
  std::string name(LinkId) const;    // "pod-2/leaf-12 -> pod-2/spine-3", with " #1" in a bundle
  static std::string name(HostId h) { return "node-" + std::to_string(h.index()); }
  /// Costs a search through the names of all switches.
  std::optional<VertexId> find_vertex(std::string_view name) const;
  std::optional<LinkId> find_link(std::string_view name) const;

 private:
  [[noreturn]] static void wrong_shape();
  int parallel_of(LinkId) const;  // number within its bundle, -1 if it has no twin

  Shape shape_;
  FabricSpec spec_;
  HostShape servers_;
  VertexKind edge_kind_ = VertexKind::leaf;
  std::vector<std::size_t> first_;  // first vertex of each kind, and the end
  std::vector<Link> links_;
  std::vector<std::uint32_t> out_first_;
  std::vector<LinkId> out_links_;
  std::size_t first_nic_link_ = 0;
  std::size_t first_trunk_ = 0;
  std::size_t first_spine_link_ = 0;  // of a fat tree, as the two below
  std::size_t uplinks_per_leaf_ = 0;
  std::size_t uplinks_per_spine_ = 0;
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
  /// Something is down, or a link has another capacity than built.
  bool is_changed() const { return down_ > 0 || degraded_ > 0; }
  double capacity_factor(LinkId l) const { return factor_.empty() ? 1.0 : factor_[l.index()]; }
  bool is_up(LinkId l) const {
    if (down_ == 0) return true;
    const Link& link = fabric_->link(l);
    return !has(links_down_, l.index()) && !has(vertices_down_, link.from.index()) &&
           !has(vertices_down_, link.to.index());
  }
  BytesPerSecond capacity(LinkId) const;  // zero when down

  /// What is not as built, in one order: two states with equal lists are the same state.
  std::vector<std::uint32_t> changes() const;

 private:
  static bool has(const std::vector<bool>& bits, std::size_t i) { return !bits.empty() && bits[i]; }
  void set(std::vector<bool>& bits, std::size_t size, std::size_t i, bool down);

  const Fabric* fabric_;
  std::size_t down_ = 0;          // links and vertices that are down
  std::size_t degraded_ = 0;      // links whose factor is not 1
  std::vector<bool> links_down_;  // empty until the first failure
  std::vector<bool> vertices_down_;
  std::vector<double> factor_;
};

}  // namespace trainyard::topologies
