#pragma once

#include <array>
#include <compare>

#include "topologies/dragonfly_cables.hpp"
#include "topologies/fabric.hpp"

/// A dragonfly and a dragonfly+ seen alike, so that one routing serves both: groups of switches,
/// numbered from 0 within their group (dragonfly+: leaves, then spines), some of them gateways with
/// global links.
///
/// A *way* leads from one switch of a group to another inside the group: in a dragonfly one of the
/// parallel local cables; in a dragonfly+ a cable between leaf and spine, or two by way of any
/// spine (between leaves) or any leaf (between spines).
namespace trainyard::topologies {

class DragonflyGroups {
 public:
  explicit DragonflyGroups(const Fabric&);

  struct Place {
    int group, at;
    auto operator<=>(const Place&) const = default;
  };
  struct GlobalLink {
    LinkId link;
    int from, to;  // gateways, each within its group
  };
  struct Way {
    std::array<LinkId, 2> links;
    int hops;  // 0: the two are one
  };

  int groups() const { return cables_.groups(); }
  Place place(NicId) const;
  int links_between(int group, int other) const { return cables_.between(group, other); }
  GlobalLink global_link(int group, int other, int n) const;

  /// Ways from a to b; one of no hops if they are the same switch.
  int ways(int a, int b) const;
  Way way(int group, int a, int b, int n) const;
  /// Longer ways between routers of a dragonfly, by way of a third.
  int detours(int a, int b) const;
  Way detour(int group, int a, int b, int n) const;

 private:
  LinkId local(int group, int a, int b, int n) const;          // dragonfly
  LinkId uplink(int group, int leaf, int spine, int n) const;  // dragonfly+

  const Fabric& fabric_;
  GlobalCables cables_;
  bool is_plus_ = false;
  int edges_ = 0;   // routers or leaves of a group
  int spines_ = 0;  // dragonfly+
  int bundle_ = 1;  // parallel cables
  std::size_t first_global_ = 0;
};

}  // namespace trainyard::topologies
