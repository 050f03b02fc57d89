#pragma once

#include <map>
#include <utility>
#include <vector>

#include "topologies/dragonfly_groups.hpp"
#include "topologies/routes.hpp"

/// Paths through a dragonfly or dragonfly+, computed from the numbering.
///
///     minimal   to the group of the receiver over any global link between the two groups: at most
///               local – global – local; within a group one way (dragonfly_groups.hpp)
///     Valiant   minimal to a random other group, to whichever gateway the global link ends at, and
///               from there minimal: local – global – local – global – local at most
///
/// `ecmp` hashes each queue pair onto one global link, `minimal` and `spray` share evenly among
/// them, `valiant` evenly among the intermediate groups, `ugal` splits every pair of groups between
/// minimal and Valiant (dragonfly_ugal.hpp). Within a group all of them are minimal. A route counts
/// only if all of it works. If no minimal route is left, `spray` and `ugal` take Valiant ones, and
/// within a group of a dragonfly ways over a third router; `valiant` does the reverse; `ecmp` and
/// `minimal` have no path then.
namespace trainyard::topologies {

class DragonflyRoutes final : public Routes {
 public:
  DragonflyRoutes(const Fabric&, const LinkState&, RoutePolicy);

  int flows_of_pair() const override;
  bool path(NicId from, NicId to, std::uint64_t label, int queue_pair,
            std::vector<LinkId>& out) const override;
  bool visit_loads(NicId from, NicId to, std::uint64_t label, double flows,
                   LoadVisitor visit) const override;
  bool has_path(NicId from, NicId to) const override;
  std::vector<LinkId> cut(NicId from, NicId to) const override;
  void adapt_to(std::span<const Demand>) override;
  void state_changed() override;

  /// Of the traffic between two different groups, what goes the minimal way if both work.
  double minimal_share(int from_group, int to_group) const;

 private:
  using Place = DragonflyGroups::Place;
  using GlobalLink = DragonflyGroups::GlobalLink;
  struct Gateway {
    int at;
    double links;  // that work
  };
  struct Legs;  // of the Valiant routes over one group

  bool may_detour() const;
  int intermediate(Place from, Place to, int n) const;

  bool is_joined(int group, int a, int b) const;
  bool leaves(Place from, const GlobalLink&) const;  // the local way and the global link work
  bool arrives(const GlobalLink&, Place to) const;
  bool has_minimal(Place from, Place to) const;
  bool has_detour(Place from, Place to) const;  // other than minimal
  Legs legs(Place from, Place to, int group) const;
  double share_of_minimal(Place from, Place to) const;  // with what works; negative: no path

  void spread(int group, int a, int b, double w, LoadVisitor visit) const;
  void visit_minimal(Place from, Place to, double w, LoadVisitor visit) const;
  void visit_detour(Place from, Place to, double w, LoadVisitor visit) const;
  void visit_over(Place from, Place to, int group, double w, LoadVisitor visit) const;
  void hop(int group, int a, int b, std::uint64_t hash, int step, std::vector<LinkId>& out) const;
  void minimal_path(Place from, Place to, std::uint64_t hash, std::vector<LinkId>& out) const;
  void detour_path(Place from, Place to, std::uint64_t hash, std::vector<LinkId>& out) const;

  void settle();

  DragonflyGroups groups_;
  std::map<std::pair<Place, Place>, double> demand_;  // by edge switches
  std::vector<double> shares_;                        // ugal, by pair of groups; empty: 1
};

}  // namespace trainyard::topologies
