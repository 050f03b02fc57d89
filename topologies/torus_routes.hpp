#pragma once

#include <functional>
#include <vector>

#include "topologies/routes.hpp"

/// Paths through a torus, computed from coordinates.
///
///     minimal   dimension order: all steps of the first dimension, then of the second, …, each the
///               shorter way around; where both ways are equally long, half of the traffic each
///     ecmp      one of the minimal routes that turn from one dimension to another only once it is
///               done: any order of the dimensions, either way around if equal, by a hash
///     spray     evenly over all of those
///     valiant   by dimension order to a random node, any of all N, and from there by dimension
///               order; packets spread evenly over the nodes
///
/// Parallel cables share evenly. A route counts only if all of it works; a step over parallel
/// cables works as long as one of them does. If nothing minimal works, `spray` takes Valiant
/// routes; if no Valiant route does, `valiant` takes minimal ones of any order; `minimal` and
/// `ecmp` have no path then. Intact, loads come in closed form, dimension by dimension; after
/// failures route by route.
namespace trainyard::topologies {

class TorusRoutes final : public Routes {
 public:
  TorusRoutes(const Fabric&, const LinkState&, RoutePolicy);

  int flows_of_pair() const override;
  bool path(NicId from, NicId to, std::uint64_t label, int queue_pair,
            std::vector<LinkId>& out) const override;
  bool visit_loads(NicId from, NicId to, std::uint64_t label, double flows,
                   LoadVisitor visit) const override;
  bool has_path(NicId from, NicId to) const override;
  std::vector<LinkId> cut(NicId from, NicId to) const override;

 private:
  /// The minimal routes of a pair of nodes that go through one dimension after the other.
  struct Bundle {
    std::size_t from;
    struct Move {
      int dimension;
      int steps;
      bool is_forward, is_either;
    };
    std::vector<Move> moves;  // in dimension order
    int directions = 1;       // 2 for each move that can go either way
    int orders = 1;           // of the dimensions
    int routes() const { return directions * orders; }
  };
  using Step = std::function<bool(std::size_t node, int dimension, bool forward)>;

  std::size_t node_of(NicId) const;
  int coordinate(std::size_t node, int dimension) const;
  std::size_t moved(std::size_t node, int dimension, int by) const;
  /// The n-th parallel link from a node to its neighbour.
  LinkId link(std::size_t node, int dimension, bool forward, int n) const;
  bool is_joined(std::size_t node, int dimension, bool forward) const;

  Bundle bundle(std::size_t from, std::size_t to, bool any_order) const;
  /// Calls step for every hop of the n-th route, until it says no. Whether it never did.
  bool walk(const Bundle&, int n, const Step& step) const;
  bool works(const Bundle&, int n) const;
  int working(const Bundle&) const;

  bool any_order() const { return policy_.kind != RoutingKind::minimal; }
  bool over_works(std::size_t from, std::size_t via, std::size_t to) const;
  bool has_valiant(std::size_t from, std::size_t to) const;
  enum class Way { none, minimal, valiant };
  Way way(std::size_t from, std::size_t to) const;

  void visit_step(std::size_t node, int dimension, bool forward, double w, LoadVisitor) const;
  void visit_working(const Bundle&, double w, LoadVisitor) const;
  void visit_minimal(const Bundle&, double w, LoadVisitor) const;
  void visit_valiant(std::size_t from, std::size_t to, double w, LoadVisitor) const;
  void visit_phase(std::size_t end, bool is_first, double w, LoadVisitor) const;
  void hashed(const Bundle&, std::uint64_t hash, int& draw, std::vector<LinkId>& out) const;

  const TorusShape& torus_;
  std::size_t nodes_;
  std::vector<std::size_t> stride_;  // of a step in each dimension
};

}  // namespace trainyard::topologies
