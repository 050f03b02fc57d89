#include "scenarios/collective_sweep.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "scenarios/diagnostic.hpp"
#include "scenarios/read.hpp"
#include "scenarios/world.hpp"

namespace trainyard::scenarios {
namespace {

using enum models::CollectiveKind;
using Algorithm = models::CollectiveAlgorithm;
using models::Protocol;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double MiB = 1048576, GiB = 1073741824;

/// 32 servers of 8 H100 on eight leaves, sprayed at 1:1, and two spares.
Scenario yard(const std::vector<std::string>& overrides = {}) {
  const ReadResult read =
      read_scenario(std::string(TRAINYARD_LIBRARY) + "/quickstart.json", overrides);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return read.scenario;
}

std::vector<double> sizes(double from, double to, double factor) {
  std::vector<double> out;
  for (double b = from; b <= to; b *= factor) out.push_back(b);
  return out;
}

models::LinkConstants constants_of(const Scenario& s) {
  const models::ServerSpec& server = s.cluster.server;
  return models::link_constants(server.gpu.scale_up_rate, server.gpu.peak_fp8.value() > 0,
                                server.nic.rate);
}

std::string refusal(const Scenario& scenario, const SweepRequest& request) {
  try {
    sweep_collectives(scenario, request);
  } catch (const SweepRefused& refused) {
    return refused.what();
  }
  return "";
}

// `collective` and `validate` are one model: where no switch is in the way, the numbers are equal.
TEST(CollectiveSweep, packed_on_an_intact_1to1_fabric_is_what_the_tuner_says) {
  const Scenario scenario = yard();
  const models::LinkConstants constants = constants_of(scenario);
  for (const std::size_t ranks : {2, 4, 8, 16, 32, 64, 256})
    for (const auto kind : {all_reduce, reduce_scatter, all_gather, broadcast, all_to_all}) {
      const SweepResult result = sweep_collectives(
          scenario, {.traffic = {{kind}}, .bytes = sizes(8, 16 * GiB, 8), .group = {ranks, 0}});
      for (const SweepRow& row : result.rows) {
        const auto best = models::best(kind, row.bytes, {ranks, 8}, constants);
        EXPECT_EQ(row.algorithm, best->algorithm) << row.kind << ' ' << ranks << ' ' << row.bytes;
        EXPECT_EQ(row.protocol, best->protocol);
        EXPECT_NEAR(row.time_s, best->time_s, 1e-9 * best->time_s) << row.kind << ' ' << ranks;
      }
    }
}

TEST(CollectiveSweep, so_it_is_for_each_algorithm_and_protocol) {
  const Scenario scenario = yard();
  models::LinkConstants constants = constants_of(scenario);
  constants.network_reduction = true;
  for (const std::size_t ranks : {8, 16, 32, 256})
    for (const auto kind : {all_reduce, all_gather})
      for (const auto& way : models::costs(kind, GiB, {ranks, 8}, constants)) {
        const SweepResult result = sweep_collectives(scenario, {.traffic = {{kind}},
                                                                .bytes = {GiB},
                                                                .group = {ranks, 0},
                                                                .algorithm = way.algorithm,
                                                                .protocol = way.protocol});
        EXPECT_NEAR(result.rows[0].time_s, way.time_s, 1e-9 * way.time_s)
            << name_of(way.algorithm) << ' ' << name_of(way.protocol) << ' ' << ranks;
        EXPECT_NEAR(result.rows[0].slowdown(), 1, 1e-9) << name_of(way.algorithm);
      }
}

TEST(CollectiveSweep, no_row_is_below_its_bound_and_more_bytes_take_longer) {
  const Scenario scenario = yard({"cluster.fabric.routing=ecmp"});
  for (const auto order : {ServerOrder::packed, ServerOrder::spread, ServerOrder::random})
    for (const auto kind : {all_reduce, all_gather, all_to_all, point_to_point}) {
      const SweepResult result = sweep_collectives(
          scenario,
          {.traffic = {{kind}}, .bytes = sizes(1, 16 * GiB, 4), .group = {64, 0}, .order = order});
      double last_s = 0;
      for (const SweepRow& row : result.rows) {
        EXPECT_GE(row.time_s, row.bound_s);
        EXPECT_GE(row.time_s, last_s * (1 - 1e-12)) << row.kind << ' ' << row.bytes;
        last_s = row.time_s;
      }
    }
}

// 16 GiB from each GPU to the one half way round: 16 GiB / (0.96 · 50 GB/s) = 0.3579 s, and at 4:1
// four times that: 32 adapters of a leaf share 8 uplinks of their rate.
TEST(CollectiveSweep, a_permutation_over_oversubscribed_leaves_by_hand) {
  for (const double ratio : {1.0, 2.0, 4.0}) {
    const Scenario scenario =
        yard({"cluster.fabric.leaf_oversubscription=" + std::to_string(int(ratio))});
    const SweepRow row =
        sweep_collectives(scenario, {.traffic = {{point_to_point, true}}, .bytes = {16 * GiB}})
            .rows[0];
    EXPECT_NEAR(row.fabric_s, ratio * 16 * GiB / 48e9, 1e-9);
    EXPECT_EQ(row.bottleneck.substr(0, 6), ratio == 1 ? "node-0" : "leaf-0");
    EXPECT_EQ(row.kind, "permutation");
    EXPECT_EQ(row.ranks, 256u);
  }
}

// Four jobs of 8 servers at 4:1. Packed, a job has two leaves to itself and its ring leaves each of
// them once a rail: 8 flows on 8 uplinks. Spread, a job has a server on every leaf, all of its hops
// cross, and four jobs bring 32 flows to each leaf's 8 uplinks.
TEST(CollectiveSweep, competing_jobs_meet_where_they_share_uplinks) {
  const Scenario scenario = yard({"cluster.fabric.leaf_oversubscription=4"});
  SweepRequest request{.bytes = {16 * GiB}, .group = {64, 0}, .algorithm = Algorithm::ring};
  request.protocol = Protocol::simple;
  request.compete = 3;
  EXPECT_NEAR(sweep_collectives(scenario, request).rows[0].slowdown(), 1, 1e-9);
  request.order = ServerOrder::spread;
  // Bus bandwidth on the fabric: 8 uplinks of 48 GB/s over four jobs; alone 0.815 · 450 GB/s.
  EXPECT_NEAR(sweep_collectives(scenario, request).rows[0].slowdown(), 0.815 * 450 / (8 * 48 / 4.0),
              1e-6);
  request.compete = 0;
  EXPECT_NEAR(sweep_collectives(scenario, request).rows[0].slowdown(), 1, 1e-9);
}

TEST(CollectiveSweep, a_competitor_of_another_kind_that_ends_early_costs_less) {
  const Scenario scenario = yard({"cluster.fabric.leaf_oversubscription=4"});
  SweepRequest request{.bytes = {GiB}, .group = {64, 0}, .order = ServerOrder::spread};
  const double alone_s = sweep_collectives(scenario, request).rows[0].time_s;
  request.competitors = {{{all_to_all}, 64 * MiB, {128, 0}}};
  const double short_s = sweep_collectives(scenario, request).rows[0].time_s;
  request.competitors = {{{all_to_all}, GiB, {128, 0}}};
  const double long_s = sweep_collectives(scenario, request).rows[0].time_s;
  EXPECT_LT(alone_s, short_s);
  EXPECT_LT(short_s, long_s);
}

TEST(CollectiveSweep, without_company_and_beside_idle_company_are_the_same) {
  const Scenario scenario = yard({"cluster.fabric.routing=ecmp"});
  SweepRequest request{.bytes = {MiB, GiB}, .group = {64, 0}};  // leaves 0 and 1
  const SweepResult alone = sweep_collectives(scenario, request);
  request.competitors = {{{all_gather}, GiB, {8, 0}}};  // one server: never on the fabric
  const SweepResult beside = sweep_collectives(scenario, request);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(beside.rows[i].time_s, alone.rows[i].time_s, 1e-9 * alone.rows[i].time_s);
}

TEST(CollectiveSweep, one_cable_at_half_rate_by_hand) {
  const Scenario scenario = yard();
  SweepRequest request{.traffic = {{point_to_point, true}}, .bytes = {16 * GiB}};
  request.faults = {{"leaf-0 -> spine-0 #0", 0.5}};
  // Spraying does not look: each uplink gets an equal part, and one takes twice as long.
  EXPECT_NEAR(sweep_collectives(scenario, request).rows[0].slowdown(), 2, 1e-9);
  const Scenario adaptive = yard({"cluster.fabric.routing=adaptive"});
  EXPECT_NEAR(sweep_collectives(adaptive, request).rows[0].slowdown(), 32 / 31.5, 1e-9);
}

TEST(CollectiveSweep, what_is_down_and_cuts_is_named) {
  const Scenario scenario = yard();
  SweepRequest request{.bytes = {GiB}};
  request.faults = {{"node-3/nic-2 -> leaf-0", 0}};
  EXPECT_THAT(refusal(scenario, request), HasSubstr("cut by what is down: leaf-0 -> node-3/nic-2"));
  request.faults = {{"spine-0", 0}};
  EXPECT_THAT(refusal(scenario, request), IsEmpty());
  request.faults = {{"leaf-7", 0}};
  EXPECT_THAT(refusal(scenario, request), HasSubstr("leaf-7"));
  request.group.ranks = 64;  // which leaf 7 is not needed for
  EXPECT_THAT(refusal(scenario, request), IsEmpty());
}

TEST(CollectiveSweep, refusals_say_what_would_be_right) {
  const Scenario scenario = yard();
  SweepRequest request{.bytes = {GiB}};
  request.group.ranks = 257;
  EXPECT_EQ(refusal(scenario, request), "257 ranks at 8 a server need 33 servers; 32 are free");
  request.group.ranks = 1;
  EXPECT_THAT(refusal(scenario, request), HasSubstr("at least 2 ranks"));
  request.group = {64, 9};
  EXPECT_THAT(refusal(scenario, request), HasSubstr("a server has 8 GPUs"));
  request.group = {128, 0};
  request.compete = 2;
  EXPECT_THAT(refusal(scenario, request), HasSubstr("0 are free"));
  request = {.bytes = {GiB}};
  request.algorithm = Algorithm::nvls;
  EXPECT_THAT(refusal(scenario, request), HasSubstr("there is: ring, tree, nvls-tree"));
  request = {.bytes = {GiB}, .servers = {0, 32}};
  EXPECT_THAT(refusal(scenario, request), HasSubstr("node-0 to node-31"));
  request.servers = {4, 4};
  EXPECT_THAT(refusal(scenario, request), HasSubstr("listed twice"));
  request = {.bytes = {GiB}};
  request.faults = {{"leaf-0 -> spin-0 #0", 0}};
  EXPECT_THAT(refusal(scenario, request), HasSubstr("did you mean 'leaf-0 -> spine-0 #0'"));
  request.faults = {{"leaf-0", 0.5}};
  EXPECT_THAT(refusal(scenario, request), HasSubstr("only links can be degraded"));
}

TEST(CollectiveSweep, loss_stretches_and_says_what_it_is) {
  const Scenario scenario = yard();
  SweepRequest request{.bytes = {GiB}};
  const SweepRow dry = sweep_collectives(scenario, request).rows[0];
  request.loss_rate = 1e-6;
  const SweepRow wet = sweep_collectives(scenario, request).rows[0];
  EXPECT_GT(wet.time_s, dry.time_s);
  EXPECT_THAT(wet.notes, testing::Contains(HasSubstr("lossy Ethernet")));
  request.group.ranks = 8;  // inside a server nothing is lost
  const SweepRow inside = sweep_collectives(scenario, request).rows[0];
  request.loss_rate = 0;
  EXPECT_EQ(inside.time_s, sweep_collectives(scenario, request).rows[0].time_s);
}

// One adapter of two, each with a rank of four: half of an adapter for each.
TEST(CollectiveSweep, ranks_that_share_an_adapter_have_half_of_it) {
  const Scenario scenario = yard({"cluster.server.nics=4"});
  const SweepResult result =
      sweep_collectives(scenario, {.traffic = {{all_to_all}}, .bytes = {GiB}, .group = {64, 0}});
  EXPECT_DOUBLE_EQ(result.adapter_Bps, 25e9);
  EXPECT_NEAR(result.rows[0].fabric_s, GiB * 56 / 64 / 24e9, 1e-9);
}

// 33 routers of 8 adapters in groups of 8; each group sends to another one half way round. Minimal
// routing has one global cable a pair of groups for 64 adapters; UGAL sees that and goes by way of
// other groups.
TEST(CollectiveSweep, ugal_is_told_what_the_traffic_is) {
  const auto row = [](const char* routing) {
    Scenario s = yard();
    s.cluster.fabric = {.kind = topologies::FabricKind::dragonfly,
                        .nics_per_router = 8,
                        .routers_per_group = 8,
                        .global_links_per_router = 4,
                        .router_switch = s.cluster.fabric.leaf_switch};
    s.cluster.fabric.routing = routing == std::string("ugal") ? topologies::RoutingKind::ugal
                                                              : topologies::RoutingKind::minimal;
    return sweep_collectives(s, {.traffic = {{point_to_point, true}}, .bytes = {GiB}}).rows[0];
  };
  EXPECT_LT(row("ugal").slowdown(), row("minimal").slowdown() / 1.5);
}

TEST(Placement, orders_of_servers) {
  const Scenario scenario = yard();
  const auto fabric = Site(scenario).fabric;
  const auto packed = servers_in_order(*fabric, 32, ServerOrder::packed, 1, {});
  EXPECT_EQ(packed[5], 5u);
  const auto spread = servers_in_order(*fabric, 32, ServerOrder::spread, 1, {});
  EXPECT_THAT(std::vector<std::size_t>(spread.begin(), spread.begin() + 9),
              testing::ElementsAre(0, 4, 8, 12, 16, 20, 24, 28, 1));
  const auto random = servers_in_order(*fabric, 32, ServerOrder::random, 1, {});
  EXPECT_THAT(random, testing::UnorderedElementsAreArray(packed));
  EXPECT_NE(random, packed);
  EXPECT_NE(random, servers_in_order(*fabric, 32, ServerOrder::random, 2, {}));
  EXPECT_THAT(servers_in_order(*fabric, 4, ServerOrder::packed, 1, {2, 0}),
              testing::ElementsAre(2, 0, 1, 3));
}

TEST(Placement, random_puts_every_server_everywhere_alike) {
  const Scenario scenario = yard();
  const auto fabric = Site(scenario).fabric;
  std::vector<int> first(8, 0);
  for (std::uint64_t seed = 0; seed < 4000; ++seed)
    ++first[servers_in_order(*fabric, 8, ServerOrder::random, seed, {})[0]];
  for (const int n : first) EXPECT_NEAR(n, 500, 5 * std::sqrt(500 * 7 / 8.0));
}

}  // namespace
}  // namespace trainyard::scenarios
