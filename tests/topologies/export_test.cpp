#include "topologies/export.hpp"

#include <gmock/gmock.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphml.hpp>
#include <boost/graph/graphviz.hpp>
#include <cmath>
#include <map>
#include <sstream>
#include <string>

#include "tests/topologies/fabrics.hpp"

namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;

// Another reader than our writer: what Boost.Graph makes of the files.
struct ReadVertex {
  std::string name, kind;
};
struct ReadEdge {
  std::string kind;
  int tier = -1;
  double capacity_gbps = 0, latency_us = 0;
};
using ReadGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, ReadVertex, ReadEdge>;

boost::dynamic_properties properties(ReadGraph& g, const char* node, const char* edge_kind) {
  boost::dynamic_properties p(boost::ignore_other_properties);
  p.property(node, boost::get(&ReadVertex::name, g));
  p.property("kind", boost::get(&ReadVertex::kind, g));
  p.property(edge_kind, boost::get(&ReadEdge::kind, g));
  p.property("tier", boost::get(&ReadEdge::tier, g));
  p.property("capacity_gbps", boost::get(&ReadEdge::capacity_gbps, g));
  p.property("latency_us", boost::get(&ReadEdge::latency_us, g));
  return p;
}

void expect_same(const Fabric& f, const ReadGraph& g) {
  ASSERT_EQ(boost::num_vertices(g), f.vertex_count());
  ASSERT_EQ(boost::num_edges(g), f.links().size());
  for (const auto v : boost::make_iterator_range(boost::vertices(g))) {
    const auto found = f.find_vertex(g[v].name);
    ASSERT_TRUE(found) << g[v].name;
    EXPECT_EQ(g[v].kind, name_of(f.kind(*found)));
  }
  std::map<std::tuple<std::string, std::string, std::string, int, long, long>, int>
      links;  // Mb/s, ns
  for (const auto e : boost::make_iterator_range(boost::edges(g)))
    ++links[{g[boost::source(e, g)].name, g[boost::target(e, g)].name, g[e].kind, g[e].tier,
             std::lround(g[e].capacity_gbps * 1e3), std::lround(g[e].latency_us * 1e3)}];
  for (const Link& l : f.links())
    --links[{f.name(l.from), f.name(l.to), std::string(name_of(l.kind)), int{l.tier},
             std::lround(l.capacity.value() * 8e-6), long(l.latency.count())}];
  for (const auto& [link, n] : links)
    EXPECT_EQ(n, 0) << std::get<0>(link) << " -> " << std::get<1>(link);
}

std::shared_ptr<const Fabric> sample() {
  const SwitchSpec box = switch_of(16);
  FabricSpec spec{.tiers = 3,
                  .hosts_per_leaf = 2,
                  .leaves_per_pod = 2,
                  .uplinks_per_leaf = 4,
                  .spines = 2,
                  .uplinks_per_spine = 2,
                  .leaf_switch = box,
                  .spine_switch = box,
                  .core_switch = box};
  return must_build(spec, {.hosts = 7, .gpus = 2, .nics = 1, .storage_ports = 2});
}

TEST(Export, graphml_is_read_back_by_boost) {
  const auto f = sample();
  std::stringstream file;
  write_graphml(file, *f);
  ReadGraph g;
  auto p = properties(g, "name", "link_kind");
  boost::read_graphml(file, g, p);
  expect_same(*f, g);
}

TEST(Export, dot_is_read_back_by_boost) {
  const auto f = sample();
  std::stringstream file;
  write_dot(file, *f);
  ReadGraph g;
  auto p = properties(g, "node_id", "kind");
  boost::read_graphviz(file, g, p, "node_id");
  expect_same(*f, g);
}

TEST(Export, without_servers_only_switches_remain) {
  const auto f = k_ary(4);
  std::stringstream file;
  write_dot(file, *f, {.servers = false});
  const std::string text = file.str();
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("nic")));
  EXPECT_THAT(text, testing::HasSubstr(
                        "\"pod-0/leaf-0\" -> \"pod-0/spine-1\" [kind=\"leaf-spine\", tier=2, "
                        "capacity_gbps=400, latency_us=0.35];"));
  // 20 switches, 32 cables both ways, two lines of head and one of foot.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20 + 64 + 3);
}

}  // namespace
}  // namespace trainyard::topologies
