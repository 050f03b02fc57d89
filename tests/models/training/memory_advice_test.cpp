#include "models/training/memory_advice.hpp"

#include <gmock/gmock.h>

#include "models/training/memory.hpp"
#include "tests/support/training_fixtures.hpp"

namespace trainyard::models {
namespace {

using namespace fixtures;
using testing::HasSubstr;
using testing::StartsWith;

/// Of the refusal; empty when the job fits.
std::string advice(const JobSpec& job, const GpuSpec& gpu = h100()) {
  const Problems problems = check_memory(job, gpu, 8);
  return problems.empty() ? "" : problems[0].right;
}

/// A GPU with this share of the memory that the job needs.
GpuSpec smaller(const JobSpec& job, double share) {
  GpuSpec gpu = h100();
  gpu.memory = share * largest_stage_memory(make_plan(job), job.software);
  return gpu;
}

TEST(MemoryAdvice, Llama3405BWithoutShardingIsRefusedWithItems) {
  JobSpec job = llama3_405b_16k();
  job.parallel.sharding = Sharding::none;
  const Problems problems = check_memory(job, h100(), 8);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "parallel");
  EXPECT_THAT(problems[0].what,
              HasSubstr("stage 1 of 16 needs 128.8 GB of 80.0 GB: weights 6.4, gradients 12.8, "
                        "optimizer 38.3, activations 68.2, buffers"));
  EXPECT_EQ(problems[0].right, "sharding \"zero-2\" (79.7 GB)");
}

TEST(MemoryAdvice, NamesAPlanThatFits) {
  JobSpec job;
  job.model = llama3_70b();
  job.gpus = 64;
  job.global_batch = 64;
  job.sequence = 8192;
  job.parallel.tensor = 4;
  const Problems problems = check_memory(job, h100(), 8);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].what, HasSubstr("every GPU needs"));
  EXPECT_THAT(problems[0].right, StartsWith("sharding \"fsdp\" ("));
}

TEST(MemoryAdvice, AShareOfRecomputationIsEnough) {
  JobSpec job;
  job.model = llama3_8b();
  job.gpus = 8;
  job.global_batch = 8;
  job.sequence = 16384;
  job.parallel.sharding = Sharding::fsdp;
  EXPECT_THAT(advice(job), StartsWith("recompute \"full\", recompute_share 0.5 ("));
  job.global_batch = 32;  // a smaller micro-batch costs as much
  job.parallel.micro_batch = 4;
  EXPECT_THAT(advice(job), HasSubstr("micro_batch"));
}

TEST(MemoryAdvice, LongSequencesAreSplit) {
  JobSpec job;
  job.model = llama3_8b();
  job.gpus = 64;
  job.global_batch = 8;
  job.sequence = 131072;
  job.parallel.sharding = Sharding::fsdp;
  job.parallel.tensor = 8;
  job.parallel.recompute = Recompute::full;
  EXPECT_THAT(advice(job, smaller(job, 0.8)), StartsWith("context 2 ("));
}

TEST(MemoryAdvice, ExpertsAreSpreadFurther) {
  JobSpec job;
  job.model = llama3(32, 4096, 32, 14336);
  job.model.experts = ExpertsSpec{.count = 8, .per_token = 2};
  job.gpus = 64;
  job.global_batch = 64;
  job.sequence = 4096;
  job.parallel.tensor = 8;
  job.parallel.pipeline = 2;
  job.parallel.expert = 2;
  job.parallel.sharding = Sharding::zero2;
  job.parallel.recompute = Recompute::full;
  EXPECT_THAT(advice(job, smaller(job, 0.9)), StartsWith("expert 4 ("));
}

TEST(MemoryAdvice, NoPlanMayFit) {
  JobSpec job;
  job.model = llama3_405b();
  job.gpus = 8;
  job.global_batch = 8;
  job.sequence = 8192;
  job.parallel.tensor = 8;
  EXPECT_THAT(advice(job), HasSubstr("no plan of this job fits"));
}

TEST(MemoryAdvice, WhatIsNamedFits) {
  // Whatever the memory: the plan that is named is smaller than the GPU by its own figure. The plan
  // itself needs 79.7 GB.
  const JobSpec job = llama3_405b_16k();
  for (int gigabytes = 20; gigabytes < 90; gigabytes += 5) {
    SCOPED_TRACE(gigabytes);
    GpuSpec gpu = h100();
    gpu.memory = Bytes(gigabytes * 1e9);
    const std::string text = advice(job, gpu);
    ASSERT_EQ(text.empty(), gigabytes >= 80);
    if (text.empty() || text.find("no plan") != std::string::npos) continue;
    EXPECT_LE(std::stod(text.substr(text.rfind('(') + 1)), gigabytes + 0.05) << text;
  }
}

// Runs whose paper says that blocks were recomputed selectively, but not how many (PyTorch FSDP
// with bf16 gradients, 4 k sequences, micro-batches of 2): the least share that fits.
JobSpec fsdp_run(const TransformerSpec& model, int gpus) {
  JobSpec job;
  job.model = model;
  job.model.vocabulary = 32000;
  job.gpus = gpus;
  job.global_batch = 2 * gpus;
  job.sequence = 4096;
  job.parallel.micro_batch = 2;
  job.parallel.sharding = Sharding::fsdp;
  job.software.gradient_bytes = 2;
  job.software.logit_memory = 12;
  return job;
}

TEST(LeastRecomputeShare, PublishedRuns) {
  TransformerSpec llama2_13b = llama3(40, 5120, 40, 13824);
  llama2_13b.kv_heads = 40;
  EXPECT_EQ(least_recompute_share(fsdp_run(llama3(48, 8192, 64, 22016), 128), a100()), 1.0 / 3);
  EXPECT_EQ(least_recompute_share(fsdp_run(llama2_13b, 96), h100()), 1.0 / 3);
  EXPECT_EQ(least_recompute_share(fsdp_run(llama3_70b(), 96), h100()), 3.0 / 4);
}

TEST(LeastRecomputeShare, NothingFits) {
  EXPECT_EQ(least_recompute_share(fsdp_run(llama3_405b(), 8), h100()), std::nullopt);
}

}  // namespace
}  // namespace trainyard::models
