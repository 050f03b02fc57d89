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

// 8 wide, 4 heads of 2 and 2 kv heads, ffn 16, 2 layers, vocabulary 10.
TransformerSpec tiny() {
  TransformerSpec m;
  m.layers = 2;
  m.hidden = 8;
  m.heads = 4;
  m.kv_heads = 2;
  m.ffn = 16;
  m.gated = true;
  m.vocabulary = 10;
  return m;
}

TEST(Transformer, BiasesPositionsAndNormsMayBeNamed) {
  TransformerSpec m = tiny();
  const double gated = parameters(m, 32);
  m.biases = Biases::none;
  m.positions = Positions::rotary;
  m.norm = Norm::rms_norm;
  EXPECT_EQ(parameters(m, 32), gated);  // what a gated model has anyway

  m.biases = Biases::qkv;
  EXPECT_EQ(layer_weights(m).biases, 16);  // (4 + 2 + 2) 2
  m.biases = Biases::all;
  EXPECT_EQ(layer_weights(m).biases, 16 + 8 + 2 * 16 + 8);  // and projection, gate, up, down
  m.norm = Norm::layer_norm;
  EXPECT_EQ(layer_weights(m).norms, 2 * 16);
  m.norms_per_layer = 4;
  EXPECT_EQ(layer_weights(m).norms, 4 * 16);
  m.query_key_norm = true;
  EXPECT_EQ(layer_weights(m).norms, 4 * 16 + 2 * 4);  // one weight and bias vector of a head each
  m.positions = Positions::learned;
  EXPECT_EQ(embedding_weights(m, 32), 80 + 32 * 8);
  m.embedding_norm = true;
  EXPECT_EQ(embedding_weights(m, 32), 80 + 32 * 8 + 16);

  TransformerSpec plain = tiny();
  plain.gated = false;
  plain.biases = Biases::none;
  plain.positions = Positions::none;
  plain.norm = Norm::rms_norm;
  EXPECT_EQ(parameters(plain, 32), 2 * (128 + 64 + 256 + 16) + 80 + 80 + 8);
}

TEST(Transformer, ExpertsByHand) {
  TransformerSpec m = tiny();
  m.experts = ExpertsSpec{.count = 4, .per_token = 2, .ffn = 3, .shared = 1, .shared_ffn = 5};
  const LayerWeights w = layer_weights(m);
  EXPECT_EQ(w.expert, 3 * 8 * 3);
  EXPECT_EQ(w.ffn, 3 * 8 * 5);  // the shared one
  EXPECT_EQ(w.router, 8 * 4);
  EXPECT_EQ(w.matrices(), 128 + 64 + 120 + 32 + 4 * 72);
  EXPECT_EQ(w.active_matrices(), 128 + 64 + 120 + 32 + 2 * 72);
  EXPECT_EQ(parameters(m, 32), 2 * (632 + 16) + 80 + 80 + 8);
  EXPECT_EQ(active_parameters(m, 32), parameters(m, 32) - 2 * 2 * 72);
  m.experts->router_bias = true;
  EXPECT_EQ(layer_weights(m).biases, 4);
  m.biases = Biases::all;  // (qkv 16, projection 8), router 4, shared 2 . 5 + 8
  EXPECT_EQ(layer_weights(m).biases, 16 + 8 + 4 + 18);
  EXPECT_EQ(layer_weights(m).expert_biases, 2 * 3 + 8);
  m.experts->shared_ffn.reset();
  EXPECT_EQ(layer_weights(m).ffn, 3 * 8 * 3);  // as wide as a routed one
  m.experts->ffn.reset();
  EXPECT_EQ(layer_weights(m).expert, 3 * 8 * 16);  // as wide as the dense one
}

TEST(Transformer, OneExpertForEveryTokenIsADenseModelWithARouter) {
  for (const bool gated : {true, false}) {
    TransformerSpec dense = tiny();
    dense.gated = gated;
    TransformerSpec experts = dense;
    experts.experts = ExpertsSpec{.count = 1, .per_token = 1};
    const double routers = 2 * 8;
    EXPECT_EQ(parameters(experts, 32), parameters(dense, 32) + routers);
    EXPECT_EQ(active_parameters(experts, 32), parameters(experts, 32));
    EXPECT_EQ(model_flops_per_token(experts, 32), model_flops_per_token(dense, 32) + 6 * routers);

    TransformerSpec none = dense;  // all layers come before the first one with experts
    none.experts = ExpertsSpec{.count = 64, .per_token = 2, .first_dense = 2};
    EXPECT_EQ(parameters(none, 32), parameters(dense, 32));
    EXPECT_EQ(model_flops_per_token(none, 32), model_flops_per_token(dense, 32));
  }
}

TEST(Transformer, AllExpertsForEveryTokenLeaveNothingIdle) {
  TransformerSpec m = tiny();
  m.experts = ExpertsSpec{.count = 8, .per_token = 8, .shared = 2};
  EXPECT_EQ(active_parameters(m, 32), parameters(m, 32));
}

std::vector<std::pair<int, bool>> kinds(const TransformerSpec& m) {
  std::vector<std::pair<int, bool>> out;
  for (const LayerGroup& g : layer_groups(m))
    out.emplace_back(g.count, g.layer.experts.has_value());
  return out;
}

TEST(Transformer, WhichLayersHaveExperts) {
  using Kinds = std::vector<std::pair<int, bool>>;
  TransformerSpec m = tiny();
  m.layers = 7;
  EXPECT_EQ(kinds(m), (Kinds{{7, false}}));
  m.experts = ExpertsSpec{.count = 4, .per_token = 1};
  EXPECT_EQ(kinds(m), (Kinds{{7, true}}));
  m.experts->first_dense = 3;
  EXPECT_EQ(kinds(m), (Kinds{{3, false}, {4, true}}));
  m.experts->every = 2;  // layers 3 and 5
  EXPECT_EQ(kinds(m), (Kinds{{3, false}, {1, true}, {1, false}, {1, true}, {1, false}}));
  m.experts->first_dense = 0;
  m.experts->every = 3;  // layers 0, 3 and 6
  EXPECT_EQ(kinds(m), (Kinds{{1, true}, {2, false}, {1, true}, {2, false}, {1, true}}));
}

TEST(Transformer, LatentAttentionByHand) {
  TransformerSpec m = tiny();
  m.kv_heads.reset();
  m.latent_attention =
      LatentAttentionSpec{.query_rank = 6, .kv_rank = 5, .head_size = 3, .rotary_size = 1};
  m.latent_attention->value_size = 2;
  const LayerWeights w = layer_weights(m);
  // queries 8 x 6, 6 x 4 (3 + 1); keys and values 8 x (5 + 1), 5 x 4 (3 + 2)
  EXPECT_EQ(w.qkv, 48 + 96 + 48 + 100);
  EXPECT_EQ(w.projection, 4 * 2 * 8);
  EXPECT_EQ(w.norms, 16 + 6 + 5);
  // scores 4 heads of 3 + 1, values of 2, over 32 tokens
  EXPECT_EQ(layer_forward_flops(m, 32), 2 * w.matrices() + 2 * 32 * 4 * (4 + 2));
  m.latent_attention->query_rank.reset();
  EXPECT_EQ(layer_weights(m).qkv, 8 * 4 * 4 + 48 + 100);
  EXPECT_EQ(layer_weights(m).norms, 16 + 5);
}

TEST(Transformer, ATableOfEqualLayersIsTheUniformModel) {
  for (TransformerSpec m : {llama3_8b(), gpt(32, 4096, 32)}) {
    TransformerSpec table = m;
    table.layer_table = {{.count = 20}, {.count = 12}};
    EXPECT_EQ(parameters(table, 4096), parameters(m, 4096));
    EXPECT_EQ(model_flops_per_token(table, 4096), model_flops_per_token(m, 4096));
  }
}

TEST(Transformer, ATableOfUnlikeLayersByHand) {
  TransformerSpec m = tiny();
  m.layer_table = {{.count = 1, .ffn = 4, .gated = false},
                   {.count = 1, .heads = 2, .experts = ExpertsSpec{.count = 2, .per_token = 1}}};
  // 128 + 64 + 2 x 8 x 4, no biases and RMS norms as in the gated model
  // heads of 2 as in the model: 8 x (2 + 2 + 2) 2 + 2 x 2 x 8, router 8 x 2, experts 3 x 8 x 16
  EXPECT_EQ(parameters(m, 32), (128 + 64 + 64 + 16) + (96 + 32 + 16 + 2 * 384 + 16) + 80 + 80 + 8);
  EXPECT_EQ(active_parameters(m, 32), parameters(m, 32) - 384);
  EXPECT_TRUE(layer_table_fits(m));
  m.layer_table.front().count = 2;
  EXPECT_FALSE(layer_table_fits(m));
  EXPECT_TRUE(layer_heads_fit(m));
  m.layer_table.front().heads = 3;  // over 2 kv heads
  EXPECT_FALSE(layer_heads_fit(m));
}

TEST(Transformer, FirstDenseLayersEqualATable) {
  TransformerSpec m = tiny();
  m.layers = 5;
  TransformerSpec table = m;
  const ExpertsSpec experts{.count = 8, .per_token = 2, .ffn = 6, .shared = 1};
  table.layer_table = {{.count = 2}, {.count = 3, .experts = experts}};
  m.experts = experts;
  m.experts->first_dense = 2;
  EXPECT_EQ(parameters(table, 32), parameters(m, 32));
  EXPECT_EQ(active_parameters(table, 32), active_parameters(m, 32));
  EXPECT_EQ(hardware_flops_per_token(table, 32, Recompute::full),
            hardware_flops_per_token(m, 32, Recompute::full));
}

TEST(Transformer, AFurtherPredictionIsOneMoreLayerAMatrixAndAHead) {
  TransformerSpec m = tiny();
  TransformerSpec more = m;
  more.extra_predictions = 1;
  const LayerWeights w = layer_weights(m);
  EXPECT_EQ(parameters(more, 32) - parameters(m, 32), w.total() + 2 * 8 * 8 + 3 * 8);
  EXPECT_EQ(model_flops_per_token(more, 32) - model_flops_per_token(m, 32),
            3 * (layer_forward_flops(m, 32) + 2 * 2 * 8 * 8 + 2 * 10 * 8));
}

}  // namespace
}  // namespace trainyard::models
