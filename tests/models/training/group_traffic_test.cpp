#include "models/training/group_traffic.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "topologies/fat_tree.hpp"

namespace trainyard::models {
namespace {

using namespace trainyard::literals;
using testing::DoubleNear;
using testing::SizeIs;
using topologies::FabricSpec;
using topologies::GpuId;
using topologies::HostId;
using topologies::LinkId;
using topologies::RoutingKind;

constexpr double GiB = 1073741824.0, us = 1e-6;

struct Layout {
  int tensor = 1, context = 1, data = 1, pipeline = 1, expert = 1, expert_tensor = 1;
  ContextExchange exchange = ContextExchange::ring;
};

// A plan on H100 servers on a two-tier tree; switches without delay, so that times are plain sums.
struct Rig {
  explicit Rig(Layout l, RoutingKind routing = RoutingKind::spray, double oversubscription = 1,
               int hosts_per_leaf = 1, int nics = 8, int queue_pairs = 1) {
    plan.tensor = l.tensor;
    plan.context = l.context;
    plan.data = l.data;
    plan.pipeline = l.pipeline;
    plan.expert = l.expert;
    plan.expert_tensor = l.expert_tensor;
    plan.context_exchange = l.exchange;
    plan.gpus = l.tensor * l.context * l.data * l.pipeline;
    server.gpu.peak_fp8 = 1979_TFLOPps;
    server.gpu.scale_up_rate = 450_GBps;
    server.nics = nics;
    // 43.5 GB/s each: eight of them are slower than a ring inside a server, 365 GB/s.
    server.nic.efficiency = 0.87;
    const int hosts = (plan.gpus + server.gpus - 1) / server.gpus;
    FabricSpec f;
    f.hosts_per_leaf = hosts_per_leaf;
    f.leaf_oversubscription = oversubscription;
    f.leaf_switch = {"box", 256, 400_Gbps, {}, {}, {}};
    f.spine_switch = {"box", 512, 400_Gbps, {}, {}, {}};
    topologies::BuildResult built = topologies::build_fat_tree(f, {.hosts = hosts, .nics = nics});
    EXPECT_TRUE(built.problems.empty());
    fabric = built.fabric;
    router = std::make_unique<topologies::Router>(*fabric, routing, 1, queue_pairs);
    links = std::make_unique<LinkTable>(fabric->links().size());
    for (int h = 0; h < hosts; ++h) servers.emplace_back(std::size_t(h));
    groups = std::make_unique<GroupTraffic>(plan, server, *router, *links);
  }

  const CommCosts& placed(std::size_t stage = 0) {
    EXPECT_TRUE(groups->place(servers));
    return groups->costs().at(groups->costs().size() == 1 ? 0 : stage);
  }
  LinkConstants constants() const {
    LinkConstants c = link_constants(server.gpu.scale_up_rate, true,
                                     server.nic.rate * (double(server.nics) / server.gpus));
    c.ring_efficiency = server.gpu.calibration.scale_up_efficiency;
    c.nic_efficiency = server.nic.efficiency;
    return c;
  }
  double tuner_s(CollectiveKind kind, double bytes, std::size_t ranks, std::size_t per_domain) {
    return best(kind, bytes, {ranks, per_domain}, constants())->time_s;
  }
  double nic_Bps() const { return server.nic.rate.value() * server.nic.efficiency; }
  std::vector<bool> only(LinkId link) const {
    std::vector<bool> out(fabric->links().size(), false);
    out[link.index()] = true;
    return out;
  }

  Plan plan;
  ServerSpec server;
  std::shared_ptr<const topologies::Fabric> fabric;
  std::unique_ptr<topologies::Router> router;
  std::unique_ptr<LinkTable> links;
  std::vector<HostId> servers;
  std::unique_ptr<GroupTraffic> groups;
};

// ---- inside a server

TEST(GroupTraffic, inside_a_server_costs_what_the_tuner_says) {
  Rig rig({.tensor = 4, .data = 8, .pipeline = 2});
  EXPECT_FALSE(rig.groups->uses_fabric());
  const CommCosts& comm = rig.placed();
  EXPECT_THAT(rig.groups->costs(), SizeIs(1));
  for (const double bytes : {1e3, 1e6, 1e8, GiB}) {
    EXPECT_EQ(comm.tensor.all_gather_s(bytes),
              rig.tuner_s(CollectiveKind::all_gather, bytes, 4, 4));
    EXPECT_EQ(comm.tensor.reduce_scatter_s(bytes),
              rig.tuner_s(CollectiveKind::reduce_scatter, bytes, 4, 4));
    EXPECT_EQ(comm.tensor.all_reduce_s(bytes),
              rig.tuner_s(CollectiveKind::all_reduce, bytes, 4, 4));
    EXPECT_EQ(comm.tensor.all_gather_s(bytes), comm.tensor.all_gather_s(bytes)) << "kept";
  }
  EXPECT_EQ(comm.tensor.all_gather_s(0), 0);
  EXPECT_EQ(comm.context.all_gather_s(1e9), 0) << "a group of one";
  EXPECT_EQ(comm.context_step_s(1e9), 0);
  EXPECT_EQ(comm.expert_exchange_s({.tokens = 4096, .token_bytes = 8192}), 0);
}

TEST(GroupTraffic, a_step_of_a_context_ring_inside_a_server_is_one_transfer) {
  Rig rig({.tensor = 2, .context = 4, .data = 2});
  EXPECT_FALSE(rig.groups->uses_fabric());
  EXPECT_EQ(rig.placed().context_step_s(1e8),
            rig.tuner_s(CollectiveKind::point_to_point, 1e8, 2, 2));
}

TEST(GroupTraffic, experts_inside_a_server_use_the_scale_up_links_alone) {
  Rig rig({.data = 16, .expert = 8});
  EXPECT_FALSE(rig.groups->uses_fabric());
  // 4096 tokens x 8 KiB x 2 experts = 64 MiB, 7/8 of it to others, at 0.88 of 450 GB/s.
  const ExpertExchange e{.tokens = 4096, .token_bytes = 8192, .per_token = 2};
  const double expected = 10 * us + 8 * 0.5 * us + 67108864.0 * 7 / 8 / (0.88 * 450e9);
  EXPECT_DOUBLE_EQ(rig.placed().expert_exchange_s(e), expected);
  // Sent once to each rank with any of its two experts: 8 (1 - (7/8)^2) = 1.875 of the 8 ranks.
  ExpertExchange once = e;
  once.deduplicate = true;
  EXPECT_NEAR(rig.placed().expert_exchange_s(once),
              14 * us + 4096 * 8192.0 * 1.875 * 7 / 8 / (0.88 * 450e9), 1e-12);
  EXPECT_EQ(rig.groups->exchange_bytes(0, e), 0);
}

// ---- over several servers

TEST(GroupTraffic, alone_on_a_fabric_that_does_not_block_a_group_takes_the_tuners_time) {
  for (const int servers : {2, 4}) {
    Rig rig({.tensor = 8 * servers});
    ASSERT_TRUE(rig.groups->uses_fabric(GroupPattern::tensor_ring));
    const CommCosts& comm = rig.placed();
    const std::size_t n = std::size_t(8 * servers);
    for (const double bytes : {1e3, 1e6, 1e8}) {
      const double reduce = rig.tuner_s(CollectiveKind::all_reduce, bytes, n, 8);
      EXPECT_NEAR(comm.tensor.all_reduce_s(bytes), reduce, 1e-9 * reduce);
    }
    for (const double bytes : {GiB, 8 * GiB}) {
      const double gather = rig.tuner_s(CollectiveKind::all_gather, bytes, n, 8);
      const double reduce = rig.tuner_s(CollectiveKind::all_reduce, bytes, n, 8);
      EXPECT_NEAR(comm.tensor.all_gather_s(bytes), gather, 0.02 * gather);
      EXPECT_NEAR(comm.tensor.reduce_scatter_s(bytes), gather, 0.02 * gather);
      EXPECT_NEAR(comm.tensor.all_reduce_s(bytes), reduce, 1e-9 * reduce);
    }
  }
}

TEST(GroupTraffic, tensor_parallel_16_by_hand) {
  // 15/16 GiB over 8 adapters at 43.5 GB/s; latency: base, 14 steps inside, one between.
  Rig rig({.tensor = 16});
  const double bytes_s = GiB * 15 / 16 / (8 * rig.nic_Bps());
  EXPECT_NEAR(rig.placed().tensor.all_gather_s(GiB), (10 + 14 * 2 + 10) * us + bytes_s, 1e-12);
}

TEST(GroupTraffic, eight_quick_adapters_wait_for_the_ring_inside_the_servers) {
  // 8 · 48 GB/s are more than the 365 of the scale-up links.
  Rig rig({.tensor = 16});
  rig.server.nic.efficiency = 0.96;
  rig.groups = std::make_unique<GroupTraffic>(rig.plan, rig.server, *rig.router, *rig.links);
  EXPECT_NEAR(rig.placed().tensor.all_gather_s(GiB), 48 * us + GiB * 15 / 16 / 365e9, 1e-9);
}

TEST(GroupTraffic, all_traffic_over_a_2_to_1_spine_takes_twice_as_long) {
  Rig full({.tensor = 16, .data = 4}), half({.tensor = 16, .data = 4}, RoutingKind::spray, 2);
  const double latency = 48 * us, bytes_s = GiB * 15 / 16 / (8 * full.nic_Bps());
  EXPECT_NEAR(full.placed().tensor.all_gather_s(GiB), latency + bytes_s, 1e-12);
  EXPECT_NEAR(half.placed().tensor.all_gather_s(GiB), latency + 2 * bytes_s, 1e-12);
}

TEST(GroupTraffic, an_all_reduce_is_held_up_by_what_its_algorithm_sends) {
  // Over 4 servers a ring: 2 · 31/32 of the tensor over 8 adapters; half of their rate is twice the
  // time.
  Rig four({.tensor = 32, .data = 2}, RoutingKind::spray, 2);
  const auto alone4 = best(CollectiveKind::all_reduce, GiB, {32, 8}, four.constants());
  ASSERT_EQ(alone4->algorithm, CollectiveAlgorithm::ring);
  EXPECT_NEAR(alone4->bandwidth_s, GiB * 2 * 31 / 32 / (8 * four.nic_Bps()), 1e-12);
  EXPECT_NEAR(four.placed().tensor.all_reduce_s(GiB), alone4->time_s + alone4->bandwidth_s, 1e-12);
  // Over 2 servers an NVLS tree: they only exchange 1/8 each, and the switches inside are the
  // limit: 1 GiB at 274 GB/s (480 · 8/14), 3.91 ms. At half rate the adapters take GiB / 8 / 21.75
  // GB/s = 6.17 ms.
  Rig two({.tensor = 16, .data = 2}, RoutingKind::spray, 2);
  const auto alone2 = best(CollectiveKind::all_reduce, GiB, {16, 8}, two.constants());
  EXPECT_NEAR(alone2->bandwidth_s, 3.915e-3, 1e-6);
  EXPECT_NEAR(two.placed().tensor.all_reduce_s(GiB) - alone2->latency_s - alone2->fill_s, 6.171e-3,
              1e-6);
}

TEST(GroupTraffic, groups_under_one_leaf_do_not_feel_the_spine) {
  Rig rig({.tensor = 16, .data = 4}, RoutingKind::spray, 4, 2);
  EXPECT_NEAR(rig.placed().tensor.all_gather_s(GiB), 48 * us + GiB * 15 / 16 / (8 * rig.nic_Bps()),
              1e-12);
}

TEST(GroupTraffic, two_gpus_on_one_adapter_halve_the_rate) {
  Rig rig({.tensor = 16}, RoutingKind::spray, 1, 1, 4);
  EXPECT_NEAR(rig.placed().tensor.all_gather_s(GiB), 48 * us + GiB * 15 / 16 / (4 * rig.nic_Bps()),
              1e-12);
  const double reduce = rig.tuner_s(CollectiveKind::all_reduce, GiB, 16, 8);
  EXPECT_NEAR(rig.placed().tensor.all_reduce_s(GiB), reduce, 1e-9 * reduce);
}

TEST(GroupTraffic, a_slower_adapter_latency_is_felt_at_every_crossing) {
  Rig base({.tensor = 32}), slow({.tensor = 32});
  slow.server.nic.latency = Duration(35000);
  slow.groups = std::make_unique<GroupTraffic>(slow.plan, slow.server, *slow.router, *slow.links);
  EXPECT_NEAR(slow.placed().tensor.all_gather_s(1e6) - base.placed().tensor.all_gather_s(1e6),
              3 * 25 * us, 1e-12);
  EXPECT_GT(slow.placed().tensor.all_reduce_s(1e6),
            base.placed().tensor.all_reduce_s(1e6) + 2 * 25 * us);
}

TEST(GroupTraffic, a_context_group_at_stride_tensor_passes_on_by_its_last_member) {
  // 2 members a server and group, 4 groups beside each other: adapters 4..7 send, 0..3 receive.
  Rig rig({.tensor = 4, .context = 4});
  const CommCosts& comm = rig.placed();
  EXPECT_NEAR(comm.context_step_s(1e8), 20 * us + 1e8 / rig.nic_Bps(), 1e-12);
  std::vector<double> by_link(rig.fabric->links().size(), 0.0);
  rig.groups->add_bytes(GroupPattern::context_step, 0, 1e8, by_link);
  for (std::size_t nic = 0; nic < 8; ++nic) {
    EXPECT_EQ(by_link[rig.fabric->uplink(topologies::NicId(nic)).index()], nic < 4 ? 0 : 1e8);
    EXPECT_EQ(by_link[rig.fabric->downlink(topologies::NicId(nic)).index()], nic < 4 ? 1e8 : 0);
  }
}

TEST(GroupTraffic, a_context_group_that_gathers_is_a_ring_of_as_many_channels_as_members) {
  Rig rig({.tensor = 4, .context = 4, .exchange = ContextExchange::all_gather});
  EXPECT_TRUE(rig.groups->uses_fabric(GroupPattern::context_ring));
  EXPECT_FALSE(rig.groups->uses_fabric(GroupPattern::context_step));
  EXPECT_NEAR(rig.placed().context.all_gather_s(GiB),
              (10 + 2 * 2 + 10) * us + GiB * 3 / 4 / (2 * rig.nic_Bps()), 1e-12);
}

TEST(GroupTraffic, a_small_group_may_straddle_two_servers) {
  // Tensor parallel 6 on servers of 8: ranks 6..11 have 2 members in the first server and 4 in the
  // second: two channels. 5/6 of the bytes over two adapters.
  Rig rig({.tensor = 6, .data = 4});
  ASSERT_TRUE(rig.groups->uses_fabric());
  EXPECT_NEAR(rig.placed().tensor.all_gather_s(GiB),
              (10 + 4 * 2 + 10) * us + GiB * 5 / 6 / (2 * rig.nic_Bps()), 1e-12);
}

// ---- experts

TEST(GroupTraffic, experts_over_servers_by_hand) {
  Rig rig({.data = 64, .expert = 64});
  const CommCosts& comm = rig.placed();
  const ExpertExchange e{.tokens = 4096, .token_bytes = 14336, .per_token = 8};
  const double token_bytes = 4096 * 14336.0;
  const double latency = 10 * us + 64 * 0.5 * us;
  const double adapter = 0.63 * 50e9;
  // 8 copies of every token, 7 of 8 to other servers.
  EXPECT_DOUBLE_EQ(rig.groups->exchange_bytes(0, e), token_bytes * 8 * 7 / 8);
  EXPECT_NEAR(comm.expert_exchange_s(e), latency + token_bytes * 7 / adapter, 1e-9);
  // Once a server that has one of its 8 experts: 7 · (1 - (7/8)^8) = 4.595 copies.
  ExpertExchange once = e;
  once.deduplicate = true;
  const double visits = 7 * (1 - std::pow(7.0 / 8, 8));
  EXPECT_NEAR(visits, 4.5947, 1e-4);
  EXPECT_NEAR(comm.expert_exchange_s(once), latency + token_bytes * visits / adapter, 1e-9);
  // At most 4 servers, one of which may be its own: 4 · 7/8.
  once.server_limit = 4;
  EXPECT_NEAR(comm.expert_exchange_s(once), latency + token_bytes * 3.5 / adapter, 1e-9);
  once.server_limit = 8;
  EXPECT_NEAR(comm.expert_exchange_s(once), latency + token_bytes * visits / adapter, 1e-9)
      << "a limit that does not bind";
}

TEST(GroupTraffic, what_comes_once_is_handed_on_inside) {
  // Fast adapters: handing on takes longer than what comes from outside. A token visits
  // 64 (1 - (63/64)^8) = 7.576 ranks, 7 of 8 times not the member that it came to.
  Rig rig({.data = 64, .expert = 64});
  rig.server.nic.rate = 500_GBps;
  rig.groups = std::make_unique<GroupTraffic>(rig.plan, rig.server, *rig.router, *rig.links);
  const ExpertExchange e{.tokens = 4096, .token_bytes = 14336, .per_token = 8, .deduplicate = true};
  EXPECT_NEAR(rig.groups->costs().front().expert_exchange_s(e),  // before it is placed
              42 * us + 4096 * 14336.0 * 64 * (1 - std::pow(63.0 / 64, 8)) * 7 / 8 / (0.88 * 450e9),
              1e-9);
}

TEST(GroupTraffic, an_exchange_over_a_2_to_1_spine_takes_twice_as_long) {
  const ExpertExchange e{.tokens = 4096, .token_bytes = 14336, .per_token = 8};
  Rig full({.data = 64, .expert = 64}), half({.data = 64, .expert = 64}, RoutingKind::spray, 2);
  const double latency = 42 * us;
  EXPECT_NEAR(half.placed().expert_exchange_s(e) - latency,
              2 * (full.placed().expert_exchange_s(e) - latency), 1e-9);
}

TEST(GroupTraffic, expert_groups_are_cut_from_the_ranks_of_a_stage) {
  // expert_tensor = tensor: every 8th rank; one member a server.
  Rig strided({.tensor = 8, .data = 4, .expert = 4, .expert_tensor = 8});
  // expert_tensor = 1: neighbours; 4 experts of 8 GPUs of a server.
  Rig neighbours({.tensor = 8, .data = 4, .expert = 4, .expert_tensor = 1});
  EXPECT_TRUE(strided.groups->uses_fabric(GroupPattern::expert_exchange));
  EXPECT_FALSE(neighbours.groups->uses_fabric(GroupPattern::expert_exchange));
  EXPECT_TRUE(strided.groups->place(strided.servers));
  // Every adapter sends what its rank sends to the other three.
  std::vector<double> by_link(strided.fabric->links().size(), 0.0);
  strided.groups->add_bytes(GroupPattern::expert_exchange, 0, 3e6, by_link);
  for (std::size_t nic = 0; nic < 32; ++nic) {
    EXPECT_DOUBLE_EQ(by_link[strided.fabric->uplink(topologies::NicId(nic)).index()], 3e6);
    EXPECT_DOUBLE_EQ(by_link[strided.fabric->downlink(topologies::NicId(nic)).index()], 3e6);
  }
}

TEST(GroupTraffic, of_many_peers_some_stand_for_all) {
  // 2,048 GPUs on 256 servers: 255 peers each, of which 2^18 / 2048 = 128 are followed; adapters
  // carry the same.
  for (const int servers : {5, 24, 256}) {
    Rig rig({.tensor = 8, .data = servers, .expert = servers, .expert_tensor = 8},
            RoutingKind::ecmp, 1, 4);
    EXPECT_TRUE(rig.groups->place(rig.servers));
    std::vector<double> by_link(rig.fabric->links().size(), 0.0);
    rig.groups->add_bytes(GroupPattern::expert_exchange, 0, 1e6, by_link);
    for (std::size_t nic = 0; nic < rig.fabric->nic_count(); ++nic) {
      EXPECT_NEAR(by_link[rig.fabric->uplink(topologies::NicId(nic)).index()], 1e6, 1e-3);
      EXPECT_NEAR(by_link[rig.fabric->downlink(topologies::NicId(nic)).index()], 1e6, 1e-3);
    }
    // 4 servers a leaf (the last one may have fewer): what is left over leaves it. Peers that stand
    // for others may miss that a little.
    double pairs = servers * (servers - 1.0);
    for (int left = servers; left > 0; left -= 4)
      pairs -= std::min(left, 4) * (std::min(left, 4) - 1.0);
    double up = 0;
    for (std::size_t l = rig.fabric->first_trunk().index(); l < by_link.size(); l += 2)
      up += by_link[l];
    const double expected = 1e6 * 8 * pairs / (servers - 1.0);
    EXPECT_NEAR(up, expected, (servers <= 24 ? 1e-9 : 0.01) * expected) << servers;
  }
}

// ---- sharing

TEST(GroupTraffic, the_busiest_link_sets_the_pace_on_a_hashed_fabric) {
  // One stage is one variable: x = min C/W over its links. W counted here pair by pair.
  std::mt19937 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    const int servers_of_group = 2 + int(random() % 3), replicas = 1 + int(random() % 4);
    const int queue_pairs = 1 + int(random() % 4);
    Rig rig({.tensor = 8 * servers_of_group, .data = replicas}, RoutingKind::ecmp,
            double(1 << random() % 3), 1 + int(random() % 2), 8, queue_pairs);
    std::shuffle(rig.servers.begin(), rig.servers.end(), random);
    std::vector<double> flows(rig.fabric->links().size(), 0.0);
    for (int d = 0; d < replicas; ++d)
      for (int s = 0; s < servers_of_group; ++s)
        for (std::size_t c = 0; c < 8; ++c) {
          const auto host = [&](int at) {
            return rig.servers[std::size_t(d * servers_of_group + at % servers_of_group)];
          };
          rig.router->for_each_load(
              rig.fabric->nic_of(rig.fabric->gpu(host(s), c)),
              rig.fabric->nic_of(rig.fabric->gpu(host(s + 1), c)), c + 1, 1.0,
              [&](LinkId link, double weight) { flows[link.index()] += weight; });
        }
    double flow_Bps = 1e30;
    for (std::size_t l = 0; l < flows.size(); ++l)
      if (flows[l] > 0)
        flow_Bps =
            std::min(flow_Bps, rig.fabric->link(LinkId(l)).capacity.value() * 0.87 / flows[l]);
    const double n = 8.0 * servers_of_group;
    const double bus_Bps = std::min(8 * queue_pairs * flow_Bps, 365e9);
    const double latency = (10 + (n - servers_of_group) * 2 + (servers_of_group - 1) * 10) * us;
    const double expected = latency + GiB * (n - 1) / n / bus_Bps;
    EXPECT_NEAR(rig.placed().tensor.all_gather_s(GiB), expected, 1e-9 * expected)
        << "trial " << trial;
  }
}

TEST(GroupTraffic, a_degraded_adapter_slows_its_stage_alone) {
  Rig rig({.tensor = 16, .data = 2, .pipeline = 2});
  rig.router->change([&](topologies::LinkState& s) {
    s.set_capacity_factor(rig.fabric->uplink(topologies::NicId(32)), 0.5);  // of server 4: stage 1
  });
  rig.placed();
  ASSERT_THAT(rig.groups->costs(), SizeIs(2));
  const double latency = 48 * us, bytes_s = GiB * 15 / 16 / (8 * rig.nic_Bps());
  EXPECT_NEAR(rig.groups->costs()[0].tensor.all_gather_s(GiB), latency + bytes_s, 1e-9);
  EXPECT_NEAR(rig.groups->costs()[1].tensor.all_gather_s(GiB), latency + 2 * bytes_s, 1e-9);
}

TEST(GroupTraffic, counting_by_edge_switch_is_counting_by_pair) {
  // A link nobody uses at another rate: paths are then visited pair by pair.
  for (const int hosts_per_leaf : {1, 2, 4}) {
    const Layout layout{.tensor = 8, .data = 8, .pipeline = 2, .expert = 32, .expert_tensor = 1};
    Rig fast(layout, RoutingKind::spray, 2, hosts_per_leaf);
    Rig slow(layout, RoutingKind::spray, 2, hosts_per_leaf);
    slow.router->change([&](topologies::LinkState& s) {
      s.set_capacity_factor(slow.fabric->scale_up_uplink(GpuId(0)), 0.99);
    });
    ASSERT_TRUE(fast.router->treats_neighbours_alike());
    ASSERT_FALSE(slow.router->treats_neighbours_alike());
    const ExpertExchange e{.tokens = 4096, .token_bytes = 14336, .per_token = 8};
    EXPECT_NEAR(fast.placed().expert_exchange_s(e), slow.placed().expert_exchange_s(e), 1e-12);
    std::vector<double> a(fast.fabric->links().size(), 0.0), b(a);
    fast.groups->add_bytes(GroupPattern::expert_exchange, 1, 1e6, a);
    slow.groups->add_bytes(GroupPattern::expert_exchange, 1, 1e6, b);
    for (std::size_t l = 0; l < a.size(); ++l) EXPECT_NEAR(a[l], b[l], 1e-3);
  }
}

// ---- users of links, failures, new servers

TEST(GroupTraffic, bytes_by_user_add_up_to_bytes_by_link) {
  for (const RoutingKind routing : {RoutingKind::ecmp, RoutingKind::spray})
    for (const GroupPattern pattern : {GroupPattern::tensor_ring, GroupPattern::expert_exchange}) {
      Rig rig({.tensor = 16, .data = 4, .pipeline = 2, .expert = 32}, routing, 1, 1, 8, 2);
      ASSERT_TRUE(rig.groups->place(rig.servers));
      std::vector<double> by_link(rig.fabric->links().size(), 0.0), by_user(by_link);
      rig.groups->add_bytes(pattern, 1, 1e6, by_link);
      rig.groups->for_each_user(pattern, 1, 1e6, std::vector<bool>(by_link.size(), true),
                                [&](LinkId link, GpuId from, GpuId to, double bytes) {
                                  EXPECT_NE(rig.fabric->host_of(from), rig.fabric->host_of(to));
                                  by_user[link.index()] += bytes;
                                });
      double sum = 0;
      for (std::size_t l = 0; l < by_link.size(); ++l) {
        if (rig.fabric->link(LinkId(l)).kind == topologies::LinkKind::nvlink) continue;
        EXPECT_NEAR(by_link[l], by_user[l], 1e-6);
        sum += by_link[l];
      }
      EXPECT_GT(sum, 0);
    }
}

TEST(GroupTraffic, without_a_path_it_says_so_and_comes_back) {
  Rig rig({.tensor = 16, .data = 2});
  const double before = rig.placed().tensor.all_gather_s(GiB);
  const LinkId link = rig.fabric->uplink(topologies::NicId(19));  // of server 2
  EXPECT_TRUE(rig.groups->uses(rig.only(link)));
  EXPECT_FALSE(rig.groups->cut_pair());
  rig.router->set_up(link, false);
  rig.groups->forget(rig.only(link));
  EXPECT_FALSE(rig.groups->place(rig.servers));
  ASSERT_TRUE(rig.groups->cut_pair());
  EXPECT_EQ(rig.groups->cut_pair()->first, GpuId(19));
  rig.router->set_up(link, true);
  rig.groups->forget(rig.only(link));
  EXPECT_TRUE(rig.groups->place(rig.servers));
  EXPECT_FALSE(rig.groups->cut_pair());
  EXPECT_EQ(rig.groups->costs().front().tensor.all_gather_s(GiB), before);
}

TEST(GroupTraffic, a_replaced_server_gives_what_a_fresh_placement_gives) {
  std::mt19937 random(3);
  Rig moved({.tensor = 16, .data = 6, .expert = 48}, RoutingKind::ecmp, 2, 2);
  moved.placed();
  for (int trial = 0; trial < 10; ++trial) {
    std::swap(moved.servers[random() % 12], moved.servers[random() % 12]);
    Rig fresh({.tensor = 16, .data = 6, .expert = 48}, RoutingKind::ecmp, 2, 2);
    fresh.servers = moved.servers;
    const ExpertExchange e{.tokens = 4096, .token_bytes = 14336, .per_token = 8};
    EXPECT_EQ(moved.placed().tensor.all_gather_s(GiB), fresh.placed().tensor.all_gather_s(GiB));
    EXPECT_EQ(moved.placed().expert_exchange_s(e), fresh.placed().expert_exchange_s(e));
  }
}

TEST(GroupTraffic, before_it_is_placed_nothing_blocks) {
  Rig rig({.tensor = 16, .data = 2}, RoutingKind::spray, 4);
  Rig full({.tensor = 16, .data = 2});
  const double before = rig.groups->costs().front().tensor.all_gather_s(GiB);
  EXPECT_NEAR(before, full.placed().tensor.all_gather_s(GiB), 1e-9);
  EXPECT_LT(before, rig.placed().tensor.all_gather_s(GiB));
}

TEST(GroupTraffic, costs_outlive_the_traffic) {
  CommCosts kept = CommCosts::free();
  {
    Rig rig({.tensor = 16, .context = 2, .data = 2, .expert = 32});
    kept = rig.placed();
  }
  EXPECT_GT(kept.tensor.all_reduce_s(1e6), 0);
  EXPECT_GT(kept.context_step_s(1e6), 0);
  EXPECT_GT(kept.expert_exchange_s({.tokens = 1, .token_bytes = 1}), 0);
}

TEST(GroupTraffic, more_bytes_or_a_narrower_fabric_are_never_faster) {
  for (const double oversubscription : {1.0, 2.0, 4.0}) {
    Rig rig({.tensor = 16, .context = 2, .data = 2, .expert = 32}, RoutingKind::spray,
            oversubscription);
    Rig wide({.tensor = 16, .context = 2, .data = 2, .expert = 32});
    const CommCosts &comm = rig.placed(), &best_case = wide.placed();
    double last_gather = 0, last_reduce = 0, last_step = 0;
    for (double bytes = 1024; bytes < 1e11; bytes *= 1.7) {
      const double gather = comm.tensor.all_gather_s(bytes);
      const double reduce = comm.tensor.all_reduce_s(bytes), step = comm.context_step_s(bytes);
      EXPECT_GT(gather, last_gather);
      EXPECT_GE(reduce, last_reduce * (1 - 1e-12));
      EXPECT_GT(step, last_step);
      EXPECT_GE(gather, best_case.tensor.all_gather_s(bytes) * (1 - 1e-12));
      EXPECT_GE(reduce, best_case.tensor.all_reduce_s(bytes) * (1 - 1e-12));
      EXPECT_GE(step, best_case.context_step_s(bytes) * (1 - 1e-12));
      last_gather = gather;
      last_reduce = reduce;
      last_step = step;
    }
  }
}

}  // namespace
}  // namespace trainyard::models
