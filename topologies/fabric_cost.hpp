#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/fabric.hpp"

/// Cables of a fabric by kind, and what switches, cables and optics cost.
///
/// No file says how long a cable is, so copper or optical follows from where it runs: copper
/// reaches about 3 m, a rack and its neighbours.
///
///     copper    server to its leaf or router; router to router in a dragonfly group; torus
///               neighbours in one block of 4 nodes in each dimension (a rack, as in TPU v4)
///     optical   server to a leaf of a unit of rails (that serves several racks), storage ports,
///               and everything between switches else
namespace trainyard::topologies {

struct CableReport {
  LinkKind kind = LinkKind::nic_leaf;
  BytesPerSecond rate{};  // of the faster direction
  bool is_optical = false;
  std::int64_t count = 0;
};

/// By kind, rate and medium, in that order. Scale-up links are not cables.
std::vector<CableReport> count_cables(const Fabric&);

struct CostItem {
  std::string item;
  std::int64_t count = 0;
  Dollars each{};
  Dollars price{};
  Watts power{};
  std::string source;
};

/// Switches, copper cables, optics.
std::vector<CostItem> bill_of(const Fabric&, const std::vector<CableReport>&);

/// The switch of one kind, as the input gives it.
const SwitchSpec& box_of(const Fabric&, VertexKind);

}  // namespace trainyard::topologies
