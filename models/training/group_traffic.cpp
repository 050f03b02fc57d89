#include "models/training/group_traffic.hpp"

#include <algorithm>
#include <map>

#include "sim/check.hpp"

namespace trainyard::models {

using topologies::Fabric;
using topologies::GpuId;
using topologies::HostId;
using topologies::LinkId;
using topologies::LinkKind;
using topologies::NicId;

namespace {

// Connections of all exchanges that are followed one by one. Beyond, some servers at evenly spread
// distances stand for all: every adapter sends and receives what it would, but hashed paths collide
// more than those of all would. At least `least_peers` of each server are followed.
constexpr std::size_t most_connections = 1 << 18;
constexpr std::size_t least_peers = 16;

bool any_load(const LinkLoads& loads, const std::vector<bool>& links) {
  return std::any_of(loads.begin(), loads.end(),
                     [&](const auto& load) { return links[load.first.index()]; });
}

}  // namespace

GroupTraffic::GroupTraffic(const Plan& plan, const ServerSpec& server,
                           const topologies::Router& router, LinkTable& links)
    : plan_(plan), server_(server), router_(router), links_(links) {
  // One adapter for several GPUs: each has its share, for their groups send at the same time.
  const BytesPerSecond adapter = server.nic.rate * (double(server.nics) / server.gpus);
  constants_ = link_constants(server.gpu.scale_up_rate, server.gpu.peak_fp8.value() > 0, adapter);
  constants_.ring_efficiency = server.gpu.calibration.scale_up_efficiency;
  constants_.nic_efficiency = server.nic.efficiency;
  // NCCL's constants are those of adapters with the default latency (InfiniBand, RoCE).
  constants_.network_latency_s =
      std::max(0.0, to_seconds(server.nic.latency) - to_seconds(NicSpec{}.latency));
  for (const GroupPattern pattern : group_patterns) find_groups(pattern);
  make_costs();
}

int GroupTraffic::size(GroupPattern pattern) const {
  switch (pattern) {
    case GroupPattern::tensor_ring:
      return plan_.tensor;
    case GroupPattern::context_ring:
    case GroupPattern::context_step:
      return plan_.context;
    case GroupPattern::expert_exchange:
      return plan_.expert;
  }
  return 1;
}

std::vector<std::vector<int>> GroupTraffic::ranks_of_groups(GroupPattern pattern, int stage) const {
  std::vector<std::vector<int>> groups;
  if (pattern == GroupPattern::expert_exchange) {
    // Cut from the ranks of the stage: neighbours, or those with the same part of every expert.
    const bool by_tensor = plan_.expert_tensor > 1;
    std::vector<std::vector<int>> rows(by_tensor ? std::size_t(plan_.tensor) : 1);
    for (const int rank : plan_.ranks_of_stage(stage))
      rows[by_tensor ? std::size_t(plan_.place_of(rank).tensor) : 0].push_back(rank);
    for (const std::vector<int>& row : rows) {
      check(row.size() % std::size_t(plan_.expert) == 0, "expert groups divide a stage evenly",
            row.size(), plan_.expert);
      for (auto at = row.begin(); at != row.end(); at += plan_.expert)
        groups.emplace_back(at, at + plan_.expert);
    }
    return groups;
  }
  const bool tensor = pattern == GroupPattern::tensor_ring;
  for (int data = 0; data < plan_.data; ++data)
    for (int other = 0; other < (tensor ? plan_.context : plan_.tensor); ++other) {
      std::vector<int>& ranks = groups.emplace_back();
      for (int i = 0; i < size(pattern); ++i)
        ranks.push_back(plan_.rank_of({.tensor = tensor ? i : other,
                                       .context = tensor ? other : i,
                                       .data = data,
                                       .pipeline = stage}));
    }
  return groups;
}

void GroupTraffic::find_groups(GroupPattern pattern) {
  const bool gathers = plan_.context_exchange == ContextExchange::all_gather;
  if (size(pattern) < 2 || (pattern == GroupPattern::context_ring && !gathers) ||
      (pattern == GroupPattern::context_step && gathers))
    return;
  Traffic traffic;
  traffic.stages.resize(std::size_t(plan_.pipeline));
  bool spans = false;
  for (int s = 0; s < plan_.pipeline; ++s) {
    Stage& stage = traffic.stages[std::size_t(s)];
    for (const std::vector<int>& ranks : ranks_of_groups(pattern, s)) {
      Group group;
      for (const int rank : ranks) {
        const int at = rank / server_.gpus;
        if (group.parts.empty() || group.parts.back().server != at) group.parts.push_back({at, {}});
        group.parts.back().locals.push_back(rank % server_.gpus);
      }
      if (group.parts.size() < 2) continue;
      spans = true;
      stage.servers = std::max(stage.servers, int(group.parts.size()));
      stage.groups.push_back(std::move(group));
    }
  }
  if (spans) traffic_[std::size_t(pattern)] = std::move(traffic);
}

void GroupTraffic::for_each_connection(GroupPattern pattern, const Group& group,
                                       const Connect& f) const {
  const Fabric& fabric = router_.fabric();
  const std::size_t servers = group.parts.size();
  const auto gpu = [&](std::size_t part, std::size_t member) {
    return fabric.gpu(group.hosts[part], std::size_t(group.parts[part].locals[member]));
  };
  const auto members = [&](std::size_t part) { return group.parts[part].locals.size(); };
  if (pattern == GroupPattern::context_step) {
    for (std::size_t from = 0; from < servers; ++from)
      f(gpu(from, members(from) - 1), gpu((from + 1) % servers, 0), 1, 1.0);
    return;
  }
  if (pattern != GroupPattern::expert_exchange) {
    std::size_t channels = members(0);
    for (std::size_t p = 1; p < servers; ++p) channels = std::min(channels, members(p));
    for (std::size_t from = 0; from < servers; ++from)
      for (std::size_t channel = 0; channel < channels; ++channel)
        f(gpu(from, channel), gpu((from + 1) % servers, channel), channel + 1,
          1.0 / double(channels));
    return;
  }
  // All to all: between two servers as many bytes as pairs of members, over one connection a rail.
  double ranks = 0, pairs = 0;
  for (std::size_t p = 0; p < servers; ++p) ranks += double(members(p));
  for (std::size_t p = 0; p < servers; ++p)
    pairs += double(members(p)) * (ranks - double(members(p)));
  const std::size_t peers = servers - 1;
  const std::size_t followed = std::min(
      peers,
      std::max(least_peers, most_connections / std::size_t(plan_.stage_ranks() * plan_.pipeline)));
  for (std::size_t j = 0; j < followed; ++j) {
    const std::size_t shift = 1 + (2 * j + 1) * peers / (2 * followed);
    for (std::size_t from = 0; from < servers; ++from) {
      const std::size_t to = (from + shift) % servers;
      const std::size_t rails = std::min(members(from), members(to));
      const double weight = ranks * double(members(from)) * double(members(to)) / pairs /
                            double(rails) * double(peers) / double(followed);
      for (std::size_t rail = 0; rail < rails; ++rail) f(gpu(from, rail), gpu(to, rail), 1, weight);
    }
  }
}

/// Puts a group on its servers. False: it is there already.
bool GroupTraffic::put(GroupPattern pattern, Group& group, std::span<const HostId> servers) {
  const auto host_of = [&](const Part& part) { return servers[std::size_t(part.server)]; };
  if (std::equal(group.hosts.begin(), group.hosts.end(), group.parts.begin(), group.parts.end(),
                 [&](HostId host, const Part& part) { return host == host_of(part); }))
    return false;
  group.hosts.clear();
  for (const Part& part : group.parts) group.hosts.push_back(host_of(part));
  group.cut.reset();
  group.is_detour = router_.state().is_changed();
  group.path_latency_s = 0;

  const Fabric& fabric = router_.fabric();
  const double flows = double(router_.flows_of_pair());
  // Where all neighbours' paths are alike, connections between two edge switches are counted first.
  const bool by_edge = router_.treats_neighbours_alike() && fabric.servers().ports_per_nic == 1;
  struct Trunk {
    NicId from, to;
    double weight = 0;
  };
  std::map<std::pair<std::size_t, std::size_t>, Trunk> trunks;
  group.loads = links_.collect([&](auto&& add) {
    for_each_connection(
        pattern, group, [&](GpuId from, GpuId to, std::uint64_t label, double weight) {
          if (group.cut) return;
          const NicId out = fabric.nic_of(from), in = fabric.nic_of(to);
          if (by_edge && router_.is_wired(out, in)) {
            add(fabric.uplink(out), weight * flows);
            add(fabric.downlink(in), weight * flows);
            const std::size_t a = fabric.edge_of(out).index(), b = fabric.edge_of(in).index();
            if (a == b) return;
            Trunk& trunk = trunks[{a, b}];
            trunk.from = out;
            trunk.to = in;
            trunk.weight += weight;
            return;
          }
          const auto scaled = [&](LinkId link, double w) { add(link, w * weight); };
          if (!add_connection(router_, from, to, label, scaled)) group.cut = {from, to};
        });
    for (const auto& [edges, trunk] : trunks)
      router_.for_each_load(trunk.from, trunk.to, 1, trunk.weight, [&](LinkId link, double w) {
        if (fabric.link(link).kind != LinkKind::nic_leaf) add(link, w);
      });
    const bool is_ring =
        pattern == GroupPattern::tensor_ring || pattern == GroupPattern::context_ring;
    for (std::size_t p = 0; is_ring && p < group.parts.size(); ++p) {
      const std::vector<int>& locals = group.parts[p].locals;
      if (locals.size() < 2) continue;
      for (const int local : locals) {  // every channel visits every member
        const LinkId up = fabric.scale_up_uplink(fabric.gpu(group.hosts[p], std::size_t(local)));
        add(up, flows);
        add(Fabric::reverse(up), flows);
      }
    }
  });
  if (group.cut) {
    group.loads.clear();
    return true;
  }
  // The longest connection between servers counts: of a ring its first channel, of an exchange what
  // the first member sends.
  const GpuId first = fabric.gpu(group.hosts[0], std::size_t(group.parts[0].locals[0]));
  for_each_connection(pattern, group, [&](GpuId from, GpuId to, std::uint64_t label, double) {
    if (label != 1 || (pattern == GroupPattern::expert_exchange && from != first)) return;
    group.path_latency_s =
        std::max(group.path_latency_s, connection_latency_s(router_, from, to, label));
  });
  return true;
}

bool GroupTraffic::place(std::span<const HostId> servers) {
  bool connected = true;
  for (const GroupPattern pattern : group_patterns) {
    Traffic& traffic = traffic_[std::size_t(pattern)];
    for (Stage& stage : traffic.stages)
      for (Group& group : stage.groups) {
        if (put(pattern, group, servers)) traffic.is_solved = traffic.is_added_up = false;
        connected &= !group.cut.has_value();
      }
  }
  if (!connected) return false;
  bool is_new = false;
  for (const GroupPattern pattern : group_patterns)
    if (!of(pattern).stages.empty() &&
        (!of(pattern).is_solved || of(pattern).background != links_.background())) {
      solve(pattern);
      is_new = true;
    }
  if (is_new) make_costs();
  return true;
}

void GroupTraffic::solve(GroupPattern pattern) {
  Traffic& traffic = traffic_[std::size_t(pattern)];
  std::vector<const LinkLoads*> variables;
  for (Stage& stage : traffic.stages) {
    if (!traffic.is_added_up) {
      stage.loads = links_.collect([&](auto&& add) {
        for (const Group& group : stage.groups)
          for (const auto& [link, weight] : group.loads) add(link, weight);
      });
      stage.path_latency_s = 0;
      for (const Group& group : stage.groups)
        stage.path_latency_s = std::max(stage.path_latency_s, group.path_latency_s);
    }
    variables.push_back(stage.loads.empty() ? nullptr : &stage.loads);
  }
  traffic.is_added_up = true;
  FabricSolver fabric(router_, server_, links_);
  const std::vector<FabricSolver::Added> added = fabric.add_together(variables);
  fabric.solver().solve();
  for (std::size_t s = 0; s < added.size(); ++s)
    traffic.stages[s].rate_Bps =
        variables[s] ? fabric.solver().rate(added[s].var) * router_.flows_of_pair() : 0.0;
  traffic.is_solved = true;
  traffic.background = links_.background();
}

bool GroupTraffic::uses_fabric(GroupPattern pattern) const {
  return !of(pattern).stages.empty();
}

bool GroupTraffic::uses_fabric() const {
  return std::any_of(group_patterns.begin(), group_patterns.end(),
                     [&](GroupPattern pattern) { return uses_fabric(pattern); });
}

double GroupTraffic::bytes_of_flow(GroupPattern pattern, double bytes) const {
  const bool is_ring =
      pattern == GroupPattern::tensor_ring || pattern == GroupPattern::context_ring;
  const double n = size(pattern);
  return bytes * (is_ring ? (n - 1) / n : 1.0) / router_.flows_of_pair();
}

void GroupTraffic::add_bytes(GroupPattern pattern, int stage, double bytes,
                             std::vector<double>& by_link) const {
  for_each_load(pattern, stage, bytes,
                [&](LinkId link, double moved) { by_link[link.index()] += moved; });
}

void GroupTraffic::for_each_user(GroupPattern pattern, int stage, double bytes,
                                 const std::vector<bool>& links, const User& f) const {
  if (!uses_fabric(pattern)) return;
  const double of_flow = bytes_of_flow(pattern, bytes);
  for (const Group& group : of(pattern).stages[std::size_t(stage)].groups) {
    if (!any_load(group.loads, links)) continue;
    for_each_connection(pattern, group,
                        [&](GpuId from, GpuId to, std::uint64_t label, double weight) {
                          add_connection(router_, from, to, label, [&](LinkId link, double w) {
                            if (links[link.index()]) f(link, from, to, w * weight * of_flow);
                          });
                        });
  }
}

bool GroupTraffic::uses(const std::vector<bool>& links) const {
  for (const Traffic& traffic : traffic_)
    for (const Stage& stage : traffic.stages)
      for (const Group& group : stage.groups)
        if (any_load(group.loads, links)) return true;
  return false;
}

std::optional<std::pair<GpuId, GpuId>> GroupTraffic::cut_pair() const {
  for (const Traffic& traffic : traffic_)
    for (const Stage& stage : traffic.stages)
      for (const Group& group : stage.groups)
        if (group.cut) return group.cut;
  return {};
}

void GroupTraffic::forget(const std::vector<bool>& links) {
  for (Traffic& traffic : traffic_)
    for (Stage& stage : traffic.stages)
      for (Group& group : stage.groups)
        if (group.is_detour || any_load(group.loads, links)) group.hosts.clear();
}

void GroupTraffic::clear() {
  for (Traffic& traffic : traffic_)
    for (Stage& stage : traffic.stages)
      for (Group& group : stage.groups) group.hosts.clear();
}

}  // namespace trainyard::models
