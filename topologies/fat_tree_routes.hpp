#pragma once

#include <array>
#include <optional>
#include <vector>

#include "topologies/fat_tree_ways.hpp"
#include "topologies/routes.hpp"

/// Routes of a fat tree, with rails and two ports a NIC too.
///
/// A route goes up only as far as it must (leaf, spine or core) and then down, so all routes of a
/// pair have the same length and are shortest paths. No detours: where no route of the usual length
/// works, there is none. One exception: two NICs whose ports share leaves, but not one that works
/// for both, meet over a spine.
///
/// What a way is: fat_tree_ways.hpp. A hop counts if it is up and the rest behind it works.
///
///     ecmp       the hop  reduce(hash, n)  of the n there are
///     fixed      D-mod-k (Zahavi 2012): with position D of the destination, leaf by leaf, uplink
///                D mod u of a leaf, uplink floor(D/u) mod v of a spine, and the same cables down
///     spray      every hop that counts gets an equal share
///     adaptive   a share in proportion to what the hop can carry:
///
///                  carries(v→w)  = min(sum of the cables v→w, behind(w)), over cables by capacity
///                  behind(v)     = min(sum over w of carries(v→w), sum over x of behind(x))
///
///                with w one and x two switches further on; the NICs' own links do not count, but
///                a port of the receiver at half rate takes half of the other's share.
namespace trainyard::topologies {

class FatTreeRoutes final : public Routes {
 public:
  FatTreeRoutes(const Fabric&, const LinkState&, RoutePolicy);

  int flows_of_pair() const override;
  bool path(NicId from, NicId to, std::uint64_t label, int queue_pair,
            std::vector<LinkId>& out) const override;
  bool visit_loads(NicId from, NicId to, std::uint64_t label, double flows,
                   LoadVisitor visit) const override;
  bool has_path(NicId from, NicId to) const override;
  bool is_wired(NicId from, NicId to) const override;
  std::vector<LinkId> cut(NicId from, NicId to) const override;

 private:
  using Place = FatTreeWays::Place;
  using PlaceValues = std::array<std::vector<double>, FatTreeWays::stages>;  // by stage and index

  /// The ways that are in use; none if nothing works.
  std::optional<FatTreeWays> working_ways(NicId from, NicId to) const;
  bool leads(const FatTreeWays&, Place) const;
  bool counts(const FatTreeWays&, const FatTreeWays::Hop&) const;

  // fat_tree_spread.cpp
  void spread_evenly(const FatTreeWays&, double flows, LoadVisitor visit) const;
  void spread(const FatTreeWays&, double flows, LoadVisitor visit) const;
  /// Weight of each hop of a place; empty if none counts. `behind`: of adaptive routing.
  void weigh(const FatTreeWays&, Place, const PlaceValues* behind, std::vector<double>& out) const;
  PlaceValues what_lies_behind(const FatTreeWays&) const;

  /// Position of a NIC when they are counted leaf by leaf.
  int position(NicId) const;

  const FatTreeShape& tree_;
  bool is_even_;  // all uplinks of a leaf are equally fast
};

}  // namespace trainyard::topologies
