#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/compute/server_spec.hpp"
#include "models/training/link_table.hpp"
#include "models/training/plan.hpp"
#include "topologies/fabric.hpp"
#include "topologies/routing.hpp"

/// Data-parallel traffic on the real fabric: ring reduce-scatters and all-gathers of every pipeline
/// stage at once.
///
/// The ranks of a data-parallel group advance in lock-step, so a ring is one variable x, the rate
/// of one flow of it (docs/models/fluid-network.md). The groups of one stage (one a tensor-parallel
/// rank) start together with equal bytes: they are merged into one variable a stage, which keeps
/// the time of the last of them exactly. Ring over N servers with k members each: k channels;
/// channel c enters and leaves every server by the NIC of its c-th member and crosses the scale-up
/// domain between them:
///
///     bytes of one flow = (n - 1)/n · S / (k · queue pairs),   n = N k ranks, S = bytes of the
///     whole tensor time              = base + (n - N) · 2 us + (N - 1) · 10 us + bytes / x
///
/// Stages run their collectives in order, one at a time, and share links max-min with the other
/// stages. Page: docs/models/step.md; source of the latency terms: docs/models/collectives.md.
namespace trainyard::models {

/// One collective of one stage: it may start when `ready_s`, in the order given.
struct StageCollective {
  double ready_s = 0;
  double bytes = 0;     // S: of the whole tensor that one group reduces or gathers
  double finish_s = 0;  // filled in by play()
};

class DataTraffic {
 public:
  DataTraffic(const Plan& plan, const ServerSpec& server, const topologies::Router& router,
              LinkTable& links);

  /// Takes the job's servers, in rank order. False if some ring has no path: nothing can be
  /// reduced.
  bool place(std::span<const topologies::HostId> servers);

  /// Plays the collectives of all stages, [stage] in their order; fills in finish_s.
  void play(std::vector<std::vector<StageCollective>>& stages);

  /// Seconds of one collective of `bytes` in every stage at once, without latency: for traffic that
  /// never pauses (FSDP).
  std::vector<double> steady_s(double bytes);
  double latency_s(int stage) const;
  /// Servers of one group; 1: the group lives inside a scale-up domain.
  int servers_of_group() const { return group_servers_; }

  /// Adds what a collective of `bytes` (S) of `stage` moves, by link.
  void add_bytes(int stage, double bytes, std::vector<double>& by_link) const;

  /// Who puts bytes on which of these links in a collective of `bytes` of `stage`: calls
  /// f(link, from, to, bytes). What the members of one server pass on to each other is not named.
  template <class F>
  void for_each_user(int stage, double bytes, const std::vector<bool>& links, F&& f) const {
    for (const EdgeKey& key : rings_[std::size_t(stage)].edges)
      for (const auto& [link, weight] : edges_.at(key).loads)
        if (links[link.index()])
          f(link, topologies::GpuId(key.first), topologies::GpuId(key.second),
            weight * bytes_of_flow(bytes));
  }
  template <class F>
  void for_each_load(int stage, double bytes, F&& f) const {
    for (const auto& [link, weight] : rings_[std::size_t(stage)].loads)
      f(link, weight * bytes_of_flow(bytes));
  }
  bool uses(const std::vector<bool>& links) const;
  /// The first pair of GPUs without a path, after place() said that there is one.
  std::optional<std::pair<topologies::GpuId, topologies::GpuId>> cut_pair() const;

  /// Forgets what depends on these links, by link: after they failed, came back or changed their
  /// rate.
  void forget(const std::vector<bool>& links);
  void clear();

 private:
  using EdgeKey = std::pair<std::uint64_t, std::uint64_t>;  // first GPU at both ends
  struct Ring {
    std::vector<std::uint32_t> servers;  // of the stage
    LinkLoads loads;
    std::vector<EdgeKey> edges;
    bool connected = true;
    double path_latency_s = 0;  // of its longest edge: every step waits for it
  };
  /// From one server of a ring to the next.
  struct Edge {
    LinkLoads loads;         // empty: there is no path
    double latency_s = 0;    // switches and cables
    bool is_detour = false;  // made while something was down: any change may change it
  };
  Ring make_ring(std::span<const topologies::HostId> servers, int stage);
  double bytes_of_flow(double bytes) const;
  /// One variable a stage, all standing still.
  void make_solver();

  const Plan& plan_;
  const ServerSpec& server_;
  const topologies::Router& router_;
  LinkTable& links_;
  int group_members_ = 1;  // k: members of a group in one server
  int group_servers_ = 1;  // N
  double latency_s_ = 0;
  std::vector<Ring> rings_;                // by stage
  std::unique_ptr<FabricSolver> fabric_;   // of the present placement
  std::vector<FabricSolver::Added> vars_;  // by stage
  std::map<EdgeKey, Edge> edges_;
};

}  // namespace trainyard::models
