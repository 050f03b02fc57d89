#pragma once

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
/// At a boundary every replica sends at the same moment of the schedule, so all replicas of one
/// boundary and direction are active together and share links max-min. Within one replica the
/// tensor-parallel ranks send a slice each and the next stage starts when all slices are there: one
/// coupled variable a replica (docs/models/fluid-network.md). Replicas are never coupled to each
/// other. Transfers of other boundaries fall into other moments of the schedule; they do not
/// overlap while a transfer is shorter than one chunk of compute, which the step model checks and
/// reports.
///
///     time of replica d = message + path latency + bytes per flow / x_d,   x = max-min rates of
///     the boundary's replicas
///
/// Page: docs/models/step.md. Cost: replicas x tensor ranks x queue pairs x hops a boundary;
/// results are kept by the servers at both ends, so a replaced server costs its own boundaries
/// only.
namespace trainyard::models {

/// One direction of one boundary: seconds of the transfer of each replica; `no_path` names those
/// that have none.
struct BoundaryTimes {
  std::vector<double> seconds;                                 // [replica]
  std::vector<int> no_path;                                    // replicas cut off
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // first GPUs at both ends
};

class BoundaryTraffic {
 public:
  BoundaryTraffic(const Plan& plan, const ServerSpec& server, const topologies::Router& router,
                  LinkTable& links);

  /// Bytes that one tensor-parallel rank sends for one micro-batch.
  double bytes_per_rank() const { return bytes_per_rank_; }

  /// From every replica's `from_stage` to its `to_stage`. `servers`: of the job, in rank order. The
  /// reference stays good until the next call of clear().
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
    for (int replica = 0; replica < plan_.data; ++replica)
      for (const auto& [link, weight] : pair(servers, replica, from_stage, to_stage).loads)
        if (links[link.index()])
          f(link, gpu_of(servers, replica, 0, from_stage), gpu_of(servers, replica, 0, to_stage),
            weight * bytes_per_rank_ / router_.flows_of_pair() * transfers);
  }
  bool uses(std::span<const topologies::HostId> servers, int from_stage, int to_stage,
            const std::vector<bool>& links);

  /// Forgets what depends on these links, by link: after they failed, came back or changed their
  /// rate.
  void forget(const std::vector<bool>& links);
  void clear();

 private:
  struct Pair {
    LinkLoads loads;         // empty: there is no path
    double latency_s = 0;    // of the path: switches and cables
    bool is_detour = false;  // made while something was down: any change may change it
  };
  /// The transfer of one replica. Kept by the GPUs at both ends.
  const Pair& pair(std::span<const topologies::HostId> servers, int replica, int from_stage,
                   int to_stage);
  topologies::GpuId gpu_of(std::span<const topologies::HostId> servers, int replica, int tensor,
                           int stage) const;
  BoundaryTimes solve(std::span<const topologies::HostId> servers, int from_stage, int to_stage);

  const Plan& plan_;
  const ServerSpec& server_;
  const topologies::Router& router_;
  LinkTable& links_;
  double bytes_per_rank_;
  std::map<std::vector<std::uint32_t>, BoundaryTimes> known_;  // by stages and servers at both ends
  std::map<std::pair<std::uint32_t, std::uint32_t>, Pair> pairs_;
};

}  // namespace trainyard::models
