#include <gmock/gmock.h>

#include <vector>

#include "models/scheduling/servers.hpp"
#include "tests/models/scheduling/pool_rig.hpp"

/// Parents, flags, the way of a broken server, repeat offenders and planned work, by hand.
namespace trainyard::models {
namespace {

using testing::ElementsAre;

PoolShape with_parents() {
  PoolShape shape = eight();
  shape.parents = {.servers_per_rack = 2, .servers_per_pdu = 4, .servers_per_cdu = 8};
  return shape;
}

TEST(ServerFlags, a_parent_takes_its_servers_and_gives_them_back) {
  PoolRig rig(with_parents());
  rig.fail(rig.rack, 1, 10s);  // servers 2 and 3
  EXPECT_EQ(rig.flags(2), (ServerFlags{true, false, true, true}));
  EXPECT_EQ(rig.flags(3), (ServerFlags{true, false, true, true}));
  EXPECT_TRUE(rig.flags(1).is_up());
  EXPECT_TRUE(rig.flags(4).is_up());
  EXPECT_EQ(rig.pool.down_servers(), 2);
  rig.run_to(10s - 1ns);
  EXPECT_EQ(rig.pool.down_servers(), 2);
  rig.run_to(10s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_fed), 20);
}

// Servers 0..3 lose their feed from 0 to 100 s, all lose their cooling from 20 to 50 s, servers 0
// and 1 their network from 30 to 120 s. Server 0 broke at 10 s, before which it was down already.
TEST(ServerFlags, of_several_reasons_the_first_counts_and_each_returns_alone) {
  PoolRig rig(with_parents());
  rig.fail(rig.gpu, 0, 40s);
  rig.fail(rig.pdu, 0, 100s);
  rig.run_to(20s);
  rig.fail(rig.cdu, 0, 30s);
  EXPECT_EQ(rig.flags(0), (ServerFlags{false, false, false, true}));
  EXPECT_EQ(rig.flags(7), (ServerFlags{true, true, false, true}));
  rig.run_to(30s);
  rig.fail(rig.leaf, 0, 90s);
  EXPECT_EQ(rig.flags(1), (ServerFlags{true, false, false, false}));
  rig.run_to(60s);
  EXPECT_EQ(rig.flags(0), (ServerFlags{true, false, true, false}));
  rig.run_to(200s);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_repair), 40);         // server 0 until 40 s
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_fed), 60 + 3 * 100);  // 0 from 40 s, 1, 2, 3
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_cooled), 4 * 30);     // 4, 5, 6, 7
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_connected), 2 * 20);  // 0 and 1 from 100 to 120 s
  for (std::size_t s = 0; s < 8; ++s) EXPECT_TRUE(rig.flags(s).is_up()) << s;
}

TEST(ServerFlags, power_that_returns_does_not_repair_what_is_broken) {
  PoolRig rig(with_parents());
  rig.fail(rig.gpu, 4, 500s);  // server 2
  rig.fail(rig.rack, 1, 10s);
  rig.run_to(20s);
  EXPECT_EQ(rig.flags(2), (ServerFlags{false, true, true, true}));
  EXPECT_TRUE(rig.flags(3).is_up());
  rig.run_to(500s);
  EXPECT_TRUE(rig.flags(2).is_up());
}

TEST(ServerFlags, holders_hear_of_a_parent_once_and_what_it_takes) {
  PoolRig rig(with_parents());
  Holder a(0), b(1);
  rig.pool.ask_gang(a, 3);
  rig.pool.ask_gang(b, 1);
  rig.run_to(1s);
  rig.fail(rig.pdu, 0, 100s);
  rig.fail(rig.cdu, 0, 100s);
  EXPECT_THAT(a.struck, ElementsAre(ElementsAre(HostId(0), HostId(1), HostId(2)),
                                    ElementsAre(HostId(0), HostId(1), HostId(2))));
  EXPECT_THAT(a.loses_power, ElementsAre(true, false));
  EXPECT_THAT(a.is_cooling, ElementsAre(false, true));
  EXPECT_EQ(b.struck.size(), 2u);
  rig.run_to(41s);
  rig.pool.release(a, HostId(1));  // no feed for 60 s more
  EXPECT_EQ(rig.flags(1), (ServerFlags{true, false, false, true}));
  rig.run_to(200s);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_fed), 60);
  rig.pool.release(a, HostId(0));  // everything is back by then
  EXPECT_EQ(rig.pool.down_servers(), 0);
}

TEST(ServerFlags, some_servers_do_not_come_back_when_power_returns) {
  PoolShape shape{.servers = 4000, .gpus_per_server = 2};
  shape.parents = {.servers_per_pdu = 4000, .return_failures = 0.02};
  PoolRig rig(shape);
  rig.fail(rig.pdu, 0, 1h);
  rig.run_to(1h);
  EXPECT_NEAR(double(rig.pool.down_servers()), 80, 2.6 * 8.9);  // sqrt(4000 0.02 0.98)
  EXPECT_EQ(std::int64_t(rig.recorder.count("did not come back")), rig.pool.down_servers());
  rig.run_to(10'000h);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  // Log-normal, median 12 h, sigma 1: mean 19.8 h, standard deviation 26 h.
  EXPECT_NEAR(rig.server_s(Account::down_repair) / 3600,
              19.8 * double(rig.recorder.count("did not come back")), 2.6 * 26 * 8.9);
}

TEST(ServerFlags, a_held_server_that_does_not_come_back_goes_to_repair_when_let_go) {
  PoolShape shape = with_parents();
  shape.parents.return_failures = 0.5;
  PoolRig rig(shape);
  Holder a(0);
  rig.pool.ask_gang(a, 4);
  rig.run_to(1s);
  rig.fail(rig.pdu, 0, 10s);
  rig.run_to(20s);
  const auto broken = std::int64_t(rig.recorder.count("did not come back"));
  ASSERT_GT(broken, 0);
  ASSERT_LT(broken, 4);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  for (const HostId s : a.held) rig.pool.release(a, s);
  EXPECT_EQ(rig.pool.down_servers(), broken);
  rig.run_to(10'000h);
  EXPECT_EQ(rig.pool.down_servers(), 0);
}

TEST(ServerFlags, a_common_cause_breaks_every_server_of_the_parent) {
  PoolRig rig(with_parents());
  Holder a(0);
  rig.pool.ask_gang(a, 1);
  rig.run_to(1s);
  Failure failure;
  failure.cls = &rig.gpu;
  failure.unit = 2;  // of server 1
  failure.repair = 50s;
  failure.shared_parent = Component::rack;
  failure.parent = 0;  // servers 0 and 1
  rig.pool.strike(failure);
  EXPECT_THAT(a.struck, ElementsAre(ElementsAre(HostId(0))));
  EXPECT_FALSE(a.loses_power.front());
  EXPECT_FALSE(rig.flags(0).working);
  EXPECT_FALSE(rig.flags(1).working);
  EXPECT_TRUE(rig.flags(2).is_up());
  EXPECT_EQ(rig.pool.failures_of(HostId(0)), 0);  // it is held against the one whose part it was
  EXPECT_EQ(rig.pool.failures_of(HostId(1)), 1);
  rig.run_to(51s);
  EXPECT_TRUE(rig.flags(1).is_up());
  rig.pool.release(a, HostId(0));
  rig.run_to(101s);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_repair), 50 + 50);
}

TEST(ServerFlags, a_warning_goes_to_who_holds_the_servers) {
  PoolRig rig(with_parents());
  Holder a(0), b(1);
  rig.pool.ask_gang(a, 3);
  rig.pool.ask_gang(b, 1);
  rig.run_to(1s);
  Failure failure;
  failure.cls = &rig.rack;
  failure.unit = 1;  // servers 2 and 3
  rig.pool.warn(failure, start_of_run + 60s);
  ASSERT_EQ(a.warned.size(), 1u);
  EXPECT_THAT(a.warned[0].first, ElementsAre(HostId(2)));
  EXPECT_EQ(a.warned[0].second, start_of_run + 60s);
  EXPECT_THAT(b.warned[0].first, ElementsAre(HostId(3)));
  EXPECT_EQ(rig.pool.down_servers(), 0);
}

TEST(ServerPool, planned_work_waits_until_the_server_is_let_go) {
  PoolRig rig;
  Holder a(0);
  rig.pool.ask_gang(a, 1);
  rig.run_to(1s);
  rig.fail(rig.planned, 0, 100s);
  rig.fail(rig.planned, 5, 100s);  // idle: at once
  EXPECT_THAT(a.struck, ElementsAre(ElementsAre(HostId(0))));
  EXPECT_TRUE(rig.flags(0).working);
  EXPECT_EQ(rig.pool.down_servers(), 1);
  rig.run_to(11s);
  rig.pool.release(a, HostId(0));
  EXPECT_FALSE(rig.flags(0).working);
  rig.run_to(111s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_repair), 200);
  EXPECT_EQ(rig.pool.failures_of(HostId(0)), 0);
}

TEST(ServerPool, planned_work_on_a_rack_takes_the_feed_of_each_server_once_it_is_let_go) {
  PoolRig rig(with_parents());
  Holder a(0);
  rig.pool.ask_gang(a, 1);
  rig.run_to(1s);
  rig.rack.spec.effect = Effect::maintenance;
  rig.fail(rig.rack, 0, 100s);  // server 0 is held, 1 is idle
  EXPECT_TRUE(rig.flags(0).fed);
  EXPECT_FALSE(rig.flags(1).fed);
  EXPECT_FALSE(a.loses_power.front());
  rig.run_to(41s);
  rig.pool.release(a, HostId(0));
  rig.run_to(101s);
  EXPECT_TRUE(rig.flags(1).fed);
  EXPECT_FALSE(rig.flags(0).fed);
  rig.run_to(141s);
  EXPECT_TRUE(rig.flags(0).is_up());
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_fed), 200);
}

TEST(ServerPool, broken_servers_queue_for_the_crew_and_parts_of_one_are_one_repair) {
  PoolShape shape = eight();
  shape.repair.crews = 1;
  PoolRig rig(shape);
  rig.fail(rig.gpu, 4, 10s);  // server 2: 0 to 10 s
  rig.fail(rig.gpu, 2, 20s);  // server 1, the same instant: the lower first: 0 to 20 s
  rig.run_to(5s);
  rig.fail(rig.gpu, 0, 1s);  // server 0: 30 to 31 s
  rig.run_to(20s);
  EXPECT_TRUE(rig.flags(1).is_up());
  EXPECT_FALSE(rig.flags(2).is_up());
  rig.run_to(100s);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_repair), 20 + 30 + 26);
  EXPECT_EQ(rig.pool.shop().stats().waited, 20s + 25s);
}

TEST(ServerPool, a_repeat_offender_goes_to_the_vendor) {
  PoolShape shape = eight();
  shape.repair.vendor = {Law::fixed, 1000s};
  shape.exclude = {.after = 3, .within = 100s};
  PoolRig rig(shape);
  rig.fail(rig.gpu, 0, 10s);  // at 0 s
  rig.run_to(50s);
  rig.fail(rig.gpu, 1, 10s);  // at 50 s
  rig.run_to(100s + 1ns);     // one nanosecond too late: two within 100 s
  rig.fail(rig.gpu, 0, 10s);
  rig.run_to(120s);
  EXPECT_TRUE(rig.flags(0).is_up());
  rig.run_to(150s);  // exactly: the third within 100 s
  rig.fail(rig.gpu, 0, 10s);
  rig.run_to(1149s);
  EXPECT_FALSE(rig.flags(0).is_up());
  EXPECT_EQ(rig.pool.excluded(), 1);
  EXPECT_EQ(rig.recorder.count("server excluded"), 1u);
  rig.run_to(1150s);
  EXPECT_TRUE(rig.flags(0).is_up());
  rig.fail(rig.gpu, 0, 10s);  // its past is forgotten
  rig.run_to(1161s);
  EXPECT_TRUE(rig.flags(0).is_up());
  EXPECT_EQ(rig.pool.failures_of(HostId(0)), 5);
}

}  // namespace
}  // namespace trainyard::models
