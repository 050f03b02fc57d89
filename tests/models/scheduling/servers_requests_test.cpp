#include <gmock/gmock.h>

#include <vector>

#include "models/scheduling/servers.hpp"
#include "tests/models/scheduling/pool_rig.hpp"

/// Spares warm and cold, last and spread; preemption. By hand.
namespace trainyard::models {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SparePlaces, last_or_in_the_middle_of_equal_parts) {
  EXPECT_THAT(indices(spare_places(8, 2, SparePlaces::last)), ElementsAre(6, 7));
  EXPECT_THAT(indices(spare_places(8, 2, SparePlaces::spread)), ElementsAre(2, 6));
  EXPECT_THAT(indices(spare_places(10, 3, SparePlaces::spread)), ElementsAre(1, 5, 8));
  EXPECT_THAT(indices(spare_places(3, 3, SparePlaces::spread)), ElementsAre(0, 1, 2));
  EXPECT_THAT(indices(spare_places(3, 0, SparePlaces::spread)), IsEmpty());
}

TEST(Spares, spread_ones_are_near_and_a_gang_passes_them_over) {
  PoolShape shape = eight();
  shape.spare.places = SparePlaces::spread;  // 2 and 6, one in each pod
  PoolRig rig(shape);
  Holder a(0);
  rig.pool.ask_gang(a, 6);
  rig.run_to(1s);
  EXPECT_THAT(indices(a.held), ElementsAre(0, 1, 3, 4, 5, 7));
  rig.pool.ask_instead_of(a, HostId(7));
  rig.run_to(2s);
  EXPECT_EQ(a.held.back(), HostId(6));
}

PoolShape cold() {
  PoolShape shape = eight();
  shape.spare.boot = 30s;
  return shape;
}

TEST(Spares, a_cold_one_boots_first_and_is_a_spare_until_then) {
  PoolRig rig(cold());
  Holder a(0);
  rig.pool.ask_gang(a, 6);
  rig.run_to(10s);
  rig.pool.ask_instead_of(a, HostId(0));
  rig.run_to(40s - 1ns);
  EXPECT_EQ(a.held.size(), 6u);
  EXPECT_EQ(rig.pool.reserved_servers(), 1);
  EXPECT_EQ(rig.pool.spare_servers(), 1);
  rig.run_to(40s);
  ASSERT_EQ(a.held.size(), 7u);
  EXPECT_EQ(a.held.back(), HostId(6));
  EXPECT_EQ(rig.pool.reserved_servers(), 0);
  EXPECT_DOUBLE_EQ(rig.server_s(Account::spare_idle), 40 + 40);
}

TEST(Spares, one_that_fails_while_it_boots_is_asked_for_again) {
  PoolRig rig(cold());
  Holder a(0);
  rig.pool.ask_gang(a, 6);
  rig.run_to(10s);
  rig.pool.ask_instead_of(a, HostId(0));  // 6 boots until 40 s
  rig.run_to(25s);
  rig.fail(rig.gpu, 12, 1000s);  // 6 is broken; 7 boots until 55 s
  rig.run_to(54s);
  EXPECT_EQ(a.held.size(), 6u);
  EXPECT_TRUE(a.struck.empty());
  rig.run_to(55s);
  EXPECT_EQ(a.held.back(), HostId(7));
}

TEST(Spares, one_that_nobody_waits_for_any_more_is_a_spare_again) {
  PoolRig rig(cold());
  Holder a(0), b(1);
  rig.pool.ask_gang(a, 6);
  rig.run_to(10s);
  rig.pool.ask_instead_of(a, HostId(0));
  rig.run_to(20s);
  rig.pool.withdraw(a);
  EXPECT_EQ(rig.pool.reserved_servers(), 0);
  rig.pool.ask_instead_of(b, HostId(0));  // boots from the beginning
  rig.run_to(50s - 1ns);
  EXPECT_TRUE(b.held.empty());
  rig.run_to(50s);
  EXPECT_THAT(indices(b.held), ElementsAre(6));
}

TEST(Preemption, the_nearest_server_of_the_lowest_priority_is_asked_back_once) {
  PoolRig rig({.servers = 8,
               .gpus_per_server = 2,
               .leaf = {0, 0, 1, 1, 2, 2, 3, 3},
               .pod = {0, 0, 0, 0, 1, 1, 1, 1}});
  Holder high(0, 2), middle(1, 1, true), low(2, 0, true), fixed(3, -1, false);
  rig.pool.ask_gang(high, 2);    // 0 1
  rig.pool.ask_gang(middle, 2);  // 2 3
  rig.pool.ask_gang(low, 3);     // 4 5 6
  rig.pool.ask_gang(fixed, 1);   // 7
  rig.run_to(10s);
  rig.fail(rig.gpu, 0, 1000s);
  rig.pool.release(high, HostId(0));
  rig.pool.ask_instead_of(high, HostId(0));
  rig.run_to(20s);
  EXPECT_THAT(indices(low.asked_back), ElementsAre(4));
  EXPECT_THAT(middle.asked_back, IsEmpty());
  EXPECT_THAT(fixed.asked_back, IsEmpty());
  rig.pool.ask_instead_of(low,
                          HostId(6));  // from nobody: high is not preemptible, middle is higher
  rig.run_to(30s);
  EXPECT_EQ(low.asked_back.size(), 1u);
  EXPECT_THAT(middle.asked_back, IsEmpty());
  rig.pool.release(low, HostId(4));  // it has saved
  rig.run_to(31s);
  EXPECT_THAT(indices(high.held), ElementsAre(0, 1, 4));
  EXPECT_EQ(low.held.size(), 3u);
  EXPECT_EQ(rig.recorder.count("server preempted"), 1u);
}

TEST(Preemption, who_gets_an_idle_server_meanwhile_leaves_the_other_to_all) {
  PoolRig rig({.servers = 3, .gpus_per_server = 2});
  Holder high(0, 1), low(1, 0, true);
  rig.pool.ask_gang(high, 1);
  rig.pool.ask_gang(low, 2);
  rig.run_to(1s);
  rig.fail(rig.gpu, 0, 10s);
  rig.pool.release(high, HostId(0));
  rig.pool.ask_instead_of(high, HostId(0));
  rig.run_to(5s);
  EXPECT_THAT(indices(low.asked_back), ElementsAre(1));
  rig.run_to(11s);  // repaired before low has saved
  EXPECT_THAT(indices(high.held), ElementsAre(0, 0));
  rig.pool.release(low, HostId(1));
  EXPECT_EQ(rig.pool.unallocated_servers(), 1);
}

TEST(Preemption, a_preempted_server_that_breaks_is_made_good_by_another) {
  PoolRig rig({.servers = 4, .gpus_per_server = 2});
  Holder high(0, 1), low(1, 0, true);
  rig.pool.ask_gang(high, 1);
  rig.pool.ask_gang(low, 3);
  rig.run_to(1s);
  rig.pool.ask_instead_of(high, HostId(0));
  rig.run_to(2s);
  rig.fail(rig.gpu, 2, 100s);  // server 1, which was promised
  rig.run_to(3s);
  EXPECT_THAT(indices(low.asked_back), ElementsAre(1, 2));
  rig.pool.release(low, HostId(1));
  rig.run_to(4s);
  EXPECT_EQ(high.held.size(), 1u);
  rig.pool.release(low, HostId(2));
  rig.run_to(5s);
  EXPECT_THAT(indices(high.held), ElementsAre(0, 2));
}

TEST(Preemption, a_gang_takes_all_it_misses_or_nothing) {
  PoolRig rig({.servers = 8, .gpus_per_server = 2});
  Holder low(0, 0, true), other(1, 0, false), big(2, 1), small(3, 1);
  rig.pool.ask_gang(low, 3);    // 0 1 2
  rig.pool.ask_gang(other, 3);  // 3 4 5
  rig.run_to(1s);
  rig.pool.ask_gang(big, 6);  // 6 and 7 are idle, only 3 more can be had
  rig.run_to(2s);
  EXPECT_THAT(low.asked_back, IsEmpty());
  rig.pool.withdraw(big);
  rig.pool.ask_gang(small, 4);
  rig.run_to(3s);
  EXPECT_THAT(indices(low.asked_back), ElementsAre(0, 1));
  rig.pool.release(low, HostId(1));
  rig.run_to(4s);
  EXPECT_THAT(small.held, IsEmpty());
  EXPECT_EQ(rig.pool.reserved_servers(), 1);
  rig.pool.release(low, HostId(0));
  rig.run_to(5s);
  EXPECT_THAT(indices(small.held), ElementsAre(0, 1, 6, 7));
  // 6 and 7 until 4 s; 1 was kept for the gang from 3 to 4 s: nobody's either.
  EXPECT_DOUBLE_EQ(rig.server_s(Account::unallocated), 2 * 4 + 1);
}

}  // namespace
}  // namespace trainyard::models
