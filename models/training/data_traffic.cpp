#include "models/training/data_traffic.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "models/network/collectives/alone.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

DataTraffic::DataTraffic(const Plan& plan, const ServerSpec& server,
                         const topologies::Router& router, LinkTable& links)
    : plan_(plan),
      server_(server),
      router_(router),
      links_(links),
      rings_(std::size_t(plan.pipeline)) {
  // Uneven groups are cut into equal pieces, none of which spans two servers.
  group_members_ = std::gcd(plan_.data, std::max(1, server_.gpus / plan_.tensor));
  group_servers_ = plan_.data / group_members_;
  const AloneConstants constants;
  latency_s_ = constants.base_s + (plan_.data - group_servers_) * constants.step_s +
               (group_servers_ - 1) * to_seconds(server_.nic.latency);
}

double DataTraffic::latency_s(int stage) const {
  return latency_s_ + (group_servers_ - 1) * rings_[std::size_t(stage)].path_latency_s;
}

double DataTraffic::bytes_of_flow(double bytes) const {
  return bytes * (plan_.data - 1) / plan_.data / (group_members_ * router_.flows_of_pair());
}

DataTraffic::Ring DataTraffic::make_ring(std::span<const topologies::HostId> servers, int stage) {
  const topologies::Fabric& fabric = router_.fabric();
  const auto gpu_of = [&](int tensor, int data) {
    const int rank = plan_.rank_of({.tensor = tensor, .data = data, .pipeline = stage});
    return fabric.gpu(servers[std::size_t(rank / server_.gpus)], std::size_t(rank % server_.gpus));
  };
  Ring ring;
  // What one server of the ring sends to the next: every channel of every tensor-parallel rank's
  // group.
  const auto edge = [&](int from, int to) -> const Edge& {
    const EdgeKey key{gpu_of(0, from * group_members_).index(),
                      gpu_of(0, to * group_members_).index()};
    ring.edges.push_back(key);
    auto found = edges_.find(key);
    if (found == edges_.end()) {
      Edge made;
      made.is_detour = router_.state().is_changed();
      bool connected = true;
      made.loads = links_.collect([&](auto&& add) {
        for (int tensor = 0; tensor < plan_.tensor; ++tensor)
          for (int channel = 0; channel < group_members_; ++channel)
            connected &= add_connection(router_, gpu_of(tensor, from * group_members_ + channel),
                                        gpu_of(tensor, to * group_members_ + channel),
                                        std::uint64_t(channel) + 1, add);
      });
      if (connected)
        made.latency_s = connection_latency_s(router_, gpu_of(0, from * group_members_),
                                              gpu_of(0, to * group_members_), 1);
      else
        made.loads.clear();
      found = edges_.emplace(key, std::move(made)).first;
    }
    return found->second;
  };
  std::vector<const Edge*> edges;
  for (int server = 0; group_servers_ > 1 && server < group_servers_; ++server) {
    edges.push_back(&edge(server, (server + 1) % group_servers_));
    ring.connected &= !edges.back()->loads.empty();
    ring.path_latency_s = std::max(ring.path_latency_s, edges.back()->latency_s);
  }
  if (!ring.connected) return ring;
  ring.loads = links_.collect([&](auto&& add) {
    for (const Edge* e : edges)
      for (const auto& [link, weight] : e->loads) add(link, weight);
    if (group_members_ > 1) {  // through the scale-up switch: every channel visits every member
      const double weight = double(group_members_) * router_.flows_of_pair();
      for (int data = 0; data < group_servers_ * group_members_; ++data)
        for (int tensor = 0; tensor < plan_.tensor; ++tensor) {
          const topologies::LinkId up = fabric.scale_up_uplink(gpu_of(tensor, data));
          add(up, weight);
          add(topologies::Fabric::reverse(up), weight);
        }
    }
  });
  return ring;
}

bool DataTraffic::place(std::span<const topologies::HostId> servers) {
  bool connected = true, is_new = false;
  if (plan_.data < 2) return true;
  const int stage_ranks = plan_.tensor * plan_.data;
  std::vector<std::uint32_t> of_stage;
  for (int stage = 0; stage < plan_.pipeline; ++stage) {
    of_stage.clear();
    const int first = stage * stage_ranks / server_.gpus,
              last = ((stage + 1) * stage_ranks - 1) / server_.gpus;
    for (int s = first; s <= last; ++s)
      of_stage.push_back(std::uint32_t(servers[std::size_t(s)].index()));
    Ring& ring = rings_[std::size_t(stage)];
    if (ring.servers != of_stage) {
      ring = make_ring(servers, stage);
      ring.servers = of_stage;
      is_new = true;
    }
    connected &= ring.connected;
  }
  if (is_new) fabric_.reset();
  if (connected && !fabric_) make_solver();
  return connected;
}

void DataTraffic::make_solver() {
  std::vector<const LinkLoads*> loads;
  for (const Ring& ring : rings_) loads.push_back(&ring.loads);
  fabric_ = std::make_unique<FabricSolver>(router_, server_, links_);
  vars_ = fabric_->add_together(loads);
  for (const FabricSolver::Added& added : vars_) fabric_->solver().set_capacity(added.own, 0.0);
  fabric_->solver().solve();
}

void DataTraffic::play(std::vector<std::vector<StageCollective>>& stages) {
  if (plan_.data < 2) {
    for (auto& stage : stages)
      for (StageCollective& c : stage) c.finish_s = c.ready_s;
    return;
  }
  MaxMin& solver = fabric_->solver();
  const std::size_t n = stages.size();
  struct State {
    std::size_t next = 0;  // collective in progress or waited for
    double start_s = 0;    // of its fluid part
    double left = 0;       // bytes of a flow
    double settled_s = 0;
    bool moving = false;
  };
  std::vector<State> state(n);
  const auto wait_for_next = [&](std::size_t s, double now) {
    State& st = state[s];
    st.moving = false;
    if (st.next < stages[s].size())
      st.start_s = std::max(now, stages[s][st.next].ready_s) + latency_s(int(s));
  };
  for (std::size_t s = 0; s < n; ++s) wait_for_next(s, 0.0);
  const double never = std::numeric_limits<double>::infinity();
  for (double now = 0;;) {
    double next = never;
    for (std::size_t s = 0; s < n; ++s) {
      const State& st = state[s];
      if (st.moving)
        next = std::min(next, st.settled_s + st.left / solver.rate(vars_[s].var));
      else if (st.next < stages[s].size())
        next = std::min(next, st.start_s);
    }
    if (next == never) break;
    check(next >= now, "collectives of a stage follow each other in time", next, now);
    now = next;
    for (std::size_t s = 0; s < n; ++s) {
      State& st = state[s];
      if (st.moving) {
        const double rate = solver.rate(vars_[s].var);
        if (st.settled_s + st.left / rate <= now * (1 + 1e-15)) {  // done: what is left is zero
          stages[s][st.next++].finish_s = now;
          wait_for_next(s, now);
          if (!(st.next < stages[s].size() && st.start_s <= now))
            solver.set_capacity(vars_[s].own, 0.0);
        } else {
          st.left -= rate * (now - st.settled_s);
          st.settled_s = now;
        }
      }
      if (!st.moving && st.next < stages[s].size() && st.start_s <= now) {
        st.moving = true;
        st.left = bytes_of_flow(stages[s][st.next].bytes);
        st.settled_s = now;
        solver.set_capacity(vars_[s].own, vars_[s].own_Bps);
      }
    }
    solver.solve();
  }
  for (std::size_t s = 0; s < n; ++s)
    check(state[s].next == stages[s].size(), "every collective ends", s);
}

std::vector<double> DataTraffic::steady_s(double bytes) {
  std::vector<double> seconds(rings_.size(), 0.0);
  if (plan_.data < 2) return seconds;
  MaxMin& solver = fabric_->solver();
  for (std::size_t s = 0; s < rings_.size(); ++s)
    solver.set_capacity(vars_[s].own, vars_[s].own_Bps);
  solver.solve();
  for (std::size_t s = 0; s < rings_.size(); ++s) {
    seconds[s] = bytes_of_flow(bytes) / solver.rate(vars_[s].var);
    solver.set_capacity(vars_[s].own, 0.0);
  }
  solver.solve();
  return seconds;
}

void DataTraffic::add_bytes(int stage, double bytes, std::vector<double>& by_link) const {
  for (const auto& [link, weight] : rings_[std::size_t(stage)].loads)
    by_link[link.index()] += weight * bytes_of_flow(bytes);
}

bool DataTraffic::uses(const std::vector<bool>& links) const {
  return std::any_of(rings_.begin(), rings_.end(), [&](const Ring& ring) {
    return std::any_of(ring.loads.begin(), ring.loads.end(),
                       [&](const auto& load) { return links[load.first.index()]; });
  });
}

std::optional<std::pair<topologies::GpuId, topologies::GpuId>> DataTraffic::cut_pair() const {
  for (const Ring& ring : rings_)
    for (const EdgeKey& key : ring.edges)
      if (edges_.at(key).loads.empty())
        return std::pair(topologies::GpuId(key.first), topologies::GpuId(key.second));
  return {};
}

void DataTraffic::forget(const std::vector<bool>& links) {
  std::set<EdgeKey> forgotten;
  for (auto at = edges_.begin(); at != edges_.end();) {
    const Edge& edge = at->second;
    const bool depends =
        edge.is_detour || std::any_of(edge.loads.begin(), edge.loads.end(),
                                      [&](const auto& load) { return links[load.first.index()]; });
    if (depends) forgotten.insert(at->first);
    at = depends ? edges_.erase(at) : std::next(at);
  }
  for (Ring& ring : rings_)
    if (std::any_of(ring.edges.begin(), ring.edges.end(),
                    [&](const EdgeKey& key) { return forgotten.contains(key); }))
      ring = Ring{};
}

void DataTraffic::clear() {
  edges_.clear();
  fabric_.reset();
  for (Ring& ring : rings_) ring = Ring{};
}

}  // namespace trainyard::models
