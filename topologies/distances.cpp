#include "topologies/distances.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "topologies/flow_hash.hpp"

namespace trainyard::topologies {

namespace {

constexpr std::uint32_t unreachable = std::numeric_limits<std::uint32_t>::max();

/// Switches by number from 0, neighbours once each.
struct SwitchGraph {
  std::vector<std::size_t> first;  // of each switch's neighbours, and the end
  std::vector<std::uint32_t> neighbours;
  std::size_t size() const { return first.size() - 1; }
};

SwitchGraph switch_graph(const Fabric& f) {
  SwitchGraph g;
  const std::size_t first_switch = f.first_switch().index();
  for (std::size_t v = first_switch; v < f.vertex_count(); ++v) {
    g.first.push_back(g.neighbours.size());
    for (const LinkId l : f.out_links(VertexId(v)))
      if (f.is_switch(f.link(l).to))
        g.neighbours.push_back(std::uint32_t(f.link(l).to.index() - first_switch));
    const auto begin = g.neighbours.begin() + std::ptrdiff_t(g.first.back());
    std::sort(begin, g.neighbours.end());
    g.neighbours.erase(std::unique(begin, g.neighbours.end()), g.neighbours.end());
  }
  g.first.push_back(g.neighbours.size());
  return g;
}

/// The switches at which a NIC is plugged.
using Place = std::vector<std::uint32_t>;

Place place_of(const Fabric& f, NicId n) {
  Place p;
  for (int port = 0; port < f.ports_of(n); ++port)
    p.push_back(std::uint32_t(f.edge_of(n, port).index() - f.first_switch().index()));
  std::sort(p.begin(), p.end());
  p.erase(std::unique(p.begin(), p.end()), p.end());
  return p;
}

std::vector<Place> places_of(const Fabric& f) {
  std::vector<Place> all;
  for (std::size_t n = 0; n < f.nic_count(); ++n) {
    Place p = place_of(f, NicId(n));
    if (all.empty() || all.back() != p) all.push_back(std::move(p));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<std::uint32_t> hops_from(const SwitchGraph& g, const Place& place) {
  std::vector<std::uint32_t> hops(g.size(), unreachable);
  std::vector<std::uint32_t> queue(place);
  for (const std::uint32_t v : place) hops[v] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const std::uint32_t v = queue[next];
    for (std::size_t i = g.first[v]; i < g.first[v + 1]; ++i) {
      const std::uint32_t w = g.neighbours[i];
      if (hops[w] != unreachable) continue;
      hops[w] = hops[v] + 1;
      queue.push_back(w);
    }
  }
  return hops;
}

std::uint32_t hops_to(const std::vector<std::uint32_t>& hops, const Place& place) {
  std::uint32_t least = unreachable;
  for (const std::uint32_t v : place) least = std::min(least, hops[v]);
  return least;
}

/// Searches from up to 64 places at once.
class Searches {
 public:
  Searches(const SwitchGraph& g, const std::vector<Place>& places)
      : g_(g), places_(places), seen_(g.size()), now_(g.size()), next_(g.size()) {}

  /// Hops between switches to the farthest place; clears `joins_all` if some are not reached.
  int farthest(const std::vector<std::size_t>& sources, bool& joins_all) {
    const std::uint64_t all =
        sources.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << sources.size()) - 1;
    std::fill(seen_.begin(), seen_.end(), 0);
    for (std::size_t s = 0; s < sources.size(); ++s)
      for (const std::uint32_t v : places_[sources[s]]) seen_[v] |= std::uint64_t{1} << s;
    now_ = seen_;
    std::vector<std::uint64_t> arrived(places_.size(), 0);
    int far = 0;
    for (int level = 0;; ++level) {
      bool is_complete = true;
      for (std::size_t p = 0; p < places_.size(); ++p) {
        if (arrived[p] == all) continue;
        std::uint64_t here = 0;
        for (const std::uint32_t v : places_[p]) here |= seen_[v];
        if (here != arrived[p]) far = level;
        arrived[p] = here;
        is_complete = is_complete && here == all;
      }
      if (is_complete) return far;
      if (!advance()) {
        joins_all = false;
        return far;
      }
    }
  }

 private:
  bool advance() {
    std::fill(next_.begin(), next_.end(), 0);
    for (std::size_t v = 0; v < g_.size(); ++v)
      if (now_[v] != 0)
        for (std::size_t i = g_.first[v]; i < g_.first[v + 1]; ++i)
          next_[g_.neighbours[i]] |= now_[v];
    bool is_moving = false;
    for (std::size_t v = 0; v < g_.size(); ++v) {
      now_[v] = next_[v] & ~seen_[v];
      seen_[v] |= now_[v];
      is_moving = is_moving || now_[v] != 0;
    }
    return is_moving;
  }

  const SwitchGraph& g_;
  const std::vector<Place>& places_;
  std::vector<std::uint64_t> seen_, now_, next_;
};

}  // namespace

Diameter diameter(const Fabric& f) {
  Diameter d;
  if (f.nic_count() < 2) return d;
  const SwitchGraph g = switch_graph(f);
  const std::vector<Place> places = places_of(f);
  const bool is_all_alike =
      std::holds_alternative<TorusShape>(f.any_shape()) && places.size() == g.size();

  // How deep a search goes decides how many can be afforded.
  const auto from_first = hops_from(g, places[0]);
  std::uint32_t depth = 1;
  for (const std::uint32_t h : from_first)
    if (h != unreachable) depth = std::max(depth, h);
  constexpr double most_steps = 1e10;
  const double steps = double(g.neighbours.size() + g.size()) * depth;  // of 64 searches
  const auto affordable = std::size_t(std::max(1.0, most_steps / steps)) * 64;
  const std::size_t n = is_all_alike ? 1 : std::min(places.size(), affordable);
  d.is_exact = is_all_alike || n == places.size();

  Searches searches(g, places);
  int far = 0;
  for (std::size_t done = 0; done < n;) {
    std::vector<std::size_t> sources;
    while (done < n && sources.size() < 64) sources.push_back(done++ * places.size() / n);
    far = std::max(far, searches.farthest(sources, d.joins_all_pairs));
  }
  d.hops = 2 + far;
  return d;
}

std::vector<std::pair<NicId, NicId>> far_pairs(const Fabric& f, int n) {
  std::vector<std::pair<NicId, NicId>> pairs;
  const SwitchGraph g = switch_graph(f);
  std::uint64_t draw = 1;
  const auto below = [&](std::size_t limit) {
    draw = mix(draw);
    return std::size_t(draw % limit);
  };
  for (int i = 0; i < n; ++i) {
    const NicId from(below(f.nic_count()));
    const auto hops = hops_from(g, place_of(f, from));
    std::vector<NicId> farthest;
    std::uint32_t far = 1;  // another switch
    for (std::size_t to = 0; to < f.nic_count(); ++to) {
      const std::uint32_t h = hops_to(hops, place_of(f, NicId(to)));
      if (h == unreachable || h < far) continue;
      if (h > far) farthest.clear();
      far = h;
      farthest.emplace_back(to);
    }
    if (!farthest.empty()) pairs.emplace_back(from, farthest[below(farthest.size())]);
  }
  return pairs;
}

double shortest_routes(const Fabric& f, NicId from, NicId to) {
  const std::size_t first_switch = f.first_switch().index();
  std::vector<double> ways(f.switch_count(), 0.0);
  std::vector<std::uint32_t> hops(f.switch_count(), unreachable);
  std::vector<std::uint32_t> queue;
  for (int p = 0; p < f.ports_of(from); ++p) {
    const std::size_t v = f.edge_of(from, p).index() - first_switch;
    if (hops[v] == unreachable) queue.push_back(std::uint32_t(v));
    hops[v] = 0;
    ways[v] += 1.0;
  }
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const std::uint32_t v = queue[next];
    for (const LinkId l : f.out_links(VertexId(first_switch + v))) {
      if (!f.is_switch(f.link(l).to)) continue;
      const std::size_t w = f.link(l).to.index() - first_switch;
      if (hops[w] == unreachable) {
        hops[w] = hops[v] + 1;
        queue.push_back(std::uint32_t(w));
      }
      if (hops[w] == hops[v] + 1) ways[w] += ways[v];
    }
  }
  const std::uint32_t least = hops_to(hops, place_of(f, to));
  double sum = 0.0;
  for (int p = 0; p < f.ports_of(to); ++p) {
    const std::size_t v = f.edge_of(to, p).index() - first_switch;
    if (least != unreachable && hops[v] == least) sum += ways[v];
  }
  return sum;
}

}  // namespace trainyard::topologies
