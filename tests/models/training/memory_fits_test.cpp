#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "models/training/memory.hpp"
#include "tests/support/training_fixtures.hpp"

/// Published training runs that took place: the model must let them fit. And published layouts that
/// cannot have run as written (recomputation or offload not stated): it must refuse those.
namespace trainyard::models {
namespace {

using namespace fixtures;

/// One run: layout as published, conventions of its stack (docs/models/memory.md).
struct PublishedRun {
  const char* name;
  TransformerSpec model;
  double memory_gb;
  int gpus, batch, sequence, micro_batch;
  int tensor, pipeline, chunks;
  ParallelSpec rest;  // all but these
  SoftwareSpec software;
  double low, high;  // share of the memory
};
void PrintTo(const PublishedRun& run, std::ostream* out) {
  *out << run.name;
}

JobSpec job_of(const PublishedRun& run) {
  JobSpec job;
  job.model = run.model;
  job.gpus = run.gpus;
  job.global_batch = run.batch;
  job.sequence = run.sequence;
  job.parallel = run.rest;
  job.parallel.micro_batch = run.micro_batch;
  job.parallel.tensor = run.tensor;
  job.parallel.pipeline = run.pipeline;
  job.parallel.chunks = run.chunks;
  if (run.chunks > 1) job.parallel.schedule = Schedule::interleaved;
  job.software = run.software;
  return job;
}

class Fits : public testing::TestWithParam<PublishedRun> {};

TEST_P(Fits, AsPublished) {
  const PublishedRun& run = GetParam();
  const JobSpec job = job_of(run);
  const Problems problems = check_plan(job, 8);
  for (const Problem& p : problems) ADD_FAILURE() << p.path << " " << p.what;
  ASSERT_TRUE(problems.empty());
  GpuSpec gpu = h100();
  gpu.memory = Bytes(run.memory_gb * 1e9);
  const double share = memory_estimate(make_plan(job), job.software, gpu).share();
  EXPECT_GE(share, run.low);
  EXPECT_LE(share, run.high);
  EXPECT_EQ(check_memory(job, gpu, 8).empty(), share <= 1);
}

constexpr double fits = 1.0;  // upper bound of those that ran

/// Megatron-LM before 2022: unfused attention, FP16 gradients, no sharding of the optimizer.
SoftwareSpec megatron_2021(int gradient_bytes = 2) {
  SoftwareSpec s = unfused_software();
  s.gradient_bytes = gradient_bytes;
  return s;
}
SoftwareSpec nemo(int gradient_bytes = 2) {
  SoftwareSpec s;
  s.gradient_bytes = gradient_bytes;
  return s;
}
/// llm-foundry: flash-attn's cross entropy, its gradient in place of the logits.
SoftwareSpec llm_foundry() {
  SoftwareSpec s = nemo();
  s.logit_memory = 4;
  return s;
}
SoftwareSpec torchtitan() {
  SoftwareSpec s = nemo(4);
  s.logit_memory = 12;
  return s;
}

ParallelSpec unsharded(Recompute recompute, bool sequence_parallel = false) {
  ParallelSpec p;
  p.sharding = Sharding::none;
  p.recompute = recompute;
  p.sequence_parallel = sequence_parallel;
  return p;
}
ParallelSpec sharded(Sharding sharding, Recompute recompute = Recompute::none, int context = 1) {
  ParallelSpec p;
  p.sharding = sharding;
  p.recompute = recompute;
  p.context = context;
  return p;
}
ParallelSpec experts(int expert, int expert_tensor, int context = 1) {
  ParallelSpec p = sharded(Sharding::zero1, Recompute::none, context);
  p.expert = expert;
  p.expert_tensor = expert_tensor;
  return p;
}
ParallelSpec with_layers(ParallelSpec p, std::vector<int> layers) {
  p.stage_layers = std::move(layers);
  return p;
}
ParallelSpec bloom_layout() {
  ParallelSpec p = unsharded(Recompute::full);
  p.sharding = Sharding::zero1;
  return p;
}

TransformerSpec mpt(int layers, int hidden, int heads) {
  return gpt(layers, hidden, heads, 50368);
}
TransformerSpec bloom() {
  TransformerSpec m = gpt(70, 14336, 112, 250880);
  m.positions = Positions::none;
  m.embedding_norm = true;
  return m;
}
TransformerSpec nemotron(int layers, int hidden, int heads, int head_size) {
  TransformerSpec m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.head_size = head_size;
  m.kv_heads = 8;
  m.ffn = 4 * hidden;
  m.vocabulary = 256000;
  return m;
}
TransformerSpec grok() {
  TransformerSpec m = llama3(64, 6144, 48, 32768);
  m.vocabulary = 131072;
  m.experts = ExpertsSpec{.count = 8, .per_token = 2};
  return m;
}
TransformerSpec deepseek_v3() {
  TransformerSpec m = llama3(61, 7168, 128, 18432);
  m.vocabulary = 129280;
  m.kv_heads.reset();
  m.latent_attention =
      LatentAttentionSpec{.query_rank = 1536, .kv_rank = 512, .head_size = 128, .rotary_size = 64};
  m.experts = ExpertsSpec{.count = 256, .per_token = 8, .ffn = 2048, .shared = 1, .first_dense = 3};
  return m;
}

const auto none = Recompute::none;
const auto selective = Recompute::selective;
const auto full = Recompute::full;

INSTANTIATE_TEST_SUITE_P(
    Published, Fits,
    testing::Values(
        // Narayanan et al. 2021, table 1; micro-batch 1 as in the paper's larger models.
        PublishedRun{"sc21_76b", gpt(60, 10240, 80), 80, 1024, 1792, 2048, 1, 8, 4, 3,
                     unsharded(full), megatron_2021(), 0.4, fits},
        PublishedRun{"sc21_1t", gpt(128, 25600, 160), 80, 3072, 3072, 2048, 1, 8, 64, 2,
                     unsharded(full), megatron_2021(), 0.4, fits},
        // Megatron-LM repository, 2020: 8.3B on 8 V100 of 32 GB, on 8 A100 of 40 GB.
        PublishedRun{"megatron_2020_v100", gpt(42, 4096, 32), 32, 8, 8, 1024, 8, 8, 1, 1,
                     unsharded(full), megatron_2021(), 0.4, fits},
        PublishedRun{"megatron_2020_a100", gpt(42, 4096, 32), 40, 8, 16, 1024, 16, 8, 1, 1,
                     unsharded(full), megatron_2021(), 0.4, fits},
        // Korthikanti et al. 2022, table 5.
        PublishedRun{"korthikanti_22b_full", gpt(48, 6144, 64), 80, 8, 4, 2048, 4, 8, 1, 1,
                     unsharded(full), megatron_2021(), 0.3, fits},
        PublishedRun{"korthikanti_1t_selective", gpt(128, 25600, 160), 80, 512, 512, 2048, 1, 8, 64,
                     1, unsharded(selective, true), megatron_2021(), 0.7, fits},
        // ZeRO-3 in Narayanan et al. 2021, table 2: 530B on 640 GPUs needs more than its plan says.
        PublishedRun{"zero3_175b", gpt(96, 12288, 96), 80, 384, 1536, 2048, 4, 1, 1, 1,
                     sharded(Sharding::zero3, full), megatron_2021(), 0.3, fits},
        PublishedRun{"zero3_530b", gpt(105, 20480, 128), 80, 640, 2560, 2048, 4, 1, 1, 1,
                     sharded(Sharding::zero3, full), megatron_2021(), 1.1, 1.35},
        // Smith et al. 2022 (MT-NLG); BigScience (BLOOM).
        PublishedRun{"mt_nlg", gpt(105, 20480, 128, 50304), 80, 2240, 1920, 2048, 1, 8, 35, 1,
                     unsharded(full), megatron_2021(4), 0.4, fits},
        PublishedRun{"bloom", bloom(), 80, 384, 2048, 2048, 2, 4, 12, 1, bloom_layout(),
                     megatron_2021(4), 0.3, fits},
        // Jiang et al. 2024 (MegaScale), table 2.
        PublishedRun{"megascale_175b", gpt(96, 12288, 128, 64000), 80, 256, 768, 2048, 1, 8, 8, 6,
                     sharded(Sharding::zero1, selective), nemo(), 0.25, fits},
        // Megatron-Core README: 177B and 462B on H100.
        PublishedRun{"mcore_177b", gpt(96, 12288, 96, 131072), 80, 96, 1152, 4096, 1, 8, 6, 4,
                     sharded(Sharding::zero1), nemo(4), 0.5, fits},
        PublishedRun{"mcore_462b", gpt(112, 18432, 144, 131072), 80, 6144, 3072, 4096, 1, 8, 16, 1,
                     sharded(Sharding::zero1), nemo(4), 0.4, fits},
        // MLPerf Training: GPT-3 on H100, Llama 3.1 405B on H200 and GB200.
        PublishedRun{"mlperf_gpt3", gpt(96, 12288, 96), 80, 512, 2048, 2048, 1, 4, 8, 12,
                     sharded(Sharding::zero1), nemo(), 0.4, fits},
        PublishedRun{"mlperf_405b_h200", llama3_405b(), 141, 512, 1152, 8192, 1, 4, 8, 8,
                     sharded(Sharding::zero1, none, 2), nemo(), 0.9, fits},
        // NVIDIA DGX Cloud recipes.
        PublishedRun{"dgxc_8b", llama3_8b(), 80, 8, 128, 8192, 1, 1, 1, 1,
                     sharded(Sharding::zero1, none, 2), nemo(), 0.6, fits},
        PublishedRun{"dgxc_70b_edge", llama3_70b(), 80, 64, 128, 8192, 1, 4, 8, 5,
                     sharded(Sharding::zero1), nemo(), 0.97, fits},
        PublishedRun{"dgxc_nemotron_340b", nemotron(96, 18432, 96, 192), 80, 512, 128, 4096, 1, 8,
                     8, 12, sharded(Sharding::zero1), nemo(), 0.5, fits},
        PublishedRun{"dgxc_grok", grok(), 80, 512, 1024, 8192, 1, 4, 8, 8, experts(8, 4, 2), nemo(),
                     0.4, fits},
        PublishedRun{"dgxc_deepseek", deepseek_v3(), 80, 1024, 8192, 4096, 1, 2, 16, 1,
                     with_layers(experts(64, 1), {3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3}),
                     nemo(), 1.02, 1.2},
        // llm-foundry: at the edge by design, batches were doubled until they failed.
        PublishedRun{"llm_foundry_70b", mpt(80, 8192, 64), 80, 128, 1024, 2048, 8, 1, 1, 1,
                     sharded(Sharding::fsdp, full), llm_foundry(), 0.5, fits},
        PublishedRun{"llm_foundry_350m_edge", mpt(24, 1024, 16), 40, 16, 288, 2048, 18, 1, 1, 1,
                     sharded(Sharding::fsdp), llm_foundry(), 0.95, 1.02},
        // torchtitan on H100 of 96 GB: published reserved memory 82.4 and 82.5 GiB.
        PublishedRun{"torchtitan_8b", llama3_8b(), 96, 8, 16, 8192, 2, 1, 1, 1,
                     sharded(Sharding::fsdp, Recompute::per_operation), torchtitan(), 0.7, 0.92},
        PublishedRun{"torchtitan_405b_pipeline", llama3_405b(), 96, 512, 256, 8192, 4, 8, 8, 1,
                     sharded(Sharding::fsdp, full), torchtitan(), 0.6, 0.92},
        // Llama 3, table 4: the longest sequence as well.
        PublishedRun{"llama3_405b_128k", llama3_405b(), 80, 16384, 128, 131072, 1, 8, 16, 8,
                     sharded(Sharding::zero2, none, 16), nemo(4), 0.9, fits},
        // Megatron-Bridge pages do not list recomputation: these cannot fit as written.
        PublishedRun{"bridge_70b_fsdp", llama3_70b(), 186, 64, 256, 8192, 2, 1, 1, 1,
                     sharded(Sharding::fsdp), nemo(), 1.8, 2.4},
        PublishedRun{"bridge_70b_unsharded_weights", llama3_70b(), 288, 64, 256, 8192, 2, 1, 1, 1,
                     sharded(Sharding::zero1), nemo(), 2.0, 2.6},
        PublishedRun{"bridge_405b", llama3_405b(), 186, 256, 1536, 8192, 1, 4, 16, 8,
                     sharded(Sharding::zero1), nemo(), 1.02, 1.2}),
    [](const auto& run) { return std::string(run.param.name); });

}  // namespace
}  // namespace trainyard::models
