#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "topologies/fat_tree.hpp"

/// Fabrics the tests share.
namespace trainyard::topologies::testing_fabrics {

using namespace trainyard::literals;

inline SwitchSpec switch_of(int ports, BytesPerSecond rate = 400_Gbps) {
  return {.name = "test", .ports = ports, .port_rate = rate, .latency = Duration(350)};
}

inline std::string text(const Problems& problems) {
  std::string all;
  for (const Problem& p : problems) all += p.path + ": " + p.what + "; right: " + p.right + "\n";
  return all;
}

inline std::shared_ptr<const Fabric> must_build(const FabricSpec& spec, const HostShape& servers) {
  BuildResult r = build_fat_tree(spec, servers);
  EXPECT_TRUE(r.fabric != nullptr) << text(r.problems);
  EXPECT_TRUE(!r.fabric || r.problems.empty()) << text(r.problems);
  return r.fabric;
}

/// `leaves` leaves of `hosts_per_leaf` servers with one NIC, `spines` spines, one cable to each.
inline std::shared_ptr<const Fabric> leaf_spine(int leaves, int hosts_per_leaf, int spines) {
  FabricSpec spec{.hosts_per_leaf = hosts_per_leaf,
                  .uplinks_per_leaf = spines,
                  .spines = spines,
                  .leaf_switch = switch_of(hosts_per_leaf + spines),
                  .spine_switch = switch_of(std::max(2, leaves))};
  return must_build(spec,
                    {.hosts = leaves * hosts_per_leaf, .gpus = 1, .nics = 1, .nic_rate = 400_Gbps});
}

/// The three-tier tree of k-port switches: k pods, k^3/4 servers.
inline std::shared_ptr<const Fabric> k_ary(int k) {
  const SwitchSpec box = switch_of(k);
  FabricSpec spec{.tiers = 3,
                  .hosts_per_leaf = k / 2,
                  .leaf_switch = box,
                  .spine_switch = box,
                  .core_switch = box};
  return must_build(spec, {.hosts = k * k * k / 4, .gpus = 1, .nics = 1, .nic_rate = 400_Gbps});
}

/// Rails of switches that are all alike; `hosts_per_unit` servers share leaves.
inline FabricSpec rail_spec(FabricKind kind, int tiers, int hosts_per_unit, int ports = 64) {
  const SwitchSpec box = switch_of(ports);
  return {.kind = kind,
          .tiers = tiers,
          .hosts_per_leaf = hosts_per_unit,
          .leaf_switch = box,
          .spine_switch = box,
          .core_switch = box};
}

/// 2,112 servers (16,896 GPUs) on the fabric published for Llama 3: racks of 16 GPUs, pods of 192
/// racks (3,072 GPUs), 7:1 above the pods (arXiv:2407.21783, section 3.3.1).
inline FabricSpec llama_spec() {
  return {.tiers = 3,
          .hosts_per_leaf = 2,
          .leaves_per_pod = 192,
          .leaf_oversubscription = 1.0,
          .spine_oversubscription = 7.0,
          .leaf_switch = switch_of(64),
          .spine_switch = switch_of(576),
          .core_switch = switch_of(576)};
}
inline HostShape llama_servers() {
  return {.hosts = 2112, .gpus = 8, .nics = 8, .nic_rate = 400_Gbps};
}

/// Any small fat tree: bundles, core groups and half-filled leaves and pods included; and every
/// kind of rails, dual-homed NICs, uplinks of several rates, pods that nobody uses.
inline std::shared_ptr<const Fabric> any_fabric(std::mt19937_64& random) {
  const auto up_to = [&](int n) { return 1 + static_cast<int>(random() % std::uint64_t(n)); };
  const SwitchSpec box = switch_of(4096);
  const FabricKind kinds[] = {FabricKind::fat_tree, FabricKind::fat_tree,
                              FabricKind::rail_optimized, FabricKind::rail_only};
  FabricSpec spec{.kind = kinds[random() % 4],
                  .hosts_per_leaf = up_to(3),
                  .leaf_switch = box,
                  .spine_switch = box,
                  .core_switch = box};
  const bool is_rail_only = spec.kind == FabricKind::rail_only;
  HostShape servers{.hosts = 2 + up_to(18), .gpus = 4, .nics = up_to(2)};
  servers.storage_ports = up_to(4) - 1;
  int rails = 1;
  if (spec.kind != FabricKind::fat_tree) {
    servers.nics = up_to(4);
    rails = up_to(servers.nics);
    while (servers.nics % rails != 0) --rails;
    if (rails < servers.nics || random() % 2) spec.rails = rails;
  }
  if (random() % 3 == 0) spec.dual_homed = true;
  spec.tiers = is_rail_only ? up_to(2) : 1 + up_to(2);
  if (spec.tiers == 1) {
    spec.hosts_per_leaf = servers.hosts;
    return must_build(spec, servers);
  }
  spec.spines = up_to(4);
  spec.uplinks_per_leaf = *spec.spines * up_to(3);
  if (random() % 3 == 0)
    for (int n = up_to(std::min(3, *spec.uplinks_per_leaf)); n > 0; --n)
      spec.uplink_rates.push_back(50_Gbps * double(up_to(8)));
  if (spec.tiers == 3) {
    const int per_unit = rails * (spec.dual_homed ? 2 : 1);
    const int units_per_pod = up_to(3);
    spec.leaves_per_pod = units_per_pod * per_unit;
    int groups = up_to(*spec.spines);
    while (*spec.spines % groups != 0) --groups;
    const int per_group = up_to(3);
    spec.cores = groups * per_group;
    spec.uplinks_per_spine = per_group * up_to(3);
    if (random() % 3 == 0) {
      const int per_pod = units_per_pod * *spec.hosts_per_leaf;
      spec.pods = (servers.hosts + per_pod - 1) / per_pod + up_to(2) - 1;
    }
  }
  return must_build(spec, servers);
}

}  // namespace trainyard::topologies::testing_fabrics
