#include "scenarios/published_run.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <sstream>

#include "models/training/plan.hpp"
#include "scenarios/published_layout.hpp"
#include "scenarios/published_model.hpp"

namespace trainyard::scenarios {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

using Cells = std::vector<std::pair<std::string, std::string>>;

/// A complete row of a dense run; `changes` replace or add cells.
MadeRow row_with(const Cells& changes) {
  Cells cells{{"source", "NVIDIA Megatron-LM / Megatron-Core repository README"},
              {"model", "GPT-16B"},
              {"layers", "32"},
              {"hidden", "6144"},
              {"heads", "48"},
              {"kv_heads", "48"},
              {"ffn", "24576"},
              {"gated_mlp", "0"},
              {"vocab", "131072"},
              {"moe", ""},
              {"seq", "4096"},
              {"global_batch_seqs", "192"},
              {"tp", "4"},
              {"pp", "1"},
              {"recompute", "none"},
              {"precision", "bf16"},
              {"gpu", "H100-80GB"},
              {"gpus", "192"},
              {"gpus_per_node", "8"},
              {"nic_gbps_per_gpu", "400"},
              {"iter_time_s_derived", "0.85"}};
  for (const auto& [column, text] : changes) {
    const auto known =
        std::find_if(cells.begin(), cells.end(), [&](const auto& c) { return c.first == column; });
    if (known == cells.end())
      cells.emplace_back(column, text);
    else
      known->second = text;
  }
  MadeRow row("t.csv", 2);
  for (const auto& [column, text] : cells) row.add(column, text);
  return row;
}

struct Read {
  std::variant<PublishedRun, SkipReason> result;
  std::vector<Diagnostic> mistakes;
  const PublishedRun& run() const { return std::get<PublishedRun>(result); }
  std::string reason() const {
    const auto* skipped = std::get_if<SkipReason>(&result);
    return skipped ? *skipped : "";
  }
};

Read read(const Cells& changes = {}) {
  static PublishedShelf shelf;
  const MadeRow row = row_with(changes);
  Read out;
  out.result = published_run(row.table(), row.row(), shelf, out.mistakes);
  return out;
}

TEST(PublishedRun, is_what_the_row_says) {
  const Read r = read();
  ASSERT_THAT(r.reason(), IsEmpty());
  const models::JobSpec& job = r.run().job;
  EXPECT_EQ(r.run().stack, "Megatron-Core");
  EXPECT_EQ(r.run().gpu_part, "h100-sxm");
  EXPECT_TRUE(r.run().derived);
  EXPECT_DOUBLE_EQ(r.run().published_s, 0.85);
  EXPECT_EQ(job.model.layers, 32);
  EXPECT_EQ(job.parallel.tensor, 4);
  EXPECT_EQ(r.run().machine.cluster.servers, 24);
  EXPECT_DOUBLE_EQ(r.run().machine.cluster.server.nic.rate.value(), 50e9);
}

TEST(PublishedRun, a_reported_time_comes_before_a_derived_one) {
  const Read r = read({{"iter_time_s", "0.9"}});
  EXPECT_DOUBLE_EQ(r.run().published_s, 0.9);
  EXPECT_FALSE(r.run().derived);
}

// 192 sequences on 48 replicas are 4 each; with a pipeline each goes alone.
TEST(PublishedRun, fills_the_micro_batch) {
  EXPECT_EQ(read().run().job.parallel.micro_batch, 4);
  EXPECT_THAT(read().run().rules, Contains(StartsWith("micro-batch not given")));
  const Read piped = read({{"pp", "2"}});
  EXPECT_EQ(piped.run().job.parallel.micro_batch, 1);
  const Read given = read({{"micro_batch", "2"}});
  EXPECT_EQ(given.run().job.parallel.micro_batch, 2);
  EXPECT_THAT(given.run().rules, Not(Contains(StartsWith("micro-batch"))));
  // 2 accumulations of 4 sequences are micro-batches of 2, whatever the cell says.
  EXPECT_EQ(read({{"micro_batch", "1"}, {"grad_accum", "2"}}).run().job.parallel.micro_batch, 2);
}

// 3 does not divide the 4 sequences of a replica.
TEST(PublishedRun, shrinks_a_micro_batch_that_does_not_divide) {
  const Read r = read({{"micro_batch", "3"}});
  EXPECT_EQ(r.run().job.parallel.micro_batch, 2);
  EXPECT_THAT(r.run().rules, Contains(HasSubstr("next smaller")));
}

// torchtitan: a local batch of 32 on 8 stages is 8 micro-batches of 4.
TEST(PublishedRun, cuts_a_local_batch_into_one_micro_batch_a_stage) {
  const Read r = read({{"source", "PyTorch torchtitan"},
                       {"pp", "8"},
                       {"tp", "8"},
                       {"micro_batch", "32"},
                       {"gpus", "512"},
                       {"global_batch_seqs", "256"},
                       {"schedule", "1F1B"},
                       {"note", "async TP"}});
  ASSERT_THAT(r.reason(), IsEmpty());
  EXPECT_EQ(r.run().job.parallel.micro_batch, 4);
  EXPECT_EQ(r.run().software_part, "torchtitan-async-tp");
}

struct ChunkCase {
  const char* source;
  const char* layers;
  const char* pipeline;
  int chunks;
};
class MissingChunk : public testing::TestWithParam<ChunkCase> {};
TEST_P(MissingChunk, is_filled_by_the_stack) {
  const ChunkCase& c = GetParam();
  const Read r = read({{"source", c.source},
                       {"layers", c.layers},
                       {"pp", c.pipeline},
                       {"tp", "8"},
                       {"gpus", "384"},
                       {"global_batch_seqs", "1536"},
                       {"schedule", "1F1B interleaved"}});
  ASSERT_THAT(r.reason(), IsEmpty());
  EXPECT_EQ(r.run().job.parallel.chunks, c.chunks);
}
INSTANTIATE_TEST_SUITE_P(
    Stacks, MissingChunk,
    testing::Values(ChunkCase{"Narayanan, SC 2021", "96", "12", 2},    // 8 layers a stage
                    ChunkCase{"Narayanan, SC 2021", "36", "12", 3},    // 3
                    ChunkCase{"MLPerf Training v4.1", "96", "8", 12},  // one layer each
                    ChunkCase{"NVIDIA DGX Cloud Benchmarking", "96", "8", 1},
                    ChunkCase{"Megatron-Core repository", "96", "6", 4}));

// 30 micro-batches of a replica on 8 stages cannot be interleaved.
TEST(PublishedRun, does_not_interleave_what_cannot_be) {
  const Read r = read({{"pp", "8"},
                       {"vp", "4"},
                       {"gpus", "256"},
                       {"global_batch_seqs", "240"},
                       {"micro_batch", "1"},
                       {"schedule", "1F1B interleaved"}});
  ASSERT_THAT(r.reason(), IsEmpty());
  EXPECT_EQ(r.run().job.parallel.chunks, 1);
  EXPECT_THAT(r.run().rules, Contains(HasSubstr("not interleaved")));
}

TEST(PublishedRun, reads_precisions) {
  const auto precision = [](const char* text) {
    return std::string(name_of(read({{"precision", text}}).run().job.parallel.precision));
  };
  EXPECT_EQ(precision("fp8 tensorwise"), "fp8");
  EXPECT_EQ(precision("fp8 (assumed)"), "fp8");
  EXPECT_EQ(precision("fp8 rowwise"), "fp8-rowwise");
  EXPECT_THAT(read({{"precision", "int4"}}).reason(), HasSubstr("not modelled"));
  EXPECT_THAT(read({{"precision", ""}}).reason(), HasSubstr("precision not stated"));
}

TEST(PublishedRun, reads_shardings) {
  models::Sharding s{};
  const auto read_as = [&](const char* text) {
    return read_sharding(text, s) == SharedText::known ? std::string(name_of(s)) : "";
  };
  EXPECT_EQ(read_as("0"), "none");
  EXPECT_EQ(read_as("1.0"), "zero-1");
  EXPECT_EQ(read_as("ZeRO-3"), "zero-3");
  EXPECT_EQ(read_as("FSDP2 full shard"), "fsdp");
  EXPECT_EQ(read_as("FSDP grad/op shard"), "zero-2");
  EXPECT_EQ(read_as("FSDP (optimizer+gradient sharded, no reshard after forward)"), "zero-2");
  EXPECT_EQ(read_as("what"), "");
  EXPECT_EQ(read_sharding("", s), SharedText::not_given);
}

TEST(PublishedRun, says_why_a_row_is_of_no_use) {
  EXPECT_THAT(read({{"iter_time_s_derived", ""}}).reason(), HasSubstr("no time"));
  EXPECT_THAT(read({{"gpu", "MI250X (GCD)"}}).reason(), HasSubstr("no constants for GPU"));
  EXPECT_THAT(read({{"hidden", ""}}).reason(), HasSubstr("shape of the model"));
  EXPECT_THAT(read({{"tp", ""}}).reason(), HasSubstr("layout not stated"));
  EXPECT_THAT(read({{"tp", "7"}}).reason(), HasSubstr("does not multiply"));
  EXPECT_THAT(read({{"moe", "hybrid: mostly Mamba-2 layers"}}).reason(), HasSubstr("transformer"));
  EXPECT_THAT(read({{"moe", "a great many experts"}}).reason(), HasSubstr("not described fully"));
  EXPECT_THAT(read({{"global_batch_seqs", "12"}}).reason(), HasSubstr("fewer sequences"));
  const Read wrong = read({{"gpus", "many"}});
  ASSERT_THAT(wrong.mistakes, SizeIs(1));
  EXPECT_THAT(wrong.mistakes[0].text(), HasSubstr("gpus: found"));
  EXPECT_THAT(read({{"pp", "1.5"}}).mistakes, SizeIs(1));
}

TEST(PublishedRun, of_a_rack_scale_machine_uses_whole_domains) {
  EXPECT_EQ(domain_size(256, 72, 4), 64);
  EXPECT_EQ(domain_size(2496, 72, 4), 64);  // 39 domains
  EXPECT_EQ(domain_size(144, 72, 4), 72);   // 16 would leave too many idle
  EXPECT_EQ(domain_size(8, 72, 8), 8);
  const Read r = read(
      {{"gpu", "GB200"}, {"gpus", "256"}, {"gpus_per_node", "4"}, {"global_batch_seqs", "256"}});
  ASSERT_THAT(r.reason(), IsEmpty());
  EXPECT_EQ(r.run().machine.cluster.servers, 4);
}

TEST(PublishedRun, divides_the_adapters_of_a_server) {
  // vTrain: 800 Gb/s of an A100 server are four adapters of 200.
  const Read r =
      read({{"gpu", "A100-80GB"}, {"nic_gbps_per_gpu", ""}, {"internode_gbps_per_node", "800"}});
  ASSERT_THAT(r.reason(), IsEmpty());
  EXPECT_EQ(r.run().machine.cluster.server.nics, 4);
  EXPECT_DOUBLE_EQ(r.run().machine.cluster.server.nic.rate.value(), 25e9);
}

TEST(PublishedRun, builds_the_pods_of_the_words) {
  const Read r =
      read({{"gpus", "16384"},
            {"tp", "8"},
            {"global_batch_seqs", "2048"},
            {"fabric", "3-layer Clos, 3072-GPU pods full bisection, 1:7 oversubscribed"}});
  ASSERT_THAT(r.reason(), IsEmpty());
  const topologies::FabricSpec& f = r.run().machine.cluster.fabric;
  EXPECT_EQ(f.tiers, 3);
  EXPECT_EQ(f.leaves_per_pod, 192);  // 384 servers, two a leaf
  EXPECT_EQ(f.spine_oversubscription, 7);
}

TEST(PublishedRun, a_megascale_window_leaves_its_share_of_the_work) {
  const Read r = read({{"source", "Jiang et al., MegaScale: Scaling"}, {"software", "MegaScale"}});
  ASSERT_THAT(r.reason(), IsEmpty());
  EXPECT_TRUE(r.run().job.model.parallel_block);
  const double x = double(*r.run().job.model.attention_window) / 4096;
  EXPECT_NEAR(2 * x - x * x, 0.6, 1e-3);
  const Read base =
      read({{"source", "Jiang et al., MegaScale: Scaling"}, {"software", "Megatron-LM"}});
  EXPECT_FALSE(base.run().job.model.parallel_block);
}

TEST(ExpertsText, is_read_in_any_order) {
  const ExpertsText deepseek = read_experts(
      "256 routed experts top-8 + 1 shared; expert ffn 2048; first 3 layers dense; MLA attention");
  EXPECT_EQ(deepseek.experts.count, 256);
  EXPECT_EQ(deepseek.experts.per_token, 8);
  EXPECT_EQ(deepseek.experts.shared, 1);
  EXPECT_EQ(deepseek.experts.ffn, 2048);
  EXPECT_EQ(deepseek.experts.first_dense, 3);
  EXPECT_TRUE(deepseek.has_latent_attention);
  const ExpertsText grok = read_experts("expert ffn 32768; 8 experts top-2");
  EXPECT_EQ(grok.experts.count, 8);
  EXPECT_EQ(grok.experts.per_token, 2);
  EXPECT_EQ(grok.experts.shared, 0);
  EXPECT_FALSE(grok.has_latent_attention);
}

int sum(const std::vector<int>& layers) {
  return std::accumulate(layers.begin(), layers.end(), 0);
}

TEST(DividedLayers, leave_to_the_plan_what_it_divides) {
  EXPECT_THAT(divided_layers(96, 8, 12, 0), IsEmpty());
  EXPECT_THAT(divided_layers(126, 8, 8, 0), IsEmpty());  // 126 + 2
}

// DeepSeek-V3: 61 layers, that of a further prediction and two heads are 64 = 16 . 4.
TEST(DividedLayers, count_heads_and_predictions) {
  const std::vector<int> layers = divided_layers(61, 16, 1, 1);
  EXPECT_EQ(layers.front(), 4);
  EXPECT_EQ(layers.back(), 1);
  EXPECT_EQ(layers[5], 4);
  EXPECT_EQ(sum(layers), 61);
}

// 92 layers on 4 stages of 4 chunks: 23 a stage, as 6, 6, 6, 5.
TEST(DividedLayers, keep_stages_alike) {
  const std::vector<int> layers = divided_layers(92, 4, 4, 0);
  ASSERT_THAT(layers, SizeIs(16));
  for (std::size_t stage = 0; stage < 4; ++stage)
    EXPECT_THAT(
        (std::vector<int>{layers[stage], layers[4 + stage], layers[8 + stage], layers[12 + stage]}),
        ElementsAre(6, 6, 6, 5));
}

TEST(StackOf, knows_recipes_with_experts_by_machine_and_release) {
  const auto software = [](std::string_view release, std::string_view gpu, std::string_view model,
                           bool experts = true) {
    const std::string source =
        "NVIDIA NeMo Megatron-Bridge documentation, container release " + std::string(release);
    return stack_of({.source = source,
                     .model = model,
                     .gpu = gpu,
                     .precision = "mxfp8",
                     .has_experts = experts})
        .software;
  };
  EXPECT_EQ(software("26.04.01 NeMo Container", "GB300", "DeepSeek-V3"), "megatron-bridge-experts");
  EXPECT_EQ(software("26.06 NeMo Container", "GB300", "DeepSeek-V3"), "megatron-bridge-fused");
  EXPECT_EQ(software("26.08", "GB300", "Llama", false), "megatron-bridge");
  EXPECT_EQ(software("26.04", "B200", "DeepSeek-V3"), "megatron-bridge-launched");
  EXPECT_EQ(software("26.04.01", "B200", "DeepSeek-V3"), "megatron-bridge-experts-overlap");
  EXPECT_EQ(software("26.02", "H100-80GB", "Qwen3-235B"), "megatron-bridge-all-to-all-overlap");
  EXPECT_EQ(software("26.02", "B300", "Qwen3-235B"), "megatron-bridge-all-to-all");
  EXPECT_EQ(software("26.04.01", "B300", "Qwen3-235B"), "megatron-bridge-launched");
}

TEST(DividedLayers, never_lose_a_layer) {
  for (int layers = 1; layers < 80; ++layers)
    for (const int pipeline : {1, 2, 3, 5, 8})
      for (const int chunks : {1, 2, 3, 7})
        for (const int extra : {0, 1}) {
          if (pipeline == 1 && chunks > 1) continue;
          const std::vector<int> out = divided_layers(layers, pipeline, chunks, extra);
          if (out.empty()) continue;
          EXPECT_EQ(sum(out), layers) << layers << " on " << pipeline << " x " << chunks;
          EXPECT_GE(*std::min_element(out.begin(), out.end()), 0);
        }
}

}  // namespace
}  // namespace trainyard::scenarios
