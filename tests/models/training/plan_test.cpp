#include "models/training/plan.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <random>
#include <string>

#include "models/training/transformer.hpp"
#include "tests/support/training_fixtures.hpp"

namespace trainyard::models {
namespace {

using namespace fixtures;
using testing::EndsWith;
using testing::HasSubstr;

std::string only(const Problems& problems) {
  if (problems.size() != 1) return std::to_string(problems.size()) + " problems";
  return problems[0].path + ": " + problems[0].what + "; " + problems[0].right;
}

JobSpec small() {  // 8 layers on 2 stages of 2 GPUs, 4 replicas
  JobSpec job;
  job.model = llama3(8, 1024, 16, 4096);
  job.gpus = 16;
  job.global_batch = 32;
  job.sequence = 1024;
  job.parallel.tensor = 2;
  job.parallel.pipeline = 2;
  return job;
}

TEST(Plan, Llama3LosesALayerAtBothEnds) {
  const JobSpec job = llama3_405b_16k();
  ASSERT_EQ(check_plan(job, 8).size(), 0u);
  const Plan plan = make_plan(job);
  EXPECT_EQ(plan.data, 128);
  EXPECT_EQ(plan.micro_batches, 16);
  EXPECT_EQ(plan.micro_batch_tokens(), 8192);
  EXPECT_EQ(plan.tokens(), 2048.0 * 8192);
  EXPECT_EQ(plan.share(0, 0).layers, 0);  // the embedding alone
  EXPECT_EQ(plan.share(0, 1).layers, 1);
  EXPECT_EQ(plan.share(15, 7).layers, 0);  // the head alone
  EXPECT_TRUE(plan.share(0, 0).embedding);
  EXPECT_TRUE(plan.share(15, 7).head);
  int layers = 0;
  double parameters_of_all = 0;
  for (const ChunkShare& share : plan.shares) layers += share.layers;
  for (int s = 0; s < 16; ++s) parameters_of_all += plan.stage_parameters(s) * 8;
  EXPECT_EQ(layers, 126);
  EXPECT_NEAR(parameters_of_all, parameters(job.model, job.sequence), 1.0);
}

TEST(Plan, LayersThatDivideAreEqual) {
  const Plan plan = make_plan(small());
  EXPECT_EQ(plan.share(0, 0).layers, 4);
  EXPECT_EQ(plan.share(1, 0).layers, 4);
}

TEST(Plan, TiedOutputMatrixIsASecondCopyOnTheLastStage) {
  JobSpec job = small();
  const double untied = make_plan(job).stage_parameters(1);
  job.model.tied_embeddings = true;
  EXPECT_DOUBLE_EQ(make_plan(job).stage_parameters(1), untied);
  job.parallel.pipeline = 1;
  EXPECT_NEAR(make_plan(job).stage_parameters(0) * 2, parameters(job.model, job.sequence), 1e-3);
}

TEST(Plan, RanksAreTensorThenDataThenPipeline) {
  const Plan plan = make_plan(small());  // tensor 2, data 4, pipeline 2
  EXPECT_EQ(plan.rank_of({.tensor = 1, .data = 0, .pipeline = 0}), 1);
  EXPECT_EQ(plan.rank_of({.tensor = 0, .data = 1, .pipeline = 0}), 2);
  EXPECT_EQ(plan.rank_of({.tensor = 0, .data = 0, .pipeline = 1}), 8);
  for (int rank = 0; rank < 16; ++rank) EXPECT_EQ(plan.rank_of(plan.place_of(rank)), rank);
}

TEST(CheckPlan, NamesTheNearestValidNumbers) {
  JobSpec job = small();
  job.gpus = 18;
  EXPECT_EQ(only(check_plan(job, 8)),
            "gpus: 18 is not a multiple of tensor * pipeline = 4; 16 or 20");
  job = small();
  job.global_batch = 30;
  EXPECT_EQ(only(check_plan(job, 8)),
            "global_batch: 30 is not a multiple of data * micro_batch = 4; 28 or 32");
  job = small();
  job.parallel.data = 8;
  EXPECT_EQ(only(check_plan(job, 8)),
            "parallel.data: 8 contradicts gpus / (tensor * pipeline) = 4; 4, or leave it out, or "
            "gpus 32");
  job = small();
  job.model.layers = 9;
  EXPECT_EQ(only(check_plan(job, 8)),
            "parallel.pipeline: 9 layers cannot be divided over pipeline * chunks = 2 (neither 9 "
            "nor 11 is a "
            "multiple); pipeline 1 or 3, or stage_layers");
}

TEST(CheckPlan, TensorMustFitTheModelAndTheServer) {
  JobSpec job = small();
  job.parallel.tensor = 12;
  job.gpus = 24;
  EXPECT_THAT(only(check_plan(job, 8)),
              HasSubstr("12 is no multiple of the 8 GPUs of one server, does not divide 16 heads, "
                        "neither divides 8 kv_heads nor is a multiple, does not divide ffn 4096, "
                        "does not divide the sequence of 1024"));
  job = small();
  job.parallel.tensor = 16;  // two servers to a group, every key head on two ranks
  job.gpus = 32;
  EXPECT_EQ(check_plan(job, 8).size(), 0u);
  job = small();
  job.parallel.tensor = 4;
  job.model.heads = 24;
  job.model.kv_heads = 6;
  // 8 would leave some ranks with one key head and others with two.
  EXPECT_THAT(only(check_plan(job, 8)),
              EndsWith("4 neither divides 6 kv_heads nor is a multiple; 2"));
  job = small();
  job.sequence = 1023;
  EXPECT_THAT(only(check_plan(job, 8)), HasSubstr("sequence of 1023 tokens"));
  job.parallel.sequence_parallel = false;
  EXPECT_EQ(check_plan(job, 8).size(), 0u);
}

TEST(CheckPlan, InterleavingNeedsLayersForEveryChunk) {
  JobSpec job = small();
  job.parallel.schedule = Schedule::interleaved;
  job.parallel.chunks = 2;
  job.global_batch = 28;  // 7 micro-batches on 2 stages: the last group is larger
  EXPECT_EQ(check_plan(job, 8).size(), 0u);
  job.parallel.chunks = 3;
  EXPECT_THAT(only(check_plan(job, 8)), HasSubstr("chunks 2 or 4"));
}

TEST(Plan, RanksFollowTheOrderThatIsAskedFor) {
  JobSpec job = small();
  job.parallel.context = 2;  // tensor 2, context 2, data 2, pipeline 2
  ASSERT_EQ(check_plan(job, 8).size(), 0u);
  Plan plan = make_plan(job);
  EXPECT_EQ(plan.data, 2);
  EXPECT_EQ(plan.micro_batch_tokens(), 512);
  EXPECT_EQ(plan.rank_of({.tensor = 0, .context = 1, .data = 0, .pipeline = 0}), 2);
  EXPECT_EQ(plan.rank_of({.tensor = 0, .context = 0, .data = 1, .pipeline = 0}), 4);
  EXPECT_EQ(plan.rank_of({.tensor = 0, .context = 0, .data = 0, .pipeline = 1}), 8);
  job.parallel.order = "pp-tp-dp-cp";
  plan = make_plan(job);
  EXPECT_EQ(plan.rank_of({.tensor = 0, .context = 0, .data = 0, .pipeline = 1}), 1);
  EXPECT_EQ(plan.rank_of({.tensor = 1, .context = 0, .data = 0, .pipeline = 0}), 2);
  EXPECT_EQ(plan.rank_of({.tensor = 0, .context = 0, .data = 1, .pipeline = 0}), 4);
  EXPECT_EQ(plan.rank_of({.tensor = 0, .context = 1, .data = 0, .pipeline = 0}), 8);
  for (int rank = 0; rank < 16; ++rank) EXPECT_EQ(plan.rank_of(plan.place_of(rank)), rank);
  EXPECT_EQ(plan.ranks_of_stage(1), (std::vector<int>{1, 3, 5, 7, 9, 11, 13, 15}));
}

TEST(Plan, ExpertsAreCountedApart) {
  JobSpec job = small();
  job.model.layers = 4;
  job.model.experts = ExpertsSpec{.count = 8, .per_token = 2, .ffn = 512, .first_dense = 1};
  job.parallel.expert = 4;
  job.parallel.expert_tensor = 1;
  ASSERT_EQ(check_plan(job, 8).size(), 0u);
  const Plan plan = make_plan(job);
  ASSERT_EQ(plan.kinds.size(), 2u);
  EXPECT_EQ(plan.share(0, 0).layers_of_kind, (std::vector<int>{1, 1}));
  EXPECT_EQ(plan.share(1, 0).layers_of_kind, (std::vector<int>{0, 2}));
  // Two layers of 8 experts, each three matrices of 1024 x 512.
  EXPECT_EQ(plan.share(1, 0).expert_weights, 2.0 * 8 * 3 * 1024 * 512);
  EXPECT_EQ(plan.expert_parameters(plan.share(1, 0)), 2.0 * 2 * 3 * 1024 * 512);
  EXPECT_EQ(plan.expert_replicas(), 2);  // tensor 2, data 4: 8 ranks in groups of 4
  double all = 0;
  for (const ChunkShare& share : plan.shares) all += share.weights + share.expert_weights;
  EXPECT_NEAR(all, parameters(job.model, job.sequence), 1e-3);

  job.parallel.expert = 3;
  EXPECT_EQ(only(check_plan(job, 8)), "parallel.expert: 3 does not divide 8 experts; 2 or 4");
  job.parallel.expert = 8;
  job.parallel.expert_tensor = 2;
  EXPECT_EQ(only(check_plan(job, 8)),
            "parallel.expert: 8 * expert_tensor 2 does not divide the 8 ranks of a stage; 4");
  job.model.experts.reset();
  job.parallel.expert_tensor.reset();
  EXPECT_EQ(only(check_plan(job, 8)), "parallel.expert: 8, but the model has no experts; 1");
}

TEST(Plan, FurtherPredictionsAddALayerBesideTheHead) {
  JobSpec job = small();
  job.model.extra_predictions = 1;
  const Plan plan = make_plan(job);
  EXPECT_EQ(plan.share(1, 0).blocks(), 5);
  double all = 0;
  for (const ChunkShare& share : plan.shares) all += share.weights;
  EXPECT_NEAR(all, parameters(job.model, job.sequence), 1e-3);
}

TEST(Plan, StatedLayersGoWhereTheyAreStated) {
  JobSpec job = small();
  job.parallel.stage_layers = {5, 3};
  ASSERT_EQ(check_plan(job, 8).size(), 0u);
  EXPECT_EQ(make_plan(job).share(0, 0).layers, 5);
  EXPECT_EQ(make_plan(job).share(1, 0).layers, 3);
  job.parallel.stage_layers = {5, 4};
  EXPECT_EQ(only(check_plan(job, 8)), "parallel.stage_layers: layers add up to 9; the model has 8");
  job.parallel.stage_layers = {8};
  EXPECT_EQ(only(check_plan(job, 8)),
            "parallel.stage_layers: 1 numbers for pipeline * chunks = 2 virtual stages; one number "
            "for each");
}

TEST(Plan, ShardGroupsAndContextMustDivide) {
  JobSpec job = small();
  job.parallel.shard_group = 3;
  EXPECT_EQ(only(check_plan(job, 8)),
            "parallel.shard_group: 3 does not divide the 4 ranks that share weights; 2 or 4");
  job = small();
  job.parallel.context = 4;
  job.sequence = 1020;
  job.parallel.sequence_parallel = false;
  EXPECT_EQ(only(check_plan(job, 8)),
            "parallel.context: 4: the sequence of 1020 tokens is not cut evenly into 2 * context = "
            "8 pieces; 3 or 5");
}

TEST(CheckPlan, AllMistakesAtOnce) {
  JobSpec job = small();
  job.parallel.tensor = 3;
  job.model.layers = 9;
  EXPECT_EQ(check_plan(job, 8).size(), 3u);  // tensor, gpus, layers
}

TEST(CheckPlan, AbsurdNumbersAreRefusedAndDoNotOverflow) {
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto number = [&random] {
      return random() % 3 == 0 ? std::numeric_limits<int>::max()
                               : 1 + int(random() % (random() % 2 ? 64 : 2000000));
    };
    JobSpec job = small();
    job.model.layers = number();
    job.gpus = number();
    job.global_batch = number();
    job.parallel.tensor = number();
    job.parallel.pipeline = number();
    job.parallel.chunks = number();
    job.parallel.micro_batch = number();
    if (random() % 2) job.parallel.data = number();
    if (check_plan(job, 8).empty()) {
      const Plan plan = make_plan(job);
      EXPECT_EQ(plan.tensor * plan.data * plan.pipeline, plan.gpus);
      EXPECT_EQ(plan.data * plan.micro_batch * plan.micro_batches, plan.global_batch);
    }
  }
}

TEST(CheckPlan, WhatItSuggestsIsAccepted) {
  JobSpec job = small();
  int tried = 0;
  for (int layers = 1; layers <= 40; ++layers)
    for (int pipeline = 1; pipeline <= 12; ++pipeline) {
      job.model.layers = layers;
      job.parallel.pipeline = pipeline;
      job.gpus = 2 * pipeline * 4;
      const Problems problems = check_plan(job, 8);
      if (problems.empty()) continue;
      ASSERT_EQ(problems.size(), 1u);
      const std::string& right = problems[0].right;  // "pipeline 4 or 6"
      JobSpec better = job;
      better.parallel.pipeline = std::stoi(right.substr(9));
      better.gpus = 2 * better.parallel.pipeline * 4;
      EXPECT_EQ(check_plan(better, 8).size(), 0u) << layers << " layers: " << right;
      ++tried;
    }
  EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace trainyard::models
