#include <gmock/gmock.h>

#include "models/training/transformer.hpp"
#include "scenarios/read.hpp"

/// The models of the catalog against what was published of them.
namespace trainyard::models {
namespace {

TransformerSpec model_of(const std::string& name) {
  std::vector<scenarios::Diagnostic> mistakes;
  const auto part =
      scenarios::make_part<TransformerSpec>(scenarios::Catalog::standard(), name, &mistakes);
  EXPECT_TRUE(part) << name << ":\n" << scenarios::to_text(mistakes);
  return part.value_or(TransformerSpec{});
}

// As counted in the released weights.
TEST(ModelParts, ExactCountsOfReleasedWeights) {
  const std::pair<const char*, double> counts[] = {
      {"llama2-7b", 6738415616},         {"llama2-13b", 13015864320},
      {"llama2-70b", 68976648192},       {"llama3-8b", 8030261248},
      {"llama3-70b", 70553706496},       {"llama3-405b", 405853388800},
      {"bloom-176b", 176247271424},      {"mixtral-8x7b", 46702792704},
      {"mixtral-8x22b", 140620634112},   {"qwen3-8b", 8190735360},
      {"qwen3-32b", 32762123264},        {"qwen3-30b-a3b", 30532122624},
      {"qwen3-235b-a22b", 235093634560}, {"deepseek-v3", 671026419200}};
  for (const auto& [name, count] : counts)
    EXPECT_EQ(parameters(model_of(name), 4096), count) << name;

  TransformerSpec later = model_of("mixtral-8x22b");  // releases after the first
  later.vocabulary = 32768;
  EXPECT_EQ(parameters(later, 4096), 140630071296.0);
}

struct Published {
  const char* name;
  double parameters;
  double digits;  // half of the last digit, or what the paper's own rounding needs
};

TEST(ModelParts, PublishedTotals) {
  for (const Published& p : {Published{"gpt3-125m", 125e6, 0.5e6},
                             {"gpt3-350m", 350e6, 7e6},  // 355.9 M
                             {"gpt3-760m", 760e6, 1e6},
                             {"gpt3-1.3b", 1.3e9, 0.05e9},
                             {"gpt3-2.7b", 2.7e9, 0.05e9},
                             {"gpt3-6.7b", 6.7e9, 0.05e9},
                             {"gpt3-13b", 13.0e9, 0.15e9},
                             {"gpt3-175b", 175.0e9, 0.5e9},
                             {"mt-nlg-530b", 530e9, 0.5e9},
                             {"nemotron4-15b", 15.6e9, 0.05e9},
                             {"nemotron4-340b", 341.0e9, 0.1e9}})
    EXPECT_NEAR(parameters(model_of(p.name), 2048), p.parameters, p.digits) << p.name;
}

// Nemotron-4 15B (2024): 12.5 B without embeddings; 340B: 331.6 B and 9.4 B of embeddings.
TEST(ModelParts, NemotronSplitsItsEmbeddings) {
  const TransformerSpec small = model_of("nemotron4-15b"), large = model_of("nemotron4-340b");
  const auto embeddings = [](const TransformerSpec& m) {
    return embedding_weights(m, 4096) + head_weights(m);
  };
  EXPECT_NEAR(parameters(small, 4096) - embeddings(small), 12.5e9, 0.05e9);
  EXPECT_NEAR(parameters(large, 4096) - embeddings(large), 331.6e9, 0.05e9);
  EXPECT_NEAR(embeddings(large), 9.4e9, 0.05e9);
}

// The announced 314 B are the blocks; the embedding, tied, is 0.8 B more.
TEST(ModelParts, Grok) {
  const TransformerSpec grok = model_of("grok-1");
  EXPECT_NEAR(matrix_weights(grok), 314.9e9, 0.05e9);
  EXPECT_NEAR(parameters(grok, 8192), 315.7e9, 0.05e9);
  EXPECT_NEAR(active_parameters(grok, 8192) / parameters(grok, 8192), 0.25, 0.03);  // "25 %"
}

TEST(ModelParts, PublishedActiveParameters) {
  EXPECT_NEAR(active_parameters(model_of("mixtral-8x7b"), 4096), 12.9e9, 0.05e9);
  EXPECT_NEAR(active_parameters(model_of("mixtral-8x22b"), 4096), 39e9, 0.5e9);
  EXPECT_NEAR(active_parameters(model_of("qwen3-30b-a3b"), 4096), 3.3e9, 0.1e9);
  EXPECT_NEAR(active_parameters(model_of("qwen3-235b-a22b"), 4096), 22e9, 0.5e9);
  // DeepSeek-V3 (README_WEIGHTS.md): 36.6 B with the output matrix, without the embedding; its
  // prediction module has 11.5 B of its own.
  TransformerSpec deepseek = model_of("deepseek-v3");
  EXPECT_NEAR(active_parameters(deepseek, 4096) - embedding_weights(deepseek, 4096), 36.6e9,
              0.05e9);
  const double main = parameters(deepseek, 4096);
  deepseek.extra_predictions = 1;
  EXPECT_NEAR(parameters(deepseek, 4096) - main, 11.5e9, 0.15e9);
}

// Megatron-Bridge publishes tokens/s and TFLOP/s per GPU (performance summary, 2026, sequence
// 4,096). It halves attention and leaves the router out (0.2 to 0.3 % here).
TEST(ModelParts, MegatronBridgeFlopsOfExperts) {
  const auto causal = [](const TransformerSpec& m) {
    return model_flops_per_token(m, 4096, FlopsConvention::causal_attention);
  };
  EXPECT_NEAR(causal(model_of("qwen3-235b-a22b")) / (1306e12 / 8816), 1, 0.004);
  EXPECT_NEAR(causal(model_of("qwen3-30b-a3b")) / (203e12 / 8826), 1, 0.006);
  TransformerSpec deepseek = model_of("deepseek-v3");
  EXPECT_LT(causal(deepseek) / (1640e12 / 6304), 0.97);
  deepseek.extra_predictions = 1;  // as it was trained
  EXPECT_NEAR(causal(deepseek) / (1640e12 / 6304), 1, 0.004);
}

// Smith et al. 2022: 126 TFLOP/s on 2,240 GPUs at 60.1 s a step of 1,920 sequences, counted as
// executed with full recomputation.
TEST(ModelParts, ExecutedFlopsOfPublishedRuns) {
  const TransformerSpec mt_nlg = model_of("mt-nlg-530b");
  const double tokens_s = 1920 * 2048 / 60.1 / 2240;
  EXPECT_NEAR(hardware_flops_per_token(mt_nlg, 2048, Recompute::full) * tokens_s, 126e12, 0.5e12);
  EXPECT_NEAR(gpt_formula_with_recompute(mt_nlg, 2048) * tokens_s, 126e12, 0.5e12);
}

TEST(ModelParts, EveryModelOfTheCatalogCounts) {
  const auto names = scenarios::Catalog::standard().names("model");
  EXPECT_GE(names.size(), 26u);
  for (const std::string& name : names) {
    const TransformerSpec m = model_of(name);
    EXPECT_GT(parameters(m, 2048), 1e8) << name;
    EXPECT_LE(active_parameters(m, 2048), parameters(m, 2048)) << name;
    for (const FlopsRow& row : flops_table(m, 2048)) EXPECT_GT(row.per_token, 1e8) << name;
  }
}

std::string first_mistake(const std::string& model) {
  const auto read =
      scenarios::read_scenario_text(R"({"jobs": {"a": {"model": )" + model + "}}}", "a.json");
  for (const auto& d : read.diagnostics)
    if (d.path.starts_with("jobs.a.model")) return d.path + ": " + d.what;
  return "";
}

TEST(ModelParts, MistakesInShapesAreRefused) {
  const auto with = [](const std::string& fields) {
    return R"({"layers": 4, "hidden": 64, "heads": 8, "ffn": 128, "vocabulary": 100)" + fields +
           "}";
  };
  EXPECT_EQ(first_mistake(with("")), "");
  EXPECT_EQ(first_mistake(with(R"(, "experts": {"count": 8, "per_token": 2, "first_dense": 3})")),
            "");
  EXPECT_EQ(first_mistake(with(R"(, "experts": {"count": 8, "per_token": 9})")),
            "jobs.a.model.experts.per_token: must be at most count (found 9)");
  EXPECT_EQ(first_mistake(with(R"(, "experts": {"count": 8, "per_token": 2, "first_dense": 4})")),
            "jobs.a.model.experts: first_dense must be less than layers");
  EXPECT_EQ(first_mistake(with(R"(, "layer_table": [{"count": 3}, {"ffn": 64}])")), "");
  EXPECT_EQ(first_mistake(with(R"(, "layer_table": [{"count": 3}])")),
            "jobs.a.model.layer_table: counts of the rows must add up to layers");
  EXPECT_EQ(first_mistake(with(R"(, "layer_table": [{"count": 4, "kv_heads": 3}])")),
            "jobs.a.model.layer_table: kv_heads must divide heads in every row");
  EXPECT_EQ(first_mistake(with(
                R"(, "layer_table": [{"count": 4}], "experts": {"count": 8, "per_token": 2})")),
            "jobs.a.model.experts: with layer_table, experts belong into its rows");
  EXPECT_EQ(first_mistake(with(R"(, "kv_heads": 2, "latent_attention": {"kv_rank": 8,
                                   "head_size": 8, "rotary_size": 4})")),
            "jobs.a.model.latent_attention: has head sizes and norms of its own: remove kv_heads, "
            "head_size and query_key_norm");
  EXPECT_EQ(first_mistake(with(R"(, "norm": "rms")")),
            "jobs.a.model.norm: expected \"layer-norm\" or \"rms-norm\", found \"rms\"");
}

}  // namespace
}  // namespace trainyard::models
