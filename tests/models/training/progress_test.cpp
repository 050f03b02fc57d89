#include "models/training/progress.hpp"

#include <gmock/gmock.h>

#include "models/training/checkpoints.hpp"
#include "sim/check.hpp"
#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace literals;

StepProfile step_of(Duration step) {
  StepProfile p;
  p.step = step;
  p.parts[0] = step / 2;
  p.parts[5] = step - step / 2;
  p.tokens = 10;
  p.model_flops = 100;
  p.hardware_flops = 120;
  return p;
}

const StepProfile one_s = step_of(1s), two_s = step_of(2s), third = step_of(333ms);

TEST(Progress, a_step_counts_at_its_end) {
  Progress p(4);
  p.set_profile(one_s);
  p.advance(1s - 1ns);
  EXPECT_EQ(p.steps(), 0);
  EXPECT_FALSE(p.is_between_steps());
  p.advance(1ns);
  EXPECT_EQ(p.steps(), 1);
  EXPECT_TRUE(p.is_between_steps());
  p.advance(9500ms);
  EXPECT_EQ(p.steps(), 10);
  EXPECT_EQ(p.done_of_step(), 500ms);
  EXPECT_EQ(p.time_to(0), 0s);
  EXPECT_EQ(p.time_to(1), 500ms);
  EXPECT_EQ(p.time_to(3), 2500ms);
}

TEST(Progress, a_new_profile_carries_the_fraction_of_the_step_under_way) {
  Progress p(4);
  p.set_profile(one_s);
  p.advance(250ms);
  p.set_profile(two_s);  // three quarters of two seconds are left
  EXPECT_EQ(p.time_to(1), 1500ms);
  p.advance(1500ms);
  EXPECT_EQ(p.steps(), 1);
  EXPECT_EQ(p.time_to(1), 2s);
  p.set_profile(one_s);  // between two steps there is nothing to carry
  EXPECT_EQ(p.time_to(1), 1s);
  p.advance(1ns);
  p.set_profile(third);  // 999,999,999 / 1e9 of 333 ms = 332,999,999.667, rounded up
  EXPECT_EQ(p.time_to(1), 333ms);
}

TEST(Progress, an_interruption_loses_everything_since_the_last_kept_snapshot) {
  Progress p(4);
  p.set_profile(one_s);
  p.advance(3s);
  p.snapshot();
  p.advance(2s);
  p.keep();           // 3 steps
  p.snapshot();       // 2 more are being saved
  p.advance(1500ms);  // 1 step and a half on top
  EXPECT_EQ(p.steps(), 6);
  const Work lost = p.interrupt();
  EXPECT_EQ(lost.steps, 3);
  EXPECT_EQ(lost.time, 3500ms);
  EXPECT_TRUE(lost.ledger.total() == GpuNanoseconds(4) * 3'500'000'000);
  EXPECT_EQ(p.steps(), 3);
  EXPECT_EQ(p.time_to(1), 1s);  // the partial step is gone
  EXPECT_EQ(p.since_snapshot(), 0s);
  p.end();
  EXPECT_EQ(p.kept().steps, 3);
  EXPECT_DOUBLE_EQ(p.kept().tokens, 30);
  EXPECT_DOUBLE_EQ(p.kept().model_flops, 300);
  EXPECT_DOUBLE_EQ(p.kept().hardware_flops, 360);
}

TEST(Progress, the_end_of_the_run_keeps_what_is_under_way) {
  Progress p(4);
  p.set_profile(one_s);
  p.advance(3s);
  p.snapshot();
  p.advance(1500ms);
  p.end();
  EXPECT_EQ(p.kept().steps, 4);
  EXPECT_EQ(p.kept().time, 4500ms);
}

TEST(Progress, a_save_is_due_at_the_first_end_of_a_step_after_the_interval) {
  Progress p(1);
  p.set_profile(two_s);
  EXPECT_EQ(p.steps_to(9s), 5);  // ends at 2 4 6 8 10
  EXPECT_EQ(p.steps_to(10s), 5);
  EXPECT_EQ(p.steps_to(10s + 1ns), 6);
  EXPECT_EQ(p.steps_to(1ns), 1);
  p.advance(9s);
  EXPECT_EQ(p.steps_to(10s), 1);  // not in the middle of a step
  EXPECT_EQ(p.steps_to(5s), 1);
  p.advance(1s);
  EXPECT_EQ(p.steps_to(10s), 0);
  EXPECT_FALSE(p.is_overdue(10s));
  EXPECT_FALSE(p.is_overdue(8s + 1ns));
  EXPECT_TRUE(p.is_overdue(8s));  // the step before ended at 8 s
}

TEST(Progress, a_snapshot_wants_the_end_of_a_step_and_the_one_before_it_done) {
  Progress p(1);
  p.set_profile(one_s);
  p.advance(500ms);
  EXPECT_THROW(p.snapshot(), CheckFailed);
  p.advance(500ms);
  p.snapshot();
  p.advance(1s);
  EXPECT_THROW(p.snapshot(), CheckFailed);
}

// One stretch or many pieces, the same; and however the profile changes, no nanosecond is lost.
TEST(Progress, does_not_depend_on_how_time_is_cut) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    sim::Stream luck(sim::Seed{seed}, "progress");
    Progress whole(3), pieces(3);
    const StepProfile* profiles[] = {&one_s, &two_s, &third};
    Duration total{};
    for (int change = 0; change < 5; ++change) {
      const StepProfile& profile = *profiles[luck.below(3)];
      whole.set_profile(profile);
      pieces.set_profile(profile);
      Duration d{};
      for (int piece = 0; piece < 10; ++piece) {
        const Duration part = luck.below(4) == 0
                                  ? pieces.time_to(1)
                                  : Duration(static_cast<std::int64_t>(luck.below(2'500'000'000)));
        pieces.advance(part);
        d += part;
      }
      whole.advance(d);
      total += d;
      ASSERT_EQ(whole.steps(), pieces.steps());
      ASSERT_EQ(whole.done_of_step(), pieces.done_of_step());
      ASSERT_EQ(whole.time_to(7), pieces.time_to(7));
    }
    whole.end();
    ASSERT_EQ(whole.kept().time, total);
    ASSERT_TRUE(whole.kept().ledger.total() == GpuNanoseconds(3) * total.count());
  }
}

TEST(Checkpoints, sizes_and_stalls) {
  CheckpointSpec spec;
  EXPECT_DOUBLE_EQ(checkpoint_size(spec, 70e9).value(), 980e9);
  EXPECT_EQ(checkpoint_stall(spec, 980_GB, 512), 191'406'250ns);  // 980 / (512 * 10) s
  spec.size = 5_GB;
  spec.stall = 3s;
  EXPECT_DOUBLE_EQ(checkpoint_size(spec, 70e9).value(), 5e9);
  EXPECT_EQ(checkpoint_stall(spec, 5_GB, 512), 3s);
}

}  // namespace
}  // namespace trainyard::models
