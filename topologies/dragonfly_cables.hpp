#pragma once

#include <cstddef>
#include <cstdint>

#include "topologies/fabric_spec.hpp"

/// Which router of which group has a cable to which: the global arrangement of a dragonfly, and of
/// the spines of a dragonfly+.
///
/// A group of `routers` with h global ports each numbers its L = routers*h ports router by router.
/// Ports are dealt out in rounds; in a full round each group gets one cable to each of the others,
/// in the order
///
///     absolute    group 0, 1, 2, … without itself: port k of group i leads to group k, or k+1 if
///                 k >= i
///     palm-tree   the groups below it, going down: port k of group i leads to group (i-k-1) mod g
///
/// so with g = L+1 groups there is one round, the arrangement of the papers. With fewer groups
/// there are floor(L/(g-1)) full rounds: parallel cables of a pair, on different routers. What is
/// left, r ports of each group, goes once to the r groups nearest by number (i-r/2 … i+r/2, and the
/// one opposite if r is odd), so pairs differ by one cable at most. If g and r are both odd the
/// ports do not pair off, and one of each group stays free.
///
///     GlobalCables c(9, 4, 2, Arrangement::absolute);
///     c.cable(0, 5, 0);   // from router 2 of group 0 (port 4) to router 0 of group 5 (port 0)
///
/// Sources: Kim, Dally, Scott, Abts, ISCA 2008; Camarero, Vallejo, Beivide, ACM TACO 11(4), 2014.
namespace trainyard::topologies {

class GlobalCables {
 public:
  GlobalCables(int groups, int routers, int ports_per_router, Arrangement);

  struct Cable {
    std::size_t index;              // 0 … count()-1, the same seen from both ends
    int router_here, router_there;  // within their groups
  };

  int groups() const { return groups_; }
  std::size_t count() const;
  /// Cables of a pair of different groups.
  int between(int here, int there) const { return rounds_ + (is_extra(here, there) ? 1 : 0); }
  /// The n-th of them.
  Cable cable(int here, int there, int n) const;

 private:
  int offset(int here, int there) const { return (there - here + groups_) % groups_; }
  bool is_extra(int here, int there) const;
  int rank(int here, int there, bool in_full_round) const;

  int groups_;
  int ports_per_router_;
  Arrangement arrangement_;
  int rounds_ = 0;             // full ones
  int half_ = 0;               // in the last round, neighbours on each side …
  bool has_opposite_ = false;  // … and the one opposite
};

}  // namespace trainyard::topologies
