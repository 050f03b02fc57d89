#include "models/training/transformer.hpp"

#include <gmock/gmock.h>

#include "tests/support/training_fixtures.hpp"

namespace trainyard::models {
namespace {

using namespace fixtures;

TEST(TransformerFlops, KorthikantiFormulaOfFlops) {
  const double L = 96, h = 12288, V = 51200, s = 2048;
  const TransformerSpec m = gpt(96, 12288, 96);
  const double model = 72 * L * h * h * (1 + s / (6 * h) + V / (12 * L * h));
  const double full = 96 * L * h * h * (1 + s / (6 * h) + V / (16 * L * h));
  EXPECT_NEAR(model_flops_per_token(m, 2048) / model, 1, 1e-12);
  EXPECT_NEAR(hardware_flops_per_token(m, 2048, Recompute::none) / model, 1, 1e-12);
  EXPECT_NEAR(hardware_flops_per_token(m, 2048, Recompute::full) / full, 1, 1e-12);
  EXPECT_NEAR(hardware_flops_per_token(m, 2048, Recompute::selective) - model, 4 * h * s * L, 1.0);
}

TEST(TransformerFlops, PalmPerTokenFormula) {
  // PaLM 540B (appendix B): 6 N + 12 L H Q T with N the weights in matrix products; 118 layers, 48
  // heads of 256.
  TransformerSpec m;
  m.layers = 118;
  m.hidden = 18432;
  m.heads = 48;
  m.kv_heads = 1;
  m.head_size = 256;
  m.ffn = 4 * 18432;
  m.gated = true;
  m.vocabulary = 256000;
  m.tied_embeddings = true;
  const double n = matrix_weights(m) + 256000.0 * 18432;
  EXPECT_DOUBLE_EQ(model_flops_per_token(m, 2048), 6 * n + 12.0 * 118 * 48 * 256 * 2048);
  EXPECT_NEAR(parameters(m, 2048), 540.35e9, 0.3e9);
}

TEST(TransformerFlops, ConventionsDifferByWhatTheyName) {
  const TransformerSpec m = llama3_405b();
  const double attention = 12.0 * 126 * 16384 * 8192;
  EXPECT_NEAR(model_flops_per_token(m, 8192, FlopsConvention::causal_attention),
              model_flops_per_token(m, 8192) - attention / 2, 1.0);
  EXPECT_DOUBLE_EQ(model_flops_per_token(m, 8192, FlopsConvention::six_n), 6 * parameters(m, 8192));
  EXPECT_NEAR(model_flops_per_token(m, 8192) / 2.625e12, 1, 1e-3);
}

TEST(TransformerFlops, LayersAndHeadSumToTheWhole) {
  const TransformerSpec m = llama3_70b();
  EXPECT_DOUBLE_EQ(3 * (80 * layer_forward_flops(m, 4096) + head_forward_flops(m)),
                   model_flops_per_token(m, 4096));
}

// Computed vectors of the published formulas (Narayanan et al., SC 2021; Korthikanti et al., 2022):
// vocabulary 51,200, sequence 2,048.
struct Vector {
  int layers, hidden, batch;
  double parameters, with_recompute, model;  // FLOPs of a step
};

TEST(TransformerFlops, VectorsOfThePublishedFormulas) {
  for (const Vector& v : {Vector{24, 2304, 512, 1.65223e9, 1.54668e16, 1.17857e16},
                          Vector{96, 12288, 1536, 1.74616e11, 4.51097e18, 3.3862e18},
                          Vector{128, 25600, 3072, 1.00804e12, 5.13905e19, 3.85553e19}}) {
    const TransformerSpec m = gpt(v.layers, v.hidden, v.hidden / 128);
    const double tokens = v.batch * 2048.0;
    EXPECT_NEAR(parameters(m, 2048) / v.parameters, 1, 4e-6);
    EXPECT_NEAR(gpt_formula_with_recompute(m, 2048) * tokens / v.with_recompute, 1, 4e-6);
    EXPECT_NEAR(hardware_flops_per_token(m, 2048, Recompute::full) * tokens / v.with_recompute, 1,
                4e-6);
    EXPECT_NEAR(model_flops_per_token(m, 2048, FlopsConvention::gpt_formula) * tokens / v.model, 1,
                4e-6);
    EXPECT_NEAR(model_flops_per_token(m, 2048) * tokens / v.model, 1, 4e-6);
  }
}

TEST(TransformerFlops, TheGptFormulaFitsGptsOnly) {
  const TransformerSpec m = llama3_8b();  // grouped heads and a wider, gated feed-forward block
  EXPECT_GT(model_flops_per_token(m, 8192),
            1.05 * model_flops_per_token(m, 8192, FlopsConvention::gpt_formula));
}

// llm-foundry prints TFLOP/s as (6 N + 12 L h S) . tokens/s: MPT-7b of 6.6589e9 parameters,
// 10,475.2 tokens/s and 452 TFLOP/s per H100 (989 dense BF16) at sequence 2,048; 45.65 % by the
// rule that all published rows are compared with, full attention.
TEST(TransformerFlops, LlmFoundryCountsAsPalm) {
  const TransformerSpec mpt = gpt(32, 4096, 32, 50368);
  EXPECT_NEAR(parameters(mpt, 2048), 6.6589e9, 0.00005e9);
  EXPECT_NEAR(model_flops_per_token(mpt, 2048, FlopsConvention::palm) * 10475.2, 452e12, 0.5e12);
  EXPECT_NEAR(model_flops_per_token(mpt, 2048) * 10475.2 / 989.4e12, 0.456465, 0.0005);
}

// Megatron-Bridge publishes both tokens/s and TFLOP/s per GPU (performance summary): their quotient
// is its FLOPs per token. It halves attention.
TEST(TransformerFlops, MegatronBridgeCountsCausalAttention) {
  const double llama =
      model_flops_per_token(llama3_405b(), 8192, FlopsConvention::causal_attention);
  EXPECT_NEAR(llama / (2646e12 / 1048), 1, 1e-3);  // Llama 3.1 405B on GB300
}

TEST(TransformerFlops, EveryConventionAppearsByName) {
  const TransformerSpec m = llama3_70b();
  const std::vector<FlopsRow> table = flops_table(m, 4096);
  ASSERT_EQ(table.size(), 9u);
  std::size_t row = 0;
  for (const auto& [convention, name] : Names<FlopsConvention>::all)
    EXPECT_EQ(table[row++].per_token, model_flops_per_token(m, 4096, convention)) << name;
  EXPECT_EQ(table[5].per_token, gpt_formula_with_recompute(m, 4096));
  EXPECT_EQ(table[6].per_token, hardware_flops_per_token(m, 4096, Recompute::none));
  EXPECT_EQ(table[7].per_token, hardware_flops_per_token(m, 4096, Recompute::selective));
  EXPECT_EQ(table[8].per_token, hardware_flops_per_token(m, 4096, Recompute::full));
  EXPECT_EQ(table[6].per_token, table[0].per_token);
  for (const FlopsRow& r : table) EXPECT_FALSE(r.name.empty() || r.counts.empty());
}

TEST(TransformerFlops, PalmAddsWhatHasNoMatrix) {
  const TransformerSpec m = llama3_70b();
  const double norms = 161.0 * 8192;
  const double embedding = 128256.0 * 8192;
  EXPECT_EQ(model_flops_per_token(m, 4096, FlopsConvention::palm),
            model_flops_per_token(m, 4096) + 6 * (norms + embedding));
}

TEST(TransformerFlops, ExpertsCountByTheTokensSentToThem) {
  TransformerSpec m = llama3_8b();
  m.experts = ExpertsSpec{.count = 8, .per_token = 2};
  TransformerSpec four = m;
  four.experts->per_token = 4;
  const double expert = 3.0 * 4096 * 14336;
  EXPECT_EQ(model_flops_per_token(four, 2048) - model_flops_per_token(m, 2048),
            6 * 32 * 2 * expert);
  TransformerSpec many = m;  // idle experts cost the router only
  many.experts->count = 16;
  EXPECT_EQ(model_flops_per_token(many, 2048) - model_flops_per_token(m, 2048),
            6 * 32 * 8 * 4096.0);
  EXPECT_EQ(model_flops_per_token(m, 2048, FlopsConvention::six_n), 6 * active_parameters(m, 2048));
}

TEST(TransformerFlops, CapacityIsComputedWhetherFilledOrNot) {
  TransformerSpec m = llama3_8b();
  m.experts = ExpertsSpec{.count = 8, .per_token = 2};
  const double expert = 3.0 * 4096 * 14336;
  const auto executed = [&m](std::optional<double> factor, Recompute r) {
    TransformerSpec copy = m;
    copy.experts->capacity_factor = factor;
    return hardware_flops_per_token(copy, 2048, r);
  };
  const double dropless = executed({}, Recompute::none);
  EXPECT_EQ(dropless, model_flops_per_token(m, 2048));
  EXPECT_EQ(executed(1.0, Recompute::none), dropless);
  EXPECT_EQ(executed(1.25, Recompute::none), dropless + 6 * 32 * 0.5 * expert);
  EXPECT_EQ(executed(0.5, Recompute::none), dropless - 6 * 32 * 1.0 * expert);  // tokens dropped
  EXPECT_EQ(executed(1.25, Recompute::full), executed({}, Recompute::full) + 8 * 32 * 0.5 * expert);
  EXPECT_EQ(executed(4.0, Recompute::none), dropless + 6 * 32 * 6.0 * expert);  // all tokens at all
  EXPECT_EQ(executed(9.0, Recompute::none), executed(4.0, Recompute::none));
  m.experts->capacity_factor = 2;
  EXPECT_EQ(model_flops_per_token(m, 2048), dropless);  // what is needed stays
}

}  // namespace
}  // namespace trainyard::models
