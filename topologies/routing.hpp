#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "topologies/fabric.hpp"

/// Paths through a fat tree. They are computed from the numbering, not looked up: no tables.
///
/// A route goes up only as far as it must (leaf, spine or core) and then down, so all routes of a
/// pair have the same length and are shortest paths. Among the equal next hops:
///
///     ecmp    each hop takes one by a hash of (seed, from, to, label, queue pair, hop); a
///     connection
///             has `flows_per_pair` queue pairs, hashed apart. Collisions are real.
///     spray   every hop splits evenly over all of them (packets or flowlets, adaptive routing at
///     its
///             best); the weights are fractions of a flow.
///
///     Router router(fabric, RoutingKind::ecmp, seed, 4);
///     router.for_each_load(a, b, label, 1.0, [&](LinkId l, double w) { weight[l] += w; });
///     // each of router.flows_of_pair() flows then carries  bytes / flows_of_pair()
///
/// After a failure a hop counts only if the rest of the route behind it works. A flow whose choice
/// still works keeps its path ("resilient hashing"); the others draw again among what is left.
/// No detours: where no route of the usual length works, there is none. Page:
/// docs/models/routing.md.
namespace trainyard::topologies {

class Router {
 public:
  Router(const Fabric& fabric, RoutingKind kind, std::uint64_t seed, int flows_per_pair);

  const Fabric& fabric() const { return *fabric_; }
  RoutingKind kind() const { return kind_; }
  /// Flows into which one connection is divided: flows_per_pair hashed, 1 if sprayed.
  int flows_of_pair() const { return kind_ == RoutingKind::ecmp ? flows_per_pair_ : 1; }

  /// What is up. Changing it changes the routes from the next call on.
  LinkState& state() { return state_; }
  const LinkState& state() const { return state_; }
  void set_up(LinkId l, bool up) { state_.set_up(l, up); }

  /// The links of one hashed path, in order; none when from == to. False, and `out` empty, if there
  /// is no path. `label` tells flows of one pair apart (channel, tree, …).
  bool path(NicId from, NicId to, std::uint64_t label, std::vector<LinkId>& out,
            int queue_pair = 0) const;

  /// Calls f(LinkId, double weight) for what one connection puts on links: each of its
  /// flows_of_pair() flows has weight `flows`. A link may be named more than once. False, and
  /// nothing called, if there is no path.
  template <class F>
  bool for_each_load(NicId from, NicId to, std::uint64_t label, double flows, F&& f) const {
    using Plain = std::remove_reference_t<F>;
    return visit_loads(
        from, to, label, flows,
        [](void* context, LinkId l, double w) { (*static_cast<Plain*>(context))(l, w); },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

  bool has_path(NicId from, NicId to) const;

  /// Why there is no path: failed links that separate the two, nearest to `from` first. They alone
  /// would cut the pair, and none of them could be left out. Empty if there is a path.
  std::vector<LinkId> cut(NicId from, NicId to) const;

  /// Delay of a path: every switch and cable on it once.
  Duration latency(const std::vector<LinkId>& path) const;

 private:
  using Visit = void (*)(void*, LinkId, double);
  struct Ends;  // the two leaves and pods of a pair

  bool visit_loads(NicId from, NicId to, std::uint64_t label, double flows, Visit visit,
                   void* context) const;
  void spray(const Ends&, double flows, Visit visit, void* context) const;
  void spray_around_failures(const Ends&, double flows, Visit visit, void* context) const;

  Ends ends(NicId from, NicId to) const;
  bool is_up(LinkId l) const { return state_.is_up(l); }

  // Next hops of a route, and whether the route works from that hop on.
  LinkId spine_down(int spine, int leaf, int parallel) const;
  LinkId core_down(int core, const Ends&, int choice) const;
  int spine_below(int core, const Ends&, int choice) const;
  int core_above(int spine, int uplink) const;
  int spine_above(int leaf, int uplink) const;
  bool reaches_leaf(int spine, int leaf) const;
  bool goes_down(int core, const Ends&, int choice) const;
  bool goes_over_core(int spine, int uplink, const Ends&) const;
  bool goes_up(const Ends&, int uplink) const;

  const Fabric* fabric_;
  const FatTreeShape* shape_;
  RoutingKind kind_;
  std::uint64_t seed_;
  int flows_per_pair_;
  LinkState state_;
};

}  // namespace trainyard::topologies
