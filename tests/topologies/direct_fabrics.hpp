#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "topologies/dragonfly.hpp"
#include "topologies/routing.hpp"
#include "topologies/torus.hpp"

/// Fabrics of switches with servers beside them, and what the tests of their routing share.
namespace trainyard::topologies::direct_fabrics {

using namespace trainyard::literals;

inline SwitchSpec box_of(int ports, BytesPerSecond rate = 400_Gbps) {
  return {.name = "test", .ports = ports, .port_rate = rate, .latency = Duration(350)};
}

inline std::string text_of(const Problems& problems) {
  std::string all;
  for (const Problem& p : problems) all += p.path + ": " + p.what + "; right: " + p.right + "\n";
  return all;
}

inline std::shared_ptr<const Fabric> built(const BuildResult& r) {
  EXPECT_TRUE(r.fabric != nullptr) << text_of(r.problems);
  EXPECT_TRUE(!r.fabric || r.problems.empty()) << text_of(r.problems);
  return r.fabric;
}

/// Servers of one GPU and one NIC at the rate of a router port.
inline HostShape single_nic(int hosts) {
  return {.hosts = hosts, .gpus = 1, .nics = 1, .nic_rate = 400_Gbps};
}

inline FabricSpec dragonfly_spec(int p, int a, int h, int g,
                                 Arrangement arrangement = Arrangement::absolute) {
  FabricSpec spec{.kind = FabricKind::dragonfly};
  spec.nics_per_router = p;
  spec.routers_per_group = a;
  spec.global_links_per_router = h;
  spec.groups = g;
  spec.arrangement = arrangement;
  spec.router_switch = box_of(std::max(2, p + h + a - 1));
  return spec;
}

/// Every router full, every port used.
inline std::shared_ptr<const Fabric> dragonfly(int p, int a, int h, int g,
                                               Arrangement arrangement = Arrangement::absolute) {
  return built(build_dragonfly(dragonfly_spec(p, a, h, g, arrangement), single_nic(p * a * g)));
}

inline std::shared_ptr<const Fabric> torus(std::vector<int> dimensions, int links = 1) {
  FabricSpec spec{.kind = FabricKind::torus};
  spec.dimensions = dimensions;
  spec.links_per_direction = links;
  spec.router_switch = box_of(64);
  int nodes = 1;
  for (const int k : dimensions) nodes *= k;
  return built(build_torus(spec, single_nic(nodes)));
}

inline std::map<LinkKind, int> cables_by_kind(const Fabric& f) {
  std::map<LinkKind, int> count;
  for (std::size_t l = 0; l < f.links().size(); l += 2) ++count[f.link(LinkId(l)).kind];
  return count;
}

/// Links on the longest of all shortest ways between switches.
inline int switch_diameter(const Fabric& f, std::size_t from_some = 16) {
  int farthest = 0;
  const std::size_t step = std::max<std::size_t>(1, f.switch_count() / from_some);
  for (std::size_t s = 0; s < f.switch_count(); s += step) {
    std::vector<int> hops(f.vertex_count(), -1);
    std::vector<VertexId> queue{VertexId(f.first_switch().index() + s)};
    hops[queue.front().index()] = 0;
    for (std::size_t next = 0; next < queue.size(); ++next)
      for (const LinkId l : f.out_links(queue[next])) {
        const VertexId to = f.link(l).to;
        if (!f.is_switch(to) || hops[to.index()] >= 0) continue;
        hops[to.index()] = hops[queue[next].index()] + 1;
        farthest = std::max(farthest, hops[to.index()]);
        queue.push_back(to);
      }
  }
  return farthest;
}

using Loads = std::map<LinkId, double>;

inline Loads loads_of(const Router& router, NicId from, NicId to) {
  Loads loads;
  router.for_each_load(from, to, 0, 1.0, [&](LinkId l, double w) { loads[l] += w; });
  return loads;
}

/// Of the rate that each demand asks for, what all can have at once: the busiest link decides.
inline double throughput(const Router& router, const std::vector<Demand>& traffic,
                         BytesPerSecond nic_rate) {
  const Fabric& f = router.fabric();
  std::vector<double> load(f.links().size(), 0.0);
  for (const Demand& d : traffic)
    router.for_each_load(d.from, d.to, 0, d.rate / router.flows_of_pair(),
                         [&](LinkId l, double w) { load[l.index()] += w; });
  double busiest = 0.0;
  for (std::size_t l = 0; l < load.size(); ++l)
    busiest = std::max(busiest, load[l] * (nic_rate / f.link(LinkId(l)).capacity));
  return 1.0 / busiest;
}

/// Every NIC to the one `shift` further on, around.
inline std::vector<Demand> shifted(const Fabric& f, std::size_t shift) {
  std::vector<Demand> out;
  const std::size_t n = f.nic_count();
  for (std::size_t i = 0; i < n; ++i) out.push_back({NicId(i), NicId((i + shift) % n), 1.0});
  return out;
}

/// Every NIC evenly to all others.
inline std::vector<Demand> uniform(const Fabric& f) {
  std::vector<Demand> out;
  const std::size_t n = f.nic_count();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (i != j) out.push_back({NicId(i), NicId(j), 1.0 / double(n - 1)});
  return out;
}

/// Links of a random set fail, and perhaps a switch.
inline void fail_some(Router& router, std::mt19937_64& random, double probability) {
  const Fabric& f = router.fabric();
  const auto chance = [&] { return double(random() >> 11) * 0x1p-53; };
  router.change([&](LinkState& state) {
    for (std::size_t l = f.first_trunk().index(); l < f.links().size(); ++l)
      if (chance() < probability) state.set_up(LinkId(l), false);
    if (chance() < probability)
      state.set_up(VertexId(f.first_switch().index() + random() % f.switch_count()), false);
  });
}

/// What a named cut promises: it separates the pair alone, and none of it could be left out.
inline void expect_cut(const Router& router, RoutingKind kind, NicId from, NicId to) {
  const std::vector<LinkId> cut = router.cut(from, to);
  ASSERT_FALSE(cut.empty());
  Router fresh(router.fabric(), kind, 1, 1);
  for (const LinkId l : cut) {
    EXPECT_FALSE(router.state().is_up(l));
    fresh.set_up(l, false);
  }
  EXPECT_FALSE(fresh.has_path(from, to));
  for (const LinkId l : cut) {
    fresh.set_up(l, true);
    EXPECT_TRUE(fresh.has_path(from, to)) << router.fabric().name(l);
    fresh.set_up(l, false);
  }
}

/// What enters a vertex leaves it, but for the two NICs.
inline void expect_conserved(const Fabric& f, const Loads& loads, NicId from, NicId to) {
  std::map<VertexId, double> left;
  for (const auto& [l, w] : loads) {
    EXPECT_GT(w, 0.0);
    left[f.link(l).from] += w;
    left[f.link(l).to] -= w;
  }
  for (const auto& [v, w] : left) {
    const double expected = v == f.vertex(from) ? 1.0 : v == f.vertex(to) ? -1.0 : 0.0;
    EXPECT_NEAR(w, expected, 1e-12) << f.name(v);
  }
}

}  // namespace trainyard::topologies::direct_fabrics
