#include "models/training/transformer.hpp"

#include <gmock/gmock.h>

#include "tests/support/training_fixtures.hpp"

namespace trainyard::models {
namespace {

using namespace fixtures;

TEST(Transformer, EveryWeightOfATinyModelByHand) {
  TransformerSpec m;
  m.layers = 2;
  m.hidden = 8;
  m.heads = 4;
  m.kv_heads = 2;
  m.ffn = 16;
  m.gated = true;
  m.vocabulary = 10;
  // head_size 2; qkv 8 x (4 + 2 + 2) 2 = 128; projection 8 x 8 = 64; ffn 3 x 8 x 16 = 384; norms 16
  const LayerWeights w = layer_weights(m);
  EXPECT_EQ(w.qkv, 128);
  EXPECT_EQ(w.projection, 64);
  EXPECT_EQ(w.ffn, 384);
  EXPECT_EQ(w.biases, 0);
  EXPECT_EQ(w.norms, 16);
  EXPECT_EQ(parameters(m, 32), 2 * (128 + 64 + 384 + 16) + 80 + 80 + 8);
  m.tied_embeddings = true;
  EXPECT_EQ(parameters(m, 32), 2 * 592 + 80 + 8);
  m.gated =
      false;  // two matrices; biases 16 + 8 + 16 + 8; norms 32; positions 32 x 8; final norm 16
  EXPECT_EQ(parameters(m, 32), 2 * (128 + 64 + 256 + 48 + 32) + 80 + 256 + 16);
}

TEST(Transformer, PublishedParameterCounts) {
  EXPECT_EQ(parameters(llama3_405b(), 8192),
            405853388800.0);  // as Hugging Face counts the released weights
  EXPECT_EQ(parameters(llama3_70b(), 8192), 70553706496.0);
  EXPECT_EQ(parameters(llama3_8b(), 8192), 8030261248.0);
  EXPECT_NEAR(parameters(gpt(96, 12288, 96, 50257), 2048), 174.6e9,
              0.05e9);                                            // Brown et al. 2020: 175.0B
  EXPECT_NEAR(parameters(gpt(48, 6144, 64), 2048), 22e9, 0.5e9);  // Korthikanti et al. 2022
  EXPECT_NEAR(parameters(gpt(105, 20480, 128), 2048), 530e9, 1e9);
  EXPECT_NEAR(parameters(gpt(128, 25600, 160), 2048), 1e12, 0.01e12);
}

TEST(Transformer, NarayananFormulaOfParameters) {
  // 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)), without the final norm's 2 h
  const double L = 96, h = 12288, V = 51200, s = 2048;
  EXPECT_NEAR(parameters(gpt(96, 12288, 96), 2048),
              12 * L * h * h * (1 + 13 / (12 * h) + (V + s) / (12 * L * h)) + 2 * h, 1.0);
}

TEST(Transformer, KorthikantiFormulaOfFlops) {
  const double L = 96, h = 12288, V = 51200, s = 2048;
  const TransformerSpec m = gpt(96, 12288, 96);
  const double model = 72 * L * h * h * (1 + s / (6 * h) + V / (12 * L * h));
  const double full = 96 * L * h * h * (1 + s / (6 * h) + V / (16 * L * h));
  EXPECT_NEAR(model_flops_per_token(m, 2048) / model, 1, 1e-12);
  EXPECT_NEAR(hardware_flops_per_token(m, 2048, Recompute::none) / model, 1, 1e-12);
  EXPECT_NEAR(hardware_flops_per_token(m, 2048, Recompute::full) / full, 1, 1e-12);
  EXPECT_NEAR(hardware_flops_per_token(m, 2048, Recompute::selective) - model, 4 * h * s * L, 1.0);
}

TEST(Transformer, PalmPerTokenFormula) {
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

TEST(Transformer, ConventionsDifferByWhatTheyName) {
  const TransformerSpec m = llama3_405b();
  const double attention = 12.0 * 126 * 16384 * 8192;
  EXPECT_NEAR(model_flops_per_token(m, 8192, FlopsConvention::causal_attention),
              model_flops_per_token(m, 8192) - attention / 2, 1.0);
  EXPECT_DOUBLE_EQ(model_flops_per_token(m, 8192, FlopsConvention::six_n), 6 * parameters(m, 8192));
  EXPECT_NEAR(model_flops_per_token(m, 8192) / 2.625e12, 1, 1e-3);
}

TEST(Transformer, LayersAndHeadSumToTheWhole) {
  const TransformerSpec m = llama3_70b();
  EXPECT_DOUBLE_EQ(3 * (80 * layer_forward_flops(m, 4096) + head_forward_flops(m)),
                   model_flops_per_token(m, 4096));
}

}  // namespace
}  // namespace trainyard::models
