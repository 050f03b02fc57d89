#include "topologies/routing.hpp"

#include "sim/check.hpp"

namespace trainyard::topologies {

Router::Router(const Fabric& fabric, RoutingKind kind, std::uint64_t seed, int flows_per_pair)
    : fabric_(&fabric), kind_(kind), state_(std::make_unique<LinkState>(fabric)) {
  check(flows_per_pair >= 1, "a connection has at least one flow", flows_per_pair);
  check(offers(fabric.kind(), kind), "a fabric is routed in a way that it offers",
        name_of(fabric.kind()), name_of(kind));
  routes_ = make_routes(fabric, *state_, {kind, seed, flows_per_pair});
}

bool Router::treats_neighbours_alike() const {
  const bool spreads = kind_ == RoutingKind::spray || kind_ == RoutingKind::adaptive;
  if (!spreads || state_->is_changed()) return false;
  // All adapters of a server must be at one switch, or at one set of rails.
  const int nics = fabric_->servers().nics;
  switch (fabric_->kind()) {
    case FabricKind::fat_tree:
    case FabricKind::rail_optimized:
    case FabricKind::rail_only:
    case FabricKind::dragonfly_plus:
      return true;
    case FabricKind::dragonfly:
      return fabric_->shape<DragonflyShape>().nics_per_router % nics == 0;
    case FabricKind::torus:
      return fabric_->shape<TorusShape>().nics_per_router % nics == 0;
    case FabricKind::custom:
      return false;
  }
  return false;
}

bool Router::path(NicId from, NicId to, std::uint64_t label, std::vector<LinkId>& out,
                  int queue_pair) const {
  out.clear();
  return from == to || routes_->path(from, to, label, queue_pair, out);
}

std::vector<LinkId> Router::cut(NicId from, NicId to) const {
  if (has_path(from, to)) return {};
  return routes_->cut(from, to);
}

Duration Router::latency(const std::vector<LinkId>& path) const {
  Duration sum{};
  for (const LinkId l : path) sum += fabric_->link(l).latency;
  return sum;
}

}  // namespace trainyard::topologies
