#include "scenarios/collective_group.hpp"

#include <algorithm>
#include <numeric>

#include "sim/random.hpp"

namespace trainyard::scenarios {

using topologies::Fabric;
using topologies::GpuId;
using topologies::HostId;

namespace {

std::vector<std::size_t> one_of_each_edge_in_turn(const Fabric& fabric, std::size_t servers) {
  // Sorting by how many servers of the same edge switch come before is dealing from all switches.
  std::vector<std::size_t> met(fabric.edge_count(), 0), turn(servers), out(servers);
  for (std::size_t s = 0; s < servers; ++s)
    turn[s] = met[fabric.index_in_kind(fabric.edge_of(HostId(s)))]++;
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::stable_sort(out.begin(), out.end(),
                   [&](std::size_t a, std::size_t b) { return turn[a] < turn[b]; });
  return out;
}

void shuffle(std::vector<std::size_t>& servers, std::uint64_t seed) {
  sim::Stream random(sim::Seed{seed}, "collective/placement");
  for (std::size_t i = servers.size(); i > 1; --i)
    std::swap(servers[i - 1], servers[random.below(i)]);
}

}  // namespace

std::vector<std::size_t> servers_in_order(const Fabric& fabric, std::size_t servers,
                                          ServerOrder order, std::uint64_t seed,
                                          const std::vector<std::size_t>& listed) {
  std::vector<std::size_t> out(servers);
  std::iota(out.begin(), out.end(), std::size_t{0});
  if (order == ServerOrder::spread) out = one_of_each_edge_in_turn(fabric, servers);
  if (order == ServerOrder::random) shuffle(out, seed);
  if (listed.empty()) return out;

  std::vector<bool> is_listed(servers, false);
  for (const std::size_t s : listed) {
    if (s >= servers)
      throw SweepRefused("there is no node-" + std::to_string(s) +
                         "; the servers are node-0 to node-" + std::to_string(servers - 1) +
                         " (spares are left out)");
    if (is_listed[s]) throw SweepRefused("node-" + std::to_string(s) + " is listed twice");
    is_listed[s] = true;
  }
  std::vector<std::size_t> first = listed;
  for (const std::size_t s : out)
    if (!is_listed[s]) first.push_back(s);
  return first;
}

std::vector<models::Member> take_group(const Fabric& fabric, std::vector<std::size_t>& free,
                                       const GroupRequest& request) {
  const auto gpus = std::size_t(fabric.servers().gpus);
  const std::size_t per_node = request.per_node == 0 ? gpus : request.per_node;
  if (per_node > gpus)
    throw SweepRefused("a server has " + std::to_string(gpus) + " GPUs, found " +
                       std::to_string(per_node) + " ranks a server");
  const std::size_t room = free.size() * per_node;
  const std::size_t ranks = request.ranks == 0 ? room : request.ranks;
  if (ranks > room)
    throw SweepRefused(std::to_string(ranks) + " ranks at " + std::to_string(per_node) +
                       " a server need " + std::to_string((ranks + per_node - 1) / per_node) +
                       " servers; " + std::to_string(free.size()) +
                       (free.size() == 1 ? " is free" : " are free"));
  if (ranks < 2)
    throw SweepRefused("a collective needs at least 2 ranks, found " + std::to_string(ranks));
  std::vector<models::Member> group;
  group.reserve(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::size_t node = free[r / per_node];
    const GpuId gpu = fabric.gpu(HostId(node), r % per_node);
    group.push_back({gpu.index(), fabric.nic_of(gpu).index(), node});
  }
  free.erase(free.begin(), free.begin() + std::ptrdiff_t((ranks + per_node - 1) / per_node));
  return group;
}

}  // namespace trainyard::scenarios
