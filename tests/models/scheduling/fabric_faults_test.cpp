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

class Listener final : public FabricUser {
 public:
  void on_links_changed(const LinksChanged& change) override { heard.push_back(change); }
  std::vector<LinksChanged> heard;
};

struct Rig {
  Rig()
      : fabric(small_tree()),
        router(*fabric, RoutingKind::ecmp, 1, 1),
        pool(engine, recorder,
             {.servers = 8,
              .gpus_per_server = 1,
              .nics_per_server = 1,
              .leaf = {0, 0, 1, 1, 2, 2, 3, 3},
              .pod = {0, 0, 0, 0, 0, 0, 0, 0}}),
        faults(engine, recorder, router, pool) {
    faults.add_user(listener);
    for (auto& [cls, component] : {std::pair(&link, Component::link),
                                   {&slow, Component::link},
                                   {&spine, Component::upper_switch},
                                   {&leaf, Component::leaf_switch},
                                   {&server, Component::server}})
      cls->spec.component = component;
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
  sim::NullRecorder recorder;
  std::shared_ptr<const Fabric> fabric;
  topologies::Router router;
  ServerPool pool;
  FabricFaults faults;
  Listener listener;
  FailureClass link, slow, spine, leaf, server;
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

}  // namespace
}  // namespace trainyard::models
