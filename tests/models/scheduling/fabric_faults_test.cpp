#include "models/scheduling/fabric_faults.hpp"

#include <gmock/gmock.h>

#include <memory>

#include "topologies/fat_tree.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;
using topologies::Fabric;
using topologies::HostId;
using topologies::LinkId;
using topologies::RoutingKind;
using topologies::VertexKind;

/// 4 leaves of 2 servers with one NIC, 2 spines; cable 2*leaf + spine joins them.
std::shared_ptr<const Fabric> small_tree() {
  topologies::FabricSpec f;
  f.hosts_per_leaf = 2;
  f.spines = 2;
  f.leaf_switch = {"box", 4, 400_Gbps, {}, {}, {}};
  f.spine_switch = {"box", 4, 400_Gbps, {}, {}, {}};
  return topologies::build_fat_tree(f, {.hosts = 8, .gpus = 1, .nics = 1, .nic_rate = 400_Gbps})
      .fabric;
}

/// 2 units of 2 servers; each has one NIC with a port to either leaf of its unit.
std::shared_ptr<const Fabric> dual_homed() {
  topologies::FabricSpec f;
  f.dual_homed = true;
  f.hosts_per_leaf = 2;
  f.uplinks_per_leaf = 2;
  f.leaf_switch = f.spine_switch = {"box", 8, 400_Gbps, {}, {}, {}};
  return topologies::build_fat_tree(f, {.hosts = 4, .gpus = 1, .nics = 1, .nic_rate = 400_Gbps})
      .fabric;
}

PoolShape eight_servers() {
  return {.servers = 8,
          .gpus_per_server = 1,
          .nics_per_server = 1,
          .leaf = {0, 0, 1, 1, 2, 2, 3, 3},
          .pod = {0, 0, 0, 0, 0, 0, 0, 0}};
}

class Listener final : public FabricUser {
 public:
  void on_links_changed(const LinksChanged& change) override { heard.push_back(change); }
  std::vector<LinksChanged> heard;
};

struct Rig {
  explicit Rig(std::shared_ptr<const Fabric> f = small_tree(), PoolShape shape = eight_servers())
      : fabric(std::move(f)),
        router(*fabric, RoutingKind::ecmp, 1, 1),
        pool(engine, recorder, std::move(shape)),
        faults(engine, recorder, router, pool) {
    faults.add_user(listener);
    for (auto& [cls, component] : {std::pair(&link, Component::link),
                                   {&slow, Component::link},
                                   {&spine, Component::upper_switch},
                                   {&leaf, Component::leaf_switch},
                                   {&server, Component::server},
                                   {&cable, Component::access_link},
                                   {&slow_cable, Component::access_link},
                                   {&slow_nic, Component::nic},
                                   {&store, Component::store_server}})
      cls->spec.component = component;
    for (FailureClass* cls : {&slow_cable, &slow_nic}) {
      cls->spec.effect = Effect::slow;
      cls->spec.speed = 0.25;
    }
    store.spec.store = "scratch";
    slow.spec.effect = Effect::slow;
    slow.spec.speed = 0.5;
  }
  void fail_at(Duration t, const FailureClass& cls, std::uint32_t unit, Duration detection,
               Duration repair) {
    engine.at(start_of_run + t, sim::Phase::failure, [=, this, &cls] {
      Failure failure;
      failure.cls = &cls;
      failure.unit = unit;
      failure.detection = detection;
      failure.repair = repair;
      faults.strike(failure);
    });
  }
  void run_to(Duration t) { engine.run_until(start_of_run + t); }

  sim::Engine engine{sim::Seed{1}};
  sim::MemoryRecorder recorder;
  std::shared_ptr<const Fabric> fabric;
  topologies::Router router;
  ServerPool pool;
  FabricFaults faults;
  Listener listener;
  FailureClass link, slow, spine, leaf, server, cable, slow_cable, slow_nic, store;
};

TEST(FabricFaults, units_are_the_cables_between_switches_and_the_switches_above_the_edge) {
  Rig rig;
  EXPECT_EQ(rig.fabric->name(trunk(*rig.fabric, 3)), "leaf-1 -> spine-1");
  EXPECT_EQ(rig.fabric->name(upper_switch(*rig.fabric, 1)), "spine-1");
}

TEST(FabricFaults, a_link_is_down_in_both_directions_for_detection_and_repair) {
  Rig rig;
  const LinkId up = rig.fabric->leaf_uplink(1, 1);
  rig.fail_at(10s, rig.link, 3, 2s, 5s);
  rig.run_to(16s);
  EXPECT_FALSE(rig.router.state().is_up(up));
  EXPECT_FALSE(rig.router.state().is_up(Fabric::reverse(up)));
  rig.run_to(18s);
  EXPECT_TRUE(rig.router.state().is_up(up));
  EXPECT_FALSE(rig.router.state().is_changed());
  ASSERT_EQ(rig.listener.heard.size(), 2u);
  EXPECT_TRUE(rig.listener.heard[0].is_lost);
  EXPECT_FALSE(rig.listener.heard[1].is_lost);
  EXPECT_EQ(rig.faults.faults(), 1);
  EXPECT_EQ(rig.faults.active(), 0);
}

TEST(FabricFaults, of_two_faults_on_one_cable_the_worse_counts_while_it_lasts) {
  Rig rig;
  const LinkId up = rig.fabric->leaf_uplink(0, 0);
  rig.fail_at(10s, rig.slow, 0, 0s, 20s);  // half rate from 10 to 30
  rig.fail_at(15s, rig.link, 0, 0s, 5s);   // down from 15 to 20
  rig.fail_at(17s, rig.link, 0, 0s, 1s);   // nothing new
  rig.run_to(12s);
  EXPECT_DOUBLE_EQ(rig.router.state().capacity(up).value(), 25e9);
  rig.run_to(19s);
  EXPECT_DOUBLE_EQ(rig.router.state().capacity(up).value(), 0);
  rig.run_to(25s);
  EXPECT_DOUBLE_EQ(rig.router.state().capacity(up).value(), 25e9);
  rig.run_to(31s);
  EXPECT_FALSE(rig.router.state().is_changed());
  std::vector<bool> lost;
  for (const LinksChanged& change : rig.listener.heard) lost.push_back(change.is_lost);
  EXPECT_EQ(lost, (std::vector<bool>{false, true, false, false}));
}

TEST(FabricFaults, a_switch_takes_all_its_links_and_does_not_revive_a_broken_cable) {
  Rig rig;
  rig.fail_at(10s, rig.spine, 0, 0s, 10s);
  rig.fail_at(12s, rig.link, 0, 0s, 100s);  // leaf-0 -> spine-0
  rig.run_to(11s);
  for (int leaf = 0; leaf < 4; ++leaf)
    EXPECT_FALSE(rig.router.state().is_up(rig.fabric->leaf_uplink(leaf, 0)));
  EXPECT_EQ(rig.listener.heard[0].links.size(), 8u);
  rig.run_to(21s);
  EXPECT_FALSE(rig.router.state().is_up(rig.fabric->leaf_uplink(0, 0)));
  EXPECT_TRUE(rig.router.state().is_up(rig.fabric->leaf_uplink(1, 0)));
}

TEST(FabricFaults, a_leaf_takes_its_servers_off_the_network_as_long_as_it_is_down) {
  Rig rig;
  rig.fail_at(10s, rig.leaf, 2, 3s, 10s);
  rig.run_to(19s);
  EXPECT_EQ(rig.pool.down_servers(), 2);
  EXPECT_FALSE(rig.router.state().is_up(rig.fabric->leaf_uplink(2, 0)));
  rig.run_to(20s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  EXPECT_TRUE(rig.router.state().is_up(rig.fabric->leaf_uplink(2, 0)));
}

TEST(FabricFaults, what_concerns_a_server_goes_to_the_pool_alone) {
  Rig rig;
  rig.fail_at(10s, rig.server, 5, 0s, 10s);
  rig.run_to(11s);
  EXPECT_EQ(rig.pool.down_servers(), 1);
  EXPECT_TRUE(rig.listener.heard.empty());
  EXPECT_EQ(rig.faults.faults(), 0);
}

TEST(FabricFaults, a_server_without_its_cable_is_not_connected_and_an_idle_one_goes_down) {
  Rig rig;
  const LinkId up = rig.fabric->uplink(topologies::NicId(3));
  rig.fail_at(10s, rig.cable, 3, 2s, 5s);
  rig.run_to(16s);
  EXPECT_EQ(rig.pool.flags(HostId(3)), (ServerFlags{true, true, true, false}));
  EXPECT_EQ(rig.pool.down_servers(), 1);
  EXPECT_FALSE(rig.router.state().is_up(up));
  EXPECT_FALSE(rig.router.state().is_up(Fabric::reverse(up)));
  rig.run_to(17s);
  EXPECT_TRUE(rig.pool.flags(HostId(3)).is_up());
  EXPECT_TRUE(rig.router.state().is_up(up));
  rig.pool.settle();
  EXPECT_DOUBLE_EQ(rig.pool.ledger().gpu_s(Account::down_connected), 7);
  EXPECT_EQ(rig.recorder.subjects().front(), rig.fabric->name(up));
}

class Job final : public ServerHolder {
 public:
  std::size_t number() const override { return 0; }
  void on_strike(const Strike&) override { ++strikes; }
  void on_granted(HostId, HostId) override {}
  int strikes = 0;
};

TEST(FabricFaults, a_job_is_not_struck_by_a_cable_but_its_server_is_down_if_let_go) {
  Rig rig;
  Job job;
  rig.pool.ask_gang(job, 4);
  rig.fail_at(10s, rig.cable, 3, 0s, 20s);
  rig.run_to(15s);
  EXPECT_EQ(job.strikes, 0);
  EXPECT_EQ(rig.listener.heard.size(), 1u);
  EXPECT_FALSE(rig.pool.flags(HostId(3)).connected);
  rig.pool.release(job, HostId(3));
  EXPECT_EQ(rig.pool.down_servers(), 1);
  rig.run_to(30s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
}

TEST(FabricFaults, two_faults_of_one_cable_and_its_leaf_are_one_loss_each) {
  Rig rig;
  rig.fail_at(10s, rig.cable, 3, 0s, 20s);
  rig.fail_at(12s, rig.cable, 3, 0s, 5s);
  rig.fail_at(15s, rig.leaf, 1, 0s, 30s);  // until 45 s
  rig.run_to(29s);
  EXPECT_FALSE(rig.pool.flags(HostId(3)).connected);
  rig.run_to(44s);
  EXPECT_FALSE(rig.pool.flags(HostId(3)).connected);
  EXPECT_FALSE(rig.router.state().is_up(rig.fabric->uplink(topologies::NicId(3))));
  rig.run_to(45s);
  EXPECT_TRUE(rig.pool.flags(HostId(3)).is_up());
  EXPECT_FALSE(rig.router.state().is_changed());
}

TEST(FabricFaults, a_degraded_cable_or_adapter_is_a_capacity) {
  Rig rig;
  const LinkId up = rig.fabric->uplink(topologies::NicId(5));
  rig.fail_at(10s, rig.slow_nic, 5, 1s, 9s);
  rig.run_to(19s);
  EXPECT_DOUBLE_EQ(rig.router.state().capacity(up).value(), 12.5e9);
  EXPECT_DOUBLE_EQ(rig.router.state().capacity(Fabric::reverse(up)).value(), 12.5e9);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  rig.run_to(20s);
  EXPECT_FALSE(rig.router.state().is_changed());
  rig.fail_at(30s, rig.slow_cable, 5, 0s, 10s);
  rig.run_to(35s);
  EXPECT_DOUBLE_EQ(rig.router.state().capacity(up).value(), 12.5e9);
  EXPECT_TRUE(rig.pool.flags(HostId(5)).is_up());
  ASSERT_EQ(rig.listener.heard.size(), 3u);
  EXPECT_FALSE(rig.listener.heard[0].is_lost);
}

PoolShape four_servers() {
  return {.servers = 4, .gpus_per_server = 1, .nics_per_server = 1, .leaf = {0, 0, 2, 2}};
}

TEST(FabricFaults, dual_homed_one_port_is_enough) {
  Rig rig(dual_homed(), four_servers());
  ASSERT_EQ(rig.fabric->servers().ports_per_nic, 2);
  rig.fail_at(10s, rig.cable, 2, 0s, 20s);  // server 1, first port: until 30 s
  rig.fail_at(15s, rig.cable, 3, 0s, 5s);   // the other: until 20 s
  rig.run_to(14s);
  EXPECT_TRUE(rig.pool.flags(HostId(1)).connected);
  rig.run_to(19s);
  EXPECT_FALSE(rig.pool.flags(HostId(1)).connected);
  EXPECT_EQ(rig.pool.down_servers(), 1);
  rig.run_to(20s);
  EXPECT_TRUE(rig.pool.flags(HostId(1)).is_up());
}

TEST(FabricFaults, dual_homed_a_leaf_takes_only_who_has_no_other_port_left) {
  Rig rig(dual_homed(), four_servers());
  const topologies::VertexId other = rig.fabric->edge_of(topologies::NicId(1), 1);
  rig.fail_at(10s, rig.cable, 2, 0s, 100s);  // the first port of server 1
  rig.fail_at(20s, rig.leaf, std::uint32_t(rig.fabric->index_in_kind(other)), 5s, 25s);  // to 50 s
  rig.run_to(49s);
  EXPECT_EQ(rig.pool.down_servers(), 1);
  EXPECT_FALSE(rig.pool.flags(HostId(1)).connected);
  rig.run_to(50s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
}

TEST(FabricFaults, a_store_loses_a_server_and_has_it_back) {
  Rig rig;
  std::vector<std::string> heard;
  rig.faults.on_store_server([&](const std::string& name, int change) {
    heard.push_back(std::to_string(int(to_seconds(rig.engine.now()))) + " " + name + " " +
                    std::to_string(change));
  });
  rig.fail_at(10s, rig.store, 3, 2s, 5s);
  rig.fail_at(12s, rig.store, 3, 0s, 20s);  // the same one: nothing new until 32 s
  rig.run_to(60s);
  EXPECT_THAT(heard, testing::ElementsAre("10 scratch -1", "32 scratch 1"));
  EXPECT_EQ(rig.recorder.count("store server down"), 1u);
  EXPECT_EQ(rig.recorder.subjects().front(), "scratch/server-3");
  EXPECT_EQ(rig.pool.down_servers(), 0);
}

}  // namespace
}  // namespace trainyard::models
