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

/// Flows of somebody else beside the step, each with this rate unless its fair share of a link is
/// less (docs/models/store-traffic.md). Other servers' flows are not coupled: every link is looked
/// at by itself.
struct Background {
  double flow_Bps = 0;
  std::vector<double> flows;  // on every link of the fabric
};

/// Adds loads by link without a map: one slot for every link of the fabric, cleared by the list of
/// those in use. Knows who else is on the links.
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

  /// Variables on links that are numbered from 0, in the order in which they are first met.
  struct Numbered {
    struct Entry {
      std::uint32_t link;  // its number
      double weight;
    };
    std::vector<topologies::LinkId> links;
    std::vector<Entry> entries;        // of all variables
    std::vector<std::uint32_t> first;  // by variable, and one more: where its entries begin
    std::vector<bool> is_there;        // by variable: not an empty place
    std::size_t variables() const { return is_there.size(); }
    std::span<const Entry> of(std::size_t variable) const {
      return {entries.data() + first[variable], first[variable + 1] - first[variable]};
    }
  };
  /// An empty place (null) stays one.
  Numbered number(std::span<const LinkLoads* const> variables);

  /// From now on these flows share the links. None: as if nobody did.
  void set_background(std::vector<Background> background);
  /// Which background this is: another number whenever another one was set, 0 without any. What was
  /// solved beside one of them holds for that one.
  std::uint64_t background() const { return background_.empty() ? 0 : background_number_; }
  /// What is left of `capacity_Bps` for `flows` flows that want all they can get: all flows on the
  /// link share it max-min, those of the background with their rates as caps.
  double left_Bps(topologies::LinkId link, double capacity_Bps, double flows) const;

 private:
  static constexpr std::uint32_t none = 0xffffffffu;
  std::vector<std::uint32_t> slot_;
  bool is_collecting_ = false;
  std::vector<Background> background_;  // the slowest flows first
  std::uint64_t background_number_ = 0;
};

/// The GPU of the sender's server by whose adapter a connection leaves: the sender itself, or, if
/// its adapter is on a rail that does not lead to the receiver's (rail-only fabrics), the first
/// whose does (NCCL's PXN). The sender if there is none.
topologies::GpuId relay_of(const topologies::Router& router, topologies::GpuId from,
                           topologies::GpuId to);

/// What one connection between two GPUs puts on links: `add(link, weight)`. Inside a server it goes
/// over the scale-up switch, in as many flows as a connection over the fabric has, so that one
/// variable fits both. False: there is no path.
template <class Add>
bool add_connection(const topologies::Router& router, topologies::GpuId from, topologies::GpuId to,
                    std::uint64_t label, Add&& add) {
  const topologies::Fabric& fabric = router.fabric();
  const bool leaves = fabric.host_of(from) != fabric.host_of(to);
  const topologies::GpuId relay = leaves ? relay_of(router, from, to) : to;
  if (leaves && !router.for_each_load(fabric.nic_of(relay), fabric.nic_of(to), label, 1.0, add))
    return false;
  std::vector<topologies::LinkId> inside;
  fabric.scale_up_path(from, relay, inside);
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
  FabricSolver(const topologies::Router& router, const ServerSpec& server, LinkTable& table)
      : router_(router),
        table_(table),
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
  /// so the solver stays small. Of every link there is what the table's background leaves of it to
  /// those that run together: `at_once` variables one after the other in the list (0: all). Once.
  std::vector<Added> add_together(std::span<const LinkLoads* const> variables,
                                  std::size_t at_once = 0) {
    return add_together(table_.number(variables), at_once);
  }
  std::vector<Added> add_together(const LinkTable::Numbered& variables, std::size_t at_once = 0);
  MaxMin& solver() { return solver_; }

 private:
  const topologies::Router& router_;
  LinkTable& table_;
  double nic_efficiency_;
  double scale_up_efficiency_;
  MaxMin solver_;
};

}  // namespace trainyard::models
