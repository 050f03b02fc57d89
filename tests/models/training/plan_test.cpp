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
            "multiple); pipeline 1 or 3");
}

TEST(CheckPlan, TensorMustFitTheModelAndTheServer) {
  JobSpec job = small();
  job.parallel.tensor = 16;
  job.gpus = 32;
  EXPECT_THAT(
      only(check_plan(job, 8)),
      HasSubstr("16 is larger than the 8 GPUs of one server, does not divide 8 kv_heads; 8"));
  job = small();
  job.parallel.tensor = 4;
  job.model.kv_heads = 2;
  EXPECT_THAT(only(check_plan(job, 8)), HasSubstr("does not divide 2 kv_heads; 2"));
  job = small();
  job.sequence = 1023;
  EXPECT_THAT(only(check_plan(job, 8)), HasSubstr("sequence of 1023 tokens"));
  job.parallel.sequence_parallel = false;
  EXPECT_EQ(check_plan(job, 8).size(), 0u);
}

TEST(CheckPlan, InterleavingNeedsWholeGroups) {
  JobSpec job = small();
  job.parallel.schedule = Schedule::interleaved;
  job.parallel.chunks = 2;
  EXPECT_EQ(check_plan(job, 8).size(), 0u);  // 8 micro-batches on 2 stages
  job.global_batch = 28;
  EXPECT_THAT(only(check_plan(job, 8)),
              HasSubstr("7 micro-batches of a replica are not a multiple of pipeline 2"));
  EXPECT_THAT(only(check_plan(job, 8)), HasSubstr("global_batch 24 or 32"));
  job = small();
  job.parallel.schedule = Schedule::interleaved;
  job.parallel.chunks = 3;
  EXPECT_THAT(only(check_plan(job, 8)), HasSubstr("chunks 2 or 4"));
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
