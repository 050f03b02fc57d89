#include "models/training/memory.hpp"

#include <gmock/gmock.h>

#include <string>

#include "models/training/activations.hpp"
#include "tests/support/training_fixtures.hpp"

namespace trainyard::models {
namespace {

using namespace fixtures;
constexpr double GiB = 1073741824.0;

/// Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022,
/// Table 3.
JobSpec korthikanti(TransformerSpec model, int gpus, int pipeline, int chunks, int micro_batch,
                    int batch) {
  JobSpec job;
  job.model = std::move(model);
  job.gpus = gpus;
  job.global_batch = batch;
  job.sequence = 2048;
  job.parallel.tensor = 8;
  job.parallel.pipeline = pipeline;
  job.parallel.chunks = chunks;
  if (chunks > 1) job.parallel.schedule = Schedule::interleaved;
  job.parallel.micro_batch = micro_batch;
  job.software = unfused_software();
  return job;
}

struct Row {
  const char* name;
  JobSpec job;
  double gib;  // activations of the first stage, no recomputation, no sequence parallelism
  double sp, selective, full;  // percent of that
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class Korthikanti : public testing::TestWithParam<Row> {
 protected:
  static double kept(JobSpec job, bool sequence_parallel, Recompute recompute) {
    job.parallel.sequence_parallel = sequence_parallel;
    job.parallel.recompute = recompute;
    return kept_activations(make_plan(job), job.software, 0).value();
  }
};

// The paper counts what the layers keep: no embedding, head or loss, not the layer at work.
TEST_P(Korthikanti, ActivationsWithin) {
  const Row& row = GetParam();
  EXPECT_NEAR(kept(row.job, false, Recompute::none) / GiB, row.gib, 1e-4 * row.gib);
}

TEST_P(Korthikanti, SavingsWithinATenthOfAPoint) {
  const Row& row = GetParam();
  const double none = kept(row.job, false, Recompute::none);
  EXPECT_NEAR(100 * kept(row.job, true, Recompute::none) / none, row.sp, 0.1);
  EXPECT_NEAR(100 * kept(row.job, true, Recompute::selective) / none, row.selective, 0.1);
  EXPECT_NEAR(100 * kept(row.job, false, Recompute::full) / none, row.full, 0.11);
}

TEST_P(Korthikanti, WhatIsHeldIsLittleMoreThanWhatIsKept) {
  JobSpec job = GetParam().job;
  job.parallel.sequence_parallel = false;
  const Plan plan = make_plan(job);
  const double activations = stage_memory(plan, job.software, 0).activations.value();
  const double blocks = kept_activations(plan, job.software, 0).value();
  EXPECT_GT(activations, blocks);  // dropout mask of the embedding, or head and loss
  EXPECT_LT(activations, 1.03 * blocks);
}

// Figure 1 and Figure 7 of the paper.
INSTANTIATE_TEST_SUITE_P(
    Table3, Korthikanti,
    testing::Values(Row{"gpt_22b", korthikanti(gpt(48, 6144, 64), 8, 1, 1, 4, 4), 59.25, 66.84,
                        16.18, 7.64},
                    Row{"gpt_175b", korthikanti(gpt(96, 12288, 96), 64, 8, 3, 1, 64), 66.8438,
                        62.04, 18.49, 8.71},
                    Row{"gpt_530b", korthikanti(gpt(105, 20480, 128), 280, 35, 3, 1, 280), 114.023,
                        58.31, 20.27, 9.42},
                    Row{"gpt_1t", korthikanti(gpt(128, 25600, 160), 512, 64, 1, 1, 512), 131.25,
                        58.31, 20.27, 9.42}),
    [](const auto& row) { return std::string(row.param.name); });

JobSpec eight_gpus(Sharding sharding) {
  JobSpec job;
  job.model = llama3_8b();
  job.gpus = 8;
  job.global_batch = 8;
  job.sequence = 8192;
  job.parallel.sharding = sharding;
  return job;
}

/// Weights, gradients and optimizer of stage 0 in bytes a parameter of it.
struct States {
  double weights, gradients, optimizer;
  States(const JobSpec& job, double parameters) {
    const StageMemory m = stage_memory(make_plan(job), job.software, 0);
    weights = m.weights.value() / parameters;
    gradients = m.gradients.value() / parameters;
    optimizer = m.optimizer.value() / parameters;
  }
};
#define EXPECT_STATES(states, w, g, o)   \
  do {                                   \
    const States now = states;           \
    EXPECT_NEAR(now.weights, w, 1e-9);   \
    EXPECT_NEAR(now.gradients, g, 1e-9); \
    EXPECT_NEAR(now.optimizer, o, 1e-9); \
  } while (false)

TEST(Memory, StatesByHand) {
  const double n = 8030261248.0;
  EXPECT_STATES(States(eight_gpus(Sharding::none), n), 2, 4, 12);
  // Megatron-Core's figure for the distributed optimizer: 6 + 12/d.
  EXPECT_STATES(States(eight_gpus(Sharding::zero1), n), 2, 4, 12 / 8.0);
  EXPECT_STATES(States(eight_gpus(Sharding::zero2), n), 2, 4 / 8.0, 12 / 8.0);
  EXPECT_STATES(States(eight_gpus(Sharding::zero3), n), 2 / 8.0, 4 / 8.0, 12 / 8.0);
  EXPECT_STATES(States(eight_gpus(Sharding::fsdp), n), 2 / 8.0, 4 / 8.0, 12 / 8.0);
}

TEST(Memory, HybridShardingDividesByItsGroup) {
  JobSpec job = eight_gpus(Sharding::fsdp);
  job.parallel.shard_group = 2;
  EXPECT_STATES(States(job, 8030261248.0), 2 / 2.0, 4 / 2.0, 12 / 2.0);
}

TEST(Memory, ContextRanksShareWeightsAndShardThem) {
  JobSpec job = eight_gpus(Sharding::zero1);
  job.parallel.context = 2;  // data 4
  EXPECT_STATES(States(job, 8030261248.0), 2, 4, 12 / 8.0);
}

TEST(Memory, ExpertsAreShardedOverTheRanksWithTheSameExperts) {
  // 8 ranks, experts over 4 of them: each holds a quarter of the experts, shared by 2 ranks.
  JobSpec job = eight_gpus(Sharding::zero1);
  job.model = llama3(4, 1024, 16, 2048);
  job.model.experts = ExpertsSpec{.count = 8, .per_token = 2};
  job.parallel.expert = 4;
  const Plan plan = make_plan(job);
  const double shared = plan.share(0, 0).weights;
  const double experts = plan.share(0, 0).expert_weights / 4;
  EXPECT_DOUBLE_EQ(experts, 4 * 2 * 3 * 1024.0 * 2048);
  StageMemory m = stage_memory(plan, job.software, 0);
  EXPECT_DOUBLE_EQ(m.weights.value(), 2 * (shared + experts));
  EXPECT_DOUBLE_EQ(m.gradients.value(), 4 * (shared + experts));
  EXPECT_DOUBLE_EQ(m.optimizer.value(), 12 * (shared / 8 + experts / 2));

  job.parallel.expert = 8;  // one each: nothing left to shard
  m = stage_memory(make_plan(job), job.software, 0);
  EXPECT_DOUBLE_EQ(m.optimizer.value(), 12 * (shared / 8 + experts / 2));
  job.parallel.expert = 4;
  job.parallel.shard_group = 2;  // half of the ranks that hold the same experts: one
  m = stage_memory(make_plan(job), job.software, 0);
  EXPECT_DOUBLE_EQ(m.optimizer.value(), 12 * (shared / 2 + experts));
}

TEST(Memory, WithAPipelineWeightsStayWholeAndGradientsUntilTheyAreReduced) {
  JobSpec job = eight_gpus(Sharding::fsdp);
  job.gpus = 16;
  job.parallel.pipeline = 2;
  const double n = make_plan(job).stage_parameters(0);
  EXPECT_STATES(States(job, n), 2, 4, 12 / 8.0);  // one chunk
}

TEST(Memory, LogitsAreNotHeldTogetherWithABlockBeingRecomputed) {
  JobSpec job = eight_gpus(Sharding::fsdp);
  job.parallel.recompute = Recompute::full;
  const auto activations = [](const JobSpec& j) {
    return stage_memory(make_plan(j), j.software, 0).activations.value();
  };
  const double tokens = 8192;
  const double block = tokens * (8 * 4096 + 4 * 40 * 128 + 6 * 14336), input = tokens * 2 * 4096;
  const double logits = tokens * 6 * 128256;
  ASSERT_GT(logits, block);
  EXPECT_NEAR(activations(job), 32 * input + tokens * 4 * 4096 + logits, 1);
  job.software.logit_memory = 0;
  EXPECT_NEAR(activations(job), 32 * input + tokens * 4 * 4096 + block - input, 1);
}

TEST(Memory, FurtherPredictionsHaveLogitsOfTheirOwnAndALayer) {
  JobSpec job = eight_gpus(Sharding::fsdp);
  const double one = stage_memory(make_plan(job), job.software, 0).activations.value();
  job.model.extra_predictions = 1;
  const double two = stage_memory(make_plan(job), job.software, 0).activations.value();
  const double block = 8 * 4096 + 4 * 40 * 128 + 6 * 14336;
  EXPECT_NEAR(two - one, 8192.0 * (block + (4 + 6) * 4096 + 6 * 128256), 1);
}

TEST(Memory, SchedulesHoldWhatTheyHaveInFlight) {
  JobSpec job = llama3_405b_16k();
  job.parallel.chunks = 1;
  job.global_batch *= 2;  // 32 micro-batches, 16 stages of 8 layers (7 at the ends)
  const auto blocks = [&](Schedule schedule, int stage) {
    job.parallel.schedule = schedule;
    const Plan plan = make_plan(job);
    const double layer = block_activation_bytes(plan, plan.kinds[0], job.software, Recompute::none);
    return kept_activations(plan, job.software, stage).value() / layer;
  };
  for (const int stage : {1, 7, 14}) {
    EXPECT_NEAR(blocks(Schedule::one_f_one_b, stage), 8 * (16 - stage), 1e-9);
    EXPECT_NEAR(blocks(Schedule::gpipe, stage), 8 * 32, 1e-9);
    EXPECT_NEAR(blocks(Schedule::zero_bubble, stage), 8 * 16, 1e-9);
  }
  // The first stage of zero-bubble holds what it holds under 1F1B.
  EXPECT_NEAR(blocks(Schedule::zero_bubble, 0), blocks(Schedule::one_f_one_b, 0), 1e-9);
}

TEST(Memory, ZeroBubbleKeepsWhatItRecomputedForTheWeightGradients) {
  JobSpec job = llama3_405b_16k();
  job.parallel.chunks = 1;
  job.parallel.sharding = Sharding::zero1;  // gradients are the same at every moment
  job.parallel.recompute = Recompute::full;
  const auto activations = [&](Schedule schedule) {
    job.parallel.schedule = schedule;
    return stage_memory(make_plan(job), job.software, 14).activations.value();
  };
  const double block = 8192.0 * (8 * 16384 + 4 * 136 * 128 + 6 * 53248) / 8;
  const double input = 8192.0 * 2 * 16384 / 8;
  EXPECT_NEAR(activations(Schedule::one_f_one_b), 2 * 8 * input + (block - input), 1);
  // Stage 14 runs W 14 backward passes late: all 16 micro-batches of its 8 layers are recomputed
  // before the first is released, but for what has run.
  EXPECT_NEAR(activations(Schedule::zero_bubble), 16 * 8 * input + 15 * 8 * (block - input), 1);
}

TEST(Memory, Llama3405BRanInEightyGigabytes) {
  // The Llama 3 Herd of Models, 2024, section 3.3.2: 8 k sequences without activation recomputation
  // on 80 GB. Its FSDP shards gradients and optimizer state.
  JobSpec job = llama3_405b_16k();
  job.parallel.sharding = Sharding::zero2;
  const MemoryEstimate m = memory_estimate(make_plan(job), job.software, h100());
  EXPECT_LE(m.share(), 1.0);
  EXPECT_GT(m.share(), 0.9);
  EXPECT_EQ(m.fullest_stage(), 1);  // no embedding, but one layer more than the first
  const StageMemory& stage = m.stages[1];
  const double layer = 3187703808.0 / 8;
  EXPECT_NEAR(stage.weights.value(), 2 * 8 * layer, 1.0);
  EXPECT_NEAR(stage.gradients.value(), 4 * layer, 1.0);  // the chunk in its first backward pass
  // All 16 micro-batches of all 8 chunks: 8192 tokens, 65024 bytes a token and layer.
  EXPECT_NEAR(stage.activations.value(), 128 * 8192.0 * 65024, 1.0);
  EXPECT_EQ(check_memory(job, h100(), 8).size(), 0u);
  // With one buffer for the gradients of all chunks it would not have run.
  job.parallel.sharding = Sharding::zero1;
  EXPECT_NEAR(stage_memory(make_plan(job), job.software, 1).gradients.value(), 4 * 8 * layer, 1.0);
  EXPECT_EQ(check_memory(job, h100(), 8).size(), 1u);
}

TEST(Memory, ExactlyFullFitsOneByteLessDoesNot) {
  JobSpec job = llama3_405b_16k();
  GpuSpec gpu = h100();
  gpu.memory = stage_memory(make_plan(job), job.software, 1).total();
  EXPECT_EQ(check_memory(job, gpu, 8).size(), 0u);
  gpu.memory -= Bytes(1);
  EXPECT_EQ(check_memory(job, gpu, 8).size(), 1u);
}

TEST(Memory, GradientsOfEveryChunkAreWholeWhenGroupsRepeat) {
  // Two groups of micro-batches: every chunk has begun before any is finished, so nothing is
  // reduced yet.
  JobSpec job = llama3_405b_16k();
  job.parallel.sharding = Sharding::zero2;
  job.global_batch *= 2;
  const Plan plan = make_plan(job);
  EXPECT_NEAR(stage_memory(plan, job.software, 1).gradients.value(), 4 * plan.stage_parameters(1),
              1.0);
}

TEST(Memory, MoreSplittingNeverNeedsMore) {
  JobSpec job = llama3_405b_16k();
  const auto total = [](const JobSpec& j) {
    return memory_estimate(make_plan(j), j.software, h100()).share();
  };
  const double now = total(job);
  JobSpec other = job;
  other.parallel.recompute = Recompute::full;
  EXPECT_LT(total(other), now);
  other.parallel.recompute_share = 0.5;
  EXPECT_LT(total(other), now);
  other = job;
  other.parallel.tensor = 4;
  EXPECT_GT(total(other), now);
  other = job;
  other.parallel.sequence_parallel = false;
  EXPECT_GT(total(other), now);
  other = job;
  other.software.gradient_bytes = 2;
  EXPECT_LT(total(other), now);
  other = job;
  other.parallel.context = 2;  // half the tokens, half the replicas
  EXPECT_LT(total(other), now);
}

TEST(Memory, TheShortcutFindsTheFullestStage) {
  // Uneven stages and unlike layers: against all stages.
  JobSpec job = llama3_405b_16k();
  const auto agree = [&] {
    const Plan plan = make_plan(job);
    const MemoryEstimate all = memory_estimate(plan, job.software, h100());
    EXPECT_EQ(largest_stage_memory(plan, job.software),
              all.stages[std::size_t(all.fullest_stage())].total());
    return all.fullest_stage();
  };
  EXPECT_EQ(agree(), 1);
  job.parallel.schedule = Schedule::one_f_one_b;
  job.parallel.chunks = 1;
  job.parallel.stage_layers.assign(16, 7);
  job.parallel.stage_layers[5] = 21;
  EXPECT_EQ(agree(), 5);
  job.parallel.stage_layers.clear();
  job.model.experts = ExpertsSpec{.count = 8, .per_token = 2, .ffn = 13312, .first_dense = 40};
  EXPECT_GE(agree(), 4);
}

TEST(Memory, BuffersByHand) {
  JobSpec job = eight_gpus(Sharding::zero1);
  const auto buffers = [&] {
    return stage_memory(make_plan(job), job.software, 0).buffers.value() - 2.5 * GiB;
  };
  EXPECT_NEAR(buffers(), 0, 1);
  job.parallel.sharding = Sharding::fsdp;  // two embeddings' worth: gathered, and its gradient
  const double table = 128256.0 * 4096, layer = 218112000.0;
  EXPECT_NEAR(buffers(), (2 + 4) * table + 2 * layer, 1);
  job.parallel.sharding = Sharding::zero1;
  job.parallel.context = 2;  // keys and values of the block in use and of the next
  EXPECT_NEAR(buffers(), 2 * 4096 * 4.0 * 8 * 128, 1);
  job.parallel.context_exchange = ContextExchange::all_gather;
  job.parallel.context = 4;
  EXPECT_NEAR(buffers(), 8192 * 4.0 * 8 * 128, 1);  // of the whole sequence
  job.parallel.context = 1;
  job.parallel.tensor = 2;  // two gathered streams
  EXPECT_NEAR(buffers(), 2 * 8192 * 2.0 * 4096, 1);
  job.parallel.tensor = 1;
  job.model.experts = ExpertsSpec{.count = 8, .per_token = 2};
  job.parallel.expert = 8;  // copies out and in
  EXPECT_NEAR(buffers(), 2 * 2 * 8192 * 2.0 * 4096, 1);
}

TEST(Memory, AllocatedLeavesTheDriverOut) {
  const JobSpec job = eight_gpus(Sharding::fsdp);
  const StageMemory m = stage_memory(make_plan(job), job.software, 0);
  EXPECT_DOUBLE_EQ(allocated(m).value(), m.total().value() - 2.5 * GiB);
}

}  // namespace
}  // namespace trainyard::models
