#include "models/training/boundary_traffic.hpp"

#include <algorithm>
#include <set>

#include "models/training/ring_layout.hpp"
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
      bytes_per_rank_(boundary_bytes(plan)),
      tensor_stride_(plan.stride(RankDimension::tensor)) {
  const int reach = (plan.tensor - 1) * tensor_stride_;
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    servers_of_stage_.push_back(servers_of_stage(plan, stage, server.gpus));
    for (int replica = 0; replica < replicas(); ++replica) {
      const int first = plan.rank_of(
          {.context = replica % plan.context, .data = replica / plan.context, .pipeline = stage});
      first_ranks_.push_back(first);
      spans_servers_ |= first / server.gpus != (first + reach) / server.gpus;
    }
  }
}

int BoundaryTraffic::rank_of(int replica, int tensor, int stage) const {
  return first_ranks_[std::size_t(stage * replicas() + replica)] + tensor * tensor_stride_;
}

topologies::GpuId BoundaryTraffic::gpu_of(std::span<const topologies::HostId> servers, int replica,
                                          int tensor, int stage) const {
  const int rank = rank_of(replica, tensor, stage);
  return router_.fabric().gpu(servers[std::size_t(rank / server_.gpus)],
                              std::size_t(rank % server_.gpus));
}

BoundaryTraffic::PairKey BoundaryTraffic::key(std::span<const topologies::HostId> servers,
                                              int replica, int from_stage, int to_stage) const {
  PairKey key;
  key.first = {std::uint32_t(gpu_of(servers, replica, 0, from_stage).index()),
               std::uint32_t(gpu_of(servers, replica, 0, to_stage).index())};
  if (!spans_servers_) return key;
  for (const int stage : {from_stage, to_stage}) {
    const int first = rank_of(replica, 0, stage);
    int last_seen = first / server_.gpus;
    for (int tensor = 1; tensor < plan_.tensor; ++tensor)
      if (const int at = (first + tensor * tensor_stride_) / server_.gpus; at != last_seen) {
        key.others.push_back(std::uint32_t(servers[std::size_t(at)].index()));
        last_seen = at;
      }
  }
  return key;
}

const BoundaryTraffic::Pair& BoundaryTraffic::pair(std::span<const topologies::HostId> servers,
                                                   int replica, int from_stage, int to_stage) {
  PairKey key = this->key(servers, replica, from_stage, to_stage);
  auto found = pairs_.find(key);
  if (found == pairs_.end()) {
    const auto gpu_of = [&](int tensor, int stage) {
      return this->gpu_of(servers, replica, tensor, stage);
    };
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
    found = pairs_.emplace(std::move(key), std::move(made)).first;
  }
  return found->second;
}

std::pair<topologies::GpuId, topologies::GpuId> BoundaryTraffic::cut_pair(
    std::span<const topologies::HostId> servers, int replica, int from_stage, int to_stage) const {
  const topologies::Fabric& fabric = router_.fabric();
  for (int tensor = 0; tensor < plan_.tensor; ++tensor) {
    const topologies::GpuId from = gpu_of(servers, replica, tensor, from_stage),
                            to = gpu_of(servers, replica, tensor, to_stage);
    if (fabric.host_of(from) != fabric.host_of(to) &&
        !router_.has_path(fabric.nic_of(relay_of(router_, from, to)), fabric.nic_of(to)))
      return {from, to};
  }
  return {gpu_of(servers, replica, 0, from_stage), gpu_of(servers, replica, 0, to_stage)};
}

BoundaryTraffic::Way& BoundaryTraffic::way(std::span<const topologies::HostId> servers,
                                           int from_stage, int to_stage) {
  Way& way = ways_[{from_stage, to_stage}];
  std::size_t at = 0;
  bool is_same = !way.pairs.empty();
  for (const int stage : {from_stage, to_stage})
    for (const int server : servers_of_stage_[std::size_t(stage)]) {
      if (at == way.servers.size()) way.servers.emplace_back();
      is_same &= way.servers[at] == servers[std::size_t(server)];
      way.servers[at++] = servers[std::size_t(server)];
    }
  if (is_same) return way;
  way.pairs.clear();
  way.numbered = {};
  for (int replica = 0; replica < replicas(); ++replica)
    way.pairs.push_back(&pair(servers, replica, from_stage, to_stage));
  return way;
}

BoundaryTimes BoundaryTraffic::solve(std::span<const topologies::HostId> servers, int from_stage,
                                     int to_stage) {
  Way& way = this->way(servers, from_stage, to_stage);
  const std::vector<const Pair*>& pairs = way.pairs;
  if (way.numbered.is_there.empty()) {
    std::vector<const LinkLoads*> loads;
    for (const Pair* pair : pairs) loads.push_back(pair->loads.empty() ? nullptr : &pair->loads);
    way.numbered = links_.number(loads);
  }
  FabricSolver fabric(router_, server_, links_);
  const std::vector<FabricSolver::Added> vars = fabric.add_together(way.numbered);
  fabric.solver().solve();
  const double bytes_per_flow = bytes_per_rank_ / router_.flows_of_pair();
  BoundaryTimes times;
  for (int replica = 0; replica < replicas(); ++replica) {
    const VarIndex var = vars[std::size_t(replica)].var;
    const topologies::GpuId from = gpu_of(servers, replica, 0, from_stage),
                            to = gpu_of(servers, replica, 0, to_stage);
    times.pairs.emplace_back(from.index(), to.index());
    times.seconds.push_back(var.is_valid()
                                ? message_latency_s + pairs[std::size_t(replica)]->latency_s +
                                      bytes_per_flow / fabric.solver().rate(var)
                                : 0.0);
    if (var.is_valid()) continue;
    times.no_path.push_back(replica);
    times.cut.push_back(cut_pair(servers, replica, from_stage, to_stage));
  }
  return times;
}

const BoundaryTimes& BoundaryTraffic::times(std::span<const topologies::HostId> servers,
                                            int from_stage, int to_stage) {
  if (const double now = server_.gpu.calibration.scale_up_efficiency;
      scale_up_efficiency_ != now) {  // calibration changes what links achieve
    known_.clear();
    scale_up_efficiency_ = now;
  }
  if (background_ != links_.background()) {  // times with nobody else there are kept
    std::erase_if(known_, [](const auto& entry) { return entry.first.front() != 0; });
    background_ = links_.background();
  }
  std::vector<std::uint32_t> key{background_ == 0 ? 0u : 1u, std::uint32_t(from_stage),
                                 std::uint32_t(to_stage)};
  for (const int stage : {from_stage, to_stage})
    for (const int server : servers_of_stage_[std::size_t(stage)])
      key.push_back(std::uint32_t(servers[std::size_t(server)].index()));
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_.emplace(std::move(key), solve(servers, from_stage, to_stage)).first->second;
}

void BoundaryTraffic::add_bytes(std::span<const topologies::HostId> servers, int from_stage,
                                int to_stage, double transfers, std::vector<double>& bytes) {
  const double bytes_per_flow = bytes_per_rank_ / router_.flows_of_pair();
  for (const Pair* pair : way(servers, from_stage, to_stage).pairs)
    for (const auto& [link, weight] : pair->loads)
      bytes[link.index()] += weight * bytes_per_flow * transfers;
}

bool BoundaryTraffic::uses(std::span<const topologies::HostId> servers, int from_stage,
                           int to_stage, const std::vector<bool>& links) {
  for (const Pair* pair : way(servers, from_stage, to_stage).pairs)
    for (const auto& [link, weight] : pair->loads)
      if (links[link.index()]) return true;
  return false;
}

void BoundaryTraffic::forget(const std::vector<bool>& links) {
  ways_.clear();
  std::set<std::pair<std::uint32_t, std::uint32_t>> forgotten;
  for (auto at = pairs_.begin(); at != pairs_.end();) {
    const Pair& pair = at->second;
    const bool depends =
        pair.is_detour || std::any_of(pair.loads.begin(), pair.loads.end(),
                                      [&](const auto& load) { return links[load.first.index()]; });
    if (depends) forgotten.insert(at->first.first);
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
  ways_.clear();
  pairs_.clear();
}

}  // namespace trainyard::models
