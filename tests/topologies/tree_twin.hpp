#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/topologies/fabrics.hpp"
#include "topologies/routing.hpp"

namespace trainyard::topologies::testing_fabrics {

using Loads = std::map<LinkId, double>;

inline Loads loads(const Router& router, NicId from, NicId to, std::uint64_t label = 0,
                   double flows = 1.0) {
  Loads sum;
  router.for_each_load(from, to, label, flows, [&](LinkId l, double w) { sum[l] += w; });
  return sum;
}

/// The slow twin: breadth-first distances on the plain graph, links that are down left out, servers
/// not passed through. It knows nothing of leaves and spines.
struct Twin {
  const Fabric& f;
  const LinkState& state;
  VertexId to;
  std::vector<int> distance;  // to `to`, -1 if cut off

  Twin(const Fabric& fabric, const LinkState& s, VertexId target)
      : f(fabric), state(s), to(target), distance(fabric.vertex_count(), -1) {
    std::vector<VertexId> queue{to};
    distance[to.index()] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const LinkId out : f.out_links(queue[i])) {
        const LinkId in = Fabric::reverse(out);
        const VertexId v = f.link(in).from;
        if (!state.is_up(in) || distance[v.index()] >= 0) continue;
        distance[v.index()] = distance[queue[i].index()] + 1;
        if (f.is_switch(v)) queue.push_back(v);
      }
  }

  int distance_of(VertexId v) const { return distance[v.index()]; }

  /// Links that lie on a shortest path from v.
  std::vector<LinkId> closer(VertexId v) const {
    std::vector<LinkId> links;
    for (const LinkId l : f.out_links(v)) {
      const VertexId next = f.link(l).to;
      const int d = f.is_switch(next) || next == to ? distance_of(next) : -1;
      if (state.is_up(l) && d >= 0 && d == distance_of(v) - 1) links.push_back(l);
    }
    return links;
  }

  /// One unit from `from`, at each vertex split over all links that lie on a shortest path by
  /// weight.
  template <class Weight>
  Loads split(VertexId from, Weight weight) const {
    Loads load;
    std::map<VertexId, double> here{{from, 1.0}};
    while (!here.empty() && here.begin()->first != to) {
      std::map<VertexId, double> next;
      for (const auto& [v, share] : here) {
        double sum = 0;
        for (const LinkId l : closer(v)) sum += weight(l);
        for (const LinkId l : closer(v)) {
          load[l] += share * weight(l) / sum;
          next[f.link(l).to] += share * weight(l) / sum;
        }
      }
      here = std::move(next);
    }
    return load;
  }
  Loads even_split(VertexId from) const {
    return split(from, [](LinkId) { return 1.0; });
  }

  /// Adaptive routing, from its definition (fat_tree_routes.hpp), by plain recursion.
  struct Adaptive {
    const Twin& twin;
    VertexId from;
    std::map<VertexId, double> known;

    /// Capacity, and of the links into a switch of the receiver the share of its port.
    double counted(LinkId l) {
      const Fabric& f = twin.f;
      const double own = twin.state.capacity(l).value();
      if (twin.distance_of(f.link(l).from) != 2 || f.link(l).from == from) return own;
      double port = 0, best = 0;
      for (const LinkId out : f.out_links(twin.to)) {
        const double rate = twin.state.capacity(Fabric::reverse(out)).value();
        best = std::max(best, rate);
        if (f.link(out).to == f.link(l).to) port = rate;
      }
      return own * port / best;
    }
    double cables(VertexId v, VertexId w) {
      double sum = 0;
      for (const LinkId l : twin.closer(v))
        if (twin.f.link(l).to == w) sum += counted(l);
      return sum;
    }
    double weight(LinkId l) {
      const auto [v, w] = std::pair(twin.f.link(l).from, twin.f.link(l).to);
      const double all = cables(v, w);
      return counted(l) / all * std::min(all, behind(w));
    }
    double behind(VertexId v) {
      if (v == twin.to) return std::numeric_limits<double>::infinity();
      if (const auto found = known.find(v); found != known.end()) return found->second;
      double sum = 0;
      std::set<VertexId> two_on;
      for (const LinkId l : twin.closer(v)) {
        sum += weight(l);
        for (const LinkId k : twin.closer(twin.f.link(l).to)) two_on.insert(twin.f.link(k).to);
      }
      if (twin.distance_of(v) == 1) {  // the receiver's own link does not count, unless it is all
        if (twin.distance_of(from) > 2) sum = std::numeric_limits<double>::infinity();
      } else {
        double further = 0;
        for (const VertexId x : two_on) further += behind(x);
        sum = std::min(sum, further);
      }
      return known[v] = sum;
    }
  };
  Loads adaptive_split(VertexId from) const {
    Adaptive adaptive{*this, from, {}};
    return split(from, [&](LinkId l) { return adaptive.weight(l); });
  }
};

inline NicId any_nic(const Fabric& f, std::mt19937_64& random) {
  return NicId(random() % (f.nic_count() + f.count(VertexKind::storage)));
}

}  // namespace trainyard::topologies::testing_fabrics
