#include "models/facility/transfer_switch.hpp"

#include <gtest/gtest.h>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;

Time at(Duration d) {
  return start_of_run + d;
}

TransferSwitch make(TransferSpec spec, double fails = 0.0, std::uint64_t seed = 1) {
  spec.fail_to_transfer = fails;
  return TransferSwitch(spec, 2, sim::Stream(sim::Seed{seed}, "ats"));
}

TEST(TransferSwitch, CallsTheBackupAfterConfirmationAndMovesWhenItIsLive) {
  TransferSwitch ats = make({});
  ats.set_live(at(10s), 0, false);
  ats.advance(at(12s) - 1ns);
  EXPECT_FALSE(ats.calls_backup());
  ats.advance(at(12s));
  EXPECT_TRUE(ats.calls_backup());
  EXPECT_EQ(ats.source(), 0u);
  ats.set_live(at(20s), 1, true);
  EXPECT_EQ(ats.source(), std::nullopt);  // open transition
  EXPECT_EQ(ats.next_event(), at(20s + 300ms));
  ats.advance(at(20s + 300ms));
  EXPECT_EQ(ats.source(), 1u);
}

TEST(TransferSwitch, ADipShorterThanTheConfirmationDoesNothing) {
  TransferSwitch ats = make({});
  ats.set_live(at(10s), 0, false);
  ats.set_live(at(12s) - 1ns, 0, true);
  ats.advance(at(1h));
  EXPECT_EQ(ats.source(), 0u);
  EXPECT_FALSE(ats.calls_backup());
}

TEST(TransferSwitch, GoesBackAfterTheUtilityHasBeenGood) {
  TransferSwitch ats = make({});
  ats.set_live(at(0s), 0, false);
  ats.set_live(at(10s), 1, true);
  ats.set_live(at(60s), 0, true);
  ats.set_live(at(300s), 0, false);  // not for good yet
  ats.set_live(at(301s), 0, true);
  ats.advance(at(901s) - 1ns);
  EXPECT_EQ(ats.source(), 1u);
  EXPECT_TRUE(ats.calls_backup());
  ats.advance(at(901s) + 300ms);
  EXPECT_EQ(ats.source(), 0u);
  EXPECT_FALSE(ats.calls_backup());
}

TEST(TransferSwitch, AStaticSwitchMovesIn6ms) {
  TransferSpec spec;
  spec.kind = TransferKind::static_switch;
  TransferSwitch sts = make(spec);
  sts.set_live(at(0s), 1, true);
  sts.set_live(at(5s), 0, false);
  EXPECT_EQ(sts.next_event(), at(5s + 6ms));
  sts.advance(at(5s + 6ms));
  EXPECT_EQ(sts.source(), 1u);
}

TEST(TransferSwitch, AMoveThatFailsLeavesItWhereItIs) {
  TransferSwitch ats = make({}, 1.0);
  ats.set_live(at(0s), 1, true);
  ats.set_live(at(1s), 0, false);
  ats.advance(at(1h));
  EXPECT_TRUE(ats.has_failed());
  EXPECT_EQ(ats.source(), 0u);
  EXPECT_FALSE(ats.next_event());

  int failed = 0;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    TransferSwitch one = make({}, 0.1, seed);
    one.set_live(at(0s), 1, true);
    one.set_live(at(1s), 0, false);
    one.advance(at(1min));
    failed += one.has_failed() ? 1 : 0;
  }
  EXPECT_NEAR(failed, 500, 55);  // 2.576 sqrt(5000 x 0.1 x 0.9)
}

TEST(TransferSwitch, ALockedSourceIsLeftAtOnceAndNotTakenAgainUntilReleased) {
  TransferSwitch ats = make({});
  ats.set_live(at(0s), 1, true);
  ats.lock_out(at(5s), 0, true);
  ats.advance(at(6s));
  EXPECT_EQ(ats.source(), 1u);
  ats.advance(at(5h));
  EXPECT_EQ(ats.source(), 1u);
  ats.lock_out(at(5h), 0, false);
  ats.advance(at(5h + 10min + 300ms));
  EXPECT_EQ(ats.source(), 0u);
}

}  // namespace
}  // namespace trainyard::models
