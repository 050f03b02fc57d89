#include <gmock/gmock.h>

#include <algorithm>
#include <tuple>

#include "models/training/pipeline.hpp"
#include "tests/support/pipeline_twin.hpp"

/// GPipe, zero-bubble and ragged interleaving against what their papers say of equal stages, and
/// timelines by hand.
namespace trainyard::models {
namespace {

PipelineInput gpipe(int p, int m, double forward_s, double backward_s) {
  PipelineInput in = PipelineInput::equal(p, 1, m, forward_s, backward_s);
  in.schedule = Schedule::gpipe;
  return in;
}

PipelineInput zero_bubble(int p, int m, double f, double b, double w, double transfer_s = 0) {
  PipelineInput in = PipelineInput::equal(p, 1, m, f, b + w, transfer_s);
  in.schedule = Schedule::zero_bubble;
  in.weight_gradient_s.assign(std::size_t(p), w);
  return in;
}

// Huang et al. 2019: m forwards of 1 fill 4 stages until 7, the backwards of 2 drain them by 14.
TEST(GPipe, FillsAndDrainsOnce) {
  const PipelinePlay play = play_pipeline(gpipe(4, 4, 1.0, 2.0));
  EXPECT_DOUBLE_EQ(play.makespan_s, 7 + 14);
  EXPECT_DOUBLE_EQ(play.bubble_s() / (4 * 3.0), 3.0 / 4);  // (p - 1) / m of the work
  // Stage 3 turns at once, newest first: 7-15. Stage 0: forwards 0-4, backwards 13-21.
  EXPECT_DOUBLE_EQ(play.last_backward_start_s[3], 13);
  EXPECT_DOUBLE_EQ(play.last_backward_s[3], 15);
  EXPECT_DOUBLE_EQ(play.stages[0].waiting_compute_s, 9);
  EXPECT_DOUBLE_EQ(play.last_backward_s[0], 21);
}

TEST(GPipe, TakesAsLongAs1F1BOnEqualStages) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 20; ++m)
      EXPECT_DOUBLE_EQ(play_pipeline(gpipe(p, m, 1.0, 2.0)).makespan_s,
                       play_pipeline(PipelineInput::equal(p, 1, m, 1.0, 2.0)).makespan_s);
}

// Stage 1 twice as slow. Stage 0: f 0-1 1-2; stage 1: f0 1-3, f1 3-5, b1 5-9, b0 9-13; stage 0: b1
// 9-11, b0 13-15.
TEST(GPipe, WaitsForASlowStage) {
  PipelineInput in = gpipe(2, 2, 1.0, 2.0);
  in.forward_s[1] = 2;
  in.backward_s[1] = 4;
  const PipelinePlay play = play_pipeline(in);
  EXPECT_DOUBLE_EQ(play.makespan_s, 15);
  EXPECT_DOUBLE_EQ(play.stages[0].waiting_compute_s, 7 + 2);
}

// Qi et al. 2023, table 2: bubble (p - 1)(F + B - W), of 1F1B (p - 1)(F + B + W).
TEST(ZeroBubble, HasAThirdOfTheBubble) {
  const PipelinePlay play = play_pipeline(zero_bubble(4, 8, 1.0, 1.0, 1.0));
  EXPECT_DOUBLE_EQ(play.makespan_s, 8 * 3 + 3 * (1 + 1 - 1));
  EXPECT_DOUBLE_EQ(play.bubble_s(), 3);
  EXPECT_DOUBLE_EQ(play_pipeline(PipelineInput::equal(4, 1, 8, 1.0, 2.0)).bubble_s(), 9);
  // The last stage starts at 3 and never waits again; its 4 last passes are W. B of micro-batch 7
  // ends there at 23, on stage 0 at 26.
  EXPECT_DOUBLE_EQ(play.first_forward_s[3], 3);
  EXPECT_DOUBLE_EQ(play.last_backward_start_s[3], 26);
  EXPECT_DOUBLE_EQ(play.last_backward_s[3], 27);
  EXPECT_DOUBLE_EQ(play.last_backward_start_s[0], 26);
  EXPECT_DOUBLE_EQ(play.last_backward_s[0], 27);
}

// (p - 1)(F + B - W) needs W to be the shortest of the three, and m >= p; a longer W gains no more.
TEST(ZeroBubble, MeetsTheClosedForm) {
  for (int p = 1; p <= 8; ++p)
    for (int m = p; m <= 3 * p; ++m)
      for (const double b : {0.5, 1.0, 1.75})
        for (const double w : {0.0, 0.25, 0.75, 1.0, 1.25, 3.0})
          EXPECT_NEAR(play_pipeline(zero_bubble(p, m, 1.0, b, w)).bubble_s(),
                      (p - 1) * (1.0 + b - std::min({w, 1.0, b})), 1e-9)
              << "p" << p << " m" << m << " B " << b << " W " << w;
}

TEST(ZeroBubble, WithoutWeightGradientsIsOneForwardOneBackward) {
  for (int m = 1; m <= 12; ++m)
    EXPECT_DOUBLE_EQ(play_pipeline(zero_bubble(4, m, 1.0, 2.0, 0.0)).makespan_s,
                     play_pipeline(PipelineInput::equal(4, 1, m, 1.0, 2.0)).makespan_s);
}

// Stage 0: f0 0-1, f1 1-2; stage 1, twice as slow: f0 1-3, b0 3-5, f1 5-7, b1 7-9, w0 9-11, w1
// 11-13; stage 0: b0 5-6, w0 6-7, b1 9-10, w1 10-11.
TEST(ZeroBubble, WaitsForASlowStage) {
  PipelineInput in = zero_bubble(2, 2, 1.0, 1.0, 1.0);
  in.forward_s[1] = in.weight_gradient_s[1] = 2;
  in.backward_s[1] = 4;
  const PipelinePlay play = play_pipeline(in);
  EXPECT_DOUBLE_EQ(play.makespan_s, 13);
  EXPECT_THAT(play.last_backward_start_s, testing::ElementsAre(10, 11));
  EXPECT_THAT(play.last_backward_s, testing::ElementsAre(11, 13));
  EXPECT_DOUBLE_EQ(play.stages[0].waiting_compute_s, 3 + 2 + 2);
  EXPECT_DOUBLE_EQ(play.stages[1].waiting_compute_s, 1);
}

// Gradients leave when B ends, before W. Stage 1: f0 1.5-2.5, b0 to 3.5, f1 to 4.5, b1 to 5.5, w0,
// w1 to 7.5; stage 0: b0 4-5, w0 5-6, b1 6-7, w1 7-8.
TEST(ZeroBubble, SendsTheInputGradientBeforeTheWeightGradient) {
  const PipelinePlay play = play_pipeline(zero_bubble(2, 2, 1.0, 1.0, 1.0, 0.5));
  EXPECT_DOUBLE_EQ(play.makespan_s, 8);
  EXPECT_DOUBLE_EQ(play.last_backward_s[1], 7.5);
  EXPECT_DOUBLE_EQ(play.stages[1].waiting_transfer_s, 0.5);
}

// Whether a fixed order ends does not depend on the times, so equal ones prove it. With at least p
// micro-batches the bubble is that of whole groups; fewer leave p - m holes at every turn from one
// chunk to the next.
TEST(Interleaved, EndsForEveryNumberOfMicroBatches) {
  for (int p = 1; p <= 8; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = 1; m <= 20; ++m)
        EXPECT_NEAR(play_pipeline(PipelineInput::equal(p, v, m, 1.0, 2.0)).makespan_s,
                    (std::max(m, p) * v + std::min(m, p) - 1) * 3.0 / v, 1e-9)
            << "p" << p << " v" << v << " m" << m;
}

TEST(Interleaved, EndsForEveryGroup) {
  for (int p = 2; p <= 8; ++p)
    for (int v = 2; v <= 4; ++v)
      for (int m = 1; m <= 20; ++m)
        for (int group = 1; group <= m; ++group) {
          if (!is_group_valid(p, m, group)) continue;
          PipelineInput in = PipelineInput::equal(p, v, m, 1.0, 2.0);
          in.group = group;
          EXPECT_NEAR(play_pipeline(in).makespan_s,
                      (std::max(m, p) * v + std::min(m, p) - 1) * 3.0 / v, 1e-9)
              << "p" << p << " v" << v << " m" << m << " group " << group;
        }
}

// Why such groups are refused: the event-by-event twin comes to a stop with work left.
TEST(Interleaved, AShortLastGroupWouldNeverEnd) {
  for (const auto& [p, v, m] : {std::tuple(8, 2, 12), {4, 3, 9}, {4, 4, 5}}) {
    PipelineInput in = PipelineInput::equal(p, v, m, 1.0, 2.0);
    in.group = p;
    ASSERT_FALSE(is_group_valid(p, m, p));
    EXPECT_LT(twin::play(in).busy_s[0], m * 3.0);
    in.group = 0;
    EXPECT_NEAR(twin::play(in).busy_s[0], m * 3.0, 1e-9);
  }
}

// A turn from one chunk to the next waits for p transfers when the group is p, for none when it is
// larger by enough.
TEST(Interleaved, LargerGroupsHideTransfers) {
  PipelineInput in = PipelineInput::equal(4, 4, 16, 4.0, 8.0, 0.1);
  const double tight = play_pipeline(in).makespan_s;
  in.group = 8;
  EXPECT_LT(play_pipeline(in).makespan_s, tight);
}

}  // namespace
}  // namespace trainyard::models
