#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/failures/failure_spec.hpp"
#include "topologies/fabric.hpp"

/// The units that can fail: how many there are of each component, how they are numbered, what they
/// are called, and which unit a name means.
///
///     GPUs, NICs       parts of server s: s * n .. s * n + n - 1
///     access links     the cables between adapters and leaves, in the order of the fabric's links:
///                      port p of NIC i of the cluster is i * ports_per_nic + p, so those of a
///                      server are neighbours, too. Ports of storage are not among them.
///     leaves           the switches of the fabric's edge kind, upper switches: all others
///     links            the cables between switches, from the fabric's first_trunk()
///     rack, PDU, CDU   servers s with equal s / servers_per_rack
///     store servers    of each store from 0
///
///     const UnitNames names(counts);
///     names.find("node-17/gpu-3");                            // {gpu, 139}
///     names.find("pod-0/leaf-1 -> node-4/nic-0")->component;  // access_link, by either direction
namespace trainyard::models {

struct UnitCounts {
  std::int64_t servers = 0;
  std::int64_t gpus_per_server = 0;
  std::int64_t nics_per_server = 0;
  std::int64_t leaves = 0;
  std::int64_t upper_switches = 0;
  std::int64_t links = 0;                      // cables between switches
  const topologies::Fabric* fabric = nullptr;  // for names of switches and links; may be null
  std::int64_t access_links = 0;               // cables between adapters and leaves
  std::int64_t servers_per_rack = 0;           // 0: there are no such parents
  std::int64_t servers_per_pdu = 0;
  std::int64_t servers_per_cdu = 0;
  std::map<std::string, std::int64_t> store_servers = {};

  std::int64_t per_server(Component c) const;      // 0 for what no server has
  std::int64_t servers_per(Component c) const;     // of a rack, PDU or CDU; 0 for anything else
  std::int64_t of(Component c) const;              // of all stores, if it is a store server
  std::int64_t of(const FailureClassSpec&) const;  // of its store
};

/// One unit of the cluster.
struct UnitRef {
  Component component = Component::gpu;
  std::uint32_t unit = 0;
  std::string store = {};  // of a store server
  bool operator==(const UnitRef&) const = default;
};

/// "node-17/gpu-3", "node-17", "pod-2/leaf-12", "rack-2", "scratch/server-3". Without a fabric
/// switches and cables have names by number: "leaf-12", "switch-3", "link-7", "access-link-9".
std::string unit_name(const UnitCounts& counts, Component component, std::uint32_t unit,
                      std::string_view store = {});

/// The inverse of unit_name(). Names of switches are put in order once; a name then costs a search
/// among them, and a cable the links of one switch. A switch of a custom fabric that is called as a
/// rack, PDU or CDU hides it.
class UnitNames {
 public:
  explicit UnitNames(UnitCounts counts);
  std::optional<UnitRef> find(std::string_view name) const;
  const UnitCounts& counts() const { return counts_; }

 private:
  std::optional<UnitRef> find_switch(std::string_view name) const;
  std::optional<UnitRef> find_cable(std::string_view name) const;
  std::optional<topologies::VertexId> find_vertex(std::string_view name) const;

  UnitCounts counts_;
  std::vector<std::pair<std::string, topologies::VertexId>> switches_;  // by name
};

/// For a single name.
std::optional<UnitRef> find_unit(const UnitCounts& counts, std::string_view name);

/// Unit `unit` of Component::upper_switch, and (upwards) of link and access_link, on a fabric.
topologies::VertexId upper_switch(const topologies::Fabric& fabric, std::uint32_t unit);
topologies::LinkId trunk(const topologies::Fabric& fabric, std::uint32_t unit);
topologies::LinkId access_link(const topologies::Fabric& fabric, std::uint32_t unit);
topologies::HostId server_of_access_link(const topologies::Fabric& fabric, std::uint32_t unit);
/// One for each port.
std::vector<std::uint32_t> access_links_of_nic(const topologies::Fabric& fabric,
                                               topologies::NicId nic);

}  // namespace trainyard::models
