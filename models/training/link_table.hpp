#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/compute/server_spec.hpp"
#include "models/network/max_min.hpp"
#include "sim/check.hpp"
#include "topologies/fabric.hpp"
#include "topologies/routing.hpp"

/// Between the fabric's links and a solver's: a scratch table that adds up what a group of flows
/// puts on each link.
namespace trainyard::models {

/// Weight on each link of one variable, in the order in which links were first met.
using LinkLoads = std::vector<std::pair<topologies::LinkId, double>>;

/// Adds loads by link without a map: one slot for every link of the fabric, cleared by the list of
/// those in use.
class LinkTable {
 public:
  explicit LinkTable(std::size_t links) : slot_(links, none) {}

  /// Sums what `visit(add)` adds; `add(link, weight)`.
  template <class Visit>
  LinkLoads collect(Visit&& visit) {
    check(!is_collecting_, "a link table adds up one thing at a time");
    is_collecting_ = true;
    LinkLoads loads;
    visit([&](topologies::LinkId link, double weight) {
      std::uint32_t& at = slot_[link.index()];
      if (at == none) {
        at = static_cast<std::uint32_t>(loads.size());
        loads.emplace_back(link, 0.0);
      }
      loads[at].second += weight;
    });
    for (const auto& [link, weight] : loads) slot_[link.index()] = none;
    is_collecting_ = false;
    return loads;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;
  std::vector<std::uint32_t> slot_;
  bool is_collecting_ = false;
};

/// What one connection between two GPUs puts on links: `add(link, weight)`. Inside a server it goes
/// over the scale-up switch, in as many flows as a connection over the fabric has, so that one
/// variable fits both. False: there is no path.
template <class Add>
bool add_connection(const topologies::Router& router, topologies::GpuId from, topologies::GpuId to,
                    std::uint64_t label, Add&& add) {
  const topologies::Fabric& fabric = router.fabric();
  if (fabric.host_of(from) != fabric.host_of(to))
    return router.for_each_load(fabric.nic_of(from), fabric.nic_of(to), label, 1.0, add);
  std::vector<topologies::LinkId> inside;
  fabric.scale_up_path(from, to, inside);
  for (const topologies::LinkId link : inside) add(link, double(router.flows_of_pair()));
  return true;
}

/// Delay of its switches and cables.
double connection_latency_s(const topologies::Router& router, topologies::GpuId from,
                            topologies::GpuId to, std::uint64_t label);

/// A solver over those links of the fabric that somebody uses, with its capacities scaled by
/// `efficiency` (what protocols leave of the line rate).
class FabricSolver {
 public:
  FabricSolver(const topologies::Router& router, const ServerSpec& server)
      : router_(router),
        nic_efficiency_(server.nic.efficiency),
        scale_up_efficiency_(server.gpu.calibration.scale_up_efficiency) {}

  /// What collectives and transfers get out of a link.
  double capacity_Bps(topologies::LinkId link) const;
  /// A variable, and a link of its own that holds what no rate of it can pass: the share of the
  /// most loaded of its links. Setting its capacity to zero stops the variable at little cost.
  struct Added {
    VarIndex var;  // invalid: nothing to add
    LinkIndex own;
    double own_Bps = 0;
  };
  /// One variable for each; an empty place (null) gets none. Links that cannot bind are left out,
  /// so the solver stays small.
  std::vector<Added> add_together(std::span<const LinkLoads* const> variables);
  MaxMin& solver() { return solver_; }
  /// The solver's link for one of the fabric.
  LinkIndex index(topologies::LinkId link);

 private:
  const topologies::Router& router_;
  double nic_efficiency_;
  double scale_up_efficiency_;
  MaxMin solver_;
  std::vector<LinkIndex> of_;  // by fabric link
};

}  // namespace trainyard::models
