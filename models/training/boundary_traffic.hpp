#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "models/compute/server_spec.hpp"
#include "models/training/link_table.hpp"
#include "models/training/plan.hpp"
#include "topologies/fabric.hpp"
#include "topologies/routing.hpp"

/// Transfers between pipeline stages on the real fabric: how long each replica's takes.
///
/// A replica here is one (data, context) coordinate: the ranks of one tensor-parallel group and
/// those of the next stage. At a boundary every replica sends at the same moment of the schedule,
/// so all replicas of one boundary and direction are active together and share links max-min.
/// Within one replica the tensor-parallel ranks send a slice each and the next stage starts when
/// all slices are there: one coupled variable a replica (docs/models/fluid-network.md). Replicas
/// are never coupled to each other. Transfers of other boundaries fall into other moments of the
/// schedule; they do not overlap while a transfer is shorter than one chunk of compute, which the
/// step model checks and reports.
///
///     time of replica r = message + path latency + bytes per flow / x_r,   x = max-min rates of
///     the boundary's replicas;   r = data · (context size) + context
///
/// Pages: docs/models/step.md, docs/models/data-traffic.md (rank orders). Cost: replicas x tensor
/// ranks x queue pairs x hops a boundary; results are kept by the servers at both ends, so a
/// replaced server costs its own boundaries only.
namespace trainyard::models {

/// One direction of one boundary: seconds of the transfer of each replica; `no_path` names those
/// that have none.
struct BoundaryTimes {
  std::vector<double> seconds;                                 // [data * context size + context]
  std::vector<int> no_path;                                    // replicas cut off
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // first GPUs at both ends
  /// Of each replica in no_path: two GPUs without a path.
  std::vector<std::pair<topologies::GpuId, topologies::GpuId>> cut;
};

class BoundaryTraffic {
 public:
  BoundaryTraffic(const Plan& plan, const ServerSpec& server, const topologies::Router& router,
                  LinkTable& links);

  /// Bytes that one rank sends for one micro-batch.
  double bytes_per_rank() const { return bytes_per_rank_; }
  int replicas() const { return plan_.weight_replicas(); }

  /// From every replica's `from_stage` to its `to_stage`. `servers`: of the job, in rank order. The
  /// reference stays good until the next call of clear() or forget().
  const BoundaryTimes& times(std::span<const topologies::HostId> servers, int from_stage,
                             int to_stage);

  /// Adds the bytes of `micro_batches` transfers of every replica to `bytes` (by link).
  void add_bytes(std::span<const topologies::HostId> servers, int from_stage, int to_stage,
                 double transfers, std::vector<double>& bytes);

  /// Who puts bytes on which of these links in `transfers` transfers of every replica: calls
  /// f(link, from, to, bytes).
  template <class F>
  void for_each_user(std::span<const topologies::HostId> servers, int from_stage, int to_stage,
                     double transfers, const std::vector<bool>& links, F&& f) {
    const Way& way = this->way(servers, from_stage, to_stage);
    for (int replica = 0; replica < replicas(); ++replica)
      for (const auto& [link, weight] : way.pairs[std::size_t(replica)]->loads)
        if (links[link.index()])
          f(link, gpu_of(servers, replica, 0, from_stage), gpu_of(servers, replica, 0, to_stage),
            weight * bytes_per_rank_ / router_.flows_of_pair() * transfers);
  }
  /// What all replicas together put on links: f(link, number of flows).
  template <class F>
  void for_each_load(std::span<const topologies::HostId> servers, int from_stage, int to_stage,
                     F&& f) {
    for (const Pair* pair : way(servers, from_stage, to_stage).pairs)
      for (const auto& [link, weight] : pair->loads) f(link, weight);
  }
  double bytes_of_flow() const { return bytes_per_rank_ / router_.flows_of_pair(); }
  bool uses(std::span<const topologies::HostId> servers, int from_stage, int to_stage,
            const std::vector<bool>& links);

  /// Forgets what depends on these links, by link: after they failed, came back or changed their
  /// rate.
  void forget(const std::vector<bool>& links);
  void clear();
  /// Forgets everything if that is much.
  void trim() {
    if (pairs_.size() > pairs_kept || known_.size() > times_kept) clear();
  }
  /// The GPU of a replica's rank.
  topologies::GpuId gpu_of(std::span<const topologies::HostId> servers, int replica, int tensor,
                           int stage) const;

 private:
  static constexpr std::size_t pairs_kept = 16'384;
  static constexpr std::size_t times_kept = 4'096;
  struct Pair {
    LinkLoads loads;         // empty: there is no path
    double latency_s = 0;    // of the path: switches and cables
    bool is_detour = false;  // made while something was down: any change may change it
  };
  /// The first GPUs at both ends name the transfer if the others are in the same servers at a fixed
  /// distance; else the servers of the others, too.
  struct PairKey {
    std::pair<std::uint32_t, std::uint32_t> first;
    std::vector<std::uint32_t> others;
    friend auto operator<=>(const PairKey&, const PairKey&) = default;
  };
  /// One direction of one boundary on the servers that were asked for last.
  struct Way {
    std::vector<topologies::HostId> servers;  // at both ends
    std::vector<const Pair*> pairs;           // by replica; empty: not known
    LinkTable::Numbered numbered;             // of them; no variables: not yet
  };
  Way& way(std::span<const topologies::HostId> servers, int from_stage, int to_stage);
  /// The transfer of one replica.
  const Pair& pair(std::span<const topologies::HostId> servers, int replica, int from_stage,
                   int to_stage);
  PairKey key(std::span<const topologies::HostId> servers, int replica, int from_stage,
              int to_stage) const;
  std::pair<topologies::GpuId, topologies::GpuId> cut_pair(
      std::span<const topologies::HostId> servers, int replica, int from_stage, int to_stage) const;
  int rank_of(int replica, int tensor, int stage) const;
  BoundaryTimes solve(std::span<const topologies::HostId> servers, int from_stage, int to_stage);

  const Plan& plan_;
  const ServerSpec& server_;
  const topologies::Router& router_;
  LinkTable& links_;
  double bytes_per_rank_;
  int tensor_stride_;
  double scale_up_efficiency_ = 0;  // of the known times
  std::uint64_t background_ = 0;    // beside which those with somebody else there were found
  bool spans_servers_ = false;      // some tensor-parallel group does
  std::vector<int> first_ranks_;    // of tensor coordinate 0, [stage * replicas + replica]
  std::vector<std::vector<int>> servers_of_stage_;
  // By whether somebody else was there, stages and servers at both ends.
  std::map<std::vector<std::uint32_t>, BoundaryTimes> known_;
  std::map<PairKey, Pair> pairs_;
  std::map<std::pair<int, int>, Way> ways_;  // by stages
};

}  // namespace trainyard::models
