#include "models/training/elastic_steps.hpp"

#include <gtest/gtest.h>

#include "tests/models/training/yard.hpp"

namespace trainyard::models {
namespace {

TEST(ElasticSteps, a_job_with_fewer_replicas_keeps_the_micro_batches_of_each) {
  const JobSpec job = two_stages();  // 4 replicas of 16 GPUs, 64 sequences
  const std::optional<JobSpec> three = ElasticSteps::with_replicas(job, 3, 8);
  ASSERT_TRUE(three.has_value());
  EXPECT_EQ(three->gpus, 48);
  EXPECT_EQ(three->global_batch, 48);
  EXPECT_EQ(make_plan(*three).micro_batches, make_plan(job).micro_batches);
  EXPECT_FALSE(ElasticSteps::with_replicas(job, 0, 8).has_value());
  EXPECT_FALSE(ElasticSteps::with_replicas(job, 5, 8).has_value());
  JobSpec narrow = job;  // 16 replicas of 4 GPUs: only an even number fills servers
  narrow.parallel.tensor = 2;
  EXPECT_FALSE(ElasticSteps::with_replicas(narrow, 15, 8).has_value());
  EXPECT_TRUE(ElasticSteps::with_replicas(narrow, 14, 8).has_value());
  narrow.parallel.data = 16;  // stated: follows
  EXPECT_TRUE(ElasticSteps::with_replicas(narrow, 14, 8).has_value());
}

TEST(ElasticSteps, each_size_is_the_step_of_that_job) {
  JobSpec job = two_stages();
  Yard yard(job, 10);
  ElasticSteps steps(job, yard.server, *yard.router);
  Placement all = yard.packed(), fewer = all;
  fewer.servers.resize(4);
  StepModel half(*ElasticSteps::with_replicas(job, 2, 8), yard.server, *yard.router);
  EXPECT_EQ(steps.profile(all).step, yard.model->profile(all).step);
  EXPECT_EQ(steps.profile(fewer).step, half.profile(fewer).step);
  EXPECT_EQ(steps.profile(fewer).parts, half.profile(fewer).parts);
  EXPECT_EQ(steps.profile(fewer).tokens * 2, steps.profile(all).tokens);
  EXPECT_EQ(&steps.profile(fewer), &steps.profile(fewer));
  const std::vector<StoreFlow> flows{{{HostId(8), HostId(9)}, true, 40_GBps, "save"}};
  steps.set_store_flows(flows);
  half.set_store_flows(flows);
  EXPECT_EQ(steps.profile(fewer).step, half.profile(fewer).step);
  EXPECT_EQ(steps.store_limit(fewer, flows[0].store, true),
            half.store_limit(fewer, flows[0].store, true));
}

TEST(ElasticSteps, the_factor_of_a_measured_step_holds_at_every_size) {
  JobSpec job = two_stages();
  Yard free(job, 8);
  job.measured_step =
      Duration(std::int64_t(1.3 * double(free.model->profile(free.packed()).step.count())));
  Yard yard(job, 8);
  ElasticSteps steps(job, yard.server, *yard.router);
  Placement all = yard.packed(), fewer = all;
  fewer.servers.resize(4);
  steps.profile(all);
  EXPECT_LT(steps.full().compute_scale(), 1);
  steps.profile(fewer);
  EXPECT_EQ(steps.at_size(4).compute_scale(), steps.full().compute_scale());
}

}  // namespace
}  // namespace trainyard::models
