#include "topologies/torus.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "tests/topologies/direct_fabrics.hpp"
#include "topologies/bisection.hpp"

namespace trainyard::topologies {
namespace {

using namespace direct_fabrics;
using testing::HasSubstr;

TEST(Torus, of_4096_chips) {
  const auto f = torus({16, 16, 16});
  EXPECT_EQ(f->count(VertexKind::router), 4096u);
  EXPECT_EQ(cables_by_kind(*f).at(LinkKind::torus), 3 * 4096);
  EXPECT_EQ(cables_by_kind(*f).at(LinkKind::nic_leaf), 4096);
  EXPECT_EQ(switch_diameter(*f, 4), 24);  // 8 + 8 + 8
  for (std::size_t r = 0; r < 4096; ++r)
    EXPECT_EQ(f->out_links(f->vertex(VertexKind::router, r)).size(), 7u);
  EXPECT_EQ(f->name(f->edge_of(NicId(3 + 16 * (0 + 16 * 7)))), "router-3-0-7");
}

TEST(Torus, bisection_is_two_planes_of_links) {
  // Halves along the last dimension: cut twice, 16 x 16 links each: 2 N / k = 512.
  const auto f = torus({16, 16, 16});
  std::vector<HostId> low, high;
  for (std::size_t h = 0; h < 4096; ++h) (h < 2048 ? low : high).push_back(HostId(h));
  EXPECT_DOUBLE_EQ(max_flow(*f, low, high) / 400_Gbps, 512);
}

TEST(Torus, neighbours_are_one_step_apart) {
  // 3 x 2: node 5 is (2, 1). Its neighbours: (0, 1) = 3 around, (1, 1) = 4, and (2, 0) = 2 twice.
  const auto f = torus({3, 2});
  std::vector<std::size_t> neighbours;
  for (const LinkId l : f->out_links(f->vertex(VertexKind::router, 5)))
    if (f->is_switch(f->link(l).to)) neighbours.push_back(f->index_in_kind(f->link(l).to));
  EXPECT_THAT(neighbours, testing::UnorderedElementsAre(3, 4, 2, 2));
}

TEST(Torus, servers_fill_nodes) {
  FabricSpec spec{.kind = FabricKind::torus};
  spec.dimensions = {4, 4};
  spec.links_per_direction = 2;
  spec.router_switch = box_of(16);
  const HostShape servers{.hosts = 15, .gpus = 8, .nics = 8};  // 8 NICs and 2 x 2 x 2 ports
  const auto f = built(build_torus(spec, servers));
  EXPECT_EQ(f->shape<TorusShape>().nics_per_router, 8);
  EXPECT_EQ(f->spec().nics_per_router, 8);
  EXPECT_EQ(f->name(f->edge_of(HostId(5))), "router-1-1");
  EXPECT_EQ(cables_by_kind(*f).at(LinkKind::torus), 16 * 2 * 2);
  spec.router_switch.ports = 15;
  EXPECT_FALSE(build_torus(spec, servers).fabric);
}

struct Refusal {
  const char* name;
  void (*spoil)(FabricSpec&, HostShape&);
  const char* path;
  const char* what;
  const char* right;
};
class TorusRefused : public testing::TestWithParam<Refusal> {};
TEST_P(TorusRefused, with_the_nearest_valid_numbers) {
  FabricSpec spec{.kind = FabricKind::torus};
  spec.dimensions = {4, 4, 4};
  spec.router_switch = box_of(16);
  HostShape servers = single_nic(64);
  GetParam().spoil(spec, servers);
  const BuildResult r = build_torus(spec, servers);
  ASSERT_FALSE(r.fabric);
  ASSERT_EQ(r.problems.size(), 1u) << text_of(r.problems);
  EXPECT_EQ(r.problems[0].path, GetParam().path);
  EXPECT_THAT(r.problems[0].what, HasSubstr(GetParam().what));
  EXPECT_THAT(r.problems[0].right, HasSubstr(GetParam().right));
}
INSTANTIATE_TEST_SUITE_P(
    Torus, TorusRefused,
    testing::Values(
        Refusal{"no_dimensions", [](FabricSpec& s, HostShape&) { s.dimensions.clear(); },
                "dimensions", "needs its dimensions", "such as 4 x 4 x 4 for 64 nodes"},
        Refusal{"too_small", [](FabricSpec&, HostShape& h) { h.hosts = 65; }, "dimensions",
                "64 nodes of 1 NICs hold 64 NICs, the servers have 65",
                "4 x 4 x 5, or nics_per_router at least 2"},
        Refusal{"a_dimension_of_one",
                [](FabricSpec& s, HostShape&) {
                  s.dimensions = {64, 1};
                },
                "dimensions", "a dimension of 1", "2 or more"},
        Refusal{"too_many_links", [](FabricSpec& s, HostShape&) { s.links_per_direction = 3; },
                "links_per_direction", "1 ports for servers and 18 for its neighbours, it has 16",
                "links_per_direction at most 2, or a router of at least 19 ports"},
        Refusal{"too_many_nics", [](FabricSpec& s, HostShape&) { s.nics_per_router = 11; },
                "nics_per_router", "11 ports for servers and 6", "nics_per_router at most 10"},
        Refusal{"a_slip_of_the_keyboard",
                [](FabricSpec& s, HostShape&) {
                  s.dimensions = {4000, 4000, 4000};
                },
                "dimensions", "more than 100000000 links", "at most"}),
    [](const auto& p) { return p.param.name; });

TEST(Torus, names_lead_back) {
  for (const auto& f : {torus({3, 2}, 2), torus({4, 3, 2})}) {
    for (std::size_t v = 0; v < f->vertex_count(); ++v)
      EXPECT_EQ(f->find_vertex(f->name(VertexId(v))), VertexId(v));
    for (std::size_t l = 0; l < f->links().size(); ++l) {
      EXPECT_EQ(f->find_link(f->name(LinkId(l))), LinkId(l)) << f->name(LinkId(l));
      if (l % 2 == 0) {
        EXPECT_LT(f->link(LinkId(l)).from, f->link(LinkId(l)).to);
      }
    }
  }
}

// Known throughputs (Dally and Towles 2004, chapters 3 and 10), for k even, links as fast as NICs.

TEST(Torus, throughput_of_known_patterns_on_a_ring_of_16) {
  const auto f = torus({16});
  const Router minimal(*f, RoutingKind::minimal, 1, 1);
  const Router valiant(*f, RoutingKind::valiant, 1, 1);
  // Uniform: mean distance 4.267 = 64/15 over two links a node.
  EXPECT_NEAR(throughput(minimal, uniform(*f), 400_Gbps), 15.0 / 32, 1e-12);
  // To the next node: a ring collective.
  EXPECT_NEAR(throughput(minimal, shifted(*f, 1), 400_Gbps), 1.0, 1e-12);
  // Tornado, k/2 - 1 = 7 steps all the same way: 7 flows on every link.
  EXPECT_NEAR(throughput(minimal, shifted(*f, 7), 400_Gbps), 1.0 / 7, 1e-12);
  // Valiant is twice uniform traffic, whatever the pattern: k/4 = 4 on every link.
  EXPECT_NEAR(throughput(valiant, shifted(*f, 7), 400_Gbps), 1.0 / 4, 1e-12);
  EXPECT_NEAR(throughput(valiant, shifted(*f, 1), 400_Gbps), 1.0 / 4, 1e-12);
  // Half around, either way: 8 steps, half of the flows each way.
  EXPECT_NEAR(throughput(minimal, shifted(*f, 8), 400_Gbps), 1.0 / 4, 1e-12);
}

TEST(Torus, throughput_does_not_depend_on_the_number_of_dimensions) {
  // 4 x 4 x 4 at k = 4: uniform k/8 per direction and node, but for the node itself: 63/32 > 1.
  const auto f = torus({4, 4, 4});
  for (const RoutingKind kind : {RoutingKind::minimal, RoutingKind::spray}) {
    const Router router(*f, kind, 1, 1);
    std::vector<double> load(f->links().size(), 0.0);
    for (const Demand& d : uniform(*f))
      router.for_each_load(d.from, d.to, 0, d.rate,
                           [&](LinkId l, double w) { load[l.index()] += w; });
    for (std::size_t l = f->first_trunk().index(); l < load.size(); ++l)
      EXPECT_NEAR(load[l], 0.5 * 64 / 63, 1e-12);
  }
}

TEST(Torus, tornado_and_uniform_traffic_of_4096_chips) {
  // Traffic that looks the same from every node loads all links of one dimension and direction
  // alike: by what one node puts on all of them together.
  const auto f = torus({16, 16, 16});
  const auto by_class = [&](const Router& router, const std::vector<Demand>& of_node_0) {
    std::map<std::pair<std::size_t, bool>, double> sum;  // by dimension; even links: not quite a
                                                         // direction, so both together
    for (const Demand& d : of_node_0)
      router.for_each_load(d.from, d.to, 0, d.rate, [&](LinkId l, double w) {
        if (l < f->first_trunk()) return;
        const std::size_t cable = (l.index() - f->first_trunk().index()) / 2;
        const Link& link = f->link(l);
        const std::size_t stride[] = {1, 16, 256};
        const std::size_t dimension = cable % 3;
        const std::size_t from = f->index_in_kind(link.from), to = f->index_in_kind(link.to);
        const bool forward = (from / stride[dimension] + 1) % 16 == to / stride[dimension] % 16;
        sum[{dimension, forward}] += w;
      });
    return sum;
  };
  const Router minimal(*f, RoutingKind::minimal, 1, 1);
  const Router valiant(*f, RoutingKind::valiant, 1, 1);
  std::vector<Demand> everyone;
  for (std::size_t n = 1; n < 4096; ++n) everyone.push_back({NicId(0), NicId(n), 1.0 / 4095});
  for (const auto& [key, load] : by_class(minimal, everyone))
    EXPECT_NEAR(load, 2.0 * 4096 / 4095, 1e-9);  // throughput 0.4999
  const std::vector<Demand> tornado{{NicId(0), NicId(7 * (1 + 16 + 256)), 1.0}};
  const auto minimal_load = by_class(minimal, tornado);
  ASSERT_EQ(minimal_load.size(), 3u);  // one direction only
  for (const auto& [key, load] : minimal_load) EXPECT_NEAR(load, 7.0, 1e-12);
  const auto valiant_load = by_class(valiant, tornado);
  ASSERT_EQ(valiant_load.size(), 6u);
  for (const auto& [key, load] : valiant_load) EXPECT_NEAR(load, 4.0, 1e-9);
}

/// The slow, obvious twin: every order of all dimensions, every way around, step by step on the
/// plain graph.
class Twin {
 public:
  explicit Twin(const Router& router)
      : f_(router.fabric()), router_(router), k_(f_.shape<TorusShape>().dimensions) {}

  struct Step {
    int node, to, dimension;
    bool forward;
  };
  using Route = std::vector<Step>;

  std::vector<Route> minimal(int from, int to, bool any_order) const {
    std::vector<Route> out;
    std::vector<int> order(k_.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      for (int turns = 0; turns < 1 << k_.size(); ++turns) {
        Route r;
        int node = from;
        bool is_shortest = true;
        for (const int d : order) {
          const int k = k_[std::size_t(d)];
          const int ahead = (at(to, d) - at(from, d) + k) % k;
          const bool forward = (turns >> d & 1) == 0;
          const int steps = forward ? ahead : (k - ahead) % k;
          is_shortest = is_shortest && 2 * steps <= k;
          // A dimension without steps has one way around, not two.
          if (ahead == 0 && !forward) is_shortest = false;
          for (int s = 0; s < steps; ++s) {
            const int next = neighbour(node, d, forward);
            r.push_back({node, next, d, forward});
            node = next;
          }
        }
        if (is_shortest && works(r)) out.push_back(r);
      }
    } while (any_order && std::next_permutation(order.begin(), order.end()));
    return out;
  }

  void spread(const std::vector<Route>& routes, double w, Loads& loads) const {
    for (const Route& r : routes)
      for (const Step& s : r) {
        const auto links = up(s);
        for (const LinkId l : links) loads[l] += w / double(routes.size() * links.size());
      }
  }
  /// Nodes over which dimension order works, there and on.
  std::vector<int> over(int from, int to) const {
    std::vector<int> out;
    for (int via = 0; via < int(f_.switch_count()); ++via)
      if (!minimal(from, via, false).empty() && !minimal(via, to, false).empty())
        out.push_back(via);
    return out;
  }
  bool is_route(const std::vector<LinkId>& path, const Route& r) const {
    if (path.size() != r.size()) return false;
    for (std::size_t i = 0; i < r.size(); ++i) {
      const auto links = up(r[i]);
      if (std::find(links.begin(), links.end(), path[i]) == links.end()) return false;
    }
    return true;
  }

 private:
  int stride(int d) const {
    int s = 1;
    for (int i = 0; i < d; ++i) s *= k_[std::size_t(i)];
    return s;
  }
  int at(int node, int d) const { return node / stride(d) % k_[std::size_t(d)]; }
  int neighbour(int node, int d, bool forward) const {
    const int k = k_[std::size_t(d)], x = at(node, d);
    return node + ((x + (forward ? 1 : k - 1)) % k - x) * stride(d);
  }
  std::vector<LinkId> up(const Step& s) const {
    std::vector<LinkId> all;
    for (const LinkId l : f_.out_links(f_.vertex(VertexKind::router, std::size_t(s.node))))
      if (f_.link(l).to == f_.vertex(VertexKind::router, std::size_t(s.to))) all.push_back(l);
    if (k_[std::size_t(s.dimension)] == 2) {  // the lower node's cables forward come first
      const bool first = (at(s.node, s.dimension) == 0) == s.forward;
      const auto half = long(all.size() / 2);
      all = first ? std::vector<LinkId>(all.begin(), all.begin() + half)
                  : std::vector<LinkId>(all.begin() + half, all.end());
    }
    std::erase_if(all, [&](LinkId l) { return !router_.state().is_up(l); });
    return all;
  }
  bool works(const Route& r) const {
    return std::all_of(r.begin(), r.end(), [&](const Step& s) { return !up(s).empty(); });
  }

  const Fabric& f_;
  const Router& router_;
  std::vector<int> k_;
};

void check_torus(std::mt19937_64& random) {
  std::vector<int> k;
  int nodes = 1;
  for (std::size_t d = 1 + random() % 3; d > 0; --d) k.push_back(2 + int(random() % 4));
  for (int& n : k) {
    if (nodes * n > 40) n = 2;
    nodes *= n;
  }
  const auto f = torus(k, 1 + int(random() % 2));
  constexpr RoutingKind kinds[] = {RoutingKind::ecmp, RoutingKind::minimal, RoutingKind::spray,
                                   RoutingKind::valiant};
  const RoutingKind kind = kinds[random() % 4];
  SCOPED_TRACE(std::string(name_of(kind)));
  Router router(*f, kind, random(), 3);
  const double failing[] = {0.0, 0.1, 0.4};
  fail_some(router, random, failing[random() % 3]);
  const Twin twin(router);
  for (int n = 0; n < 6; ++n) {
    const NicId from(random() % f->nic_count()), to(random() % f->nic_count());
    if (from == to) continue;
    SCOPED_TRACE(f->name(f->edge_of(from)) + " to " + f->name(f->edge_of(to)));
    const int a = int(from.index()), b = int(to.index());
    const bool ends =
        router.state().is_up(f->uplink(from)) && router.state().is_up(f->downlink(to));
    const auto minimal = twin.minimal(a, b, kind != RoutingKind::minimal);
    std::vector<int> over;
    if (kind == RoutingKind::valiant || (kind == RoutingKind::spray && minimal.empty()))
      over = twin.over(a, b);
    const bool exists = ends && (!minimal.empty() || !over.empty());
    ASSERT_EQ(router.has_path(from, to), exists);
    std::vector<LinkId> path;
    for (int q = 0; q < 3; ++q) {
      ASSERT_EQ(router.path(from, to, 9, path, q), exists);
      if (!exists) continue;
      const std::vector<LinkId> inner(path.begin() + 1, path.end() - 1);
      bool is_found = false;
      if (over.empty())
        for (const auto& r : minimal) is_found = is_found || twin.is_route(inner, r);
      for (const int via : over)
        for (const auto& first : twin.minimal(a, via, false))
          for (const auto& second : twin.minimal(via, b, false)) {
            auto whole = first;
            whole.insert(whole.end(), second.begin(), second.end());
            is_found = is_found || twin.is_route(inner, whole);
          }
      EXPECT_TRUE(is_found);
    }
    const Loads loads = loads_of(router, from, to);
    if (!exists) {
      EXPECT_TRUE(loads.empty());
      expect_cut(router, kind, from, to);
      continue;
    }
    if (kind == RoutingKind::ecmp) continue;  // its loads are its paths
    for (const LinkId l : path) EXPECT_TRUE(loads.contains(l)) << f->name(l);
    expect_conserved(*f, loads, from, to);
    Loads expected{{f->uplink(from), 1.0}, {f->downlink(to), 1.0}};
    if (over.empty()) twin.spread(minimal, 1.0, expected);
    for (const int via : over) {
      twin.spread(twin.minimal(a, via, false), 1.0 / double(over.size()), expected);
      twin.spread(twin.minimal(via, b, false), 1.0 / double(over.size()), expected);
    }
    ASSERT_EQ(loads.size(), expected.size());
    for (const auto& [l, w] : expected) EXPECT_NEAR(loads.at(l), w, 1e-12) << f->name(l);
  }
}

class TorusSeeds : public testing::TestWithParam<int> {};
TEST_P(TorusSeeds, routes_are_what_the_definition_says) {
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t seed = std::uint64_t(GetParam()) * 1000 + std::uint64_t(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    check_torus(random);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Torus, TorusSeeds, testing::Range(1, 6));

}  // namespace
}  // namespace trainyard::topologies
