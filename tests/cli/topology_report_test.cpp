#include "cli/topology_report.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/golden.hpp"
#include "topologies/catalog.hpp"
#include "topologies/custom.hpp"

namespace trainyard::cli {
namespace {

using namespace topologies;
using testing::HasSubstr;

constexpr Terminal paper{.width = 80, .interactive = false, .colour = false, .unicode = false};

const SwitchSpec box{.name = "Box 64",
                     .ports = 64,
                     .port_rate = BytesPerSecond(50e9),
                     .latency = Duration(350),
                     .power = Watts(1700),
                     .price = Dollars(36000)};

std::shared_ptr<const Fabric> fabric_of(FabricSpec spec, const HostShape& servers) {
  spec.leaf_switch = spec.spine_switch = spec.core_switch = spec.router_switch = box;
  const BuildResult r = build_fabric(spec, servers);
  EXPECT_TRUE(r.fabric != nullptr) << (r.problems.empty() ? "" : r.problems[0].what);
  return r.fabric;
}

std::shared_ptr<const Fabric> lab() {
  Problems problems;
  const GraphFile graph = parse_graph(
      "from,to,capacity,count\nnode-0,a,,8\nnode-1,b,,8\na,b,400 Gb/s,4\na,c,200 Gb/s,1\nb,c,200 "
      "Gb/s,1\n",
      "lab.csv", GraphFormat::edge_list, problems);
  return build_custom({.kind = FabricKind::custom}, {.hosts = 2}, graph).fabric;
}

struct Case {
  std::string name;
  std::shared_ptr<const Fabric> fabric;
};
std::vector<Case> cases() {
  return {{"tree", fabric_of({.tiers = 3, .hosts_per_leaf = 4, .leaf_oversubscription = 2.0},
                             {.hosts = 512, .storage_ports = 16})},
          {"rails",
           fabric_of({.kind = FabricKind::rail_optimized, .hosts_per_leaf = 32}, {.hosts = 128})},
          {"dragonfly", fabric_of({.kind = FabricKind::dragonfly,
                                   .nics_per_router = 4,
                                   .routers_per_group = 8,
                                   .global_links_per_router = 4,
                                   .groups = 33},
                                  {.hosts = 1056, .gpus = 1, .nics = 1})},
          {"torus", fabric_of({.kind = FabricKind::torus, .dimensions = {16, 16, 16}},
                              {.hosts = 4096, .gpus = 1, .nics = 1})},
          {"custom", lab()}};
}

TEST(TopologyReport, of_each_kind) {
  for (const auto& [name, fabric] : cases()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(fabric);
    expect_golden("topology_" + name + ".txt",
                  topology_text(name, *fabric, measure(*fabric), paper));
  }
}

TEST(TopologyReport, no_line_is_wider_than_the_terminal) {
  for (const auto& [name, fabric] : cases()) {
    std::istringstream text(topology_text(name, *fabric, measure(*fabric), paper));
    for (std::string line; std::getline(text, line);) EXPECT_LE(columns_of(line), 80u) << line;
  }
}

TEST(TopologyReport, json_has_the_stable_keys_and_adds_up) {
  for (const auto& [name, fabric] : cases()) {
    SCOPED_TRACE(name);
    const auto t = nlohmann::json::parse(topology_json(name, *fabric, measure(*fabric)));
    for (const char* key :
         {"schema", "hosts", "gpus", "switches", "links", "cables", "bisection_Bps",
          "diameter_hops", "oversubscription", "cost_usd", "power_W"})
      EXPECT_TRUE(t.contains(key)) << key;
    double cost = 0, power = 0;
    for (const auto& item : t["cost_items"]) {
      cost += item["cost_usd"].get<double>();
      power += item["power_W"].get<double>();
    }
    EXPECT_NEAR(cost, t["cost_usd"].get<double>(), 1e-6);
    EXPECT_NEAR(power, t["power_W"].get<double>(), 1e-6);
    int cables = 0, links = 0;
    for (const auto& [medium, n] : t["cables"].items()) cables += n.get<int>();
    for (const auto& [kind, n] : t["links"].items())
      if (kind != "nvlink") links += n.get<int>();
    EXPECT_EQ(links, 2 * cables);
  }
  const auto custom = cases().back().fabric;
  const auto t = nlohmann::json::parse(topology_json("lab", *custom, measure(*custom)));
  EXPECT_TRUE(t["ports"]["router"]["free"].is_null());
}

}  // namespace
}  // namespace trainyard::cli
