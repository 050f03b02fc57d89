#include "models/training/boundary_traffic.hpp"

#include <algorithm>
#include <set>

#include "models/training/stage_costs.hpp"

namespace trainyard::models {
namespace {

// One message between two servers or two GPUs of one server, software included: fitted to
// published pipelines (docs/models/step.md), the same for all GPU types.
constexpr double message_latency_s = 20e-6;

}  // namespace

BoundaryTraffic::BoundaryTraffic(const Plan& plan, const ServerSpec& server,
                                 const topologies::Router& router, LinkTable& links)
    : plan_(plan),
      server_(server),
      router_(router),
      links_(links),
      bytes_per_rank_(boundary_bytes(plan)) {}

topologies::GpuId BoundaryTraffic::gpu_of(std::span<const topologies::HostId> servers, int replica,
                                          int tensor, int stage) const {
  const int rank = plan_.rank_of({.tensor = tensor, .data = replica, .pipeline = stage});
  return router_.fabric().gpu(servers[std::size_t(rank / server_.gpus)],
                              std::size_t(rank % server_.gpus));
}

const BoundaryTraffic::Pair& BoundaryTraffic::pair(std::span<const topologies::HostId> servers,
                                                   int replica, int from_stage, int to_stage) {
  const auto gpu_of = [&](int tensor, int stage) {
    return this->gpu_of(servers, replica, tensor, stage);
  };
  // Tensor-parallel ranks follow each other, so the first GPU at each end names the pair.
  const std::pair<std::uint32_t, std::uint32_t> key{std::uint32_t(gpu_of(0, from_stage).index()),
                                                    std::uint32_t(gpu_of(0, to_stage).index())};
  auto found = pairs_.find(key);
  if (found == pairs_.end()) {
    Pair made;
    made.is_detour = router_.state().is_changed();
    bool connected = true;
    made.loads = links_.collect([&](auto&& add) {
      for (int tensor = 0; tensor < plan_.tensor; ++tensor)
        connected &=
            add_connection(router_, gpu_of(tensor, from_stage), gpu_of(tensor, to_stage), 0, add);
    });
    if (connected)
      made.latency_s = connection_latency_s(router_, gpu_of(0, from_stage), gpu_of(0, to_stage), 0);
    else
      made.loads.clear();
    found = pairs_.emplace(key, std::move(made)).first;
  }
  return found->second;
}

BoundaryTimes BoundaryTraffic::solve(std::span<const topologies::HostId> servers, int from_stage,
                                     int to_stage) {
  std::vector<const Pair*> pairs;
  std::vector<const LinkLoads*> replicas;
  for (int replica = 0; replica < plan_.data; ++replica) {
    pairs.push_back(&pair(servers, replica, from_stage, to_stage));
    replicas.push_back(pairs.back()->loads.empty() ? nullptr : &pairs.back()->loads);
  }
  FabricSolver fabric(router_, server_, links_);
  const std::vector<FabricSolver::Added> vars = fabric.add_together(replicas);
  fabric.solver().solve();
  const double bytes_per_flow = bytes_per_rank_ / router_.flows_of_pair();
  BoundaryTimes times;
  for (std::size_t replica = 0; replica < vars.size(); ++replica) {
    if (!vars[replica].var.is_valid()) times.no_path.push_back(int(replica));
    times.pairs.emplace_back(gpu_of(servers, int(replica), 0, from_stage).index(),
                             gpu_of(servers, int(replica), 0, to_stage).index());
    times.seconds.push_back(vars[replica].var.is_valid()
                                ? message_latency_s + pairs[replica]->latency_s +
                                      bytes_per_flow / fabric.solver().rate(vars[replica].var)
                                : 0.0);
  }
  return times;
}

const BoundaryTimes& BoundaryTraffic::times(std::span<const topologies::HostId> servers,
                                            int from_stage, int to_stage) {
  const int stage_ranks = plan_.tensor * plan_.data;
  std::vector<std::uint32_t> key{std::uint32_t(from_stage), std::uint32_t(to_stage)};
  for (const int stage : {from_stage, to_stage}) {
    const int first = stage * stage_ranks / server_.gpus,
              last = ((stage + 1) * stage_ranks - 1) / server_.gpus;
    for (int s = first; s <= last; ++s)
      key.push_back(std::uint32_t(servers[std::size_t(s)].index()));
  }
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_.emplace(std::move(key), solve(servers, from_stage, to_stage)).first->second;
}

void BoundaryTraffic::add_bytes(std::span<const topologies::HostId> servers, int from_stage,
                                int to_stage, double transfers, std::vector<double>& bytes) {
  const double bytes_per_flow = bytes_per_rank_ / router_.flows_of_pair();
  for (int replica = 0; replica < plan_.data; ++replica)
    for (const auto& [link, weight] : pair(servers, replica, from_stage, to_stage).loads)
      bytes[link.index()] += weight * bytes_per_flow * transfers;
}

bool BoundaryTraffic::uses(std::span<const topologies::HostId> servers, int from_stage,
                           int to_stage, const std::vector<bool>& links) {
  for (int replica = 0; replica < plan_.data; ++replica)
    for (const auto& [link, weight] : pair(servers, replica, from_stage, to_stage).loads)
      if (links[link.index()]) return true;
  return false;
}

void BoundaryTraffic::forget(const std::vector<bool>& links) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> forgotten;
  for (auto at = pairs_.begin(); at != pairs_.end();) {
    const Pair& pair = at->second;
    const bool depends =
        pair.is_detour || std::any_of(pair.loads.begin(), pair.loads.end(),
                                      [&](const auto& load) { return links[load.first.index()]; });
    if (depends) forgotten.insert(at->first);
    at = depends ? pairs_.erase(at) : std::next(at);
  }
  std::erase_if(known_, [&](const auto& entry) {
    const auto& pairs = entry.second.pairs;
    return std::any_of(pairs.begin(), pairs.end(),
                       [&](const auto& pair) { return forgotten.contains(pair); });
  });
}

void BoundaryTraffic::clear() {
  known_.clear();
  pairs_.clear();
}

}  // namespace trainyard::models
