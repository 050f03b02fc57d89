#include "models/training/data_traffic.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "models/network/collectives/tuner.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

// A ring across servers, besides its steps between them (NicSpec::latency): launch of one call, and
// a step inside a server. Fitted to published rings over several servers
// (docs/models/data-traffic.md).
constexpr double base_s = 10e-6;
constexpr double step_inside_s = 2e-6;

}  // namespace

DataTraffic::DataTraffic(const Plan& plan, const ServerSpec& server,
                         const topologies::Router& router, LinkTable& links, double data_rate)
    : server_(server),
      router_(router),
      links_(links),
      scale_up_(link_constants(server.gpu.scale_up_rate, server.gpu.peak_fp8 > FlopsPerSecond(0),
                               server.nic.rate)) {
  set_rate(data_rate);
  for (int stage = 0; stage < plan.pipeline; ++stage)
    servers_of_stage_.push_back(models::servers_of_stage(plan, stage, server.gpus));
  for (std::size_t k = 0; k < ring_kinds; ++k) {
    Kind& kind = kinds_[k];
    kind.size = ring_size(plan, RingKind(k));
    for (int stage = 0; stage < plan.pipeline; ++stage)
      kind.layouts.push_back(ring_layout(plan, stage, RingKind(k), server.gpus, shapes_));
    kind.rings.resize(kind.layouts.size());
  }
}

void DataTraffic::set_rate(double data_rate) {
  check(data_rate > 0, "traffic moves at some rate", data_rate);
  data_rate_ = data_rate;
}

int DataTraffic::servers_of_group(RingKind ring) const {
  int most = 1;
  for (const RingLayout& layout : of(ring).layouts) most = std::max(most, layout.servers);
  return most;
}

double DataTraffic::bytes_of_flow(double bytes, int stage, RingKind ring) const {
  const double n = of(ring).size;
  return bytes * (n - 1) / n / (layout(stage, ring).channels * router_.flows_of_pair());
}

DataTraffic::Call DataTraffic::call(int stage, RingKind ring, double bytes) const {
  const int n = size(ring), servers = layout(stage, ring).servers;
  Call call;
  call.bytes_of_flow = bytes_of_flow(bytes, stage, ring) / data_rate_;
  if (servers > 1) {
    const double between_s = to_seconds(server_.nic.latency) + placed(stage, ring).path_latency_s;
    call.fixed_s = base_s + (n - servers) * step_inside_s + (servers - 1) * between_s;
  } else if (n > 1) {
    const auto ranks = std::size_t(n);
    LinkConstants constants = scale_up_;
    constants.ring_efficiency = server_.gpu.calibration.scale_up_efficiency;
    const std::optional<CollectiveCost> cost =
        best(CollectiveKind::reduce_scatter, bytes, {ranks, ranks}, constants);
    check(cost.has_value(), "there is a way to reduce inside a server");
    call.fixed_s = cost->latency_s + cost->fill_s;
    // The protocol of short messages leaves less of the links than the solver's capacities.
    call.bytes_of_flow *= constants.ring_efficiency / cost->inside_efficiency;
  }
  return call;
}

double DataTraffic::latency_s(int stage, RingKind ring, double bytes) const {
  return call(stage, ring, bytes).fixed_s;
}

const DataTraffic::Edge& DataTraffic::edge(const EdgeKey& key) {
  if (const auto found = edges_.find(key); found != edges_.end()) return found->second;
  Edge made;
  made.is_detour = router_.state().is_changed();
  const RingConnections& connections = shapes_[int(key.shape)];
  bool connected = true;
  made.loads = links_.collect([&](auto&& add) {
    for (const RingConnection& c : connections)
      connected &= add_connection(
          router_, gpu(key.from, c.from), gpu(key.to, c.to), std::uint64_t(c.channel) + 1,
          [&](topologies::LinkId link, double weight) { add(link, weight * c.weight); });
  });
  if (connected) {
    const RingConnection& first = connections.front();
    made.latency_s = connection_latency_s(router_, gpu(key.from, first.from), gpu(key.to, first.to),
                                          std::uint64_t(first.channel) + 1);
  } else {
    made.loads.clear();
  }
  return edges_.emplace(key, std::move(made)).first->second;
}

DataTraffic::Ring DataTraffic::make_ring(const RingLayout& layout,
                                         std::span<const topologies::HostId> servers) {
  const topologies::Fabric& fabric = router_.fabric();
  const auto host = [&](int server) { return servers[std::size_t(server)]; };
  Ring ring;
  std::vector<const Edge*> edges;
  for (const RingLayout::Edge& e : layout.edges) {
    ring.edges.push_back({std::uint32_t(host(e.from).index()), std::uint32_t(host(e.to).index()),
                          std::uint32_t(e.shape)});
    edges.push_back(&edge(ring.edges.back()));
    ring.connected &= !edges.back()->loads.empty();
    ring.path_latency_s = std::max(ring.path_latency_s, edges.back()->latency_s);
  }
  if (!ring.connected) return ring;
  ring.loads = links_.collect([&](auto&& add) {
    for (const Edge* e : edges)
      for (const auto& [link, weight] : e->loads) add(link, weight);
    // Through the scale-up switch: every channel visits every member.
    const double weight = double(layout.channels) * router_.flows_of_pair();
    for (const int rank : layout.passing) {
      const topologies::LinkId up = fabric.scale_up_uplink(
          fabric.gpu(host(rank / server_.gpus), std::size_t(rank % server_.gpus)));
      add(up, weight);
      add(topologies::Fabric::reverse(up), weight);
    }
  });
  return ring;
}

bool DataTraffic::place(std::span<const topologies::HostId> servers) {
  bool connected = true, is_new = false;
  std::vector<std::uint32_t> hosts;
  for (std::size_t stage = 0; stage < servers_of_stage_.size(); ++stage) {
    hosts.clear();
    for (const int server : servers_of_stage_[stage])
      hosts.push_back(std::uint32_t(servers[std::size_t(server)].index()));
    for (Kind& kind : kinds_) {
      if (kind.size < 2) continue;
      Ring& ring = kind.rings[stage];
      if (ring.servers != hosts) {
        ring = make_ring(kind.layouts[stage], servers);
        ring.servers = hosts;
        is_new = true;
      }
      connected &= ring.connected;
    }
  }
  // Calibration changes what links achieve, and others on them do.
  if (is_new || scale_up_efficiency_ != server_.gpu.calibration.scale_up_efficiency ||
      background_ != links_.background())
    fabric_.reset();
  return connected;
}

void DataTraffic::make_solver() {
  std::vector<const LinkLoads*> loads;
  for (const Kind& kind : kinds_)
    for (const Ring& ring : kind.rings) loads.push_back(kind.size < 2 ? nullptr : &ring.loads);
  fabric_ = std::make_unique<FabricSolver>(router_, server_, links_);
  scale_up_efficiency_ = server_.gpu.calibration.scale_up_efficiency;
  background_ = links_.background();
  // Of one stage one collective at a time, of whatever kind: the kinds are never all there.
  const std::vector<FabricSolver::Added> added =
      fabric_->add_together(loads, servers_of_stage_.size());
  auto next = added.begin();
  for (Kind& kind : kinds_) {
    kind.moved.assign(next, next + std::ptrdiff_t(kind.rings.size()));
    next += std::ptrdiff_t(kind.rings.size());
    for (const FabricSolver::Added& variable : kind.moved)
      if (variable.var.is_valid()) fabric_->solver().set_capacity(variable.own, 0.0);
  }
  fabric_->solver().solve();
}

void DataTraffic::play(std::vector<std::vector<StageCollective>>& stages) {
  struct State {
    std::size_t next = 0;  // collective in progress or waited for
    double start_s = 0;    // of its fluid part
    double left = 0;       // bytes of a flow
    double settled_s = 0;
    const FabricSolver::Added* moving = nullptr;
  };
  if (!fabric_) make_solver();
  const std::size_t n = stages.size();
  std::vector<State> state(n);
  const auto is_waiting = [&](std::size_t s) {
    return !state[s].moving && state[s].next < stages[s].size();
  };
  const auto wait_for_next = [&](std::size_t s, double now) {
    State& st = state[s];
    st.moving = nullptr;
    for (; st.next < stages[s].size(); ++st.next) {
      StageCollective& c = stages[s][st.next];
      now = std::max(now, c.ready_s);
      if (size(c.ring) > 1 && c.bytes > 0) {
        const Call call = this->call(int(s), c.ring, c.bytes);
        st.start_s = now + call.fixed_s;
        st.left = call.bytes_of_flow;
        return;
      }
      c.finish_s = now;
    }
  };
  for (std::size_t s = 0; s < n; ++s) wait_for_next(s, 0.0);
  const double never = std::numeric_limits<double>::infinity();
  for (double now = 0;;) {
    double next = never;
    for (std::size_t s = 0; s < n; ++s) {
      const State& st = state[s];
      if (st.moving)
        next = std::min(next, st.settled_s + st.left / fabric_->solver().rate(st.moving->var));
      else if (is_waiting(s))
        next = std::min(next, st.start_s);
    }
    if (next == never) break;
    check(next >= now, "collectives of a stage follow each other in time", next, now);
    now = next;
    MaxMin& solver = fabric_->solver();
    for (std::size_t s = 0; s < n; ++s) {
      State& st = state[s];
      if (st.moving) {
        const double rate = solver.rate(st.moving->var);
        if (st.settled_s + st.left / rate <= now * (1 + 1e-15)) {  // done: what is left is zero
          solver.set_capacity(st.moving->own, 0.0);
          stages[s][st.next++].finish_s = now;
          wait_for_next(s, now);
        } else {
          st.left -= rate * (now - st.settled_s);
          st.settled_s = now;
        }
      }
      if (is_waiting(s) && st.start_s <= now) {
        st.moving = &of(stages[s][st.next].ring).moved[s];
        st.settled_s = now;
        solver.set_capacity(st.moving->own, st.moving->own_Bps);
      }
    }
    solver.solve();
  }
  for (std::size_t s = 0; s < n; ++s)
    check(state[s].next == stages[s].size(), "every collective ends", s);
}

std::vector<double> DataTraffic::steady_s(double bytes, RingKind ring) {
  std::vector<double> seconds(servers_of_stage_.size(), 0.0);
  if (size(ring) < 2) return seconds;
  if (!fabric_) make_solver();
  const std::vector<FabricSolver::Added>& moved = of(ring).moved;
  MaxMin& solver = fabric_->solver();
  for (const FabricSolver::Added& variable : moved)
    solver.set_capacity(variable.own, variable.own_Bps);
  solver.solve();
  for (std::size_t s = 0; s < seconds.size(); ++s) {
    seconds[s] = call(int(s), ring, bytes).bytes_of_flow / solver.rate(moved[s].var);
    solver.set_capacity(moved[s].own, 0.0);
  }
  solver.solve();
  return seconds;
}

bool DataTraffic::uses(const std::vector<bool>& links) const {
  for (const Kind& kind : kinds_)
    for (const Ring& ring : kind.rings)
      for (const auto& [link, weight] : ring.loads)
        if (links[link.index()]) return true;
  return false;
}

std::optional<std::pair<topologies::GpuId, topologies::GpuId>> DataTraffic::cut_pair() const {
  const topologies::Fabric& fabric = router_.fabric();
  for (const Kind& kind : kinds_)
    for (const Ring& ring : kind.rings)
      for (const EdgeKey& key : ring.edges) {
        if (!edges_.at(key).loads.empty()) continue;
        const RingConnections& connections = shapes_[int(key.shape)];
        const auto ends = [&](const RingConnection& c) {
          return std::pair(gpu(key.from, c.from), gpu(key.to, c.to));
        };
        for (const RingConnection& c : connections) {
          const auto [from, to] = ends(c);
          if (!router_.has_path(fabric.nic_of(relay_of(router_, from, to)), fabric.nic_of(to)))
            return ends(c);
        }
        return ends(connections.front());
      }
  return {};
}

void DataTraffic::forget(const std::vector<bool>& links) {
  const auto is_named = [&](topologies::LinkId link) { return bool(links[link.index()]); };
  std::set<EdgeKey> forgotten;
  for (auto at = edges_.begin(); at != edges_.end();) {
    const Edge& edge = at->second;
    const bool depends =
        edge.is_detour || std::any_of(edge.loads.begin(), edge.loads.end(),
                                      [&](const auto& load) { return is_named(load.first); });
    if (depends) forgotten.insert(at->first);
    at = depends ? edges_.erase(at) : std::next(at);
  }
  // A ring inside servers has no edges, but loads.
  const auto depends = [&](const Ring& ring) {
    return std::any_of(ring.edges.begin(), ring.edges.end(),
                       [&](const EdgeKey& key) { return forgotten.contains(key); }) ||
           std::any_of(ring.loads.begin(), ring.loads.end(),
                       [&](const auto& load) { return is_named(load.first); });
  };
  for (Kind& kind : kinds_)
    for (Ring& ring : kind.rings)
      if (depends(ring)) ring = Ring{};
}

void DataTraffic::clear() {
  edges_.clear();
  fabric_.reset();
  for (Kind& kind : kinds_)
    for (Ring& ring : kind.rings) ring = Ring{};
}

}  // namespace trainyard::models
