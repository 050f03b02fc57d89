#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "models/training/step_model.hpp"
#include "topologies/fat_tree.hpp"

/// A small job on a small fabric, for tests of the step level.
namespace trainyard::models {

using namespace trainyard::literals;
using topologies::HostId;
using topologies::RoutingKind;

inline ServerSpec h100_server() {
  ServerSpec s;
  s.gpu.peak_16bit = 989_TFLOPps;
  s.gpu.peak_fp8 = 1979_TFLOPps;
  s.gpu.sms = 132;
  s.gpu.memory = 80_GB;
  s.gpu.memory_rate = 3.35_TBps;
  s.gpu.scale_up_rate = 450_GBps;
  s.gpu.power_max = 700_W;
  s.gpu.power_idle = 70_W;
  s.power_overhead = 4000_W;
  s.nic.rate = 400_Gbps;
  return s;
}

// A job and the cluster under it: leaves of two servers, so that most paths cross a spine.
struct Yard {
  explicit Yard(JobSpec spec, int hosts, RoutingKind routing = RoutingKind::ecmp,
                double oversubscription = 1, Duration hop = Duration(500))
      : Yard(std::move(spec), hosts, two_tiers(oversubscription, hop), routing) {}

  Yard(JobSpec spec, int hosts, const topologies::FabricSpec& f, RoutingKind routing)
      : job(std::move(spec)) {
    topologies::BuildResult built = topologies::build_fat_tree(f, {.hosts = hosts});
    EXPECT_TRUE(built.problems.empty());
    fabric = built.fabric;
    router = std::make_unique<topologies::Router>(*fabric, routing, 1, 2);
    EXPECT_TRUE(check_plan(job, server.gpus).empty());
    model = std::make_unique<StepModel>(job, server, *router);
  }

  static topologies::FabricSpec two_tiers(double oversubscription, Duration hop) {
    topologies::FabricSpec f;
    f.hosts_per_leaf = 2;
    f.leaf_oversubscription = oversubscription;
    f.leaf_switch = {"box", 64, 400_Gbps, hop, {}, {}};
    f.spine_switch = {"box", 128, 400_Gbps, hop, {}, {}};
    return f;
  }

  Placement packed() const {
    Placement p;
    for (int s = 0; s < job.gpus / server.gpus; ++s) p.servers.emplace_back(std::size_t(s));
    return p;
  }

  JobSpec job;
  ServerSpec server = h100_server();
  std::shared_ptr<const topologies::Fabric> fabric;
  std::unique_ptr<topologies::Router> router;
  std::unique_ptr<StepModel> model;
};

// 8 servers: 8 (tensor) x 4 (data) x 2 (pipeline).
inline JobSpec two_stages() {
  JobSpec j;
  j.model = {"small", 16, 4096, 32, 8, {}, 14336, true, 32000, false};
  j.gpus = 64;
  j.global_batch = 64;
  j.sequence = 4096;
  j.parallel.tensor = 8;
  j.parallel.pipeline = 2;
  return j;
}

}  // namespace trainyard::models
