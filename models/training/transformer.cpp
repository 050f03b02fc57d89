#include "models/training/transformer.hpp"

namespace trainyard::models {
namespace {

// Scores and weighted values, forward, per token and block, over the full square.
double attention_forward_flops(const TransformerSpec& model, int sequence) {
  return 4.0 * sequence * model.heads * head_size(model);
}

}  // namespace

int kv_heads(const TransformerSpec& model) {
  return model.kv_heads.value_or(model.heads);
}

int head_size(const TransformerSpec& model) {
  return model.head_size.value_or(model.heads > 0 ? model.hidden / model.heads : 0);
}

LayerWeights layer_weights(const TransformerSpec& model) {
  const double h = model.hidden;
  const double d = head_size(model);
  const double qkv_width = (model.heads + 2.0 * kv_heads(model)) * d;
  LayerWeights w;
  w.qkv = h * qkv_width;
  w.projection = model.heads * d * h;
  w.ffn = (model.gated ? 3.0 : 2.0) * h * model.ffn;
  w.biases = model.gated ? 0.0 : qkv_width + h + model.ffn + h;
  w.norms = model.gated ? 2.0 * h : 4.0 * h;
  return w;
}

double embedding_weights(const TransformerSpec& model, int sequence) {
  const double positions = model.gated ? 0.0 : sequence;
  return (model.vocabulary + positions) * model.hidden;
}

double head_weights(const TransformerSpec& model) {
  const double norm = model.gated ? model.hidden : 2.0 * model.hidden;
  return norm + (model.tied_embeddings ? 0.0 : double(model.vocabulary) * model.hidden);
}

double parameters(const TransformerSpec& model, int sequence) {
  return model.layers * layer_weights(model).total() + embedding_weights(model, sequence) +
         head_weights(model);
}

double matrix_weights(const TransformerSpec& model) {
  return model.layers * layer_weights(model).matrices();
}

double model_flops_per_token(const TransformerSpec& model, int sequence,
                             FlopsConvention convention) {
  if (convention == FlopsConvention::six_n) return 6.0 * parameters(model, sequence);
  const double attention = model.layers * attention_forward_flops(model, sequence);
  const double counted =
      convention == FlopsConvention::causal_attention ? 0.5 * attention : attention;
  return 3.0 * (2.0 * matrix_weights(model) + head_forward_flops(model) + counted);
}

double hardware_flops_per_token(const TransformerSpec& model, int sequence, Recompute recompute) {
  const double once = model_flops_per_token(model, sequence);
  switch (recompute) {
    case Recompute::none:
      return once;
    case Recompute::selective:
      return once + model.layers * attention_forward_flops(model, sequence);
    case Recompute::full:
      return once + model.layers * layer_forward_flops(model, sequence);
  }
  return once;
}

double layer_forward_flops(const TransformerSpec& model, int sequence) {
  return 2.0 * layer_weights(model).matrices() + attention_forward_flops(model, sequence);
}

double head_forward_flops(const TransformerSpec& model) {
  return 2.0 * model.vocabulary * model.hidden;
}

}  // namespace trainyard::models
