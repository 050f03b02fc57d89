#include "models/training/activations.hpp"

#include <gtest/gtest.h>

#include "tests/support/training_fixtures.hpp"

namespace trainyard::models {
namespace {

using namespace fixtures;

// One layer, 128 tokens; h 1024, 16 heads and 8 key/value heads of 64, ffn 4096, gated.
JobSpec small() {
  JobSpec job;
  job.model = llama3(1, 1024, 16, 4096);
  job.gpus = 1;
  job.global_batch = 1;
  job.sequence = 128;
  return job;
}

double bytes(const JobSpec& job, Recompute recompute = Recompute::none) {
  const Plan plan = make_plan(job);
  return block_activation_bytes(plan, plan.kinds[0], job.software, recompute);
}

TEST(Activations, ByHand) {
  JobSpec job = small();
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (8 * 1024 + 4 * 24 * 64 + 6 * 4096));
  job.software.flash_attention = false;  // masks, and 16 rows of 128 scores a token
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (10 * 1024 + 4 * 24 * 64 + 6 * 4096 + 5 * 16 * 128));
  job.model.attention_window = 32;
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (10 * 1024 + 4 * 24 * 64 + 6 * 4096 + 5 * 16 * 32));
}

TEST(Activations, RecomputationKeeps) {
  JobSpec job = small();
  EXPECT_DOUBLE_EQ(bytes(job, Recompute::selective), bytes(job));  // flash keeps no scores
  EXPECT_DOUBLE_EQ(bytes(job, Recompute::full), 128.0 * 2 * 1024);
  // Outputs of products: qkv 32 . 64, projection 1024, up 2 . 4096, down 1024, two bytes each.
  EXPECT_DOUBLE_EQ(bytes(job, Recompute::per_operation),
                   128.0 * (2 * 1024 + 2 * 16 * 64 + (32 * 64 + 1024 + 2 * 4096 + 1024)));
  job.software.flash_attention = false;
  EXPECT_DOUBLE_EQ(bytes(job, Recompute::selective), bytes(job) - 128.0 * 5 * 16 * 128);
}

TEST(Activations, AShareOfTheLayersIsAMixture) {
  JobSpec job = small();
  job.parallel.recompute = Recompute::full;
  job.parallel.recompute_share = 0.25;
  const Plan plan = make_plan(job);
  EXPECT_DOUBLE_EQ(kept_block_bytes(plan, plan.kinds[0], job.software),
                   0.75 * bytes(job) + 0.25 * bytes(job, Recompute::full));
}

TEST(Activations, TensorParallelismSplitsAllButTheStreamSequenceParallelismThatToo) {
  JobSpec job = small();
  job.gpus = 4;
  job.parallel.tensor = 4;
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (8 * 1024 + 4 * 24 * 64 + 6 * 4096) / 4);
  job.parallel.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (8 * 1024 + (4 * 24 * 64 + 6 * 4096) / 4.0));
}

TEST(Activations, KeysThatAreFewerThanRanksAreHeldTwice) {
  JobSpec job = small();
  job.gpus = 16;
  job.parallel.tensor = 16;  // 8 key/value heads: one on each rank, two ranks share one
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (8 * 1024 / 16 + 4 * (1 + 1) * 64 + 6 * 4096 / 16));
}

TEST(Activations, ContextParallelismSplitsTokens) {
  JobSpec job = small();
  const double whole = bytes(job);
  job.gpus = 2;
  job.parallel.context = 2;
  EXPECT_DOUBLE_EQ(bytes(job), whole / 2);
}

TEST(Activations, AParallelBlockHasOneInput) {
  JobSpec job = small();
  job.model.parallel_block = true;
  job.model.norms_per_layer = 1;  // the stream and the output of its norm
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (4 * 1024 + 4 * 24 * 64 + 6 * 4096));
}

TEST(Activations, FurtherNormsKeepTheirInput) {
  JobSpec job = small();
  const double two = bytes(job);
  job.model.norms_per_layer = 4;
  EXPECT_DOUBLE_EQ(bytes(job), two + 128.0 * 2 * 2 * 1024);
  job.model.norms_per_layer = 2;
  job.model.query_key_norm = true;
  EXPECT_DOUBLE_EQ(bytes(job), two + 128.0 * 2 * 24 * 64);
}

TEST(Activations, Experts) {
  // 16 experts of 512, 2 a token, one shared: stream, attention, then
  // 2 copies of (2 h in, 2 h out, 6 f_e), the shared one 6 f_e, 8 bytes a router entry.
  JobSpec job = small();
  job.model.experts = ExpertsSpec{.count = 16, .per_token = 2, .ffn = 512, .shared = 1};
  const double rest = 8 * 1024 + 4 * 24 * 64 + 8 * 16;
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (rest + 2 * (4 * 1024 + 6 * 512) + 6 * 512));
  job.model.experts->capacity_factor = 1.5;  // slots, filled or not
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (rest + 3 * (4 * 1024 + 6 * 512) + 6 * 512));
}

TEST(Activations, ExpertsOnTensorRanks) {
  JobSpec job = small();
  job.gpus = 4;
  job.parallel.tensor = 4;
  job.model.experts = ExpertsSpec{.count = 16, .per_token = 2, .ffn = 512};
  const double rest = (8 * 1024 + 4 * 24 * 64 + 8 * 16) / 4.0;
  // Whole experts: a rank computes a quarter of the copies.
  job.parallel.expert = 4;
  job.parallel.expert_tensor = 1;
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (rest + 2 * (4 * 1024 + 6 * 512) / 4.0));
  EXPECT_DOUBLE_EQ(expert_copies(make_plan(job), make_plan(job).kinds[0]), 128.0 * 2 / 4);
  // Split experts: every rank reads all copies and holds a quarter of what follows.
  job.parallel.expert = 1;
  job.parallel.expert_tensor = 4;
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (rest + 2 * (2 * 1024 + (2 * 1024 + 6 * 512) / 4.0)));
}

TEST(Activations, LatentAttention) {
  // Narrow matrices 96 and 64 before and after their norms, 16 rotary; 16 heads with queries and
  // keys of 64 + 16, values and outputs of 64.
  JobSpec job = small();
  job.model.kv_heads.reset();
  job.model.latent_attention =
      LatentAttentionSpec{.query_rank = 96, .kv_rank = 64, .head_size = 64, .rotary_size = 16};
  EXPECT_DOUBLE_EQ(bytes(job), 128.0 * (8 * 1024 + 2 * (2 * (96 + 64) + 16) +
                                        2 * 16 * (2 * 80 + 2 * 64) + 6 * 4096));
  const Plan plan = make_plan(job);
  EXPECT_DOUBLE_EQ(key_value_bytes(plan, plan.kinds[0]), 2.0 * 16 * (80 + 64));
}

}  // namespace
}  // namespace trainyard::models
