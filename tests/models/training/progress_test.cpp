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

const StepProfile one_s = step_of(1s), two_s = step_of(2s), third_s = step_of(333ms);

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
  p.set_profile(third_s);  // 999,999,999 / 1e9 of 333 ms = 332,999,999.667, rounded up
  EXPECT_EQ(p.time_to(1), 333ms);
}

TEST(Progress, going_back_loses_everything_after_the_snapshot) {
  Progress p(4);
  p.set_profile(one_s);
  p.advance(3s);
  const SnapshotId first = p.snapshot();
  p.advance(2s);
  const SnapshotId second = p.snapshot();
  p.advance(1500ms);  // 1 step and a half on top
  EXPECT_EQ(p.steps(), 6);
  EXPECT_EQ(p.steps_at(first), 3);
  EXPECT_EQ(p.steps_at(second), 5);
  const Work lost = p.restore(first);
  EXPECT_EQ(lost.steps, 3);
  EXPECT_EQ(lost.time, 3500ms);
  EXPECT_DOUBLE_EQ(lost.tokens, 30);
  EXPECT_TRUE(lost.ledger.total() == GpuNanoseconds(4) * 3'500'000'000);
  EXPECT_EQ(p.steps(), 3);
  EXPECT_EQ(p.time_to(1), 1s);  // the partial step is gone
  EXPECT_EQ(p.trained(), 6500ms);
  EXPECT_EQ(p.trained_steps(), 6);
  EXPECT_EQ(p.kept().steps, 0);
  EXPECT_EQ(p.total().steps, 3);
  p.end();
  EXPECT_EQ(p.kept().steps, 3);
  EXPECT_DOUBLE_EQ(p.kept().tokens, 30);
  EXPECT_DOUBLE_EQ(p.kept().model_flops, 300);
  EXPECT_DOUBLE_EQ(p.kept().hardware_flops, 360);
}

TEST(Progress, later_snapshots_are_void_and_the_same_one_serves_again) {
  Progress p(4);
  p.set_profile(one_s);
  p.advance(3s);
  const SnapshotId first = p.snapshot();
  p.advance(2s);
  const SnapshotId second = p.snapshot();
  p.restore(first);
  EXPECT_THROW(p.restore(second), CheckFailed);
  EXPECT_THROW(p.steps_at(second), CheckFailed);
  p.advance(4s);
  const SnapshotId third = p.snapshot();
  EXPECT_GT(third, second);  // numbers are not used again
  p.advance(1s);
  EXPECT_EQ(p.restore(third).steps, 1);
  EXPECT_EQ(p.restore(third).steps, 0);
  EXPECT_EQ(p.restore(first).steps, 4);
  EXPECT_EQ(p.steps(), 3);
}

TEST(Progress, without_a_snapshot_everything_is_lost) {
  Progress p(4);
  p.set_profile(one_s);
  p.advance(3s);
  const SnapshotId first = p.snapshot();
  p.advance(2s);
  p.forget_before(first);
  const Work lost = p.restore({});
  EXPECT_EQ(lost.steps, 5);
  EXPECT_EQ(p.steps(), 0);
  EXPECT_EQ(p.total().time, 0s);
  EXPECT_THROW(p.restore(first), CheckFailed);
}

TEST(Progress, what_is_forgotten_is_no_place_to_go_back_to) {
  Progress p(4);
  p.set_profile(one_s);
  p.advance(1s);
  const SnapshotId first = p.snapshot();
  p.advance(2s);
  const SnapshotId second = p.snapshot();
  p.advance(4s);
  p.forget_before(second);
  EXPECT_EQ(p.steps(), 7);
  EXPECT_EQ(p.steps_at(second), 3);
  EXPECT_EQ(p.total().steps, 7);
  EXPECT_THROW(p.restore(first), CheckFailed);
  EXPECT_EQ(p.restore(second).steps, 4);
  EXPECT_EQ(p.steps(), 3);
  p.forget_before(second);  // nothing left to merge
  EXPECT_EQ(p.steps_at(second), 3);
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
  EXPECT_EQ(p.restore({}).time, 0s);
  p.end();
  EXPECT_EQ(p.kept().steps, 4);
  EXPECT_EQ(p.steps(), 4);
}

TEST(Progress, a_save_is_due_at_the_first_end_of_a_step_after_the_interval) {
  Progress p(1);
  p.set_profile(two_s);
  EXPECT_EQ(p.steps_to(9s), 5);  // ends at 2 4 6 8 10
  EXPECT_EQ(p.steps_to(10s), 5);
  EXPECT_EQ(p.steps_to(10s + 1ns), 6);
  EXPECT_EQ(p.steps_to(1ns), 1);
  EXPECT_EQ(p.steps_to(0s), 0);
  EXPECT_EQ(p.steps_to(forever), 4611686019);  // 2^63 ns / 2 s, rounded up
  p.advance(9s);
  EXPECT_EQ(p.steps_to(10s - p.trained()), 1);  // not in the middle of a step
  EXPECT_EQ(p.steps_to(5s - p.trained()), 1);
  EXPECT_EQ(p.steps_to(3s), 2);
  p.advance(1s);
  EXPECT_EQ(p.steps_to(10s - p.trained()), 0);
  EXPECT_EQ(p.last_step(), 2s);
}

TEST(Progress, the_clock_of_training_does_not_go_back) {
  Progress p(1);
  p.set_profile(two_s);
  p.advance(4s);
  const Duration mark = p.trained();
  const SnapshotId s = p.snapshot();
  p.advance(3s);
  p.restore(s);
  EXPECT_EQ(p.trained(), 7s);
  EXPECT_EQ(p.trained_steps(), 3);
  EXPECT_EQ(p.last_step(), 2s);
  EXPECT_EQ(p.steps_to(mark + 10s - p.trained()), 4);  // 7 s are missing, steps of 2 s
}

TEST(Progress, a_step_that_changes_its_pace_takes_what_it_took) {
  Progress p(1);
  p.set_profile(one_s);
  p.advance(1250ms);
  p.set_profile(two_s);
  p.advance(1500ms);
  EXPECT_TRUE(p.is_between_steps());
  EXPECT_EQ(p.last_step(), 1750ms);
}

TEST(Progress, a_snapshot_wants_the_end_of_a_step) {
  Progress p(1);
  p.set_profile(one_s);
  p.advance(500ms);
  EXPECT_THROW(p.snapshot(), CheckFailed);
  p.advance(500ms);
  EXPECT_NO_THROW(p.snapshot());
}

TEST(Progress, time_counts_for_the_gpus_of_the_moment) {
  Progress p(8);
  p.set_profile(one_s);
  p.advance(2500ms);
  p.set_gpus(6);  // in the middle of a step
  p.advance(500ms);
  EXPECT_EQ(p.steps(), 3);
  const SnapshotId s = p.snapshot();
  p.advance(1s);
  EXPECT_TRUE(p.total().ledger.total() ==
              GpuNanoseconds(8) * 2'500'000'000 + GpuNanoseconds(6) * 1'500'000'000);
  EXPECT_TRUE(p.restore(s).ledger.total() == GpuNanoseconds(6) * 1'000'000'000);
  EXPECT_THROW(p.set_gpus(0), CheckFailed);
}

// The slow twin keeps every finished step of the present line of training in a list.
TEST(Progress, any_history_agrees_with_a_list_of_steps) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    sim::Stream luck(sim::Seed{seed}, "history");
    Progress p(2);
    p.set_profile(one_s);
    struct Twin {
      std::int64_t steps, time_ns, gpu_ns;
    };
    std::vector<Twin> past{{0, 0, 0}};  // at each snapshot, restorable or not
    std::vector<std::size_t> restorable;
    Twin now{0, 0, 0};
    std::int64_t of_step = 0, ever_ns = 0, gpus = 2;
    for (int action = 0; action < 60; ++action) {
      switch (luck.below(6)) {
        case 0:
        case 1: {
          const auto ns = static_cast<std::int64_t>(luck.below(3'000'000'000));
          p.advance(Duration(ns));
          now.steps += (of_step + ns) / 1'000'000'000;
          of_step = (of_step + ns) % 1'000'000'000;
          now.time_ns += ns;
          now.gpu_ns += ns * gpus;
          ever_ns += ns;
          break;
        }
        case 2: {
          const std::int64_t ns = of_step == 0 ? 0 : 1'000'000'000 - of_step;
          if (ns > 0) {
            p.advance(Duration(ns));
            now.steps += 1;
            now.time_ns += ns;
            now.gpu_ns += ns * gpus;
            ever_ns += ns;
            of_step = 0;
          }
          ASSERT_EQ(p.snapshot().index() + 1, past.size());
          restorable.push_back(past.size());
          past.push_back(now);
          break;
        }
        case 3: {
          const std::size_t choice = luck.below(restorable.size() + 1);
          const bool is_begin = choice == restorable.size() && luck.below(4) == 0;
          if (choice == restorable.size() && !is_begin) break;
          const std::size_t to = is_begin ? 0 : restorable[choice];
          const Work lost = p.restore(is_begin ? std::optional<SnapshotId>() : SnapshotId(to - 1));
          ASSERT_EQ(lost.steps, now.steps - past[to].steps);
          ASSERT_EQ(lost.time.count(), now.time_ns - past[to].time_ns);
          ASSERT_TRUE(lost.ledger.total() == now.gpu_ns - past[to].gpu_ns);
          now = past[to];
          of_step = 0;
          restorable.resize(is_begin ? 0 : choice + 1);
          break;
        }
        case 4:
          if (!restorable.empty()) {
            const std::size_t oldest = luck.below(restorable.size());
            p.forget_before(SnapshotId(restorable[oldest] - 1));
            restorable.erase(restorable.begin(),
                             restorable.begin() + static_cast<std::ptrdiff_t>(oldest));
          }
          break;
        default:
          gpus = 1 + static_cast<std::int64_t>(luck.below(3));
          p.set_gpus(gpus);
      }
      ASSERT_EQ(p.steps(), now.steps);
      ASSERT_EQ(p.total().steps, now.steps);
      ASSERT_EQ(p.total().time.count(), now.time_ns);
      ASSERT_TRUE(p.total().ledger.total() == now.gpu_ns);
      ASSERT_EQ(p.trained().count(), ever_ns);
      ASSERT_EQ(p.done_of_step().count(), of_step);
      for (const std::size_t s : restorable)
        ASSERT_EQ(p.steps_at(SnapshotId(s - 1)), past[s].steps);
    }
    p.end();
    ASSERT_EQ(p.kept().steps, now.steps);
    ASSERT_TRUE(p.kept().ledger.total() == now.gpu_ns);
  }
}

// One stretch or many pieces, the same; and however the profile changes, no nanosecond is lost.
TEST(Progress, does_not_depend_on_how_time_is_cut) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    sim::Stream luck(sim::Seed{seed}, "progress");
    Progress whole(3), pieces(3);
    const StepProfile* profiles[] = {&one_s, &two_s, &third_s};
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
