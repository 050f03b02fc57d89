#include "models/training/pipeline_order.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/check.hpp"
#include "tests/support/pipeline_twin.hpp"

namespace trainyard::models {
namespace {

std::string drawn(PipelineOrder order, int chunks) {
  std::string out;
  for (; !order.done(); order.next()) {
    const PipelineOp op = order.op();
    out += (out.empty() ? "" : " ") + std::string(op.weight_gradient ? "w"
                                                  : op.backward      ? "b"
                                                                     : "f");
    if (chunks > 1) out += char('A' + op.chunk);
    out += std::to_string(op.micro_batch);
  }
  return out;
}
std::string drawn(int stages, int chunks, int micro_batches, int stage) {
  return drawn(PipelineOrder(stages, chunks, micro_batches, stage), chunks);
}
std::string drawn(Schedule schedule, int stages, int micro_batches, int stage) {
  return drawn(PipelineOrder(schedule, stages, 1, micro_batches, stage), 1);
}

TEST(PipelineOrder, OneForwardOneBackwardAsDrawn) {
  EXPECT_EQ(drawn(3, 1, 4, 0), "f0 f1 f2 b0 f3 b1 b2 b3");
  EXPECT_EQ(drawn(3, 1, 4, 1), "f0 f1 b0 f2 b1 f3 b2 b3");
  EXPECT_EQ(drawn(3, 1, 4, 2), "f0 b0 f1 b1 f2 b2 f3 b3");
  EXPECT_EQ(drawn(4, 1, 2, 0), "f0 f1 b0 b1");  // fewer micro-batches than stages
}

TEST(PipelineOrder, InterleavedAsDrawn) {
  // Two stages, two chunks A and B: the last stage runs 2 forwards first, the first 2 more.
  EXPECT_EQ(drawn(2, 2, 4, 1), "fA0 fA1 fB0 bB0 fB1 bB1 fA2 bA0 fA3 bA1 fB2 bB2 fB3 bB3 bA2 bA3");
  EXPECT_EQ(drawn(2, 2, 4, 0), "fA0 fA1 fB0 fB1 fA2 bB0 fA3 bB1 fB2 bA0 fB3 bA1 bB2 bB3 bA2 bA3");
  EXPECT_EQ(warm_up_passes(16, 8, 16, 0), 128);  // 30 + 112 would be more than there are
  EXPECT_EQ(warm_up_passes(16, 8, 16, 15), 112);
}

TEST(PipelineOrder, GPipeAsDrawn) {
  for (int stage = 0; stage < 3; ++stage)
    EXPECT_EQ(drawn(Schedule::gpipe, 3, 4, stage), "f0 f1 f2 f3 b3 b2 b1 b0");
}

// Qi et al. 2023, figure 3: the later the stage, the later its first W.
TEST(PipelineOrder, ZeroBubbleAsDrawn) {
  EXPECT_EQ(drawn(Schedule::zero_bubble, 3, 4, 0), "f0 f1 f2 b0 w0 f3 b1 w1 b2 w2 b3 w3");
  EXPECT_EQ(drawn(Schedule::zero_bubble, 3, 4, 1), "f0 f1 b0 f2 b1 w0 f3 b2 w1 b3 w2 w3");
  EXPECT_EQ(drawn(Schedule::zero_bubble, 3, 4, 2), "f0 b0 f1 b1 f2 b2 w0 f3 b3 w1 w2 w3");
  // Fewer micro-batches than the lag of the last stage.
  EXPECT_EQ(drawn(Schedule::zero_bubble, 4, 2, 3), "f0 b0 f1 b1 w0 w1");
}

TEST(PipelineOrder, GroupsAreTheFewestThatLeaveNoShortRest) {
  EXPECT_EQ(interleaved_group(4, 8), 4);     // 4 + 4
  EXPECT_EQ(interleaved_group(4, 9), 5);     // 5 + 4; 4 + 4 + 1 has a short rest
  EXPECT_EQ(interleaved_group(4, 7), 7);     // nothing else leaves 4
  EXPECT_EQ(interleaved_group(16, 36), 18);  // 18 + 18; 17 leaves 2
  EXPECT_EQ(interleaved_group(4, 3), 3);     // fewer than stages: one group
  // Groups of 3 and 2: the last stage runs 3 forwards before its first backward.
  EXPECT_EQ(drawn(2, 2, 5, 1),
            "fA0 fA1 fA2 fB0 bB0 fB1 bB1 fB2 bB2 fA3 bA0 fA4 bA1 fB3 bA2 fB4 bB3 bB4 bA3 bA4");
}

TEST(PipelineOrder, RefusesGroupsThatWouldStall) {
  const auto order = [](int group) { PipelineOrder(Schedule::interleaved, 4, 3, 9, 0, group); };
  EXPECT_THROW(order(4), CheckFailed);  // 4 + 4 + 1
  EXPECT_THROW(order(3), CheckFailed);  // 3 + 3 + 3: fewer than stages
  EXPECT_NO_THROW(order(5));            // 5 + 4
  EXPECT_NO_THROW(order(9));
  EXPECT_NO_THROW(order(100));  // no more than there are
}

TEST(PipelineOrder, RefusesChunksWhereTheScheduleHasNone) {
  EXPECT_THROW(PipelineOrder(Schedule::gpipe, 2, 2, 4, 0), CheckFailed);
  EXPECT_THROW(PipelineOrder(Schedule::zero_bubble, 2, 2, 4, 0), CheckFailed);
}

struct Held {
  int before_input_gradient = 0;  // most micro-batches between their forward and B
  int before_completion = 0;      // between their forward and the end of their backward pass
};
Held most_held(Schedule schedule, int p, int m, int stage) {
  Held most;
  int forwards = 0, backwards = 0, completed = 0;
  for (PipelineOrder order(schedule, p, 1, m, stage); !order.done(); order.next()) {
    const PipelineOp& op = order.op();
    forwards += !op.backward;
    backwards += op.backward && !op.weight_gradient;
    completed += order.completes(op);
    most.before_input_gradient = std::max(most.before_input_gradient, forwards - backwards);
    most.before_completion = std::max(most.before_completion, forwards - completed);
  }
  EXPECT_EQ(forwards, m);
  EXPECT_EQ(backwards, m);
  EXPECT_EQ(completed, m);
  return most;
}

// Qi et al. 2023: stage i (from 0) holds p - i micro-batches that wait for B, and i that wait for
// W: as many on every stage as 1F1B holds on the first.
TEST(PipelineOrder, ZeroBubbleHoldsNoMoreThanTheFirstStageOf1F1B) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 20; ++m)
      for (int stage = 0; stage < p; ++stage) {
        SCOPED_TRACE(testing::Message() << "p" << p << " m" << m << " stage " << stage);
        const Held split = most_held(Schedule::zero_bubble, p, m, stage);
        const Held whole = most_held(Schedule::one_f_one_b, p, m, stage);
        EXPECT_EQ(whole.before_completion, std::min(m, p - stage));
        EXPECT_EQ(split.before_input_gradient, whole.before_input_gradient);
        EXPECT_EQ(split.before_completion, std::min(m, p));
        EXPECT_EQ(most_held(Schedule::gpipe, p, m, stage).before_completion, m);
      }
}

TEST(PipelineOrder, AgreesWithTheOrderWrittenOut) {
  for (const Schedule schedule :
       {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble})
    for (int p = 1; p <= 6; ++p)
      for (int v = 1; v <= (schedule == Schedule::interleaved && p > 1 ? 4 : 1); ++v)
        for (int m = 1; m <= 14; ++m)
          for (int stage = 0; stage < p; ++stage) {
            PipelineInput in;
            in.schedule = schedule;
            in.stages = p;
            in.chunks = v;
            in.micro_batches = m;
            std::vector<PipelineOp> ops;
            for (PipelineOrder order(schedule, p, v, m, stage); !order.done(); order.next())
              ops.push_back(order.op());
            ASSERT_EQ(ops, twin::written_order(in, stage))
                << "schedule " << int(schedule) << " p" << p << " v" << v << " m" << m << " stage "
                << stage;
          }
}

}  // namespace
}  // namespace trainyard::models
