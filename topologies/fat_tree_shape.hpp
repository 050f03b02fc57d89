#pragma once

#include <cstdint>
#include <string>

#include "topologies/vertex.hpp"

namespace trainyard::topologies {

/// The counts that describe a fat tree completely, rails included. "Of a pod" is "of the whole"
/// with 2 tiers.
///
/// A *unit* is a set of servers that share leaves: `hosts_per_leaf` servers, and one leaf for each
/// rail and each port of a NIC. NIC i of a server is on rail floor(i*rails/nics). With one rail and
/// one port a unit is a plain leaf. Leaves are numbered unit by unit, in a unit rail by rail, in a
/// rail port by port.
///
/// Rail-only: a pod is a rail. Its leaves are numbered rail by rail instead, in a rail unit by
/// unit, and nothing joins the pods; with 1 tier there are no spines either.
struct FatTreeShape {
  int tiers = 2;
  int hosts = 0;
  int gpus_per_host = 0;
  int nics_per_host = 0;
  int storage_ports = 0;
  int hosts_per_leaf = 0;  // servers of a unit
  int rails = 1;           // divides nics_per_host
  int ports_per_nic = 1;
  bool is_rail_only = false;
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
  int leaves_per_unit() const { return rails * ports_per_nic; }
  int units() const { return leaves / leaves_per_unit(); }
  int rail_of_nic(int nic_of_host) const { return nic_of_host * rails / nics_per_host; }
  int leaf_of(int unit, int rail, int port) const {
    const int pair = is_rail_only ? rail * units() + unit : unit * rails + rail;
    return pair * ports_per_nic + port;
  }
  int leaf_of_nic(int nic, int port) const {
    return leaf_of(nic / nics_per_host / hosts_per_leaf, rail_of_nic(nic % nics_per_host), port);
  }
  int leaf_of_storage_port(int port) const {
    return static_cast<int>(std::int64_t{port} * leaves / storage_ports);
  }
  int pod_of_leaf(int leaf) const { return leaf / leaves_per_pod; }

  // What every shape answers.
  std::size_t count(VertexKind) const;                    // of switches
  std::string name(VertexKind, std::size_t index) const;  // of a switch
  int pod_of(VertexKind, std::size_t index) const;        // of a switch; -1: of none
  static constexpr VertexKind edge = VertexKind::leaf;    // switches to which NICs are attached

  bool operator==(const FatTreeShape&) const = default;

 private:
  std::string leaf_name(int leaf) const;
};

}  // namespace trainyard::topologies
