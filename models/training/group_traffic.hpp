#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/compute/server_spec.hpp"
#include "models/network/collectives/tuner.hpp"
#include "models/training/comm_costs.hpp"
#include "models/training/link_table.hpp"
#include "models/training/plan.hpp"
#include "topologies/fabric.hpp"
#include "topologies/routing.hpp"

/// Traffic inside a layer: tensor-, context- and expert-parallel groups on the job's servers.
///
/// A group inside one server has the scale-up domain to itself: the closed forms of NCCL's tuner
/// (models/network/collectives/tuner.hpp). A group over several servers shares the fabric with all
/// groups of its kind in the job, which do the same at the same moment. They advance in lock-step,
/// so those of one pipeline stage are one variable x (docs/models/fluid-network.md); stages share
/// links max-min. With n ranks on N servers, k of them in each:
///
///     ring       k channels; channel c leaves and enters every server by the adapter of its c-th
///                member; x = bus bandwidth, time = latency + (n-1)/n · S / x
///     ring step  the last member in a server passes on to the first in the next: bytes / x
///     exchange   member c of a server to member c of every other, whoever the receiver is (NCCL's
///                PXN: it changes rails inside the server); x = what a rank sends to other servers
///
///     GroupTraffic groups(plan, server, router, links);
///     groups.costs();              // before it is placed: as if the fabric never blocked
///     if (groups.place(servers)) step_costs(gpu, plan, software, groups.costs()…);
///
/// Page: docs/models/group-traffic.md.
namespace trainyard::models {

/// What the groups of one kind do at once.
enum class GroupPattern {
  tensor_ring,   // all-gathers, reduce-scatters, all-reduces of tensor-parallel groups
  context_ring,  // all-gathers and reduce-scatters of context-parallel groups
  context_step,  // one step of the context ring
  expert_exchange
};
constexpr std::array<GroupPattern, 4> group_patterns{
    GroupPattern::tensor_ring, GroupPattern::context_ring, GroupPattern::context_step,
    GroupPattern::expert_exchange};

class GroupTraffic {
 public:
  GroupTraffic(const Plan& plan, const ServerSpec& server, const topologies::Router& router,
               LinkTable& links);

  /// Takes the job's servers, in rank order. False if some group has no path; the costs then stay
  /// as they were.
  bool place(std::span<const topologies::HostId> servers);

  /// One if all stages see the same, else one a stage. They hold no reference to this object.
  const std::vector<CommCosts>& costs() const { return costs_; }

  /// Some group spans servers.
  bool uses_fabric() const;
  bool uses_fabric(GroupPattern pattern) const;

  /// What one rank sends to other servers in an exchange.
  double exchange_bytes(int stage, const ExpertExchange& exchange) const;

  /// Adds what one operation of all groups of a stage moves, by link. `bytes`: of a ring S, the
  /// whole tensor (an all-reduce goes round twice: count it twice); of a step what a rank passes
  /// on; of an exchange exchange_bytes().
  void add_bytes(GroupPattern pattern, int stage, double bytes, std::vector<double>& by_link) const;
  template <class F>
  void for_each_load(GroupPattern pattern, int stage, double bytes, F&& f) const {
    const Traffic& traffic = of(pattern);
    if (traffic.stages.empty()) return;
    for (const auto& [link, weight] : traffic.stages[std::size_t(stage)].loads)
      f(link, weight * bytes_of_flow(pattern, bytes));
  }
  /// Who puts bytes on which of these links: f(link, from, to, bytes). What members of one server
  /// pass on to each other is not named.
  using User =
      std::function<void(topologies::LinkId, topologies::GpuId, topologies::GpuId, double)>;
  void for_each_user(GroupPattern pattern, int stage, double bytes, const std::vector<bool>& links,
                     const User& f) const;

  /// What every flow of such an operation moves.
  double bytes_of_flow(GroupPattern pattern, double bytes) const;
  bool uses(const std::vector<bool>& links) const;
  /// The first pair of GPUs without a path, after place() said that there is one.
  std::optional<std::pair<topologies::GpuId, topologies::GpuId>> cut_pair() const;

  /// Forgets what depends on these links: after they failed, came back or changed their rate.
  void forget(const std::vector<bool>& links);
  void clear();

 private:
  /// The members of a group in one server, ascending.
  struct Part {
    int server = 0;  // position among the job's servers
    std::vector<int> locals;
  };
  struct Group {
    std::vector<Part> parts;  // two or more, in rank order
    // Where it was last placed:
    std::vector<topologies::HostId> hosts;  // by part; empty: nowhere
    LinkLoads loads;
    std::optional<std::pair<topologies::GpuId, topologies::GpuId>> cut;
    double path_latency_s = 0;  // switches and cables of its longest connection
    bool is_detour = false;     // made while something was down: any change may change it
  };
  struct Stage {
    std::vector<Group> groups;  // those that span servers
    int servers = 1;            // N, of the most spread one
    LinkLoads loads;            // of all groups
    double path_latency_s = 0;
    double rate_Bps = 0;  // x times flows of a connection
  };
  struct Traffic {
    std::vector<Stage> stages;  // empty: no group spans servers, or the plan has no such traffic
    bool is_added_up = false;   // loads of the stages
    bool is_solved = false;
    std::uint64_t background = 0;  // beside which
  };
  using Connect = std::function<void(topologies::GpuId from, topologies::GpuId to,
                                     std::uint64_t label, double weight)>;

  const Traffic& of(GroupPattern pattern) const { return traffic_[std::size_t(pattern)]; }
  std::vector<std::vector<int>> ranks_of_groups(GroupPattern pattern, int stage) const;
  void find_groups(GroupPattern pattern);
  void for_each_connection(GroupPattern pattern, const Group& group, const Connect& f) const;
  bool put(GroupPattern pattern, Group& group, std::span<const topologies::HostId> servers);
  void solve(GroupPattern pattern);
  /// Bus bandwidth of a ring, or rate of a rank's adapter, with nobody else on the fabric.
  double alone_Bps(GroupPattern pattern, int servers) const;
  int size(GroupPattern pattern) const;

  void make_costs();
  GroupCosts ring_costs(GroupPattern pattern, int stage);
  std::function<double(double)> step_costs_of(int stage);
  std::function<double(const ExpertExchange&)> exchange_costs(int stage);
  /// What the tuner says, by bytes, shared by all copies of the costs.
  class Memo;
  std::shared_ptr<Memo> memo(CollectiveKind kind, CollectiveGroup group);

  const Plan& plan_;
  const ServerSpec& server_;
  const topologies::Router& router_;
  LinkTable& links_;
  LinkConstants constants_;
  std::array<Traffic, group_patterns.size()> traffic_;
  std::vector<CommCosts> costs_;
  std::vector<std::shared_ptr<Memo>> memos_;
};

}  // namespace trainyard::models
