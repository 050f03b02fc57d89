#include "models/scheduling/servers.hpp"

#include <gmock/gmock.h>

#include "tests/models/scheduling/pool_rig.hpp"

namespace trainyard::models {
namespace {

using testing::ElementsAre;

TEST(ServerPool, a_gang_is_packed_from_the_front_and_leaves_the_spares) {
  PoolRig rig;
  Holder a(0), b(1);
  rig.pool.ask_gang(b, 2);
  rig.pool.ask_gang(a, 3);
  EXPECT_TRUE(a.held.empty());  // granted in phase decision, by number, not by who asked first
  rig.run_to(1s);
  EXPECT_THAT(indices(a.held), ElementsAre(0, 1, 2));
  EXPECT_THAT(indices(b.held), ElementsAre(3, 4));
  EXPECT_EQ(rig.pool.spare_servers(), 2);
  EXPECT_EQ(rig.pool.unallocated_servers(), 1);
}

TEST(ServerPool, a_gang_that_does_not_fit_lets_no_later_one_pass) {
  PoolRig rig;
  Holder a(0), b(1), c(2);
  rig.pool.ask_gang(a, 4);
  rig.run_to(1s);
  rig.pool.ask_gang(b, 3);
  rig.run_to(2s);
  rig.pool.ask_gang(c, 1);
  rig.run_to(3s);
  EXPECT_TRUE(b.held.empty());
  EXPECT_TRUE(c.held.empty());
  rig.pool.release(a, HostId(1));
  rig.run_to(4s);
  EXPECT_THAT(indices(b.held), ElementsAre(1, 4, 5));
  rig.pool.withdraw(c);
  rig.pool.release(a, HostId(0));
  rig.run_to(5s);
  EXPECT_TRUE(c.held.empty());
}

TEST(ServerPool, the_nearest_spare_is_taken_then_an_unallocated_server) {
  PoolShape shape = eight();
  shape.spares = 4;  // 4..7, all in pod 1
  PoolRig rig(shape);
  Holder a(0);
  rig.pool.ask_gang(a, 2);
  rig.run_to(1s);
  rig.pool.ask_instead_of(a, HostId(7));  // same leaf, lowest number: 6
  rig.run_to(2s);
  rig.pool.ask_instead_of(a, HostId(7));  // itself is on that leaf
  rig.run_to(3s);
  rig.pool.ask_instead_of(a, HostId(6));  // same pod: 4
  rig.run_to(4s);
  rig.pool.ask_instead_of(a, HostId(0));  // far away: 5 is the last spare
  rig.run_to(5s);
  rig.pool.ask_instead_of(a, HostId(0));  // no spare: 2 and 3 are unallocated
  rig.run_to(6s);
  EXPECT_THAT(indices(a.held), ElementsAre(0, 1, 6, 7, 4, 5, 2));
}

TEST(ServerPool, a_broken_server_stays_with_its_job_until_released_and_comes_back_as_a_spare) {
  PoolRig rig;
  Holder a(0);
  rig.pool.ask_gang(a, 6);
  rig.run_to(10s);
  rig.fail(rig.gpu, 7, 100s);  // GPU 7 is in server 3
  ASSERT_EQ(a.struck.size(), 1u);
  EXPECT_THAT(indices(a.struck[0]), ElementsAre(3));
  EXPECT_EQ(rig.pool.down_servers(), 0);
  rig.run_to(20s);
  rig.pool.release(a, HostId(3));  // repair starts here: back at 120 s
  rig.pool.ask_instead_of(a, HostId(3));
  rig.run_to(120s - 1ns);
  EXPECT_EQ(rig.pool.down_servers(), 1);
  EXPECT_EQ(rig.pool.spare_servers(), 1);
  rig.run_to(120s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  EXPECT_EQ(rig.pool.spare_servers(), 2);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_repair), 100);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::spare_idle),
                   20 + 120);  // server 6 until it was taken, 7 all along
  EXPECT_DOUBLE_EQ(rig.server_s(Account::unallocated), 0);
}

TEST(ServerPool, an_idle_server_goes_to_repair_at_once_but_not_for_software) {
  PoolRig rig;
  rig.run_to(10s);
  rig.fail(rig.software, 2, 50s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  rig.fail(rig.gpu, 14, 50s);  // spare server 7
  EXPECT_EQ(rig.pool.down_servers(), 1);
  EXPECT_EQ(rig.pool.spare_servers(), 1);
  rig.run_to(100s);
  EXPECT_EQ(rig.pool.spare_servers(), 2);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_repair), 50);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::spare_idle), 2 * 100 - 50);
}

TEST(ServerPool, several_broken_parts_are_repaired_side_by_side) {
  PoolRig rig;
  Holder a(0);
  rig.pool.ask_gang(a, 1);
  rig.run_to(1s);
  rig.fail(rig.gpu, 0, 30s);
  rig.fail(rig.gpu, 1, 70s);
  rig.fail(rig.gpu, 0, 20s);
  EXPECT_EQ(a.struck.size(), 3u);
  rig.pool.release(a, HostId(0));
  rig.run_to(200s);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_repair), 70);
}

TEST(ServerPool, a_leaf_takes_its_servers_and_strikes_each_job_once) {
  PoolRig rig;
  Holder a(0), b(1);
  rig.pool.ask_gang(a, 3);  // 0 1 2
  rig.pool.ask_gang(b, 1);  // 3
  rig.run_to(10s);
  rig.fail(rig.leaf, 1, 100s);  // servers 2 and 3, until 110 s
  ASSERT_EQ(a.struck.size(), 1u);
  ASSERT_EQ(b.struck.size(), 1u);
  EXPECT_THAT(indices(a.struck[0]), ElementsAre(2));
  EXPECT_THAT(indices(b.struck[0]), ElementsAre(3));
  rig.run_to(50s);
  rig.pool.release(a, HostId(2));  // off the network for 60 s more
  EXPECT_EQ(rig.pool.down_servers(), 1);
  rig.run_to(200s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_connected), 60);
  rig.pool.release(b, HostId(3));  // the leaf is back by then: nothing to wait for
  EXPECT_EQ(rig.pool.down_servers(), 0);
}

TEST(ServerPool, a_repaired_server_waits_for_its_leaf_and_an_idle_leaf_goes_down_whole) {
  PoolRig rig;
  rig.fail(rig.gpu, 4, 30s);    // server 2: in repair until 30 s
  rig.fail(rig.leaf, 1, 100s);  // servers 2 and 3 until 100 s
  EXPECT_EQ(rig.pool.down_servers(), 2);
  rig.run_to(100s - 1ns);
  EXPECT_EQ(rig.pool.down_servers(), 2);
  rig.run_to(100s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_repair), 30);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::down_connected), 70 + 100);
}

TEST(ServerPool, two_faults_of_one_leaf_end_with_the_later) {
  PoolRig rig;
  rig.fail(rig.leaf, 0, 100s);
  rig.run_to(10s);
  rig.fail(rig.leaf, 0, 20s);
  rig.run_to(100s - 1ns);
  EXPECT_EQ(rig.pool.down_servers(), 2);
  rig.run_to(100s);
  EXPECT_EQ(rig.pool.down_servers(), 0);
}

TEST(ServerPool, replacements_go_before_gangs_and_older_before_younger) {
  PoolRig rig;
  Holder a(0), b(1), c(2);
  rig.pool.ask_gang(a, 6);
  rig.run_to(1s);
  rig.fail(rig.gpu, 12, 500s);
  rig.fail(rig.gpu, 14, 500s);  // both spares are down
  rig.pool.ask_gang(c, 1);
  rig.run_to(2s);
  rig.pool.ask_instead_of(b, HostId(5));
  rig.run_to(3s);
  rig.pool.release(a, HostId(4));
  rig.run_to(4s);
  EXPECT_THAT(indices(b.held), ElementsAre(4));
  EXPECT_TRUE(c.held.empty());
}

TEST(ServerPool, says_when_a_server_becomes_available) {
  PoolRig rig;
  int times = 0;
  const auto watch = [](ServerPool& pool, int& count) -> sim::Process {
    for (;;) {
      co_await pool.available().wait();
      ++count;
    }
  };
  rig.engine.spawn("watch", watch(rig.pool, times));
  rig.run_to(1s);
  rig.fail(rig.gpu, 0, 10s);
  EXPECT_EQ(times, 0);
  rig.run_to(20s);
  EXPECT_EQ(times, 1);
}

TEST(ServerPool, who_lets_go_of_a_server_holds_it) {
  PoolRig rig;
  Holder a(0);
  EXPECT_THROW(rig.pool.release(a, HostId(0)), CheckFailed);
}

}  // namespace
}  // namespace trainyard::models
