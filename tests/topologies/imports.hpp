#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/topologies/fabrics.hpp"
#include "topologies/catalog.hpp"
#include "topologies/custom.hpp"
#include "topologies/export.hpp"

/// Fabrics of all kinds, and custom fabrics from text.
namespace trainyard::topologies::testing_fabrics {

struct NamedFabric {
  std::string name;
  std::shared_ptr<const Fabric> fabric;
};

inline std::shared_ptr<const Fabric> must_build_any(const FabricSpec& spec,
                                                    const HostShape& servers) {
  const BuildResult r = build_fabric(spec, servers);
  EXPECT_TRUE(r.fabric != nullptr) << text(r.problems);
  return r.fabric;
}

/// One small fabric of every kind, with what is special about it.
inline std::vector<NamedFabric> one_of_each() {
  const SwitchSpec box = switch_of(64);
  std::vector<NamedFabric> all;
  const auto add = [&](std::string name, FabricSpec spec, HostShape servers) {
    spec.leaf_switch = spec.spine_switch = spec.core_switch = spec.router_switch = box;
    spec.cable_latency = Duration(150);
    all.push_back({std::move(name), must_build_any(spec, servers)});
  };
  add("two_tiers", {.hosts_per_leaf = 2, .uplinks_per_leaf = 4, .spines = 2},
      {.hosts = 7, .gpus = 2, .nics = 2, .storage_ports = 3});
  add("three_tiers",
      {.tiers = 3,
       .hosts_per_leaf = 2,
       .leaves_per_pod = 2,
       .uplinks_per_leaf = 4,
       .spines = 2,
       .uplinks_per_spine = 2},
      {.hosts = 11, .gpus = 4, .nics = 1});
  add("dual_homed", {.hosts_per_leaf = 4, .dual_homed = true}, {.hosts = 8, .gpus = 2, .nics = 2});
  add("rails", {.kind = FabricKind::rail_optimized, .hosts_per_leaf = 4},
      {.hosts = 8, .gpus = 4, .nics = 4});
  add("rails_alone", {.kind = FabricKind::rail_only, .hosts_per_leaf = 4},
      {.hosts = 8, .gpus = 4, .nics = 4});
  add("dragonfly",
      {.kind = FabricKind::dragonfly,
       .nics_per_router = 2,
       .routers_per_group = 4,
       .global_links_per_router = 2,
       .groups = 9},
      {.hosts = 72, .gpus = 1, .nics = 1});
  add("dragonfly_plus",
      {.kind = FabricKind::dragonfly_plus,
       .hosts_per_leaf = 2,
       .global_links_per_router = 2,
       .groups = 5,
       .leaves_per_group = 2,
       .spines_per_group = 2},
      {.hosts = 20, .gpus = 1, .nics = 1});
  add("torus", {.kind = FabricKind::torus, .dimensions = {4, 3, 2}},
      {.hosts = 24, .gpus = 2, .nics = 1});
  return all;
}

/// The scenario's own servers, as they were before a builder saw them.
inline HostShape servers_of(const Fabric& f) {
  HostShape s = f.servers();
  s.ports_per_nic = 1;
  return s;
}

inline BuildResult build_text(const std::string& content, GraphFormat format,
                              const HostShape& servers,
                              FabricSpec spec = {.kind = FabricKind::custom}) {
  BuildResult r;
  const GraphFile graph = parse_graph(content, "fabric", format, r.problems);
  if (!r.problems.empty()) return r;
  return build_custom(spec, servers, graph);
}

inline std::shared_ptr<const Fabric> must_build_text(const std::string& content, GraphFormat format,
                                                     const HostShape& servers,
                                                     FabricSpec spec = {
                                                         .kind = FabricKind::custom}) {
  const BuildResult r = build_text(content, format, servers, std::move(spec));
  EXPECT_TRUE(r.fabric != nullptr) << text(r.problems);
  EXPECT_TRUE(r.problems.empty()) << text(r.problems);
  return r.fabric;
}

inline std::string exported(const Fabric& f, GraphFormat format, ExportOptions options = {}) {
  std::ostringstream out;
  if (format == GraphFormat::graphml)
    write_graphml(out, f, options);
  else
    write_dot(out, f, options);
  return out.str();
}

inline std::shared_ptr<const Fabric> as_custom(const Fabric& f,
                                               GraphFormat format = GraphFormat::graphml) {
  return must_build_text(exported(f, format), format, servers_of(f));
}

/// Every link by the names of its ends, with Mb/s and ns, and how often it comes.
using LinkNames = std::map<std::tuple<std::string, std::string, long, long>, int>;
inline LinkNames links_by_name(const Fabric& f) {
  LinkNames all;
  for (const Link& l : f.links())
    ++all[{f.name(l.from), f.name(l.to), std::lround(l.capacity.value() * 8e-6),
           long(l.latency.count())}];
  return all;
}

}  // namespace trainyard::topologies::testing_fabrics
