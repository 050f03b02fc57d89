#include "topologies/torus_routes.hpp"

#include <algorithm>

#include "sim/check.hpp"
#include "topologies/flow_hash.hpp"

namespace trainyard::topologies {

TorusRoutes::TorusRoutes(const Fabric& fabric, const LinkState& state, RoutePolicy policy)
    : Routes(fabric, state, policy),
      torus_(fabric.shape<TorusShape>()),
      nodes_(torus_.count(VertexKind::router)) {
  std::size_t stride = 1;
  for (const int k : torus_.dimensions) {
    stride_.push_back(stride);
    stride *= static_cast<std::size_t>(k);
  }
}

int TorusRoutes::flows_of_pair() const {
  return policy_.kind == RoutingKind::ecmp ? policy_.flows_per_pair : 1;
}

// Coordinates

std::size_t TorusRoutes::node_of(NicId n) const {
  return fabric_.index_in_kind(fabric_.edge_of(n));
}

int TorusRoutes::coordinate(std::size_t node, int dimension) const {
  const auto d = static_cast<std::size_t>(dimension);
  return static_cast<int>(node / stride_[d]) % torus_.dimensions[d];
}

std::size_t TorusRoutes::moved(std::size_t node, int dimension, int by) const {
  const auto d = static_cast<std::size_t>(dimension);
  const int k = torus_.dimensions[d];
  const int x = coordinate(node, dimension);
  const int to = ((x + by) % k + k) % k;
  return node + static_cast<std::size_t>(to) * stride_[d] -
         static_cast<std::size_t>(x) * stride_[d];
}

LinkId TorusRoutes::link(std::size_t node, int dimension, bool forward, int n) const {
  const std::size_t other = moved(node, dimension, forward ? 1 : -1);
  const std::size_t owner = forward ? node : other;  // of the cable: the one that goes forward
  const std::size_t cable = (owner * stride_.size() + static_cast<std::size_t>(dimension)) *
                                static_cast<std::size_t>(torus_.links_per_direction) +
                            static_cast<std::size_t>(n);
  return LinkId(fabric_.first_trunk().index() + 2 * cable + (node < other ? 0 : 1));
}

bool TorusRoutes::is_joined(std::size_t node, int dimension, bool forward) const {
  for (int n = 0; n < torus_.links_per_direction; ++n)
    if (is_up(link(node, dimension, forward, n))) return true;
  return false;
}

// Minimal routes

TorusRoutes::Bundle TorusRoutes::bundle(std::size_t from, std::size_t to, bool in_any_order) const {
  Bundle b{from, {}, 1, 1};
  for (int d = 0; d < static_cast<int>(stride_.size()); ++d) {
    const int k = torus_.dimensions[static_cast<std::size_t>(d)];
    const int ahead = (coordinate(to, d) - coordinate(from, d) + k) % k;
    if (ahead == 0) continue;
    b.moves.push_back({d, std::min(ahead, k - ahead), 2 * ahead <= k, 2 * ahead == k});
    if (2 * ahead == k) b.directions *= 2;
    if (in_any_order) b.orders *= static_cast<int>(b.moves.size());
  }
  return b;
}

bool TorusRoutes::walk(const Bundle& b, int n, const Step& step) const {
  int directions = n % b.directions;
  int order = n / b.directions;
  std::vector<Bundle::Move> left = b.moves;
  for (Bundle::Move& m : left)
    if (m.is_either) {
      m.is_forward = directions % 2 == 0;
      directions /= 2;
    }
  std::size_t node = b.from;
  while (!left.empty()) {
    // The order of number 0 is dimension order; with one order only, it always is.
    const int remaining = static_cast<int>(left.size());
    const int next = b.orders == 1 ? 0 : order % remaining;
    order /= remaining;
    const Bundle::Move m = left[static_cast<std::size_t>(next)];
    left.erase(left.begin() + next);
    for (int s = 0; s < m.steps; ++s) {
      if (!step(node, m.dimension, m.is_forward)) return false;
      node = moved(node, m.dimension, m.is_forward ? 1 : -1);
    }
  }
  return true;
}

bool TorusRoutes::works(const Bundle& b, int n) const {
  return walk(b, n, [&](std::size_t node, int dimension, bool forward) {
    return is_joined(node, dimension, forward);
  });
}

int TorusRoutes::working(const Bundle& b) const {
  int count = 0;
  for (int n = 0; n < b.routes(); ++n) count += works(b, n) ? 1 : 0;
  return count;
}

// What works

bool TorusRoutes::over_works(std::size_t from, std::size_t via, std::size_t to) const {
  const auto any = [&](const Bundle& b) {
    for (int n = 0; n < b.routes(); ++n)
      if (works(b, n)) return true;
    return false;
  };
  return any(bundle(from, via, false)) && any(bundle(via, to, false));
}

bool TorusRoutes::has_valiant(std::size_t from, std::size_t to) const {
  for (std::size_t via = 0; via < nodes_; ++via)
    if (over_works(from, via, to)) return true;
  return false;
}

TorusRoutes::Way TorusRoutes::way(std::size_t from, std::size_t to) const {
  const bool wants_valiant = policy_.kind == RoutingKind::valiant;
  if (state_.is_all_up()) return wants_valiant ? Way::valiant : Way::minimal;
  const auto has_minimal = [&] {
    const Bundle b = bundle(from, to, any_order());
    for (int n = 0; n < b.routes(); ++n)
      if (works(b, n)) return true;
    return false;
  };
  if (wants_valiant && has_valiant(from, to)) return Way::valiant;
  if (has_minimal()) return Way::minimal;
  if (policy_.kind == RoutingKind::spray && has_valiant(from, to)) return Way::valiant;
  return Way::none;
}

bool TorusRoutes::has_path(NicId from, NicId to) const {
  if (state_.is_all_up()) return true;
  if (!is_up(fabric_.uplink(from)) || !is_up(fabric_.downlink(to))) return false;
  const std::size_t a = node_of(from), b = node_of(to);
  return a == b || way(a, b) != Way::none;
}

std::vector<LinkId> TorusRoutes::cut(NicId from, NicId to) const {
  return cut_by_trial(fabric_, state_, policy_, from, to);
}

// One hashed path

void TorusRoutes::hashed(const Bundle& b, std::uint64_t hash, int& draw,
                         std::vector<LinkId>& out) const {
  const bool all_up = state_.is_all_up();
  const auto route = choose(hash, draw++, b.routes(), [&](int n) { return all_up || works(b, n); });
  check(route.has_value(), "a route that was chosen works");
  walk(b, *route, [&](std::size_t node, int dimension, bool forward) {
    const auto n = choose(hash, draw++, torus_.links_per_direction,
                          [&](int i) { return is_up(link(node, dimension, forward, i)); });
    check(n.has_value(), "a step of a route that was chosen works");
    out.push_back(link(node, dimension, forward, *n));
    return true;
  });
}

bool TorusRoutes::path(NicId from, NicId to, std::uint64_t label, int queue_pair,
                       std::vector<LinkId>& out) const {
  out.clear();
  if (!is_up(fabric_.uplink(from)) || !is_up(fabric_.downlink(to))) return false;
  const std::size_t a = node_of(from), b = node_of(to);
  const Way how = a == b ? Way::minimal : way(a, b);
  if (how == Way::none) return false;
  const std::uint64_t hash = hash_flow(policy_.seed, from, to, label, queue_pair);
  int draw = 0;
  out.push_back(fabric_.uplink(from));
  if (how == Way::valiant) {
    const bool all_up = state_.is_all_up();
    const auto via = choose(hash, draw++, static_cast<int>(nodes_), [&](int n) {
      return all_up || over_works(a, static_cast<std::size_t>(n), b);
    });
    check(via.has_value(), "a Valiant route that was chosen works");
    hashed(bundle(a, static_cast<std::size_t>(*via), false), hash, draw, out);
    hashed(bundle(static_cast<std::size_t>(*via), b, false), hash, draw, out);
  } else {
    hashed(bundle(a, b, any_order()), hash, draw, out);
  }
  out.push_back(fabric_.downlink(to));
  return true;
}

// Loads

void TorusRoutes::visit_step(std::size_t node, int dimension, bool forward, double w,
                             LoadVisitor visit) const {
  int up = 0;
  for (int n = 0; n < torus_.links_per_direction; ++n)
    up += is_up(link(node, dimension, forward, n)) ? 1 : 0;
  check(up > 0, "traffic only takes steps that work");
  for (int n = 0; n < torus_.links_per_direction; ++n) {
    const LinkId l = link(node, dimension, forward, n);
    if (is_up(l)) visit(l, w / up);
  }
}

void TorusRoutes::visit_working(const Bundle& b, double w, LoadVisitor visit) const {
  const double each = w / working(b);
  for (int n = 0; n < b.routes(); ++n)
    if (works(b, n))
      walk(b, n, [&](std::size_t node, int dimension, bool forward) {
        visit_step(node, dimension, forward, each, visit);
        return true;
      });
}

void TorusRoutes::visit_minimal(const Bundle& b, double w, LoadVisitor visit) const {
  if (!state_.is_all_up()) return visit_working(b, w, visit);
  // Which moves are done when one of m begins is a subset of the others; of m! orders,
  // |subset|! (m - 1 - |subset|)! begin it after just these.
  const unsigned m = static_cast<unsigned>(b.moves.size());
  const auto factorial = [](unsigned n) {
    double f = 1.0;
    for (; n > 1; --n) f *= n;
    return f;
  };
  for (unsigned i = 0; i < m; ++i)
    for (unsigned done = 0; done < (1u << m); ++done) {
      const bool is_in_order = done == (1u << i) - 1u;
      if ((done >> i & 1u) != 0 || (b.orders == 1 && !is_in_order)) continue;
      unsigned before = 0;
      std::size_t start = b.from;
      for (unsigned j = 0; j < m; ++j)
        if ((done >> j & 1u) != 0) {
          ++before;
          const Bundle::Move& other = b.moves[j];
          start = moved(start, other.dimension, other.is_forward ? other.steps : -other.steps);
        }
      const double share =
          b.orders == 1 ? w : w * factorial(before) * factorial(m - 1 - before) / factorial(m);
      const Bundle::Move& move = b.moves[i];
      for (const bool forward : {true, false}) {
        if (!move.is_either && forward != move.is_forward) continue;
        std::size_t node = start;
        for (int s = 0; s < move.steps; ++s) {
          visit_step(node, move.dimension, forward, move.is_either ? share / 2 : share, visit);
          node = moved(node, move.dimension, forward ? 1 : -1);
        }
      }
    }
}

/// All traffic between one end and a random node. In the first phase it is at the end's coordinate
/// in the dimensions still to come, and anywhere in those that are done; in the second the reverse.
void TorusRoutes::visit_phase(std::size_t end, bool is_first, double w, LoadVisitor visit) const {
  const int n = static_cast<int>(stride_.size());
  for (int d = 0; d < n; ++d) {
    std::vector<std::size_t> lines{end};  // where traffic moves along d: one node of each line
    for (int o = is_first ? 0 : d + 1; o < (is_first ? d : n); ++o) {
      const std::size_t before = lines.size();
      for (int x = 1; x < torus_.dimensions[static_cast<std::size_t>(o)]; ++x)
        for (std::size_t i = 0; i < before; ++i) lines.push_back(moved(lines[i], o, x));
    }
    // Of the k distances along the line, those beyond i use the i-th link from the end; the
    // distance k/2 half of the time.
    const int k = torus_.dimensions[static_cast<std::size_t>(d)];
    for (int i = 0; i < k / 2; ++i) {
      const double beyond = (k - 1) / 2 - i + (k % 2 == 0 ? 0.5 : 0.0);
      const double share = w * beyond / (k * double(lines.size()));
      for (const std::size_t line : lines)
        for (const bool forward : {true, false}) {
          const int ahead = forward ? i : -i;
          // In the second phase traffic comes towards the end: the same links, the other way.
          if (is_first)
            visit_step(moved(line, d, ahead), d, forward, share, visit);
          else
            visit_step(moved(line, d, forward ? i + 1 : -i - 1), d, !forward, share, visit);
        }
    }
  }
}

void TorusRoutes::visit_valiant(std::size_t from, std::size_t to, double w,
                                LoadVisitor visit) const {
  if (state_.is_all_up()) {
    visit_phase(from, true, w, visit);
    visit_phase(to, false, w, visit);
    return;
  }
  std::vector<std::size_t> over;
  for (std::size_t via = 0; via < nodes_; ++via)
    if (over_works(from, via, to)) over.push_back(via);
  for (const std::size_t via : over) {
    visit_working(bundle(from, via, false), w / double(over.size()), visit);
    visit_working(bundle(via, to, false), w / double(over.size()), visit);
  }
}

bool TorusRoutes::visit_loads(NicId from, NicId to, std::uint64_t label, double flows,
                              LoadVisitor visit) const {
  if (policy_.kind == RoutingKind::ecmp)
    return visit_hashed_loads(*this, policy_.flows_per_pair, from, to, label, flows, visit);
  if (!is_up(fabric_.uplink(from)) || !is_up(fabric_.downlink(to))) return false;
  const std::size_t a = node_of(from), b = node_of(to);
  const Way how = a == b ? Way::minimal : way(a, b);
  if (how == Way::none) return false;
  visit(fabric_.uplink(from), flows);
  if (a != b && how == Way::minimal) visit_minimal(bundle(a, b, any_order()), flows, visit);
  if (a != b && how == Way::valiant) visit_valiant(a, b, flows, visit);
  visit(fabric_.downlink(to), flows);
  return true;
}

}  // namespace trainyard::topologies
