#pragma once

#include "models/training/parallel_spec.hpp"
#include "models/training/transformer_spec.hpp"

/// Exact parameter counts and FLOP counts of a dense decoder, by named convention.
///
/// A gated model (Llama-like) has no biases, RMS norms of `hidden` weights and rotary positions; a
/// plain one (GPT-like) has biases everywhere, layer norms of 2 hidden weights and learned
/// positions for `sequence` tokens.
///
/// Model FLOPs count what the mathematics needs once, forward and backward, whatever the software
/// does. The default convention counts every multiply and add of the matrix products, and attention
/// over the full square (no causal halving), as Narayanan et al. 2021, PaLM (appendix B) and
/// Korthikanti et al. 2022 do:
///
///     FLOPs per token = 6 (matrix weights + vocabulary . hidden) + 12 . layers . heads . head_size
///     . sequence
///
///     TransformerSpec llama = …;
///     double n = parameters(llama, 8192);                      // 405.85e9
///     double f = model_flops_per_token(llama, 8192);           // 2.625e12
///
/// Formulas and sources: docs/models/transformer.md.
namespace trainyard::models {

int kv_heads(const TransformerSpec& model);
int head_size(const TransformerSpec& model);

/// Weights of one block.
struct LayerWeights {
  double qkv = 0;         // hidden x (heads + 2 kv_heads) head_size
  double projection = 0;  // heads . head_size x hidden
  double ffn = 0;         // two matrices, three when gated
  double biases = 0;
  double norms = 0;

  double matrices() const { return qkv + projection + ffn; }
  double total() const { return matrices() + biases + norms; }
};

LayerWeights layer_weights(const TransformerSpec& model);

/// Token embedding, and learned positions of a plain model.
double embedding_weights(const TransformerSpec& model, int sequence);
/// Final norm, and the output matrix unless it is tied to the embedding.
double head_weights(const TransformerSpec& model);

/// All parameters, exactly.
double parameters(const TransformerSpec& model, int sequence);
/// The matrices of all blocks: no embedding, head, norm or bias.
double matrix_weights(const TransformerSpec& model);

enum class FlopsConvention {
  full_attention,    // the default above
  causal_attention,  // attention halved: the mask hides the upper triangle
  six_n              // 6 . parameters, attention ignored: the planner's 6 N D
};

double model_flops_per_token(const TransformerSpec& model, int sequence,
                             FlopsConvention convention = FlopsConvention::full_attention);
/// What is executed with this recomputation, per token: full repeats the forward pass of the blocks
/// (not of the head), selective the attention core only.
double hardware_flops_per_token(const TransformerSpec& model, int sequence, Recompute recompute);

/// Forward FLOPs per token of one block and of the head, default convention; backward is twice
/// that.
double layer_forward_flops(const TransformerSpec& model, int sequence);
double head_forward_flops(const TransformerSpec& model);

}  // namespace trainyard::models
