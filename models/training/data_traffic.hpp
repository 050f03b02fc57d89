#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/compute/server_spec.hpp"
#include "models/network/collectives/link_generation.hpp"
#include "models/training/link_table.hpp"
#include "models/training/plan.hpp"
#include "models/training/ring_layout.hpp"
#include "topologies/fabric.hpp"
#include "topologies/routing.hpp"

/// Data-parallel traffic on the real fabric: ring reduce-scatters and all-gathers of every pipeline
/// stage at once, over the ranks that share weights or experts (ring_layout.hpp).
///
/// The ranks of a group advance in lock-step, so a ring is one variable x, the rate of one flow of
/// it (docs/models/fluid-network.md). The groups of one stage and kind start together with equal
/// bytes: they are merged into one variable, which keeps the time of the last of them exactly. Ring
/// of n ranks over N servers with k channels:
///
///     bytes of one flow    = (n - 1)/n · S / (k · queue pairs),   S = bytes of the whole tensor
///     time, across servers = 10 us + (n - N) · 2 us + (N - 1) · (NIC + path) + bytes / (rate · x)
///     time, in one server  = latency and fill of NCCL's ring (tuner.hpp)     + bytes / (rate · x)
///
/// `rate` is SoftwareSpec::data_rate. Stages run their collectives in order, one at a time, of
/// whatever kind, and share links max-min with the other stages.
///
///     DataTraffic data(plan, server, router, links, software.data_rate);
///     if (!data.place(servers)) return cut_off(*data.cut_pair());
///     data.play(stages);                                 // fills in finish_s
///
/// Page: docs/models/data-traffic.md.
namespace trainyard::models {

/// One collective of one stage: it may start when `ready_s`, in the order given. An all-reduce is
/// twice the bytes. No bytes: nothing to do.
struct StageCollective {
  double ready_s = 0;
  double bytes = 0;     // S: of the whole tensor that one group reduces or gathers
  double finish_s = 0;  // filled in by play()
  RingKind ring = RingKind::shards;
};

class DataTraffic {
 public:
  DataTraffic(const Plan& plan, const ServerSpec& server, const topologies::Router& router,
              LinkTable& links, double data_rate = 1.0);

  /// What the stack achieves over what the network gives (SoftwareSpec::data_rate). Between plays.
  void set_rate(double data_rate);

  /// Takes the job's servers, in rank order. False if some ring has no path: nothing can be
  /// reduced.
  bool place(std::span<const topologies::HostId> servers);

  /// Plays the collectives of all stages, [stage] in their order; fills in finish_s.
  void play(std::vector<std::vector<StageCollective>>& stages);

  /// Seconds of one collective of `bytes` in every stage at once, without latency: for traffic that
  /// never pauses (FSDP).
  std::vector<double> steady_s(double bytes, RingKind ring = RingKind::shards);
  /// Seconds of a collective of `bytes` beyond its bytes over a rate. Across servers they do not
  /// depend on the bytes; in one server the default is a long message.
  double latency_s(int stage, RingKind ring = RingKind::shards, double bytes = 1 << 30) const;
  /// Ranks of one group; 1: nothing to do.
  int size(RingKind ring = RingKind::shards) const { return of(ring).size; }
  /// Servers of one group, of the group with most; 1: all live inside scale-up domains.
  int servers_of_group(RingKind ring = RingKind::shards) const;

  /// Adds what a collective of `bytes` (S) of `stage` moves, by link.
  void add_bytes(int stage, double bytes, std::vector<double>& by_link,
                 RingKind ring = RingKind::shards) const {
    for_each_load(
        stage, bytes,
        [&](topologies::LinkId link, double moved) { by_link[link.index()] += moved; }, ring);
  }

  /// Who puts bytes on which of these links in a collective of `bytes` of `stage`: calls
  /// f(link, from, to, bytes), two GPUs for all connections between their servers. What the members
  /// of one server pass on to each other is not named.
  template <class F>
  void for_each_user(int stage, double bytes, const std::vector<bool>& links, F&& f,
                     RingKind ring = RingKind::shards) const {
    const double per_flow = bytes_of_flow(bytes, stage, ring);
    for (const EdgeKey& key : placed(stage, ring).edges)
      for (const auto& [link, weight] : edges_.at(key).loads)
        if (links[link.index()]) {
          const RingConnection& first = shapes_[int(key.shape)].front();
          f(link, gpu(key.from, first.from), gpu(key.to, first.to), weight * per_flow);
        }
  }
  template <class F>
  void for_each_load(int stage, double bytes, F&& f, RingKind ring = RingKind::shards) const {
    const double per_flow = bytes_of_flow(bytes, stage, ring);
    for (const auto& [link, weight] : placed(stage, ring).loads) f(link, weight * per_flow);
  }
  /// Every connection between two servers: calls f(from, to, bytes). Needs no placement.
  template <class F>
  void for_each_connection(std::span<const topologies::HostId> servers, int stage, double bytes,
                           F&& f, RingKind ring = RingKind::shards) const {
    const double per_connection = bytes_of_flow(bytes, stage, ring) * router_.flows_of_pair();
    for (const RingLayout::Edge& edge : layout(stage, ring).edges)
      for (const RingConnection& c : shapes_[edge.shape])
        f(router_.fabric().gpu(servers[std::size_t(edge.from)], std::size_t(c.from)),
          router_.fabric().gpu(servers[std::size_t(edge.to)], std::size_t(c.to)),
          per_connection * c.weight);
  }
  /// What every flow of a collective of `bytes` moves.
  double bytes_of_flow(double bytes, int stage, RingKind ring) const;
  bool uses(const std::vector<bool>& links) const;
  /// The first pair of GPUs without a path, after place() said that there is one.
  std::optional<std::pair<topologies::GpuId, topologies::GpuId>> cut_pair() const;

  /// Forgets what depends on these links, by link: after they failed, came back or changed their
  /// rate.
  void forget(const std::vector<bool>& links);
  void clear();
  /// Forgets everything if that is much.
  void trim() {
    if (edges_.size() > edges_kept) clear();
  }
  /// The next play begins with a new solver, whose last bits owe nothing to earlier plays.
  void solve_afresh() { fabric_.reset(); }

 private:
  static constexpr std::size_t edges_kept = 8'192;
  /// All connections from one server to another in the rings of a stage and kind; stages and kinds
  /// that have the same ones share them.
  struct EdgeKey {
    std::uint32_t from = 0;  // hosts
    std::uint32_t to = 0;
    std::uint32_t shape = 0;
    friend auto operator<=>(const EdgeKey&, const EdgeKey&) = default;
  };
  struct Edge {
    LinkLoads loads;         // empty: there is no path
    double latency_s = 0;    // switches and cables
    bool is_detour = false;  // made while something was down: any change may change it
  };
  /// The rings of one kind in one stage, on the present servers.
  struct Ring {
    std::vector<std::uint32_t> servers;  // of the stage
    LinkLoads loads;
    std::vector<EdgeKey> edges;
    bool connected = true;
    double path_latency_s = 0;  // of its longest edge: every step waits for it
  };
  struct Kind {
    int size = 1;
    std::vector<RingLayout> layouts;         // by stage
    std::vector<Ring> rings;                 // by stage
    std::vector<FabricSolver::Added> moved;  // variables by stage
  };
  /// A collective's two parts.
  struct Call {
    double fixed_s = 0;
    double bytes_of_flow = 0;  // at the full rate of its variable
  };

  const Kind& of(RingKind ring) const { return kinds_[std::size_t(ring)]; }
  const RingLayout& layout(int stage, RingKind ring) const {
    return of(ring).layouts[std::size_t(stage)];
  }
  const Ring& placed(int stage, RingKind ring) const { return of(ring).rings[std::size_t(stage)]; }
  topologies::GpuId gpu(std::uint32_t host, int local) const {
    return router_.fabric().gpu(topologies::HostId(host), std::size_t(local));
  }
  const Edge& edge(const EdgeKey& key);
  Ring make_ring(const RingLayout& layout, std::span<const topologies::HostId> servers);
  Call call(int stage, RingKind ring, double bytes) const;
  /// One variable for each kind and stage, all standing still.
  void make_solver();

  const ServerSpec& server_;
  const topologies::Router& router_;
  LinkTable& links_;
  double data_rate_ = 1;
  LinkConstants scale_up_;          // without what is calibrated
  double scale_up_efficiency_ = 0;  // of the present solver
  std::uint64_t background_ = 0;    // beside which it was made
  RingShapes shapes_;
  std::vector<std::vector<int>> servers_of_stage_;
  std::array<Kind, ring_kinds> kinds_;
  std::unique_ptr<FabricSolver> fabric_;  // of the present placement
  std::map<EdgeKey, Edge> edges_;
};

}  // namespace trainyard::models
