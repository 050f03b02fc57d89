#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "topologies/fabric.hpp"

/// The routes of one kind of fabric: what Router asks. One implementation a kind, each computing
/// from the numbering (fat_tree_routes, dragonfly_routes, torus_routes) or, for a custom fabric,
/// searching the graph (graph_routes).
namespace trainyard::topologies {

struct RoutePolicy {
  RoutingKind kind = RoutingKind::ecmp;
  std::uint64_t seed = 1;
  int flows_per_pair = 1;
};

/// Traffic that adaptive routing expects (UGAL): bytes per second from one NIC to another.
struct Demand {
  NicId from, to;
  double rate = 1.0;  // relative: only ratios matter
};

/// Called with each link and its weight; a link may come more than once.
class LoadVisitor {
 public:
  using Call = void (*)(void*, LinkId, double);
  LoadVisitor(Call call, void* context) : call_(call), context_(context) {}
  void operator()(LinkId l, double weight) const { call_(context_, l, weight); }

 private:
  Call call_;
  void* context_;
};

class Routes {
 public:
  Routes(const Fabric& fabric, const LinkState& state, RoutePolicy policy)
      : fabric_(fabric), state_(state), policy_(policy) {}
  virtual ~Routes() = default;

  /// Flows into which one connection is divided; 1 where it is spread over paths.
  virtual int flows_of_pair() const = 0;
  /// One path, as a flow of this label and queue pair would take it: of a spread connection, one of
  /// the paths. False, and `out` empty, if there is none. `from` and `to` differ.
  virtual bool path(NicId from, NicId to, std::uint64_t label, int queue_pair,
                    std::vector<LinkId>& out) const = 0;
  /// What one connection puts on links: each of its flows_of_pair() flows has weight `flows`.
  /// False, and nothing visited, if there is no path.
  virtual bool visit_loads(NicId from, NicId to, std::uint64_t label, double flows,
                           LoadVisitor visit) const = 0;
  virtual bool has_path(NicId from, NicId to) const = 0;
  /// Whether the cabling joins the two at all: not NICs of two rails in a rail-only fabric. Such a
  /// pair has no path and no cut; its traffic must change rails inside a server.
  virtual bool is_wired(NicId, NicId) const { return true; }
  /// Failed links that separate a pair without a path, nearest to `from` first; none to spare.
  virtual std::vector<LinkId> cut(NicId from, NicId to) const = 0;
  /// Learns the traffic that will be there, for routing that avoids load. Others ignore it.
  virtual void adapt_to(std::span<const Demand>) {}
  /// Something went up or down, or changed its capacity: forget what was derived from it.
  virtual void state_changed() {}

 protected:
  bool is_up(LinkId l) const { return state_.is_up(l); }

  const Fabric& fabric_;
  const LinkState& state_;
  const RoutePolicy policy_;
};

/// Of the fabric's kind.
std::unique_ptr<Routes> make_routes(const Fabric&, const LinkState&, RoutePolicy);

/// Whether a kind of fabric offers a kind of routing.
bool offers(FabricKind, RoutingKind);

/// Each queue pair's path in turn: visit_loads() of routing by hash.
bool visit_hashed_loads(const Routes&, int flows_per_pair, NicId from, NicId to,
                        std::uint64_t label, double flows, LoadVisitor visit);

/// A cut found on the plain graph, for fabrics whose routes may use any link: the failed links that
/// lead out of what `from` still reaches into what still reaches `to`.
std::vector<LinkId> cut_on_graph(const Fabric&, const LinkState&, NicId from, NicId to);

/// A cut found by trial, for routes that use only some ways through the graph: of the failed links,
/// one after the other is taken as repaired, those far from `from` first, and only those are kept
/// without which there would be a path.
std::vector<LinkId> cut_by_trial(const Fabric&, const LinkState&, RoutePolicy, NicId from,
                                 NicId to);

}  // namespace trainyard::topologies
