#include "models/training/store_traffic.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "models/network/flow_timeline.hpp"
#include "models/network/max_min.hpp"
#include "tests/models/training/traffic_rig.hpp"

/// Transfers to and from a store on the training fabric: what they put on links, what they leave to
/// collectives, and what collectives leave to them.
namespace trainyard::models {
namespace {

std::map<LinkId, double> by_link(const LinkLoads& loads) {
  return {loads.begin(), loads.end()};
}

std::vector<HostId> hosts(std::size_t first, std::size_t count) {
  std::vector<HostId> list;
  for (std::size_t h = 0; h < count; ++h) list.emplace_back(first + h);
  return list;
}

TEST(StoreTraffic, every_adapter_of_a_server_sends_its_share_to_the_same_rail_of_its_server) {
  for (const RoutingKind routing : {RoutingKind::spray, RoutingKind::ecmp}) {
    TrafficRig rig({.tensor = 8, .data = 4}, 6, routing);  // servers 4 and 5 are the store
    StoreTraffic traffic(rig.server, *rig.router, *rig.table);
    const double pair = rig.router->flows_of_pair();
    EXPECT_EQ(traffic.flows_of_server(), 8 * pair);
    for (const bool is_write : {true, false}) {
      const auto loads = by_link(traffic.loads(hosts(0, 4), hosts(4, 2), is_write));
      const auto of = [&](LinkId link) { return loads.contains(link) ? loads.at(link) : 0.0; };
      for (std::size_t h = 0; h < 6; ++h)
        for (std::size_t r = 0; r < 8; ++r) {
          const LinkId up = rig.fabric->uplink(rig.fabric->nic(HostId(h), r));
          const LinkId down = topologies::Fabric::reverse(up);
          const bool is_store = h >= 4;
          // two servers of the job talk to each of the store
          EXPECT_EQ(of(is_write == is_store ? down : up), is_store ? 2 * pair : pair);
          EXPECT_EQ(of(is_write == is_store ? up : down), 0);
        }
    }
  }
}

TEST(StoreTraffic, an_adapter_without_a_path_is_left_out) {
  TrafficRig rig({.tensor = 8, .data = 2}, 3);
  StoreTraffic traffic(rig.server, *rig.router, *rig.table);
  const HostId server(0), store(2);
  const LinkId dead = rig.fabric->uplink(rig.fabric->nic(server, 3));
  const auto up = [&](std::size_t r) { return rig.fabric->uplink(rig.fabric->nic(server, r)); };
  EXPECT_EQ(by_link(traffic.path(server, store, true)).at(up(0)), 1);
  std::vector<bool> changed(rig.fabric->links().size(), false);
  changed[dead.index()] = true;
  rig.router->set_up(dead, false);
  traffic.forget(changed);
  const auto loads = by_link(traffic.path(server, store, true));
  EXPECT_FALSE(loads.contains(dead));
  EXPECT_NEAR(loads.at(up(0)), 8.0 / 7, 1e-15);
  rig.router->set_up(dead, true);  // back again: what was a detour is forgotten
  traffic.forget(changed);
  EXPECT_EQ(by_link(traffic.path(server, store, true)).at(dead), 1);
  for (std::size_t r = 0; r < 8; ++r) {
    rig.router->set_up(up(r), false);
    changed[up(r).index()] = true;
  }
  traffic.forget(changed);
  EXPECT_TRUE(traffic.path(server, store, true).empty());
  EXPECT_FALSE(traffic.path(server, store, false).empty());  // the other direction is up
}

// ---- What is left to collectives.

TEST(Background, what_is_left_is_max_min) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> any(0.1, 4);
    LinkTable table(1);
    MaxMin twin;
    const double capacity = 10 * any(random), flows = any(random);
    const LinkIndex link = twin.add_link(capacity);
    const VarIndex collective = twin.add(std::vector<Load>{{link, flows}});
    std::vector<Background> background;
    for (std::uint64_t b = 0; b < seed % 4; ++b) {
      background.push_back({any(random), {random() % 4 == 0 ? 0.0 : any(random)}});
      if (background.back().flows[0] > 0)
        twin.add(std::vector<Load>{{link, background.back().flows[0]}}, background.back().flow_Bps);
    }
    table.set_background(background);
    twin.solve();
    EXPECT_NEAR(table.left_Bps(LinkId(0), capacity, flows), flows * twin.rate(collective),
                1e-12 * capacity)
        << "seed " << seed;
  }
}

TEST(Background, a_ring_gets_what_the_store_does_not_take_and_never_less_than_its_share) {
  // One adapter for eight groups of one rank in each of two servers: 8 flows beside one of the
  // store
  TrafficRig rig({.tensor = 8, .data = 2}, {.hosts = 3, .nics = 1}, RoutingKind::spray);
  DataTraffic traffic = rig.data();
  StoreTraffic store(rig.server, *rig.router, *rig.table);
  const double bytes = 1e9;
  const auto reduced_s = [&](double rate) {  // beyond the latency
    std::vector<Background> background;
    if (rate > 0) {
      background.push_back({rate, std::vector<double>(rig.fabric->links().size(), 0.0)});
      for (const auto& [link, flows] : store.loads(rig.packed(), hosts(2, 1), true))
        background.back().flows[link.index()] = flows;
    }
    rig.table->set_background(background);
    EXPECT_TRUE(traffic.place(rig.packed()));
    std::vector<std::vector<StageCollective>> stages{{{.bytes = bytes}}};
    traffic.play(stages);
    return stages[0][0].finish_s - traffic.latency_s(0);
  };
  const double sent = 8 * bytes / 2;  // (n - 1) / n of each of 8 groups
  EXPECT_NEAR(reduced_s(0), sent / nic_Bps, 1e-12);
  for (const double rate : {1e9, 2e9, 5e9})
    EXPECT_NEAR(reduced_s(rate), sent / (nic_Bps - rate), 1e-9);
  // Above nic / 9 the store's flow is throttled like the others.
  EXPECT_NEAR(reduced_s(nic_Bps / 9), sent / (nic_Bps * 8 / 9), 1e-9);
  for (const double rate : {10e9, 40e9})
    EXPECT_NEAR(reduced_s(rate), sent / (nic_Bps * 8 / 9), 1e-9);
  EXPECT_NEAR(reduced_s(0), sent / nic_Bps, 1e-12);  // it is gone
}

// ---- What collectives leave to the store.

TEST(StoreShare, by_hand) {
  // Nobody else: the narrowest link. 12 GB/s for 4 flows.
  const SharedLink free{20e9, 2, 0, 0}, incast{12e9, 4, 0, 0};
  EXPECT_NEAR(mean_flow_Bps(std::vector{free, incast}, 1, 0), 3e9, 1);
  // 10 GB/s for 1 flow of the store and 1 of collectives: 2 GB of them take 0.2 s alone, 0.4 s
  // beside. Hidden: (10 - 2) / 1 over a step of 1 s. Exposed: the step is 1.2 s, (12 - 2) / 1.2.
  const SharedLink shared{10e9, 1, 2e9, 1};
  EXPECT_NEAR(mean_flow_Bps(std::vector{shared}, 1, 0), 8e9, 1);
  EXPECT_NEAR(mean_flow_Bps(std::vector{shared}, 1, 0.2), 10e9 / 1.2, 1);
  EXPECT_NEAR(mean_flow_Bps(std::vector{shared}, 1, 0.1), 9e9 / 1.1, 1);
  // Held at 4 GB/s elsewhere, which is less than its half of the link: never in the way.
  EXPECT_NEAR(mean_flow_Bps(std::vector{shared, SharedLink{4e9, 1, 0, 0}}, 1, 0.2), 4e9, 1);
  // Held at 8: busy for 0.4 of 1.2 s at 5, else 8.
  EXPECT_NEAR(mean_flow_Bps(std::vector{shared, SharedLink{8e9, 1, 0, 0}}, 1, 0.2), 7e9, 1);
  // Always busy: its share, whatever the bytes.
  EXPECT_NEAR(mean_flow_Bps(std::vector{SharedLink{10e9, 1, 9e9, 3}}, 1, 0), 2.5e9, 1);
}

/// One flow of a store that never ends beside a collective in every step, played flow by flow.
struct FluidTwin {
  struct Link {
    double capacity, store, collective;
  };
  std::vector<Link> links;
  double collective_bytes;  // of one flow, a step
  double compute_s;         // before the collective; hidden: length of a step
  bool is_hidden;

  double mean_Bps() const {
    FlowTimeline line;
    std::vector<Load> store, collective;
    for (const Link& link : links) {
      const LinkIndex l = line.add_link(link.capacity);
      store.push_back({l, link.store});
      if (link.collective > 0) collective.push_back({l, link.collective});
    }
    constexpr double much = 1e15;
    const VarIndex save = line.add(much, store);
    double start_s = 0;
    constexpr int steps = 50;
    for (int step = 0; step < steps; ++step) {
      const auto go_to = [&](double until) {
        while (line.now_s() < until) line.advance(until);
      };
      if (!is_hidden) go_to(start_s + compute_s);
      const VarIndex moving = line.add(collective_bytes, collective);
      for (bool is_done = false; !is_done;)
        for (const VarIndex var : line.advance(1e18)) is_done |= var == moving;
      if (is_hidden) go_to(start_s + compute_s);
      start_s = line.now_s();
    }
    return (much - line.bytes_left(save)) / line.now_s();
  }
  /// Without the store.
  double collective_s() const {
    double longest_s = 0;
    for (const Link& link : links)
      longest_s = std::max(longest_s, link.collective * collective_bytes / link.capacity);
    return longest_s;
  }
  double formula_Bps() const {
    std::vector<SharedLink> shared;
    for (const Link& link : links)
      shared.push_back(
          {link.capacity, link.store, link.collective * collective_bytes, link.collective});
    return mean_flow_Bps(shared, compute_s + (is_hidden ? 0 : collective_s()),
                         is_hidden ? 0 : collective_s());
  }
};

/// Random links and loads; those that the collective uses are up to `spare` times as wide as it
/// needs.
FluidTwin random_twin(std::uint64_t seed, double spare) {
  std::mt19937_64 random(seed);
  const auto any = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  FluidTwin twin;
  const double level = any(1e9, 10e9);  // rate of a flow of the collective, alone
  for (std::size_t l = 0; l < 1 + seed % 4; ++l) {
    const double flows = l == 0 || any(0, 1) < 0.6 ? double(1 + random() % 8) : 0;
    const double store = double(1 + random() % 8);
    const double width = l == 0 ? 1 : any(1, spare);
    twin.links.push_back({flows > 0 ? level * flows * width : any(2e9, 60e9), store, flows});
  }
  twin.compute_s = 1;
  twin.is_hidden = seed % 2 == 0;
  twin.collective_bytes = level * any(0.02, twin.is_hidden ? 0.3 : 1.5);
  return twin;
}

TEST(StoreShare, a_fluid_played_flow_by_flow_agrees) {
  // Adapters of a ring: every link that it uses is just as wide as it needs.
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const FluidTwin twin = random_twin(seed, 1);
    const double played = twin.mean_Bps();
    EXPECT_NEAR(twin.formula_Bps(), played, 1e-6 * played) << "seed " << seed;
  }
}

TEST(StoreShare, links_wider_than_the_collective_needs_cost_a_few_per_cent) {
  double sum = 0;
  constexpr std::uint64_t seeds = 400;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const FluidTwin twin = random_twin(seed, 4);
    const double error = std::abs(twin.formula_Bps() / twin.mean_Bps() - 1);
    sum += error;
    EXPECT_LT(error, 0.05) << "seed " << seed;
  }
  EXPECT_LT(sum / double(seeds), 0.005);
}

}  // namespace
}  // namespace trainyard::models
