#pragma once

#include <list>
#include <map>
#include <vector>

#include "topologies/routes.hpp"

/// Routes of a fabric of any shape: the shortest, in hops, over what works.
///
/// Where a packet is and where it goes decide its next hop, as forwarding tables do. For the
/// switches at which a NIC is plugged, one breadth-first search gives every switch its distance d;
/// a link from v to w is a next hop if d(w) = d(v) - 1. Distances are searched when first asked for
/// and kept, the least recently used forgotten beyond 64 MB.
///
///     ecmp      at each hop the link whose hash with the flow is the highest (rendezvous hashing,
///               Thaler and Ravishankar 1998): a flow whose link works keeps it, the others spread
///     static    the same with a hash of the destination alone
///     spray     split evenly over the next hops, parallel cables each
///     adaptive  split in proportion to their capacity
///
/// After a failure the distances are those of what still works: unlike the routes of regular
/// fabrics these take any detour there is. Page: docs/models/custom-fabric.md.
namespace trainyard::topologies {

class GraphRoutes final : public Routes {
 public:
  GraphRoutes(const Fabric&, const LinkState&, RoutePolicy);

  int flows_of_pair() const override;
  bool path(NicId from, NicId to, std::uint64_t label, int queue_pair,
            std::vector<LinkId>& out) const override;
  bool visit_loads(NicId from, NicId to, std::uint64_t label, double flows,
                   LoadVisitor visit) const override;
  bool has_path(NicId from, NicId to) const override;
  std::vector<LinkId> cut(NicId from, NicId to) const override;
  void state_changed() override;

 private:
  using Hops = std::vector<std::uint32_t>;    // of each switch to the destination
  using Target = std::vector<std::uint32_t>;  // switches from which its NIC is reached, ascending
  struct Entry {
    Hops hops;
    std::list<const Target*>::iterator use;
  };

  Target target(NicId to) const;
  const Hops& hops_to(NicId to) const;
  Hops search(const Target&) const;
  /// Next hops of a switch, or of the NIC itself, in the order of their numbers.
  void next_hops(VertexId at, NicId to, const Hops&, std::vector<LinkId>& out) const;
  void first_hops(NicId from, const Hops&, std::vector<LinkId>& out) const;
  std::size_t index(VertexId v) const { return v.index() - first_switch_; }
  void split(NicId from, NicId to, double flows, LoadVisitor visit) const;

  std::size_t first_switch_;
  std::size_t most_entries_;
  // What was searched; routes of one Router are asked by one thread.
  mutable std::map<Target, Entry> known_;
  mutable std::list<const Target*> used_;  // the latest first
  mutable std::vector<double> share_;      // of each switch, zero between calls
};

}  // namespace trainyard::topologies
