#include "models/training/ring_layout.hpp"

#include <algorithm>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

bool has_experts(const Plan& plan) {
  return std::any_of(plan.shares.begin(), plan.shares.end(),
                     [](const ChunkShare& share) { return share.expert_weights > 0; });
}

/// Ranks over which weights are sharded; all that hold the same ones if nothing is.
int shard_ring(const Plan& plan) {
  return plan.sharding == Sharding::none ? plan.weight_replicas() : plan.shard_group;
}

/// Ranks of a stage with this tensor coordinate, ascending.
std::vector<int> sharing(const Plan& plan, int stage, int tensor) {
  std::vector<int> ranks;
  ranks.reserve(std::size_t(plan.weight_replicas()));
  for (int d = 0; d < plan.data; ++d)
    for (int c = 0; c < plan.context; ++c)
      ranks.push_back(plan.rank_of({.tensor = tensor, .context = c, .data = d, .pipeline = stage}));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// Adds the groups of every `step`-th of so many neighbours: `block` neighbours make `step` groups.
void add_groups(const std::vector<int>& ranks, int block, int step,
                std::vector<std::vector<int>>& groups) {
  check(block > 0 && ranks.size() % std::size_t(block) == 0 && block % step == 0,
        "check_plan() found the ranks divisible into groups", ranks.size(), block);
  for (std::size_t first = 0; first < ranks.size(); first += std::size_t(block))
    for (int position = 0; position < step; ++position) {
      std::vector<int>& group = groups.emplace_back();
      for (int i = position; i < block; i += step) group.push_back(ranks[first + std::size_t(i)]);
    }
}

/// Members in one server.
struct Visit {
  int server = 0;
  std::vector<int> ranks;
};

std::vector<Visit> visits(const std::vector<int>& group, int gpus_per_server) {
  std::vector<Visit> out;
  for (const int rank : group) {  // ascending, so the members of one server follow each other
    const int server = rank / gpus_per_server;
    if (out.empty() || out.back().server != server) out.push_back({server, {}});
    out.back().ranks.push_back(rank);
  }
  return out;
}

int channels_of(const std::vector<Visit>& ring) {
  std::size_t fewest = ring.front().ranks.size();
  for (const Visit& visit : ring) fewest = std::min(fewest, visit.ranks.size());
  return int(fewest);
}

/// By whose adapter a channel enters and leaves: spread over the members.
int door(const Visit& visit, int channel, int channels, int gpus_per_server) {
  const std::size_t at = std::size_t(channel) * visit.ranks.size() / std::size_t(channels);
  return visit.ranks[at] % gpus_per_server;
}

}  // namespace

int ring_size(const Plan& plan, RingKind kind) {
  switch (kind) {
    case RingKind::shards:
      return shard_ring(plan);
    case RingKind::replicas:
      return plan.weight_replicas() / shard_ring(plan);
    case RingKind::experts:
      return has_experts(plan) ? plan.expert_replicas() : 1;
  }
  return 1;
}

std::vector<std::vector<int>> ring_groups(const Plan& plan, int stage, RingKind kind) {
  std::vector<std::vector<int>> groups;
  if (ring_size(plan, kind) < 2) return groups;
  if (kind == RingKind::experts && plan.expert_tensor != plan.tensor) {
    const std::vector<int> all = plan.ranks_of_stage(stage);
    add_groups(all, int(all.size()), plan.expert, groups);
    return groups;
  }
  for (int tensor = 0; tensor < plan.tensor; ++tensor) {
    const std::vector<int> ranks = sharing(plan, stage, tensor);
    if (kind == RingKind::shards)
      add_groups(ranks, shard_ring(plan), 1, groups);
    else
      add_groups(ranks, int(ranks.size()),
                 kind == RingKind::replicas ? shard_ring(plan) : plan.expert, groups);
  }
  return groups;
}

int RingShapes::number_of(const RingConnections& connections) {
  const auto [at, is_new] = numbers_.emplace(connections, int(shapes_.size()));
  if (is_new) shapes_.push_back(&at->first);
  return at->second;
}

RingLayout ring_layout(const Plan& plan, int stage, RingKind kind, int gpus_per_server,
                       RingShapes& shapes) {
  RingLayout layout;
  std::vector<std::vector<Visit>> rings;
  for (const std::vector<int>& group : ring_groups(plan, stage, kind))
    rings.push_back(visits(group, gpus_per_server));
  if (rings.empty()) return layout;

  layout.channels = channels_of(rings.front());
  for (const std::vector<Visit>& ring : rings) {
    layout.channels = std::min(layout.channels, channels_of(ring));
    layout.servers = std::max(layout.servers, int(ring.size()));
  }
  std::map<std::pair<int, int>, RingConnections> between;
  for (const std::vector<Visit>& ring : rings) {
    const int channels = channels_of(ring);
    for (std::size_t i = 0; ring.size() > 1 && i < ring.size(); ++i) {
      const Visit &from = ring[i], &to = ring[(i + 1) % ring.size()];
      RingConnections& connections = between[{from.server, to.server}];
      for (int channel = 0; channel < channels; ++channel)
        connections.push_back({door(from, channel, channels, gpus_per_server),
                               door(to, channel, channels, gpus_per_server), channel,
                               double(layout.channels) / channels});
    }
    for (const Visit& visit : ring)
      if (visit.ranks.size() > 1)
        layout.passing.insert(layout.passing.end(), visit.ranks.begin(), visit.ranks.end());
  }
  for (const auto& [servers, connections] : between)
    layout.edges.push_back({servers.first, servers.second, shapes.number_of(connections)});
  return layout;
}

std::vector<int> servers_of_stage(const Plan& plan, int stage, int gpus_per_server) {
  std::vector<int> servers;
  for (const int rank : plan.ranks_of_stage(stage))
    if (servers.empty() || servers.back() != rank / gpus_per_server)
      servers.push_back(rank / gpus_per_server);
  return servers;
}

}  // namespace trainyard::models
