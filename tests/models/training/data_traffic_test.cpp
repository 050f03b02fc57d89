#include "models/training/data_traffic.hpp"

#include <gtest/gtest.h>

#include <map>

#include "models/network/collectives/ring.hpp"
#include "models/network/collectives/tuner.hpp"
#include "tests/models/training/traffic_rig.hpp"

namespace trainyard::models {
namespace {

using Stages = std::vector<std::vector<StageCollective>>;
constexpr RingKind shards = RingKind::shards, replicas = RingKind::replicas,
                   experts = RingKind::experts;

double alone_s(DataTraffic& traffic, double bytes, RingKind ring) {
  Stages stages{{{.ready_s = 0, .bytes = bytes, .ring = ring}}};
  traffic.play(stages);
  return stages[0][0].finish_s;
}

TEST(DataTraffic, a_ring_across_servers_takes_its_latency_and_its_bytes_over_the_adapters) {
  // 4 servers, one rank of each group in each; leaf, spine, leaf between leaves
  TrafficRig rig({.tensor = 8, .data = 4}, 4);
  DataTraffic traffic = rig.data();
  ASSERT_TRUE(traffic.place(rig.packed()));
  EXPECT_EQ(traffic.size(shards), 4);
  EXPECT_EQ(traffic.servers_of_group(shards), 4);
  EXPECT_NEAR(traffic.latency_s(0, shards), ring_latency_s(4, 4, 3), 1e-12);
  EXPECT_NEAR(alone_s(traffic, 1e9, shards), ring_latency_s(4, 4, 3) + 0.75e9 / nic_Bps, 1e-12);
}

TEST(DataTraffic, context_parallel_ranks_share_weights) {
  // tp 2 cp 2 dp 4: 8 ranks a group, 4 in each of two servers of one leaf: 4 channels
  TrafficRig rig({.tensor = 2, .context = 2, .data = 4}, 2);
  DataTraffic traffic = rig.data();
  ASSERT_TRUE(traffic.place(rig.packed()));
  EXPECT_EQ(traffic.size(shards), 8);
  EXPECT_EQ(traffic.servers_of_group(shards), 2);
  EXPECT_NEAR(alone_s(traffic, 1e9, shards), ring_latency_s(8, 2, 1) + 7.0 / 8 / 4 * 1e9 / nic_Bps,
              1e-12);
}

TEST(DataTraffic, a_ring_inside_a_server_takes_what_the_tuner_says) {
  for (const double rate : {150e9, 300e9, 450e9, 900e9})
    for (const double bytes : {1e4, 1e6, 3e7, 1e9, 2e10}) {
      TrafficRig rig({.data = 8}, {.hosts = 2, .scale_up_rate = BytesPerSecond(rate)},
                     RoutingKind::ecmp);
      if (rate < 400e9) rig.server.gpu.peak_fp8 = {};
      DataTraffic traffic = rig.data();
      ASSERT_TRUE(traffic.place(rig.packed()));
      EXPECT_EQ(traffic.servers_of_group(shards), 1);
      LinkConstants c = link_constants(BytesPerSecond(rate), rate > 400e9, 50_GBps);
      c.ring_efficiency = rig.server.gpu.calibration.scale_up_efficiency;
      const CollectiveCost cost = *best(CollectiveKind::all_gather, bytes, {8, 8}, c);
      EXPECT_NEAR(alone_s(traffic, bytes, shards), cost.time_s, 1e-9 * cost.time_s)
          << rate << " B/s, " << bytes << " B";
      EXPECT_NEAR(traffic.latency_s(0, shards, bytes) + traffic.steady_s(bytes)[0], cost.time_s,
                  1e-9 * cost.time_s);
    }
}

TEST(DataTraffic, a_slow_stack_stretches_the_bytes_not_the_latency) {
  TrafficRig rig({.tensor = 8, .data = 4}, 4);
  DataTraffic traffic = rig.data(0.17);
  ASSERT_TRUE(traffic.place(rig.packed()));
  EXPECT_NEAR(alone_s(traffic, 1e9, shards), ring_latency_s(4, 4, 3) + 0.75e9 / nic_Bps / 0.17,
              1e-12);
  EXPECT_NEAR(traffic.steady_s(1e9)[0], 0.75e9 / nic_Bps / 0.17, 1e-12);
  std::vector<double> bytes = rig.no_bytes();
  traffic.add_bytes(0, 1e9, bytes);  // what is moved stays the same
  EXPECT_NEAR(rig.out_of(NicId(0), bytes), 0.75e9, 1);
  traffic.set_rate(1);
  EXPECT_NEAR(traffic.steady_s(1e9)[0], 0.75e9 / nic_Bps, 1e-12);
}

TEST(DataTraffic, another_calibration_changes_the_rate_inside_servers) {
  TrafficRig rig({.data = 8}, 2);
  DataTraffic traffic = rig.data();
  ASSERT_TRUE(traffic.place(rig.packed()));
  const double before_s = traffic.steady_s(1e10)[0];
  rig.server.gpu.calibration.scale_up_efficiency /= 2;
  ASSERT_TRUE(traffic.place(rig.packed()));
  EXPECT_NEAR(traffic.steady_s(1e10)[0], 2 * before_s, 1e-9);
}

TEST(DataTraffic, hybrid_sharding_keeps_the_shards_inside_the_servers) {
  TrafficRig rig({.data = 32, .sharding = Sharding::fsdp, .shard_group = 8}, 4);
  DataTraffic traffic = rig.data();
  ASSERT_TRUE(traffic.place(rig.packed()));
  EXPECT_EQ(traffic.size(shards), 8);
  EXPECT_EQ(traffic.size(replicas), 4);
  EXPECT_EQ(traffic.servers_of_group(shards), 1);
  EXPECT_EQ(traffic.servers_of_group(replicas), 4);
  std::vector<double> inside = rig.no_bytes(), outside = rig.no_bytes();
  traffic.add_bytes(0, 8e9, inside, shards);
  traffic.add_bytes(0, 8e9, outside, replicas);
  for (std::size_t gpu = 0; gpu < 32; ++gpu) {
    EXPECT_EQ(rig.out_of(NicId(gpu), inside), 0);
    EXPECT_NEAR(inside[rig.fabric->scale_up_uplink(GpuId(gpu)).index()], 7e9, 1);
    EXPECT_NEAR(rig.out_of(NicId(gpu), outside), 6e9, 1);
    EXPECT_EQ(outside[rig.fabric->scale_up_uplink(GpuId(gpu)).index()], 0);
  }
  EXPECT_NEAR(alone_s(traffic, 8e9, replicas), ring_latency_s(4, 4, 3) + 6e9 / nic_Bps, 1e-9);
}

// Every server of a group that spans some sends (n-1)/n of the bytes and receives as many; every
// member of a server with several passes on as many, too.
TEST(DataTraffic, moves_the_bytes_that_a_count_by_hand_gives) {
  const Layout layouts[] = {
      {.tensor = 8, .data = 4},
      {.tensor = 2, .context = 2, .data = 4, .pipeline = 2},
      {.tensor = 2, .context = 2, .data = 4, .pipeline = 2, .order = "tp-pp-dp-cp"},
      {.tensor = 2, .context = 2, .data = 4, .pipeline = 2, .order = "dp-pp-tp-cp"},
      {.data = 12},
      {.data = 20, .shard_group = 10},
      {.data = 16, .pipeline = 2, .order = "pp-tp-cp-dp", .shard_group = 4},
      {.tensor = 2, .data = 16, .expert = 4, .expert_tensor = 1},
      {.tensor = 2, .data = 16, .expert = 4, .expert_tensor = 2},
      {.tensor = 16, .data = 2},
      {.tensor = 3, .data = 7, .order = "dp-tp-cp-pp", .sharding = Sharding::none}};
  for (const RoutingKind routing : {RoutingKind::spray, RoutingKind::ecmp})
    for (const Layout& layout : layouts) {
      TrafficRig rig(layout, 4, routing);
      DataTraffic traffic = rig.data();
      ASSERT_TRUE(traffic.place(rig.packed()));
      for (int stage = 0; stage < rig.plan.pipeline; ++stage)
        for (const RingKind ring : {shards, replicas, experts}) {
          const int n = traffic.size(ring);
          if (n < 2) continue;
          std::map<int, double> server_bytes;
          std::map<int, double> passed;
          for (const std::vector<int>& group : ring_groups(rig.plan, stage, ring)) {
            std::map<int, int> members;
            for (const int rank : group) ++members[rank / 8];
            for (const auto& [server, count] : members)
              if (members.size() > 1) server_bytes[server] += 1e9 * (n - 1) / n;
            for (const int rank : group)
              if (members[rank / 8] > 1) passed[rank] += 1e9 * (n - 1) / n;
          }
          std::vector<double> bytes = rig.no_bytes();
          traffic.add_bytes(stage, 1e9, bytes, ring);
          for (int server = 0; server < 4; ++server) {
            double out = 0, in = 0;
            for (std::size_t nic = 0; nic < 8; ++nic) {
              out += rig.out_of(NicId(std::size_t(server) * 8 + nic), bytes);
              in += rig.into(NicId(std::size_t(server) * 8 + nic), bytes);
            }
            EXPECT_NEAR(out, server_bytes[server], 1) << layout.order << " server " << server;
            EXPECT_NEAR(in, server_bytes[server], 1) << layout.order << " server " << server;
          }
          for (int rank = 0; rank < rig.plan.gpus; ++rank)
            EXPECT_NEAR(bytes[rig.fabric->scale_up_uplink(GpuId(std::size_t(rank))).index()],
                        passed[rank], 1)
                << layout.order << " rank " << rank;
          double connections = 0, expected = 0;
          traffic.for_each_connection(
              rig.packed(), stage, 1e9, [&](GpuId, GpuId, double b) { connections += b; }, ring);
          for (const auto& [server, b] : server_bytes) expected += b;
          EXPECT_NEAR(connections, expected, 1);
        }
    }
}

TEST(DataTraffic, collectives_of_a_stage_follow_each_other_whatever_their_ring) {
  TrafficRig rig({.tensor = 2, .data = 16, .shard_group = 4, .expert = 4, .expert_tensor = 2}, 4);
  DataTraffic traffic = rig.data();
  ASSERT_TRUE(traffic.place(rig.packed()));
  Stages stages{{{.ready_s = 1, .bytes = 1e9, .ring = shards},
                 {.ready_s = 0, .bytes = 2e9, .ring = replicas},
                 {.ready_s = 5, .bytes = 3e9, .ring = experts},
                 {.ready_s = 6, .bytes = 0, .ring = shards},
                 {.ready_s = 0, .bytes = 1e9, .ring = experts}}};
  traffic.play(stages);
  const double first = 1 + alone_s(traffic, 1e9, shards);
  const double second = first + alone_s(traffic, 2e9, replicas);
  const double third = 5 + alone_s(traffic, 3e9, experts);
  EXPECT_NEAR(stages[0][0].finish_s, first, 1e-9);
  EXPECT_NEAR(stages[0][1].finish_s, second, 1e-9);
  EXPECT_NEAR(stages[0][2].finish_s, third, 1e-9);
  EXPECT_EQ(stages[0][3].finish_s, 6);  // nothing to move
  EXPECT_NEAR(stages[0][4].finish_s, 6 + alone_s(traffic, 1e9, experts), 1e-9);
}

TEST(DataTraffic, rings_of_one_rank_have_nothing_to_do) {
  TrafficRig rig({.tensor = 8, .data = 1, .pipeline = 2}, 2);
  DataTraffic traffic = rig.data();
  ASSERT_TRUE(traffic.place(rig.packed()));
  Stages stages{{{.ready_s = 2, .bytes = 1e9}, {.ready_s = 1, .bytes = 1e9, .ring = experts}},
                {{.ready_s = 3, .bytes = 1e9, .ring = replicas}}};
  traffic.play(stages);
  EXPECT_EQ(stages[0][0].finish_s, 2);
  EXPECT_EQ(stages[0][1].finish_s, 2);
  EXPECT_EQ(stages[1][0].finish_s, 3);
  EXPECT_EQ(traffic.steady_s(1e9), (std::vector<double>{0, 0}));
}

TEST(DataTraffic, stages_on_the_same_adapters_share_them) {
  // Both stages have a tensor group in every server, and the server has one adapter.
  TrafficRig rig({.tensor = 4, .data = 4, .pipeline = 2, .order = "tp-pp-cp-dp"},
                 {.hosts = 4, .nics = 1}, RoutingKind::spray);
  DataTraffic traffic = rig.data();
  ASSERT_TRUE(traffic.place(rig.packed()));
  Stages stages{{{.bytes = 1e9}}, {{.bytes = 1e9}}};
  traffic.play(stages);
  // four groups of each stage over one adapter
  const double latency_s = traffic.latency_s(0, shards);
  EXPECT_NEAR(stages[0][0].finish_s, latency_s + 8 * 0.75e9 / nic_Bps, 1e-9);
  EXPECT_NEAR(stages[1][0].finish_s, stages[0][0].finish_s, 1e-9);
  Stages one{{{.bytes = 1e9}}, {}};
  traffic.play(one);
  EXPECT_NEAR(one[0][0].finish_s, latency_s + 4 * 0.75e9 / nic_Bps, 1e-9);
}

// The twin of the layout: the ring builder of the network model, group by group, over the same
// paths.
class RouterPaths final : public PathSource {
 public:
  explicit RouterPaths(const topologies::Router& router) : router_(router) {}
  void add_path(std::size_t from, std::size_t to, std::uint64_t, double flows,
                LoadAccumulator& loads) const override {
    router_.for_each_load(NicId(from), NicId(to), 1, flows,
                          [&](LinkId l, double w) { loads.add(LinkIndex(l.index()), w); });
  }
  void add_scale_up(std::size_t from, std::size_t to, double flows,
                    LoadAccumulator& loads) const override {
    std::vector<LinkId> path;
    router_.fabric().scale_up_path(GpuId(from), GpuId(to), path);
    for (const LinkId l : path) loads.add(LinkIndex(l.index()), flows);
  }

 private:
  const topologies::Router& router_;
};

TEST(DataTraffic, merged_groups_take_as_long_as_the_channels_of_the_ring_builder) {
  const Layout layouts[] = {
      {.tensor = 8, .data = 4},
      {.tensor = 2, .context = 2, .data = 8, .order = "cp-tp-dp-pp"},
      {.tensor = 2, .context = 4, .data = 2, .pipeline = 2, .order = "tp-pp-dp-cp"},
      {.data = 32, .shard_group = 16}};
  for (const double oversubscription : {1.0, 2.0})
    for (const Layout& layout : layouts) {
      TrafficRig rig(layout, 6, RoutingKind::spray, oversubscription);
      DataTraffic traffic = rig.data();
      const std::vector<HostId> servers{HostId(0), HostId(3), HostId(2), HostId(5)};
      ASSERT_TRUE(traffic.place(servers));
      MaxMin solver;
      for (const topologies::Link& link : rig.fabric->links())
        solver.add_link(link.capacity.value() *
                        (link.kind == topologies::LinkKind::nvlink
                             ? rig.server.gpu.calibration.scale_up_efficiency
                             : rig.server.nic.efficiency));
      const RouterPaths paths(*rig.router);
      std::vector<std::pair<VarIndex, double>> channels;
      for (int stage = 0; stage < rig.plan.pipeline; ++stage)
        for (const std::vector<int>& group : ring_groups(rig.plan, stage, shards)) {
          std::vector<Member> members;
          for (const int rank : group) {
            const std::size_t server = servers[std::size_t(rank / 8)].index();
            members.push_back(
                {server * 8 + std::size_t(rank % 8), server * 8 + std::size_t(rank % 8), server});
          }
          for (const Stream& stream :
               plan_ring(CollectiveKind::reduce_scatter, 1e9, members, paths, {}).streams)
            channels.emplace_back(solver.add(stream.loads), stream.bytes_per_flow);
        }
      solver.solve();
      double last_s = 0;
      for (const auto& [channel, bytes] : channels)
        last_s = std::max(last_s, bytes / solver.rate(channel));
      const std::vector<double> seconds = traffic.steady_s(1e9);
      EXPECT_NEAR(*std::max_element(seconds.begin(), seconds.end()), last_s, 1e-9 * last_s)
          << layout.order << " " << oversubscription;
    }
}

TEST(DataTraffic, a_replaced_server_and_a_failed_link_give_what_fresh_traffic_gives) {
  const Layout layout{.tensor = 2,
                      .context = 2,
                      .data = 8,
                      .order = "cp-tp-pp-dp",
                      .shard_group = 8,
                      .expert = 2,
                      .expert_tensor = 2};
  TrafficRig rig(layout, 8, RoutingKind::ecmp);
  DataTraffic traffic = rig.data();
  std::vector<HostId> servers = rig.packed();
  ASSERT_TRUE(traffic.place(servers));
  const auto same_as_fresh = [&] {
    DataTraffic fresh = rig.data();
    ASSERT_TRUE(traffic.place(servers));
    ASSERT_TRUE(fresh.place(servers));
    for (const RingKind ring : {shards, replicas, experts}) {
      EXPECT_EQ(traffic.steady_s(1e9, ring), fresh.steady_s(1e9, ring));
      EXPECT_EQ(traffic.latency_s(0, ring), fresh.latency_s(0, ring));
    }
  };
  for (const std::size_t slot : {1u, 3u, 0u}) {
    servers[slot] = HostId(4 + slot);
    same_as_fresh();
  }
  for (const LinkId link : {rig.fabric->leaf_uplink(2, 1), rig.fabric->leaf_uplink(3, 5)}) {
    std::vector<bool> changed(rig.fabric->links().size(), false);
    changed[link.index()] = true;
    rig.router->set_up(link, false);
    traffic.forget(changed);
    same_as_fresh();
    rig.router->set_up(link, true);
    traffic.forget(changed);
    same_as_fresh();
  }
}

TEST(DataTraffic, names_the_pair_that_is_cut) {
  TrafficRig rig({.tensor = 8, .data = 4}, 4);
  DataTraffic traffic = rig.data();
  const LinkId link = rig.fabric->uplink(NicId(11));  // of GPU 3 in the second server
  std::vector<bool> changed(rig.fabric->links().size(), false);
  changed[link.index()] = true;
  ASSERT_TRUE(traffic.place(rig.packed()));
  EXPECT_TRUE(traffic.uses(changed));
  rig.router->set_up(link, false);
  traffic.forget(changed);
  EXPECT_FALSE(traffic.place(rig.packed()));
  const auto pair = traffic.cut_pair();
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->first, GpuId(11));
  EXPECT_EQ(pair->second, GpuId(19));
  rig.router->set_up(link, true);
  traffic.forget(changed);
  EXPECT_TRUE(traffic.place(rig.packed()));
  EXPECT_FALSE(traffic.cut_pair().has_value());
}

TEST(DataTraffic, names_who_loads_a_link) {
  TrafficRig rig({.tensor = 8, .data = 4}, 4);
  DataTraffic traffic = rig.data();
  ASSERT_TRUE(traffic.place(rig.packed()));
  std::vector<bool> asked(rig.fabric->links().size(), false);
  asked[rig.fabric->uplink(NicId(8)).index()] = true;
  int calls = 0;
  traffic.for_each_user(0, 1e9, asked, [&](LinkId, GpuId from, GpuId to, double bytes) {
    ++calls;
    EXPECT_EQ(from, GpuId(8));
    EXPECT_EQ(to, GpuId(16));
    EXPECT_NEAR(bytes, 0.75e9, 1);
  });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace trainyard::models
