#include <algorithm>

#include "models/network/collectives/collective.hpp"
#include "models/network/collectives/halving_doubling.hpp"
#include "sim/check.hpp"

/// Textbook bounds, written down without plans or paths: a second opinion on both.
namespace trainyard::models {

namespace {

/// Everything a formula needs. N nodes of g members; bytes per second.
struct Shape {
  double s, n_nodes, g, nic, up;
  double n() const { return n_nodes * g; }
  bool has_nodes() const { return n_nodes > 1; }
  /// Seconds for these parts of S through an adapter and through a scale-up link at once.
  double over(double nic_part, double up_part) const {
    return std::max(nic_part == 0 ? 0.0 : nic_part * s / nic,
                    up_part == 0 ? 0.0 : up_part * s / up);
  }
};

double ring(CollectiveKind kind, const Shape& p, bool pxn) {
  const double f = bus_factor(kind, static_cast<std::size_t>(p.n()));
  if (!p.has_nodes()) return p.over(0, f);
  if (p.g == 1) return p.over(f, 0);
  return p.over(f / p.g, pxn ? f : f * (p.g - 1) / p.g);
}

double tree(CollectiveKind kind, const Shape& p, double up_part) {
  // Flows of both trees that the busiest adapter sends, half of S each.
  const double flows = kind == CollectiveKind::broadcast ? 2 : std::min(4.0, p.n_nodes);
  return p.over(p.has_nodes() ? flows / 2 / p.g : 0.0, up_part);
}

double halving_doubling(CollectiveKind kind, const Shape& p) {
  double sum = 0;
  const auto g = static_cast<std::size_t>(p.g);
  for (const ExchangeStep& step : halving_doubling_steps(kind, static_cast<std::size_t>(p.n()))) {
    double slowest = 0;
    for (const auto& [from, to] : step.sends)
      slowest = std::max(slowest,
                         from / g == to / g ? p.over(0, step.fraction) : p.over(step.fraction, 0));
    sum += slowest;
  }
  return sum;
}

double direct(CollectiveKind kind, const Shape& p, bool pxn) {
  const double outside = p.n() - p.g, n = p.n();
  if (kind == CollectiveKind::point_to_point) return p.has_nodes() ? p.over(1, 0) : p.over(0, 1);
  if (kind == CollectiveKind::broadcast)  // all of S to each, from one GPU
    return pxn ? p.over(p.n_nodes - 1, (p.g - 1) * p.n_nodes) : p.over(outside, p.g - 1);
  const double once = p.over(outside / n, pxn ? (p.g - 1) / p.g : (p.g - 1) / n);
  return kind == CollectiveKind::all_reduce ? 2 * once : once;
}

double hierarchical(CollectiveKind kind, const Shape& p, int buckets) {
  const double ways = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double node_s = p.over(0, ways * (p.g - 1) / p.g);
  const double rail_s = p.over(ways * (p.n_nodes - 1) / p.n_nodes / p.g, 0);
  return (node_s + rail_s + (buckets - 1) * std::max(node_s, rail_s)) / buckets;
}

}  // namespace

double closed_form_bound_s(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                           std::size_t nodes, std::size_t per_node, double nic_Bps,
                           double scale_up_Bps, bool pxn, int buckets) {
  check(nodes >= 1 && per_node >= 1 && buckets >= 1, "a group has nodes and members");
  if (nodes * per_node < 2) return 0;
  const Shape p{bytes, static_cast<double>(nodes), static_cast<double>(per_node), nic_Bps,
                scale_up_Bps};
  const double scatter_and_gather = 2 * (p.g - 1) / p.g, nvls = p.g > 1 ? 1 + 1 / p.g : 0.0;
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return ring(kind, p, pxn);
    case CollectiveAlgorithm::tree:
      // A broadcast leaves the first GPU whole.
      return tree(kind, p,
                  kind == CollectiveKind::broadcast ? (p.g > 1 ? 1.0 : 0.0) : scatter_and_gather);
    case CollectiveAlgorithm::halving_doubling:
      return halving_doubling(kind, p);
    case CollectiveAlgorithm::direct:
      return direct(kind, p, pxn);
    case CollectiveAlgorithm::hierarchical:
      return hierarchical(kind, p, buckets);
    case CollectiveAlgorithm::sharp:
      return p.over(1 / p.g, scatter_and_gather);
    case CollectiveAlgorithm::nvls:
      return p.over(0, kind == CollectiveKind::all_reduce ? nvls : 1.0);
    case CollectiveAlgorithm::nvls_tree:
      return tree(CollectiveKind::all_reduce, p, nvls);
  }
  return 0;
}

}  // namespace trainyard::models
