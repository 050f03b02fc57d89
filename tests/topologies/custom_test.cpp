#include "topologies/custom.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "tests/topologies/imports.hpp"

namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;
using testing::HasSubstr;

constexpr auto csv = GraphFormat::edge_list;

// Two leaves and a spine, four servers of one NIC.
const std::string small =
    "from,to,capacity,latency\n"
    "node-0,leaf-0,400 Gb/s,300 ns\n"
    "node-1,leaf-0,400 Gb/s,300 ns\n"
    "node-2,leaf-1,400 Gb/s,300 ns\n"
    "node-3,leaf-1,400 Gb/s,300 ns\n"
    "leaf-0,spine-0,800 Gb/s,0.5 us\n"
    "leaf-1,spine-0,800 Gb/s,0.5 us\n";
const HostShape four{.hosts = 4, .gpus = 1, .nics = 1};

TEST(Custom, switches_and_cables_come_in_the_order_of_the_file) {
  const auto f = must_build_text(small, csv, four);
  ASSERT_EQ(f->switch_count(), 3u);
  EXPECT_EQ(f->name(f->edge_of(HostId(3))), "leaf-1");
  EXPECT_EQ(f->name(f->vertex(VertexKind::router, 0)), "leaf-0");
  EXPECT_EQ(f->name(f->vertex(VertexKind::router, 1)), "leaf-1");
  EXPECT_EQ(f->name(f->vertex(VertexKind::router, 2)), "spine-0");
  // Away from the GPUs first; between switches from the lower number: leaf-0, leaf-1, spine-0.
  const LinkId trunk = f->first_trunk();
  EXPECT_EQ(f->name(trunk), "leaf-0 -> spine-0");
  EXPECT_DOUBLE_EQ(f->link(trunk).capacity.value(), 100e9);
  EXPECT_EQ(f->link(trunk).latency, Duration(500));
  EXPECT_EQ(f->link(Fabric::reverse(trunk)).latency, Duration(500));
  EXPECT_EQ(f->link(trunk).kind, LinkKind::trunk);
  // A server's cable delays what leaves the switch: a path adds each switch once.
  EXPECT_EQ(f->link(f->uplink(NicId(2))).latency, Duration(0));
  EXPECT_EQ(f->link(f->downlink(NicId(2))).latency, Duration(300));
}

TEST(Custom, what_is_not_given_is_the_switch_s) {
  FabricSpec spec{.kind = FabricKind::custom, .router_switch = switch_of(8, 800_Gbps)};
  spec.cable_latency = Duration(150);
  const auto f =
      must_build_text("node-0,a\nnode-1,b\nb,a\n", csv, {.hosts = 2, .gpus = 1, .nics = 1}, spec);
  const Link& trunk = f->link(f->first_trunk());
  EXPECT_EQ(f->name(f->first_trunk()), "a -> b");
  EXPECT_DOUBLE_EQ(trunk.capacity.value(), 100e9);
  EXPECT_EQ(trunk.latency, Duration(350 + 150));
  EXPECT_EQ(f->link(f->downlink(NicId(0))).latency, Duration(350));
  EXPECT_DOUBLE_EQ(f->link(f->downlink(NicId(0))).capacity.value(), 50e9);
}

TEST(Custom, a_server_named_as_a_whole_has_its_nics_in_turn) {
  // 4 cables to each of two leaves and 4 NICs: port 0 of each NIC at a, port 1 at b.
  const HostShape servers{.hosts = 1, .gpus = 4, .nics = 4};
  const auto f = must_build_text("from,to,count\nnode-0,a,4\nnode-0,b,4\n", csv, servers);
  EXPECT_EQ(f->servers().ports_per_nic, 2);
  for (std::size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(f->name(f->edge_of(NicId(n), 0)), "a");
    EXPECT_EQ(f->name(f->edge_of(NicId(n), 1)), "b");
    EXPECT_DOUBLE_EQ(f->link(f->uplink(NicId(n), 1)).capacity.value(), 25e9);
  }
}

TEST(Custom, directed_edges_pair_up_and_may_differ) {
  const auto f = must_build_text(
      "digraph { a -> b [capacity_gbps=400]; a -> b [capacity_gbps=200]; b -> a "
      "[capacity_gbps=100]; b -> a [capacity_gbps=50]; \"node-0\" -> a; a -> \"node-0\"; }",
      GraphFormat::dot, {.hosts = 1, .gpus = 1, .nics = 1});
  const std::size_t first = f->first_trunk().index();
  ASSERT_EQ(f->links().size(), first + 4);
  EXPECT_DOUBLE_EQ(f->link(LinkId(first)).capacity.value(), 50e9);
  EXPECT_DOUBLE_EQ(f->link(LinkId(first + 1)).capacity.value(), 12.5e9);
  EXPECT_DOUBLE_EQ(f->link(LinkId(first + 2)).capacity.value(), 25e9);
  EXPECT_DOUBLE_EQ(f->link(LinkId(first + 3)).capacity.value(), 6.25e9);
  EXPECT_EQ(f->name(LinkId(first + 2)), "a -> b #1");
}

TEST(Custom, every_kind_comes_back_as_it_was_exported) {
  for (const auto& [name, f] : one_of_each())
    for (const GraphFormat format : {GraphFormat::graphml, GraphFormat::dot}) {
      SCOPED_TRACE(name + (format == GraphFormat::dot ? " as DOT" : " as GraphML"));
      ASSERT_TRUE(f);
      const auto back = as_custom(*f, format);
      ASSERT_TRUE(back);
      EXPECT_EQ(links_by_name(*back), links_by_name(*f));
      EXPECT_EQ(back->switch_count(), f->switch_count());
      for (std::size_t n = 0; n < f->nic_count(); ++n)
        for (int p = 0; p < f->ports_of(NicId(n)); ++p)
          EXPECT_EQ(back->name(back->edge_of(NicId(n), p)), f->name(f->edge_of(NicId(n), p)));
      // And again: what was written from the copy reads the same.
      EXPECT_EQ(exported(*as_custom(*back, format), format), exported(*back, format));
    }
}

TEST(Custom, odd_names_survive_both_formats) {
  const std::string content =
      "node-0,\"a \"\"quoted\"\", <b> & 'c'\"\nnode-1,\xC3\xA4\\\n"
      "\xC3\xA4\\,\"a \"\"quoted\"\", <b> & 'c'\",1 Gb/s\n";
  const std::string rows = "from,to,capacity\n" + [&] {
    std::string all = content;  // the first two rows have no capacity
    all.insert(all.find('\n'), ",");
    all.insert(all.find('\n', all.find("node-1")), ",");
    return all;
  }();
  const auto f = must_build_text(rows, csv, {.hosts = 2, .gpus = 1, .nics = 1});
  ASSERT_TRUE(f);
  EXPECT_EQ(f->name(f->edge_of(HostId(0))), "a \"quoted\", <b> & 'c'");
  for (const GraphFormat format : {GraphFormat::graphml, GraphFormat::dot}) {
    const auto back = as_custom(*f, format);
    ASSERT_TRUE(back);
    EXPECT_EQ(links_by_name(*back), links_by_name(*f));
  }
}

// What does not fit the scenario, with the line and what would be right.
struct Refused {
  std::string name, content, says, right;
};
class CustomRefuses : public testing::TestWithParam<Refused> {};
TEST_P(CustomRefuses, with_line_and_remedy) {
  const BuildResult r = build_text(GetParam().content, csv, {.hosts = 2, .gpus = 2, .nics = 2});
  EXPECT_FALSE(r.fabric);
  EXPECT_THAT(text(r.problems), HasSubstr(GetParam().says));
  EXPECT_THAT(text(r.problems), HasSubstr(GetParam().right));
  for (const Problem& p : r.problems) EXPECT_EQ(p.path, "graph");
}
const std::string two = "from,to,capacity,count\nnode-0,a,,2\nnode-1,b,,2\na,b,400 Gb/s,\n";
INSTANTIATE_TEST_SUITE_P(
    Custom, CustomRefuses,
    testing::Values(
        Refused{"a_server_too_many", two + "node-2,a,,2\n",
                "fabric:5: \"node-2\" is not one of the scenario's 2 servers", "node-0 to node-1"},
        Refused{"a_server_without_cable", "node-0,a,400 Gb/s,,2\n", "node-1 has no cable",
                "its 2 NICs cabled to switches"},
        Refused{"too_few_cables", "node-0,a\nnode-1,a\n",
                "fabric:1: node-0 has 1 cable, but the scenario's servers have 2 NICs",
                "count = 2 on one edge"},
        Refused{"one_nic_without_cable", two + "node-1/nic-2,a,,\n",
                "fabric:5: \"node-1/nic-2\" is no NIC of a server with 2",
                "node-7/nic-0 to node-7/nic-1"},
        Refused{"whole_and_nics", two + "node-1/nic-1,a,,\n",
                "fabric:3: node-1 is cabled as a whole and by its NICs", "one or the other"},
        Refused{"different_ports", "from,to,count\nnode-0,a,2\nnode-1,a,4\n",
                "fabric:3: node-1/nic-0 has 2 cables", "1 cable as node-0/nic-0 has"},
        Refused{"wrong_rate", "node-0,a,200 Gb/s,,2\nnode-1,a,400 Gb/s,,2\n",
                "fabric:1: node-0/nic-0 is cabled at 200 Gb/s", "400 Gb/s, so that"},
        Refused{"zeros_in_front", two + "node-01,a,,\n", "fabric:5: \"node-01\" is no server",
                "without zeros"},
        Refused{"storage_that_is_not_there", two + "storage-0,a,,\n",
                "\"storage-0\" is not in the scenario", "none"},
        Refused{"two_parts", "from,to,count\nnode-0,a,2\nnode-1,b,2\n",
                "nothing leads from node-0 at \"a\" to node-1 at \"b\"", "cables between"},
        Refused{"to_itself", two + "a,a,1 Gb/s,\n", "fabric:5: \"a\" is joined to itself",
                "two different ends"},
        Refused{"no_switch_between", two + "node-0,node-1,,\n",
                "\"node-0\" and \"node-1\" are joined without a switch", "a switch between"},
        Refused{"no_switch", "node-0,node-1\n", "there is no switch", "switches"},
        Refused{"nothing_at_all", "\n# nothing\n", "there is no switch", "switches"},
        Refused{"a_trunk_without_rate", "from,to,count\nnode-0,a,2\nnode-1,b,2\na,b,1\n",
                "fabric:4: a cable between switches has no capacity", "router_switch"}),
    [](const auto& p) { return p.param.name; });

TEST(Custom, rails_that_are_not_joined_are_accepted_but_not_servers_that_are_not) {
  const HostShape servers{.hosts = 2, .gpus = 2, .nics = 2};
  const std::string rails = "node-0/nic-0,a\nnode-1/nic-0,a\nnode-0/nic-1,b\nnode-1/nic-1,b\n";
  EXPECT_TRUE(must_build_text(rails, csv, servers));
  // Each server shares a part with one other, but the first and the third none.
  const BuildResult r = build_text(
      "node-0/nic-0,a\nnode-0/nic-1,a\nnode-1/nic-0,a\nnode-1/nic-1,b\nnode-2/nic-0,b\nnode-2/"
      "nic-1,b\n",
      csv, {.hosts = 3, .gpus = 2, .nics = 2});
  EXPECT_THAT(text(r.problems), HasSubstr("the graph is in parts"));
}

TEST(Custom, a_directed_edge_needs_its_opposite) {
  const BuildResult r = build_text("digraph {\n a -> b\n \"node-0\" -> a; a -> \"node-0\";\n}",
                                   GraphFormat::dot, {.hosts = 1, .gpus = 1, .nics = 1});
  EXPECT_THAT(text(r.problems), HasSubstr("fabric:2: nothing leads back from \"b\" to \"a\""));
}

TEST(Custom, ports_are_counted_only_against_a_switch_that_is_given) {
  const HostShape servers{.hosts = 3, .gpus = 1, .nics = 1};
  const std::string star = "node-0,a\nnode-1,a\nnode-2,a\n";
  EXPECT_TRUE(must_build_text(star, csv, servers));
  FabricSpec spec{.kind = FabricKind::custom, .router_switch = switch_of(3)};
  EXPECT_TRUE(must_build_text(star, csv, servers, spec));
  spec.router_switch.ports = 2;
  EXPECT_THAT(text(build_text(star, csv, servers, spec).problems),
              HasSubstr("switch \"a\" takes 3 ports; right: at most the 2 ports"));
  spec.router_switch = switch_of(2, 800_Gbps);  // each port splits into two of 400 Gb/s
  EXPECT_TRUE(must_build_text(star, csv, servers, spec));
  spec.router_switch = switch_of(64, 200_Gbps);
  EXPECT_THAT(text(build_text(star, csv, servers, spec).problems), HasSubstr("faster than a port"));
}

TEST(Custom, a_file_is_opened_or_the_reason_is_told) {
  FabricSpec spec{.kind = FabricKind::custom};
  EXPECT_THAT(text(build_custom(spec, four).problems), HasSubstr("has no file"));
  spec.graph = "no/such/file.graphml";
  EXPECT_THAT(text(build_custom(spec, four).problems),
              HasSubstr("no/such/file.graphml: cannot be read"));
  spec.graph = testing::TempDir();
  EXPECT_THAT(text(build_custom(spec, four).problems), HasSubstr("is a folder"));
  spec.graph = testing::TempDir() + "trainyard_custom_test.csv";
  std::ofstream(*spec.graph) << small;
  const BuildResult r = build_fabric(spec, four);  // by way of the catalog
  EXPECT_TRUE(r.fabric) << text(r.problems);
  std::remove(spec.graph->c_str());
}

TEST(Custom, at_most_twenty_mistakes_are_listed) {
  std::string content = "from,to\n";
  for (int i = 0; i < 100; ++i) content += "node-" + std::to_string(1000 + i) + ",a\n";
  const BuildResult r = build_text(content, csv, four);
  EXPECT_EQ(r.problems.size(), 21u);
  EXPECT_THAT(text(r.problems), HasSubstr("80 more mistakes"));
}

}  // namespace
}  // namespace trainyard::topologies
