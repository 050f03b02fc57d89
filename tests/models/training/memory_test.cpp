#include "models/training/memory.hpp"

#include <gmock/gmock.h>

#include <string>

#include "tests/support/training_fixtures.hpp"

namespace trainyard::models {
namespace {

using namespace fixtures;
using testing::HasSubstr;

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
  static double activations(JobSpec job, bool sequence_parallel, Recompute recompute) {
    job.parallel.sequence_parallel = sequence_parallel;
    job.parallel.recompute = recompute;
    const Plan plan = make_plan(job);
    return stage_memory(plan, job.software, 0).activations.value();
  }
};

TEST_P(Korthikanti, ActivationsWithin) {
  const Row& row = GetParam();
  EXPECT_NEAR(activations(row.job, false, Recompute::none) / GiB, row.gib, 0.025 * row.gib);
}

TEST_P(Korthikanti, SavingsWithinAPoint) {
  const Row& row = GetParam();
  const double none = activations(row.job, false, Recompute::none);
  EXPECT_NEAR(100 * activations(row.job, true, Recompute::none) / none, row.sp, 1.1);
  EXPECT_NEAR(100 * activations(row.job, true, Recompute::selective) / none, row.selective, 1.0);
  // The paper's bar of full recomputation is the inputs of the layers alone: neither the layer at
  // work nor the dropout mask of the embedding, which we count.
  JobSpec plain = row.job;
  plain.parallel.sequence_parallel = false;
  const Plan plan = make_plan(plain);
  EXPECT_NEAR(100 * layer_activation_bytes(plan, plain.software, Recompute::full) /
                  layer_activation_bytes(plan, plain.software, Recompute::none),
              row.full, 0.2);
}

// Figure 1 and Figure 7 of the paper.
INSTANTIATE_TEST_SUITE_P(
    Table3, Korthikanti,
    testing::Values(Row{"gpt_22b", korthikanti(gpt(48, 6144, 64), 8, 1, 1, 4, 4), 59.25, 66.84,
                        16.18, 7.64},
                    Row{"gpt_175b", korthikanti(gpt(96, 12288, 96), 64, 8, 3, 1, 64), 66.84, 62.04,
                        18.49, 8.71},
                    Row{"gpt_530b", korthikanti(gpt(105, 20480, 128), 280, 35, 3, 1, 280), 114.02,
                        58.31, 20.27, 9.42},
                    Row{"gpt_1t", korthikanti(gpt(128, 25600, 160), 512, 64, 1, 1, 512), 131.25,
                        58.31, 20.27, 9.42}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(LayerActivations, ByHand) {
  // 1 layer, 128 tokens; h 1024, 16 heads and 8 kv heads of 64, f 4096 gated: 8 h + 4 . 24 . 64 + 6
  // f
  JobSpec job;
  job.model = llama3(1, 1024, 16, 4096);
  job.gpus = 1;
  job.global_batch = 1;
  job.sequence = 128;
  const Plan plan = make_plan(job);
  EXPECT_DOUBLE_EQ(layer_activation_bytes(plan, job.software, Recompute::none),
                   128.0 * (8192 + 6144 + 24576));
  EXPECT_DOUBLE_EQ(layer_activation_bytes(plan, job.software, Recompute::selective),
                   layer_activation_bytes(plan, job.software, Recompute::none));
  EXPECT_DOUBLE_EQ(layer_activation_bytes(plan, job.software, Recompute::full), 128.0 * 2048);
}

TEST(Memory, StatesOfOneGpuByHand) {
  JobSpec job;
  job.model = llama3_8b();
  job.gpus = 8;
  job.global_batch = 8;
  job.sequence = 8192;
  job.parallel.sharding = Sharding::none;
  const double n = 8030261248.0;
  StageMemory m = stage_memory(make_plan(job), job.software, 0);
  EXPECT_DOUBLE_EQ(m.weights.value(), 2 * n);
  EXPECT_DOUBLE_EQ(m.gradients.value(), 4 * n);
  EXPECT_DOUBLE_EQ(m.optimizer.value(), 12 * n);
  job.parallel.sharding = Sharding::zero1;
  m = stage_memory(make_plan(job), job.software, 0);
  EXPECT_DOUBLE_EQ(m.weights.value(), 2 * n);
  EXPECT_DOUBLE_EQ(m.gradients.value(), 4 * n);  // one chunk: whole when its backward pass runs
  EXPECT_DOUBLE_EQ(m.optimizer.value(), 12 * n / 8);
  job.parallel.sharding = Sharding::fsdp;
  m = stage_memory(make_plan(job), job.software, 0);
  EXPECT_DOUBLE_EQ((m.weights + m.gradients + m.optimizer).value(), 18 * n / 8);
}

TEST(Memory, Llama3405BRanInEightyGigabytes) {
  // The Llama 3 Herd of Models, 2024, section 3.3.2: 8 k sequences without activation recomputation
  // on 80 GB.
  const JobSpec job = llama3_405b_16k();
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
}

TEST(Memory, Llama3405BWithoutShardingIsRefusedWithItems) {
  JobSpec job = llama3_405b_16k();
  job.parallel.sharding = Sharding::none;
  const Problems problems = check_memory(job, h100(), 8);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "parallel");
  EXPECT_THAT(problems[0].what,
              HasSubstr("stage 1 of 16 needs 128.8 GB of 80.0 GB: weights 6.4, gradients 12.8, "
                        "optimizer 38.3, activations 68.2, buffers"));
  EXPECT_THAT(problems[0].right, HasSubstr("sharding \"zero-1\" ("));
}

TEST(Memory, RefusalNamesAPlanThatFits) {
  JobSpec job;
  job.model = llama3_70b();
  job.gpus = 64;
  job.global_batch = 64;
  job.sequence = 8192;
  job.parallel.tensor = 4;
  const Problems problems = check_memory(job, h100(), 8);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].what, HasSubstr("every GPU needs"));
  EXPECT_THAT(problems[0].right, HasSubstr("fsdp"));
}

TEST(Memory, NoPlanMayFit) {
  JobSpec job;
  job.model = llama3_405b();
  job.gpus = 8;
  job.global_batch = 8;
  job.sequence = 8192;
  job.parallel.tensor = 8;
  const Problems problems = check_memory(job, h100(), 8);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].right, HasSubstr("no plan of this job fits"));
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
  job.global_batch *= 2;
  const Plan plan = make_plan(job);
  EXPECT_NEAR(stage_memory(plan, job.software, 1).gradients.value(), 4 * plan.stage_parameters(1),
              1.0);
}

TEST(Memory, OneForwardOneBackwardKeepsOneMicroBatchAStageToTheEnd) {
  JobSpec job = llama3_405b_16k();
  job.parallel.schedule = Schedule::one_f_one_b;
  job.parallel.chunks = 1;
  const Plan plan = make_plan(job);
  const double layer = layer_activation_bytes(plan, job.software, Recompute::none);
  for (int stage : {1, 7, 14})  // the order ends with p - stage in flight, never more
    EXPECT_NEAR(stage_memory(plan, job.software, stage).activations.value(),
                (16 - stage) * 8 * layer, 1.0);
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
  other = job;
  other.parallel.tensor = 4;
  EXPECT_GT(total(other), now);
  other = job;
  other.parallel.sequence_parallel = false;
  EXPECT_GT(total(other), now);
  other = job;
  other.software.gradient_bytes = 2;
  EXPECT_LT(total(other), now);
}

}  // namespace
}  // namespace trainyard::models
