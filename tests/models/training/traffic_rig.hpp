#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/training/boundary_traffic.hpp"
#include "models/training/data_traffic.hpp"
#include "topologies/fat_tree.hpp"

/// A plan on servers of eight behind leaves of two, and its traffic without a step around it.
namespace trainyard::models {

using namespace trainyard::literals;
using topologies::GpuId;
using topologies::HostId;
using topologies::LinkId;
using topologies::NicId;
using topologies::RoutingKind;

inline ServerSpec eight_gpus() {
  ServerSpec s;
  s.gpu.peak_16bit = 989_TFLOPps;
  s.gpu.peak_fp8 = 1979_TFLOPps;
  s.gpu.scale_up_rate = 450_GBps;
  s.nic.rate = 400_Gbps;
  return s;
}

inline constexpr double nic_Bps = 50e9 * 0.96, hop_s = 0.5e-6;  // NicSpec::efficiency
/// Of a ring over N servers with n ranks, every edge over so many switches.
inline double ring_latency_s(int n, int servers, int switches) {
  return 10e-6 + (n - servers) * 2e-6 + (servers - 1) * (10e-6 + switches * hop_s);
}

struct Layout {
  int tensor = 1, context = 1, data = 1, pipeline = 1;
  std::string order = "tp-cp-dp-pp";
  Sharding sharding = Sharding::zero1;
  int shard_group = 0;  // 0: all
  int expert = 0;       // 0: a model without experts
  int expert_tensor = 1;
};

inline Plan plan_of(const Layout& l) {
  Plan plan;
  plan.model = {"small", 16, 4096, 32, 8, {}, 14336, true, 32000, false};
  plan.sequence = 4096;
  plan.tensor = l.tensor;
  plan.context = l.context;
  plan.data = l.data;
  plan.pipeline = l.pipeline;
  plan.gpus = l.tensor * l.context * l.data * l.pipeline;
  plan.order = *rank_order(l.order);
  plan.sharding = l.sharding;
  plan.shard_group = l.shard_group > 0 ? l.shard_group : plan.weight_replicas();
  plan.expert = std::max(1, l.expert);
  plan.expert_tensor = l.expert_tensor;
  plan.shares.resize(std::size_t(l.pipeline));
  for (ChunkShare& share : plan.shares) share.expert_weights = l.expert > 0 ? 1e9 : 0;
  return plan;
}

struct TrafficRig {
  explicit TrafficRig(const Layout& layout, int hosts, RoutingKind routing = RoutingKind::spray,
                      double oversubscription = 1)
      : TrafficRig(layout, {.hosts = hosts}, routing, oversubscription) {}
  TrafficRig(const Layout& layout, const topologies::HostShape& hosts, RoutingKind routing,
             double oversubscription = 1)
      : plan(plan_of(layout)) {
    server.gpu.scale_up_rate = hosts.scale_up_rate;
    server.nics = hosts.nics;
    topologies::FabricSpec f;
    f.hosts_per_leaf = 2;
    f.leaf_oversubscription = oversubscription;
    f.leaf_switch = {"box", 64, 400_Gbps, Duration(500), {}, {}};
    f.spine_switch = {"box", 256, 400_Gbps, Duration(500), {}, {}};
    topologies::BuildResult built = topologies::build_fat_tree(f, hosts);
    EXPECT_TRUE(built.problems.empty());
    if (!built.fabric) throw std::runtime_error("no fabric");
    fabric = built.fabric;
    router = std::make_unique<topologies::Router>(*fabric, routing, 1, 2);
    table = std::make_unique<LinkTable>(fabric->links().size());
  }

  DataTraffic data(double rate = 1) const {
    return DataTraffic(plan, server, *router, *table, rate);
  }
  BoundaryTraffic boundaries() const { return BoundaryTraffic(plan, server, *router, *table); }
  std::vector<HostId> packed() const {
    std::vector<HostId> servers;
    for (int s = 0; s * server.gpus < plan.gpus; ++s) servers.emplace_back(std::size_t(s));
    return servers;
  }
  double out_of(NicId nic, const std::vector<double>& bytes) const {
    return bytes[fabric->uplink(nic).index()];
  }
  double into(NicId nic, const std::vector<double>& bytes) const {
    return bytes[fabric->downlink(nic).index()];
  }
  std::vector<double> no_bytes() const { return std::vector<double>(fabric->links().size(), 0.0); }

  Plan plan;
  ServerSpec server = eight_gpus();
  std::shared_ptr<const topologies::Fabric> fabric;
  std::unique_ptr<topologies::Router> router;
  std::unique_ptr<LinkTable> table;
};

}  // namespace trainyard::models
