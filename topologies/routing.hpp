#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "topologies/fabric.hpp"
#include "topologies/routes.hpp"

/// Paths through a fabric. On regular fabrics they are computed from the numbering, not looked up:
/// no tables.
///
///     ecmp      each hop takes one of the equal next hops by a hash of (seed, from, to, label,
///               queue pair, hop); a connection has `flows_per_pair` queue pairs, hashed apart.
///               Collisions are real.
///     spray     every hop splits evenly over all of them (packets or flowlets, adaptive routing at
///               its best); the weights are fractions of a flow.
///     adaptive, static, minimal, valiant, ugal: docs/models/routing.md
///
///     Router router(fabric, RoutingKind::ecmp, seed, 4);
///     router.for_each_load(a, b, label, 1.0, [&](LinkId l, double w) { weight[l] += w; });
///     // each of router.flows_of_pair() flows then carries  bytes / flows_of_pair()
///
/// After a failure a hop counts only if the rest of the route behind it works. A flow whose choice
/// still works keeps its path ("resilient hashing"); the others draw again among what is left.
/// Page: docs/models/routing.md.
namespace trainyard::topologies {

class Router {
 public:
  Router(const Fabric& fabric, RoutingKind kind, std::uint64_t seed, int flows_per_pair);

  const Fabric& fabric() const { return *fabric_; }
  RoutingKind kind() const { return kind_; }
  /// Flows into which one connection is divided: flows_per_pair hashed, 1 if spread over paths.
  int flows_of_pair() const { return routes_->flows_of_pair(); }
  /// On an intact fabric, two servers at the same edge switch have the same loads elsewhere.
  bool treats_neighbours_alike() const;

  /// What is up. To change it: change().
  const LinkState& state() const { return *state_; }
  /// Changes what is up; routes differ from the next call on.
  template <class F>
  void change(F&& f) {
    f(*state_);
    routes_->state_changed();
  }
  void set_up(LinkId l, bool up) {
    change([&](LinkState& s) { s.set_up(l, up); });
  }
  /// The traffic that UGAL expects; other routing ignores it.
  void adapt_to(std::span<const Demand> traffic) { routes_->adapt_to(traffic); }

  /// The links of one hashed path, in order; none when from == to. False, and `out` empty, if there
  /// is no path. `label` tells flows of one pair apart (channel, tree, …).
  bool path(NicId from, NicId to, std::uint64_t label, std::vector<LinkId>& out,
            int queue_pair = 0) const;

  /// Calls f(LinkId, double weight) for what one connection puts on links: each of its
  /// flows_of_pair() flows has weight `flows`. A link may be named more than once. False, and
  /// nothing called, if there is no path.
  template <class F>
  bool for_each_load(NicId from, NicId to, std::uint64_t label, double flows, F&& f) const {
    if (from == to) return true;
    using Plain = std::remove_reference_t<F>;
    const LoadVisitor visit(
        [](void* context, LinkId l, double w) { (*static_cast<Plain*>(context))(l, w); },
        const_cast<void*>(static_cast<const void*>(&f)));
    return routes_->visit_loads(from, to, label, flows, visit);
  }

  bool has_path(NicId from, NicId to) const { return from == to || routes_->has_path(from, to); }
  /// Whether the cabling joins the two at all, whatever has failed. If not, traffic must first
  /// change rails over the scale-up switch of a server (rail-only fabrics).
  bool is_wired(NicId from, NicId to) const { return from == to || routes_->is_wired(from, to); }

  /// Why there is no path: failed links that separate the two, nearest to `from` first. They alone
  /// would cut the pair, and none of them could be left out. Empty if there is a path, and for a
  /// pair that is not wired.
  std::vector<LinkId> cut(NicId from, NicId to) const;

  /// Delay of a path: every switch and cable on it once.
  Duration latency(const std::vector<LinkId>& path) const;

 private:
  const Fabric* fabric_;
  RoutingKind kind_;
  std::unique_ptr<LinkState> state_;  // at one address: the routes look at it
  std::unique_ptr<Routes> routes_;
};

}  // namespace trainyard::topologies
