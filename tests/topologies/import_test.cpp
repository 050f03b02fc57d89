#include "topologies/import.hpp"

#include <gmock/gmock.h>

#include <random>

#include "tests/topologies/imports.hpp"

namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;
using testing::HasSubstr;

GraphFile read(const std::string& content, GraphFormat format) {
  Problems problems;
  GraphFile g = parse_graph(content, "fabric", format, problems);
  EXPECT_TRUE(problems.empty()) << text(problems);
  return g;
}
std::string complaints(const std::string& content, GraphFormat format) {
  Problems problems;
  parse_graph(content, "fabric", format, problems);
  return text(problems);
}

/// "a>b 400G 350ns x2" for directed, "a-b" for undirected.
std::string line_of(const GraphFile& g, const GraphEdge& e) {
  std::string out = g.vertices[e.from].name + (e.is_directed ? ">" : "-") + g.vertices[e.to].name;
  if (e.capacity) out += ' ' + std::to_string(std::lround(e.capacity->value() * 8e-9)) + 'G';
  if (e.latency) out += ' ' + std::to_string(e.latency->count()) + "ns";
  if (e.count != 1) out += " x" + std::to_string(e.count);
  return out;
}
std::vector<std::string> edges_of(const GraphFile& g) {
  std::vector<std::string> all;
  for (const GraphEdge& e : g.edges) all.push_back(line_of(g, e));
  return all;
}

TEST(Import, the_three_formats_say_the_same) {
  const std::vector<std::string> expected{"a-b 400G 350ns x2", "b-c 800G", "a-c"};
  EXPECT_EQ(edges_of(read("from,to,capacity,latency,count\n"
                          "a,b,400 Gb/s,350 ns,2\nb,c,100 GB/s,,\na,c,,,\n",
                          GraphFormat::edge_list)),
            expected);
  EXPECT_EQ(edges_of(read("graph { a -- b [capacity_gbps=400, latency_us=0.35, count=2]\n"
                          "b -- c [capacity=\"0.8 Tb/s\"] a -- c }",
                          GraphFormat::dot)),
            expected);
  EXPECT_EQ(
      edges_of(read(
          R"(<graphml><key id="k" for="edge" attr.name="capacity_gbps"/><graph edgedefault="undirected">
             <node id="a"/><node id="b"/><node id="c"/>
             <edge source="a" target="b"><data key="k">400</data><data key="latency">0.35 us</data>
               <data key="count">2</data></edge>
             <edge source="b" target="c"><data key="k">800</data></edge><edge source="a" target="c"/>
             </graph></graphml>)",
          GraphFormat::graphml)),
      expected);
}

// Edge lists

TEST(EdgeList, units_may_stand_in_the_head) {
  EXPECT_EQ(edges_of(read("# cables\r\nSource;Target;Capacity [Gb/s];Latency (us);Type\r\n\r\n"
                          "a;b;400;0.35;Undirected\r\n\"b;\";a;;;directed\r\n",
                          GraphFormat::edge_list)),
            (std::vector<std::string>{"a-b 400G 350ns", "b;>a"}));
  EXPECT_EQ(
      edges_of(read("from\tto\tcapacity_gbps\tlatency_us\na\tb\t200\t\n", GraphFormat::edge_list)),
      (std::vector<std::string>{"a-b 200G"}));
}

TEST(EdgeList, without_a_head_the_columns_are_the_usual_ones) {
  EXPECT_EQ(edges_of(read("a,b,400 Gb/s,1 us,3\nb,c,400 Gb/s,1 us,1\n", GraphFormat::edge_list)),
            (std::vector<std::string>{"a-b 400G 1000ns x3", "b-c 400G 1000ns"}));
  EXPECT_EQ(edges_of(read("\xEF\xBB\xBF"
                          "a,b",
                          GraphFormat::edge_list)),
            (std::vector<std::string>{"a-b"}));
}

// What cannot be read, with its line.
struct Broken {
  std::string name, content, says;
};
class EdgeListRefuses : public testing::TestWithParam<Broken> {};
TEST_P(EdgeListRefuses, with_its_line) {
  EXPECT_THAT(complaints(GetParam().content, GraphFormat::edge_list), HasSubstr(GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(
    Import, EdgeListRefuses,
    testing::Values(
        Broken{"bare_number", "a,b,400\n",
               "fabric:1: capacity is \"400\"; right: a rate above zero"},
        Broken{"negative", "a,b,-5 Gb/s\n", "fabric:1: capacity is \"-5 Gb/s\""},
        Broken{"zero", "a,b,0 Gb/s\n", "capacity is \"0 Gb/s\""},
        Broken{"not_a_number", "from,to,capacity_gbps\na,b,nan\n",
               "fabric:2: capacity_gbps is \"nan\""},
        Broken{"infinite", "from,to,capacity_gbps\na,b,1e999\n", "capacity_gbps is \"1e999\""},
        Broken{"time_for_a_rate", "a,b,5 us\n", "capacity is \"5 us\""},
        Broken{"negative_latency", "a,b,1 Gb/s,-1 us\n", "latency is \"-1 us\""},
        Broken{"half_a_cable", "a,b,1 Gb/s,,0.5\n", "count is \"0.5\"; right: a whole number"},
        Broken{"too_many_cables", "a,b,1 Gb/s,,1000000\n", "count is \"1000000\""},
        Broken{"unknown_column", "from,to,capcity\n", "fabric:1: column \"capcity\" is unknown"},
        Broken{"column_twice", "from,to,to\n", "comes twice"},
        Broken{"no_to", "from,capacity\n", "the columns from and to are not both there"},
        Broken{"bad_unit", "from,to,capacity [furlongs]\n",
               "column \"capacity\" is in \"furlongs\""},
        Broken{"bad_number_for_unit", "from,to,latency [us]\na,b,x\n",
               "latency is \"x\"; right: a number of us"},
        Broken{"too_few_fields", "from,to,capacity\na,b\n", "fabric:2: 2 fields; right: 3"},
        Broken{"one_field", "a\n", "the first row has 1 fields"},
        Broken{"one_end", "from,to\na,\n", "fabric:2: a cable has only one end or none"},
        Broken{"open_quote", "a,\"b\n", "a quoted field does not end"},
        Broken{"bad_type", "from,to,type\na,b,both\n", "type is \"both\""},
        Broken{"control_character",
               "a,b\x01"
               "c\n",
               "\"b?c\" has control characters"},
        Broken{"not_utf8", "a,b\xff\n", "\"b?\" is not UTF-8"},
        Broken{"overlong_utf8", "a,b\xc0\xaf\n", "is not UTF-8"},
        Broken{"arrow", "a,b -> c\n", "has the arrow in it"}),
    [](const auto& p) { return p.param.name; });

// DOT

TEST(Dot, has_defaults_chains_sets_ports_and_comments) {
  const GraphFile g = read(R"(
    # a line of the preprocessor
    strict digraph "the \"net\"" {
      rankdir = BT; node [shape=box kind=leaf] /* all
      of them */ edge [capacity_gbps=400]
      a:p:n -> b -> c [latency_us=1];  // a chain
      a -> b                           // strict: only once
      subgraph cluster_0 { edge [capacity_gbps=200]; d e } -> "f" + "g"
      h [kind="spine", label=<a <b>bold</b> word>];
      1.5 -> -2
    })",
                           GraphFormat::dot);
  EXPECT_EQ(edges_of(g), (std::vector<std::string>{"a>b 400G 1000ns", "b>c 400G 1000ns",
                                                   "d>fg 400G", "e>fg 400G", "1.5>-2 400G"}));
  ASSERT_FALSE(g.vertices.empty());
  EXPECT_EQ(g.vertices[0].kind, "leaf");
  EXPECT_EQ(g.vertices[0].line, 6);
  const auto h = std::find_if(g.vertices.begin(), g.vertices.end(),
                              [](const GraphVertex& v) { return v.name == "h"; });
  ASSERT_NE(h, g.vertices.end());
  EXPECT_EQ(h->kind, "spine");
}

TEST(Dot, defaults_of_a_subgraph_end_with_it) {
  EXPECT_EQ(
      edges_of(read("graph { edge [count=2] { edge [count=3] a--b } a--c }", GraphFormat::dot)),
      (std::vector<std::string>{"a-b x3", "a-c x2"}));
  EXPECT_EQ(edges_of(read("graph { {a b} -- {c d} }", GraphFormat::dot)),
            (std::vector<std::string>{"a-c", "a-d", "b-c", "b-d"}));
}

class DotRefuses : public testing::TestWithParam<Broken> {};
TEST_P(DotRefuses, with_its_line) {
  EXPECT_THAT(complaints(GetParam().content, GraphFormat::dot), HasSubstr(GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(
    Import, DotRefuses,
    testing::Values(
        Broken{"nothing", "", "fabric:1: the end of the file; right: graph or digraph"},
        Broken{"no_end", "graph {\n a -- b\n", "fabric:3: the end of the file"},
        Broken{"open_quote", "graph {\n\n \"a", "fabric:3: a quoted text does not end"},
        Broken{"open_html", "graph { a [label=<b", "a text in < > does not end"},
        Broken{"wrong_arrow", "graph {\n a -> b }", "fabric:2: \"->\"; right: \"--\" in a graph"},
        Broken{"wrong_line", "digraph { a -- b }", "right: \"->\" in a digraph"},
        Broken{"no_value", "graph { a [kind=] }", "\"]\"; right: a name or a value"},
        Broken{"no_target", "graph { a -- }", "\"}\"; right: a name or a value"},
        Broken{"character", "graph { a ! b }", "the character \"!\" stands where none can"},
        Broken{"two_graphs", "graph { } graph { }", "right: one graph in the file"},
        Broken{"rate", "graph {\n\n a -- b [capacity_gbps=-1] }",
               "fabric:3: capacity_gbps is \"-1\""},
        Broken{"bad_default", "graph { edge [latency=5] a -- b }", "latency is \"5\""}),
    [](const auto& p) { return p.param.name; });

// GraphML

TEST(GraphMl, has_presets_directions_entities_and_graphs_in_nodes) {
  const GraphFile g = read(R"(<?xml version="1.0"?>
    <!DOCTYPE graphml SYSTEM "graphml.dtd"> <!-- <node id="no"/> -->
    <g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns" xmlns:y="y">
      <key id="d0" for="edge" attr.name="capacity_gbps"><default>400</default></key>
      <key id="d1" for="node" attr.name="name"/>
      <key id="d2" for="node" attr.name="kind"/>
      <graph edgedefault="directed">
        <edge source="1" target="2" directed="false"/>
        <node id='1'><data key="d1"><![CDATA[a & b]]></data><data key="d2">leaf</data>
          <data key="y"><y:ShapeNode><y:NodeLabel>x</y:NodeLabel><data key="d1">no</data></y:ShapeNode></data>
          <graph><node id="2"><data key="d1">&#x63;&lt;&#228;</data></node></graph>
        </node>
        <node id="3"/>
        <edge source="3" target="1"><data key="d0">100</data></edge>
      </graph>
    </g:graphml>)",
                           GraphFormat::graphml);
  EXPECT_EQ(edges_of(g), (std::vector<std::string>{"a & b-c<\xC3\xA4 400G", "3>a & b 100G"}));
  ASSERT_FALSE(g.vertices.empty());
  EXPECT_EQ(g.vertices[0].kind, "leaf");
  EXPECT_EQ(g.vertices[0].line, 9);
}

std::string graphml(const std::string& inner) {
  return "<graphml>\n<graph edgedefault=\"undirected\">\n" + inner + "\n</graph></graphml>";
}
class GraphMlRefuses : public testing::TestWithParam<Broken> {};
TEST_P(GraphMlRefuses, with_its_line) {
  EXPECT_THAT(complaints(GetParam().content, GraphFormat::graphml), HasSubstr(GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(
    Import, GraphMlRefuses,
    testing::Values(
        Broken{"nothing", "", "there is no <graphml>"},
        Broken{"text", "hello", "text outside of all elements"},
        Broken{"other_xml", "<html></html>", "fabric:1: the file begins with <html>"},
        Broken{"unclosed", "<graphml>\n<graph>", "fabric:2: the file ends within <graph>"},
        Broken{"crossed", "<graphml>\n</graph>",
               "fabric:2: the closing tag \"graph\" closes nothing"},
        Broken{"broken_attribute", graphml("<node id=a/>"), "fabric:3: a tag or its attributes"},
        Broken{"unknown_entity", graphml("<node id='&a;'/>"), "the entity \"a\" is unknown"},
        Broken{"entity_bomb", "<!DOCTYPE x [<!ENTITY a \"b\">]><graphml/>",
               "a document type with declarations"},
        Broken{"unknown_node", graphml("<node id='a'/><edge source='a' target='b'/>"),
               "fabric:3: an edge ends at \"b\", which is no node"},
        Broken{"id_twice", graphml("<node id='a'/>\n<node id='a'/>"),
               "fabric:4: the id \"a\" was given before"},
        Broken{"name_twice",
               graphml("<node id='a'/>\n<node id='b'><data key='name'>a</data></node>"),
               "fabric:4: the name \"a\" was given before"},
        Broken{"no_id", graphml("<node/>"), "a node has no id"},
        Broken{"hyperedge", graphml("<hyperedge/>"), "a hyperedge"},
        Broken{"rate",
               graphml("<node id='a'/><node id='b'/>\n<edge source='a' target='b'><data "
                       "key='capacity'>fast</data></edge>"),
               "fabric:4: capacity is \"fast\""}),
    [](const auto& p) { return p.param.name; });

TEST(Import, the_format_is_told_by_the_ending_or_the_text) {
  EXPECT_EQ(format_of("a.GraphML", ""), GraphFormat::graphml);
  EXPECT_EQ(format_of("a.b/c.gv", "<"), GraphFormat::dot);
  EXPECT_EQ(format_of("a.csv", "digraph {"), GraphFormat::edge_list);
  EXPECT_EQ(format_of("a", "\n <?xml"), GraphFormat::graphml);
  EXPECT_EQ(format_of("a", "strict graph {"), GraphFormat::dot);
  EXPECT_EQ(format_of("a", "graph,to\n"), GraphFormat::edge_list);
  EXPECT_EQ(format_of("", ""), GraphFormat::edge_list);
}

TEST(Import, deep_nesting_is_no_recursion) {
  const std::size_t n = 300'000;
  std::string xml = "<graphml>", dot = "graph ";
  for (std::size_t i = 0; i < n; ++i) {
    xml += "<a>";
    dot += '{';
  }
  EXPECT_THAT(complaints(xml, GraphFormat::graphml), HasSubstr("the file ends within <a>"));
  EXPECT_THAT(complaints(dot, GraphFormat::dot), HasSubstr("at most 100 subgraphs"));
}

TEST(Import, sets_of_dot_do_not_multiply_without_end) {
  std::string set = "{";
  for (int i = 0; i < 1001; ++i) set += " v" + std::to_string(i);
  set += '}';
  EXPECT_THAT(complaints("graph { " + set + " -- " + set + " }", GraphFormat::dot),
              HasSubstr("fabric:1: two sets with too many edges"));
}

// Whatever a file holds: a fabric or reasons, no crash, no hang.
TEST(Import, ten_thousand_mutated_files_are_built_or_refused) {
  const auto f = one_of_each()[0].fabric;
  ASSERT_TRUE(f);
  std::string list = "from,to,capacity,latency,count,type\n";
  for (const Link& l : f->links())
    if (l.kind != LinkKind::nvlink)
      list += f->name(l.from) + ',' + f->name(l.to) + ',' + std::to_string(l.capacity.value()) +
              " B/s," + std::to_string(l.latency.count()) + " ns,1,directed\n";
  struct Original {
    std::string content;
    GraphFormat format;
  };
  const std::vector<Original> originals{
      {exported(*f, GraphFormat::graphml, {}), GraphFormat::graphml},
      {exported(*f, GraphFormat::dot, {}), GraphFormat::dot},
      {list, GraphFormat::edge_list}};
  for (const auto& [content, format] : originals)
    ASSERT_TRUE(must_build_text(content, format, servers_of(*f)));

  const std::string spice = "<>&\"'{}[];,=-+:/\\#\n\t 0189.eEnN\x01\xff\xc3";
  int built = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 10'500; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
    const auto& [content, format] = originals[seed % originals.size()];
    std::string mutated = content;
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::size_t at = below(mutated.size());
      const std::size_t length = std::min(below(1 + below(200)), mutated.size() - at);
      switch (below(5)) {
        case 0:
          mutated[at] = spice[below(spice.size())];
          break;
        case 1:
          mutated.erase(at, length);
          break;
        case 2:
          mutated.insert(at, mutated.substr(below(mutated.size()), length));
          break;
        case 3:
          mutated.insert(at, 1, spice[below(spice.size())]);
          break;
        default:
          mutated.resize(at + 1);
      }
    }
    SCOPED_TRACE("seed " + std::to_string(seed));
    const BuildResult r = build_text(mutated, format, servers_of(*f));
    ASSERT_NE(r.fabric != nullptr, !r.problems.empty());
    ++(r.fabric ? built : refused);
  }
  EXPECT_GT(built, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace trainyard::topologies
