#include "models/training/stage_costs.hpp"

#include <gmock/gmock.h>

#include "models/training/transformer.hpp"
#include "tests/support/cost_fixtures.hpp"

namespace trainyard::models {
namespace {

using namespace fixtures;

TEST(Precision, OnlyWhatTheGpuHas) {
  JobSpec job = job_on(llama3_70b(), 8);
  const auto problems = [&](Precision precision, const GpuSpec& gpu) {
    job.parallel.precision = precision;
    return check_precision(job, gpu);
  };
  for (const Precision p : {Precision::bf16, Precision::fp16})
    EXPECT_TRUE(problems(p, a100()).empty());
  for (const Precision p : {Precision::fp8, Precision::fp8_rowwise, Precision::mxfp8}) {
    EXPECT_TRUE(problems(p, h100()).empty());
    ASSERT_EQ(problems(p, a100()).size(), 1u);
    EXPECT_EQ(problems(p, a100())[0].path, "parallel.precision");
  }
  EXPECT_TRUE(problems(Precision::nvfp4, gb200()).empty());
  EXPECT_EQ(problems(Precision::nvfp4, h100()).size(), 1u);
}

TEST(StepCosts, ASlowGpuStretchesComputeOnly) {
  const PassCost cost{.useful_s = 1,
                      .kernels_s = 2,
                      .recompute_s = 1,
                      .exposed_tp_s = 3,
                      .exposed_cp_s = 4,
                      .exposed_ep_s = 5};
  EXPECT_DOUBLE_EQ(cost.total_s(), 16);
  EXPECT_DOUBLE_EQ(cost.total_s(0.5), 20);
}

TEST(StepCosts, UsefulTimeIsModelFlopsAtPeak) {
  // Summed over stages, chunks and micro-batches: model FLOPs of the step over GPUs and peak.
  const auto expect = [](const JobSpec& job) {
    const Plan plan = make_plan(job);
    const StepCosts costs = step_costs(h100(), plan, job.software, {counted()});
    double useful = 0;
    for (const PassPair& chunk : costs.chunks)
      useful += chunk.forward.useful_s + chunk.backward.useful_s;
    const double flops = model_flops_per_token(job.model, job.sequence) * plan.tokens();
    EXPECT_NEAR(useful * plan.micro_batches / plan.pipeline,
                flops / job.gpus / h100().peak_16bit.value(), 1e-9);
  };
  expect(llama3_405b_16k());
  JobSpec job = llama3_405b_16k();
  job.parallel.context = 2;
  expect(job);
  job = job_on(mixture(), 2);
  job.model.layers = 6;
  job.model.experts->first_dense = 1;
  job.model.experts->shared = 1;
  job.model.extra_predictions = 2;
  job.gpus = 16;
  job.global_batch = 32;
  job.parallel.pipeline = 2;
  job.parallel.expert = 4;
  expect(job);
}

TEST(StepCosts, ChunksHoldLayersEmbeddingHeadAndAccumulation) {
  const JobSpec job = llama3_405b_16k();
  const GpuSpec gpu = h100();
  const Plan plan = make_plan(job);
  const StepCosts costs = step_costs(gpu, plan, job.software, {CommCosts::free()});
  const PassPair layer = layer_costs(gpu, plan, plan.kinds[0], job.software, CommCosts::free());
  const PassPair head = head_costs(gpu, plan, job.software, CommCosts::free());
  EXPECT_DOUBLE_EQ(costs.chunk(3, 2).forward.total_s(), layer.forward.total_s());
  // 2 x 4 bytes of every gradient, written by the weight-gradient products
  const double accumulation = bytes_s(8 * 3187703808.0 / 8);
  EXPECT_NEAR(costs.chunk(3, 2).backward.total_s(), layer.backward.total_s() + accumulation, 1e-12);
  EXPECT_NEAR(costs.chunk(3, 2).backward.weight_gradient_s,
              layer.backward.weight_gradient_s + accumulation, 1e-12);
  EXPECT_DOUBLE_EQ(costs.chunk(15, 7).forward.total_s(), head.forward.total_s());
  EXPECT_DOUBLE_EQ(costs.chunk(0, 0).forward.total_s(), bytes_s(4 * 16384.0 * 8192));
  EXPECT_NEAR(costs.optimizer_s[3], bytes_s(40 * plan.stage_parameters(3) / 128) + 3e-3, 1e-12);
}

TEST(StepCosts, TheHeadIsASixteenBitProductAndItsLoss) {
  JobSpec job = job_on(llama3_70b(), 8);
  job.parallel.precision = Precision::fp8;
  const PassPair head = head_costs(h100(), make_plan(job), job.software, counted());
  const LinearShape logits{8192, 8192, 128256.0 / 8};
  const double loss = bytes_s(22 * 8192 * 128256.0 / 8);
  EXPECT_NEAR(head.forward.compute_s(), products_forward_s({logits}) + 0.4 * loss, 1e-12);
  EXPECT_NEAR(head.backward.compute_s(), products_backward_s({logits}) + 0.6 * loss, 1e-12);
  EXPECT_DOUBLE_EQ(head.forward.exposed_tp_s, 0.5 * (1 + 2));
}

TEST(StepCosts, AccumulationByStackAndNotOfShardedWeights) {
  JobSpec job = job_on(llama3_8b(), 1);
  const auto backward = [&job] {
    return step_costs(h100(), make_plan(job), job.software, {CommCosts::free()})
        .chunk(0, 0)
        .backward.total_s();
  };
  const double parameters_here = parameters(job.model, job.sequence);
  const double usual = backward();
  job.software.accumulation_bytes = 14;
  EXPECT_NEAR(backward() - usual, bytes_s((14 - 8) * parameters_here), 1e-9);
  job.mechanisms.gradient_accumulation = false;
  const double none = backward();
  EXPECT_NEAR(usual - none, bytes_s(8 * parameters_here), 1e-9);
  job.mechanisms.gradient_accumulation = true;
  job.parallel.sharding = Sharding::fsdp;
  EXPECT_DOUBLE_EQ(backward(), none);
}

TEST(StepCosts, OptimizerUpdatesItsShare) {
  JobSpec job = job_on(mixture(), 2);
  job.gpus = 16;  // 8 data-parallel ranks
  job.global_batch = 8;
  job.parallel.expert = 4;
  const auto optimizer = [&job] {
    return step_costs(h100(), make_plan(job), job.software, {CommCosts::free()}).optimizer_s[0];
  };
  const Plan plan = make_plan(job);
  const double shared = plan.shares[0].weights / 2;
  const double experts = plan.shares[0].expert_weights / (4 * 2);  // EP 4, each over 2 ranks
  EXPECT_NEAR(optimizer(), bytes_s(40 * (shared / 8 + experts / 2)) + 3e-3, 1e-12);
  job.parallel.shard_group = 4;
  EXPECT_NEAR(optimizer(), bytes_s(40 * (shared / 4 + experts / 2)) + 3e-3, 1e-12);
  job.parallel.shard_group.reset();
  job.parallel.sharding = Sharding::none;
  job.software.cuda_graphs = true;
  EXPECT_NEAR(optimizer(), bytes_s(40 * (shared + experts)) + 1.5e-3, 1e-12);
}

TEST(StepCosts, FurtherPredictionsAreALayerAMatrixAndAHeadEach) {
  JobSpec job = job_on(llama3_8b(), 1);
  const auto last = [&job] {
    return step_costs(h100(), make_plan(job), job.software, {CommCosts::free()}).chunk(0, 0);
  };
  const PassPair one = last();
  job.model.extra_predictions = 2;
  const Plan plan = make_plan(job);
  const double head = head_costs(h100(), plan, job.software, CommCosts::free()).forward.total_s();
  const double joining = products_forward_s({{8192, 8192, 4096}}) + bytes_s(12 * 4096.0 * 8192);
  EXPECT_NEAR(last().forward.total_s() - one.forward.total_s(),
              2 * (layer(job).forward.total_s() + head + joining), 1e-9);
}

TEST(StepCosts, APipelineEngineSlowsItsPasses) {
  JobSpec job = llama3_405b_16k();
  job.mechanisms.gradient_accumulation = false;
  const Plan plan = make_plan(job);
  const StepCosts usual = step_costs(h100(), plan, job.software, {counted()});
  job.software.pipeline_overhead = 0.14;
  const StepCosts slow = step_costs(h100(), plan, job.software, {counted()});
  EXPECT_NEAR(slow.chunk(5, 1).backward.total_s(), 1.14 * usual.chunk(5, 1).backward.total_s(),
              1e-9);
  JobSpec alone = job_on(llama3_8b(), 1);
  const StepCosts before = step_costs(h100(), make_plan(alone), alone.software, {counted()});
  alone.software.pipeline_overhead = 0.14;
  EXPECT_DOUBLE_EQ(
      step_costs(h100(), make_plan(alone), alone.software, {counted()}).micro_batch_s(0),
      before.micro_batch_s(0));
}

TEST(StepCosts, EveryStageHasItsTraffic) {
  const JobSpec job = llama3_405b_16k();
  const Plan plan = make_plan(job);
  std::vector<CommCosts> comm(16, CommCosts::free());
  comm[5] = counted();
  const StepCosts costs = step_costs(h100(), plan, job.software, comm);
  EXPECT_EQ(costs.chunk(4, 3).forward.exposed_tp_s, 0);
  EXPECT_DOUBLE_EQ(costs.chunk(5, 3).forward.exposed_tp_s, 2 * (1 + 2));
  EXPECT_THAT(
      [&] {
        step_costs(h100(), plan, job.software, {counted(), counted()});
      },
      testing::Throws<std::logic_error>());
}

TEST(StepCosts, BoundaryIsSlicedWithSequenceParallelismOrByTheStack) {
  JobSpec job = llama3_405b_16k();
  EXPECT_DOUBLE_EQ(boundary_bytes(make_plan(job)), 2.0 * 8192 * 16384 / 8);
  job.software.scatter_pipeline = false;  // slices all the same: nobody holds more
  EXPECT_DOUBLE_EQ(boundary_bytes(make_plan(job)), 2.0 * 8192 * 16384 / 8);
  job.parallel.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(boundary_bytes(make_plan(job)), 2.0 * 8192 * 16384);
  job.software.scatter_pipeline = true;
  EXPECT_DOUBLE_EQ(boundary_bytes(make_plan(job)), 2.0 * 8192 * 16384 / 8);
}

}  // namespace
}  // namespace trainyard::models
