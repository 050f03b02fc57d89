#pragma once

#include <string_view>
#include <vector>

#include "models/training/parallel_spec.hpp"
#include "models/training/transformer_spec.hpp"
#include "sim/problem.hpp"

/// Exact parameter counts and FLOP counts of a decoder, dense or with experts, by named convention.
///
/// Unless it says otherwise, a gated model (Llama-like) has no biases, RMS norms of `hidden`
/// weights and rotary positions; a plain one (GPT-like) has biases everywhere, layer norms of 2
/// hidden weights and learned positions for `sequence` tokens.
///
/// Model FLOPs count what the mathematics needs once, forward and backward, whatever the software
/// does. The default convention counts every multiply and add of the matrix products that a token
/// meets (of experts: the per_token ones it is sent to, and the shared ones), and attention over
/// the full square (no causal halving, no window), as Narayanan et al. 2021, PaLM (appendix B) and
/// Korthikanti et al. 2022 do:
///
///     FLOPs per token = 6 (active matrix weights + vocabulary . hidden) + 12 . layers . heads .
///     head_size . sequence
///
///     TransformerSpec llama = …;
///     double n = parameters(llama, 8192);                      // 405.85e9
///     double f = model_flops_per_token(llama, 8192);           // 2.625e12
///     for (const FlopsRow& row : flops_table(llama, 8192)) …   // every convention, by name
///
/// Formulas and sources: docs/models/transformer.md.
namespace trainyard::models {

int kv_heads(const TransformerSpec& model);
int head_size(const TransformerSpec& model);
/// The three that follow `gated` when they are not given.
Biases biases(const TransformerSpec& model);
Positions positions(const TransformerSpec& model);
Norm norm(const TransformerSpec& model);

/// Equal layers that follow each other. `layer` is the model as if all its layers were like these:
/// without a table and without first_dense, with experts only if these layers have some.
struct LayerGroup {
  int count = 0;
  TransformerSpec layer;
};

/// From first to last; one group for a uniform model.
std::vector<LayerGroup> layer_groups(const TransformerSpec& model);

/// Weights of one block.
struct LayerWeights {
  double qkv = 0;         // hidden x (heads + 2 kv_heads) head_size, or the latent matrices
  double projection = 0;  // heads . value size x hidden
  double ffn = 0;         // two matrices, three when gated; with experts: the shared ones
  double router = 0;
  double biases = 0;  // without those of routed experts
  double norms = 0;

  double expert = 0;         // matrices of one routed expert
  double expert_biases = 0;  // of one
  int experts = 0;
  int experts_per_token = 0;

  double matrices() const { return qkv + projection + ffn + router + experts * expert; }
  double total() const { return matrices() + biases + norms + experts * expert_biases; }
  /// What one token meets.
  double active_matrices() const {
    return qkv + projection + ffn + router + experts_per_token * expert;
  }
  double active() const {
    return active_matrices() + biases + norms + experts_per_token * expert_biases;
  }
};

/// Of a block as the model's own fields say, with experts if it has them. Models of unlike layers:
/// layer_groups().
LayerWeights layer_weights(const TransformerSpec& model);

/// Token embedding and its norm, and learned positions.
double embedding_weights(const TransformerSpec& model, int sequence);
/// Final norm, and the output matrix unless it is tied to the embedding.
double head_weights(const TransformerSpec& model);

/// Norms and joining matrices of further predictions, without their layers.
double prediction_weights(const TransformerSpec& model);

/// All parameters, exactly.
double parameters(const TransformerSpec& model, int sequence);
/// Those that one token meets: all but the routed experts it is not sent to. The whole embedding
/// counts, although a token looks up one row.
double active_parameters(const TransformerSpec& model, int sequence);
/// The matrices of all blocks: no embedding, head, norm or bias.
double matrix_weights(const TransformerSpec& model);
double active_matrix_weights(const TransformerSpec& model);

enum class FlopsConvention {
  full_attention,    // the default above
  causal_attention,  // attention that the mask leaves: half, less with a window
  six_n,             // 6 . active parameters, attention ignored: the planner's 6 N D
  palm,              // 6 N plus full attention: embedding, norms and biases count like matrices
  gpt_formula        // 72 L h^2 (1 + S/(6h) + V/(12 L h)): as if a GPT of this depth and width
};

double model_flops_per_token(const TransformerSpec& model, int sequence,
                             FlopsConvention convention = FlopsConvention::full_attention);
/// What is executed with this recomputation, per token: full repeats the forward pass of the blocks
/// (not of the head), selective the attention core only. Experts with a capacity compute all their
/// slots, filled or not.
double hardware_flops_per_token(const TransformerSpec& model, int sequence, Recompute recompute);
/// 96 L h^2 (1 + S/(6h) + V/(16 L h)), with full recomputation: what Narayanan et al. 2021 and
/// Megatron-LM of that time call TFLOP/s.
double gpt_formula_with_recompute(const TransformerSpec& model, int sequence);

/// Forward FLOPs per token of one block (as layer_weights()) and of the head, default convention;
/// backward is twice that.
double layer_forward_flops(const TransformerSpec& model, int sequence);
double head_forward_flops(const TransformerSpec& model);

struct FlopsRow {
  std::string_view name;
  std::string_view counts;
  double per_token = 0;
};

/// Every convention by name, for reports: model FLOPs first, then executed ones.
std::vector<FlopsRow> flops_table(const TransformerSpec& model, int sequence);

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::FlopsConvention> {
  static constexpr auto all = names<models::FlopsConvention>(
      {{models::FlopsConvention::full_attention, "full-attention"},
       {models::FlopsConvention::causal_attention, "causal-attention"},
       {models::FlopsConvention::six_n, "6n"},
       {models::FlopsConvention::palm, "palm"},
       {models::FlopsConvention::gpt_formula, "gpt-formula"}});
};
}  // namespace trainyard
