#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/describe.hpp"
#include "sim/id.hpp"

/// Names of what a fabric is made of.
namespace trainyard::topologies {

using VertexId = Id<struct VertexTag>;
using LinkId = Id<struct LinkTag>;
using HostId = Id<struct HostTag>;  // a server
using GpuId = Id<struct GpuTag>;
using NicId = Id<struct NicTag>;  // an adapter: the servers' NICs, then the storage ports

/// `router` is a switch that has servers and other routers beside it: dragonfly, torus, custom.
enum class VertexKind : std::uint8_t {
  gpu,
  scale_up_switch,
  nic,
  storage,
  leaf,
  spine,
  core,
  router
};
inline constexpr std::size_t vertex_kinds = 8;

enum class LinkKind : std::uint8_t {
  nvlink,
  nic_leaf,  // NIC to its leaf or router
  storage,
  leaf_spine,
  spine_core,
  local,   // between routers of one dragonfly group
  global,  // between groups
  torus,
  trunk  // between switches of a custom fabric
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
                                        {K::core, "core"},
                                        {K::router, "router"}});
};
template <>
struct Names<topologies::LinkKind> {
  using K = topologies::LinkKind;
  static constexpr auto all = names<K>({{K::nvlink, "nvlink"},
                                        {K::nic_leaf, "nic-leaf"},
                                        {K::storage, "storage"},
                                        {K::leaf_spine, "leaf-spine"},
                                        {K::spine_core, "spine-core"},
                                        {K::local, "local"},
                                        {K::global, "global"},
                                        {K::torus, "torus"},
                                        {K::trunk, "trunk"}});
};
}  // namespace trainyard
