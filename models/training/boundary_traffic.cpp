#include "models/training/boundary_traffic.hpp"

namespace trainyard::models {
namespace {

// One message between two servers or two GPUs of one server, software included: step-model fit on published
// pipelines (docs/models/step.md), the same for all GPU types.
constexpr double message_latency_s = 20e-6;
constexpr double activation_bytes = 2;   // BF16, in FP8 runs too: activations between stages stay in 16 bits

}  // namespace

BoundaryTraffic::BoundaryTraffic(const Plan& plan, const ServerSpec& server, const topologies::Router& router,
                                 LinkTable& links)
    : plan_(plan),
      server_(server),
      router_(router),
      links_(links),
      bytes_per_rank_(activation_bytes * plan.model.hidden * plan.micro_batch_tokens() / plan.sequence_split()) {}

bool BoundaryTraffic::add_loads(std::span<const topologies::HostId> servers, int replica, int from_stage,
                                int to_stage, LinkLoads& out) const {
  const topologies::Fabric& fabric = router_.fabric();
  const auto gpu_of = [&](int tensor, int stage) {
    const int rank = plan_.rank_of({.tensor = tensor, .data = replica, .pipeline = stage});
    return fabric.gpu(servers[std::size_t(rank / server_.gpus)], std::size_t(rank % server_.gpus));
  };
  bool connected = true;
  std::vector<topologies::LinkId> inside;
  out = links_.collect([&](auto&& add) {
    for (int tensor = 0; tensor < plan_.tensor; ++tensor) {
      const topologies::GpuId from = gpu_of(tensor, from_stage), to = gpu_of(tensor, to_stage);
      if (fabric.host_of(from) == fabric.host_of(to)) {
        inside.clear();
        fabric.scale_up_path(from, to, inside);
        // the same bytes in as many flows as a connection over the fabric has, so that one variable fits both
        for (const topologies::LinkId link : inside) add(link, double(router_.flows_of_pair()));
      } else {
        connected &= router_.for_each_load(fabric.nic_of(from), fabric.nic_of(to), 0, 1.0, add);
      }
    }
  });
  return connected;
}

BoundaryTimes BoundaryTraffic::solve(std::span<const topologies::HostId> servers, int from_stage,
                                     int to_stage) const {
  FabricSolver fabric(router_, server_);
  BoundaryTimes times;
  std::vector<VarIndex> vars(std::size_t(plan_.data));
  LinkLoads loads;
  for (int replica = 0; replica < plan_.data; ++replica) {
    if (add_loads(servers, replica, from_stage, to_stage, loads) && !loads.empty())
      vars[std::size_t(replica)] = fabric.add(loads);
    else if (!loads.empty() || from_stage != to_stage)
      times.no_path.push_back(replica);
  }
  fabric.solver().solve();
  const double bytes_per_flow = bytes_per_rank_ / router_.flows_of_pair();
  for (const VarIndex var : vars)
    times.seconds.push_back(var.is_valid() ? message_latency_s + bytes_per_flow / fabric.solver().rate(var) : 0.0);
  return times;
}

const BoundaryTimes& BoundaryTraffic::times(std::span<const topologies::HostId> servers, int from_stage,
                                            int to_stage) {
  const int stage_ranks = plan_.tensor * plan_.data;
  std::vector<std::uint32_t> key{std::uint32_t(from_stage), std::uint32_t(to_stage)};
  for (const int stage : {from_stage, to_stage}) {
    const int first = stage * stage_ranks / server_.gpus, last = ((stage + 1) * stage_ranks - 1) / server_.gpus;
    for (int s = first; s <= last; ++s) key.push_back(std::uint32_t(servers[std::size_t(s)].index()));
  }
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_.emplace(std::move(key), solve(servers, from_stage, to_stage)).first->second;
}

void BoundaryTraffic::add_bytes(std::span<const topologies::HostId> servers, int from_stage, int to_stage,
                                double transfers, std::vector<double>& bytes) const {
  LinkLoads loads;
  const double bytes_per_flow = bytes_per_rank_ / router_.flows_of_pair();
  for (int replica = 0; replica < plan_.data; ++replica) {
    add_loads(servers, replica, from_stage, to_stage, loads);
    for (const auto& [link, weight] : loads) bytes[link.index()] += weight * bytes_per_flow * transfers;
  }
}

}  // namespace trainyard::models
