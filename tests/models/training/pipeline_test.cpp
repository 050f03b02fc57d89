#include "models/training/pipeline.hpp"

#include <gmock/gmock.h>

#include <random>
#include <string>

#include "tests/support/pipeline_twin.hpp"

namespace trainyard::models {
namespace {

struct Shape {
  int p, v, m;
};
void PrintTo(const Shape& s, std::ostream* out) {
  *out << "p" << s.p << "_v" << s.v << "_m" << s.m;
}
class EqualStages : public testing::TestWithParam<Shape> {};

// Narayanan et al. 2021: (m v + p - 1) (tf + tb) / v with free transfers; bubble (p - 1) / (v m) of
// the work.
TEST_P(EqualStages, MeetTheClosedForm) {
  const auto [p, v, m] = GetParam();
  const PipelinePlay play = play_pipeline(PipelineInput::equal(p, v, m, 1.0, 2.0));
  EXPECT_NEAR(play.makespan_s, (m * v + p - 1) * 3.0 / v, 1e-9);
  EXPECT_NEAR(play.bubble_s() / (m * 3.0), (p - 1.0) / (v * m), 1e-9);
}
INSTANTIATE_TEST_SUITE_P(Shapes, EqualStages,
                         testing::Values(Shape{1, 1, 1}, Shape{1, 1, 7}, Shape{4, 1, 8},
                                         Shape{4, 1, 4}, Shape{8, 1, 3}, Shape{4, 2, 8},
                                         Shape{4, 3, 4}, Shape{16, 8, 16}, Shape{8, 4, 64}));

TEST(Pipeline, OneSlowStageSetsThePace) {
  PipelineInput in = PipelineInput::equal(4, 1, 8, 1.0, 2.0);
  in.forward_s[2] = 2;
  in.backward_s[2] = 4;
  // Fill 1 + 1, the slow stage 8 times 6 with one round trip to the last stage (1 + 2) in which it
  // waits, but during which its second forward (2) runs: 1 more. Drain 2 + 2.
  EXPECT_NEAR(play_pipeline(in).makespan_s, 2 + 8 * 6 + 1 + 4, 1e-9);
}

TEST(Pipeline, SlicesAreThePassesThatWerePlayed) {
  const PipelineInput in = PipelineInput::equal(4, 2, 8, 1.0, 2.0, 0.25);
  std::vector<PipelineSlice> slices;
  const PipelinePlay play = play_pipeline(in, &slices);
  EXPECT_EQ(play.makespan_s, play_pipeline(in).makespan_s);
  ASSERT_EQ(slices.size(), 2u * 4 * 2 * 8);
  std::vector<double> busy(4, 0.0), end(4, 0.0);
  for (const PipelineSlice& s : slices) {
    const auto stage = std::size_t(s.stage);
    EXPECT_GE(s.start_s, end[stage] - 1e-12);  // one after the other
    end[stage] = s.end_s;
    busy[stage] += s.end_s - s.start_s;
    EXPECT_NEAR(s.end_s - s.start_s, s.op.backward ? 1.0 : 0.5, 1e-12);
  }
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_NEAR(busy[s], play.stages[s].busy_s, 1e-9);
    EXPECT_EQ(end[s], play.stages[s].end_s);
  }
}

TEST(Pipeline, ASingleStageIsASum) {
  const PipelinePlay play = play_pipeline(PipelineInput::equal(1, 1, 5, 1.0, 2.0, 100.0));
  EXPECT_DOUBLE_EQ(play.makespan_s, 15);
  EXPECT_DOUBLE_EQ(play.stages[0].busy_s, 15);
  EXPECT_DOUBLE_EQ(play.last_backward_s[0], 15);
}

TEST(Pipeline, OneMicroBatchCrossesEveryBoundaryTwice) {
  const PipelinePlay play = play_pipeline(PipelineInput::equal(3, 1, 1, 1.0, 2.0, 0.25));
  EXPECT_DOUBLE_EQ(play.makespan_s, 3 * 3 + 4 * 0.25);
  EXPECT_DOUBLE_EQ(play.first_forward_s[2], 2.5);
  EXPECT_DOUBLE_EQ(play.last_backward_s[2], 5.5);
  EXPECT_DOUBLE_EQ(play.stages[2].waiting_transfer_s, 0.25);
  EXPECT_DOUBLE_EQ(play.stages[2].waiting_compute_s,
                   10 - 3 - 0.25);  // fill and drain: neither busy nor on the link
}

TEST(Pipeline, WithoutOverlapTheSenderStandsStill) {
  PipelineInput in = PipelineInput::equal(2, 1, 2, 1.0, 1.0, 0.5);
  // Stage 0: f0 0-1, sends to 1.5, f1 1.5-2.5, sends to 3. Stage 1: f0 1.5-2.5, b0 2.5-3.5, sends
  // to 4, f1 4-5, b1 5-6, sends to 6.5. Stage 0: b0 4-5, b1 6.5-7.5.
  in.overlap = false;
  EXPECT_DOUBLE_EQ(play_pipeline(in).makespan_s, 7.5);
  // Hidden, stage 1 goes on at once: f0 1.5-2.5, b0 to 3.5, f1 to 4.5, b1 to 5.5; arrives at 6.
  in.overlap = true;
  EXPECT_DOUBLE_EQ(play_pipeline(in).makespan_s, 7.0);
}

TEST(Pipeline, ALinkCarriesOneTransferAtATime) {
  // Transfers of 3 behind forwards of 1: the second waits for the first, arrives at 7, not at 5.
  PipelineInput in = PipelineInput::equal(2, 1, 2, 1.0, 1.0, 0.0);
  in.forward_transfer_s[0] = 3;
  // Stage 1: f0 4-5, b0 5-6, f1 7-8, b1 8-9; stage 0 ends with b1 9-10.
  EXPECT_DOUBLE_EQ(play_pipeline(in).makespan_s, 10);
}

TEST(Pipeline, ForwardWaitsForItsParameters) {
  PipelineInput in = PipelineInput::equal(2, 1, 1, 1.0, 1.0);
  in.parameters_ready_s = {0.5, 4.0};
  const PipelinePlay play = play_pipeline(in);
  EXPECT_DOUBLE_EQ(play.first_forward_s[0], 0.5);
  EXPECT_DOUBLE_EQ(play.first_forward_s[1], 4.0);
  EXPECT_DOUBLE_EQ(play.makespan_s, 7.0);
  EXPECT_DOUBLE_EQ(play.stages[1].waiting_compute_s, 1.5 + 1.0);
  EXPECT_DOUBLE_EQ(play.stages[1].waiting_parameters_s, 2.5);
}

// Two stages, two micro-batches, 1 each way. Stage 0: f0 0-1, f1 1-2; stage 1: f0 1-2, b0 2-4, f1
// 4-5, b1 5-7; stage 0: b0 4-6, b1 7-9.
TEST(Pipeline, TellsWhereTheFirstForwardAndTheLastBackwardLie) {
  const PipelinePlay play = play_pipeline(PipelineInput::equal(2, 1, 2, 1.0, 2.0));
  EXPECT_THAT(play.first_forward_s, testing::ElementsAre(0, 1));
  EXPECT_THAT(play.first_forward_end_s, testing::ElementsAre(1, 2));
  EXPECT_THAT(play.last_backward_start_s, testing::ElementsAre(7, 5));
  EXPECT_THAT(play.last_backward_s, testing::ElementsAre(9, 7));
}

PipelineInput random_input(unsigned seed) {
  std::mt19937 random(seed);
  const auto up_to = [&random](int n) { return 1 + int(random() % unsigned(n)); };
  const auto time = [&random] { return double(random() % 1000 + 1) / 64; };  // exact in binary
  PipelineInput in;
  in.schedule = Schedule(random() % 4);
  in.stages = up_to(6);
  in.chunks = in.schedule == Schedule::interleaved && in.stages > 1 ? up_to(4) : 1;
  in.micro_batches = up_to(20);
  if (const int n = up_to(20); random() % 2 && is_group_valid(in.stages, in.micro_batches, n))
    in.group = n;
  in.overlap = random() % 2;
  for (int i = 0; i < in.stages * in.chunks; ++i) {
    in.forward_s.push_back(time());
    in.weight_gradient_s.push_back(time());
    in.backward_s.push_back(time() + in.weight_gradient_s.back());
    if (seed % 3 == 0) in.parameters_ready_s.push_back(time() * 4);
  }
  for (int i = 0; i < in.stages; ++i) {
    in.forward_transfer_s.push_back(time() * (seed % 2));
    in.backward_transfer_s.push_back(time() * (seed % 2));
  }
  return in;
}

TEST(Pipeline, AgreesWithItsTwinOverSeeds) {
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PipelineInput in = random_input(seed);
    const PipelinePlay play = play_pipeline(in);
    const twin::Result slow = twin::play(in);
    ASSERT_DOUBLE_EQ(play.makespan_s, slow.makespan_s);
    ASSERT_EQ(play.first_forward_s, slow.first_forward_s);
    ASSERT_EQ(play.first_forward_end_s, slow.first_forward_end_s);
    ASSERT_EQ(play.last_backward_start_s, slow.last_backward_start_s);
    ASSERT_EQ(play.last_backward_s, slow.last_backward_s);
    for (int s = 0; s < in.stages; ++s) {
      const StagePlay& stage = play.stages[std::size_t(s)];
      ASSERT_DOUBLE_EQ(stage.busy_s, slow.busy_s[std::size_t(s)]);
      ASSERT_NEAR(stage.busy_s + stage.waiting_compute_s + stage.waiting_transfer_s +
                      stage.waiting_parameters_s,
                  play.makespan_s, 1e-9);
      ASSERT_GE(stage.waiting_compute_s, 0);
      ASSERT_GE(stage.waiting_transfer_s, 0);
      ASSERT_GE(stage.waiting_parameters_s, 0);
    }
  }
}

TEST(Pipeline, NothingFasterMakesItSlower) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PipelineInput in = random_input(seed);
    const double makespan = play_pipeline(in).makespan_s;
    std::mt19937 random(seed + 1000);
    const auto one_of = [&random](std::vector<double>& times) {
      times[random() % times.size()] *= 1.5;
    };
    PipelineInput slower = in;
    one_of(slower.forward_s);
    EXPECT_GE(play_pipeline(slower).makespan_s, makespan);
    slower = in;
    one_of(slower.backward_s);
    EXPECT_GE(play_pipeline(slower).makespan_s, makespan);
    slower = in;
    one_of(slower.forward_transfer_s);
    EXPECT_GE(play_pipeline(slower).makespan_s, makespan);
    if (slower.overlap) {
      slower.overlap = false;
      EXPECT_GE(play_pipeline(slower).makespan_s, makespan);
    }
    for (const StagePlay& stage : play_pipeline(in).stages)
      EXPECT_LE(stage.busy_s, makespan * (1 + 1e-12));
  }
}

TEST(Pipeline, ManyMicroBatchesMakeTheBubbleVanish) {
  double before = 1;
  for (int m = 4; m <= 4096; m *= 4) {
    const PipelinePlay play = play_pipeline(PipelineInput::equal(4, 1, m, 1.0, 2.0));
    const double share = play.bubble_s() / play.makespan_s;
    EXPECT_LT(share, before);
    before = share;
  }
  EXPECT_LT(before, 0.001);
}

}  // namespace
}  // namespace trainyard::models
