#include "models/training/transformer.hpp"

#include <algorithm>

namespace trainyard::models {
namespace {

double norm_weights(const TransformerSpec& model, double width) {
  return norm(model) == Norm::layer_norm ? 2.0 * width : width;
}

// Two matrices between `hidden` and `inner`, three when gated, and their biases.
double ffn_matrices(const TransformerSpec& model, double inner) {
  return (model.gated ? 3.0 : 2.0) * model.hidden * inner;
}
double ffn_biases(const TransformerSpec& model, double inner) {
  return biases(model) == Biases::all ? (model.gated ? 2.0 : 1.0) * inner + model.hidden : 0.0;
}

void add_attention(const TransformerSpec& model, LayerWeights& w) {
  const double h = model.hidden;
  const double d = head_size(model);
  const double qkv_width = (model.heads + 2.0 * kv_heads(model)) * d;
  w.qkv = h * qkv_width;
  w.projection = model.heads * d * h;
  if (biases(model) != Biases::none) w.biases += qkv_width;
  if (model.query_key_norm) w.norms += 2 * norm_weights(model, d);
}

// Queries: hidden -> query_rank -> heads. Keys and values: hidden -> kv_rank (and the shared rotary
// key) -> heads. A norm follows each narrow matrix, which also has the bias if there is one.
void add_latent_attention(const TransformerSpec& model, LayerWeights& w) {
  const LatentAttentionSpec& latent = *model.latent_attention;
  const double h = model.hidden;
  const double queries = double(model.heads) * (latent.head_size + latent.rotary_size);
  const double value = latent.value_size.value_or(latent.head_size);
  const double down = latent.kv_rank + latent.rotary_size;
  w.qkv = h * down + latent.kv_rank * (model.heads * (latent.head_size + value));
  w.norms += norm_weights(model, latent.kv_rank);
  double bias = down;
  if (latent.query_rank) {
    w.qkv += h * *latent.query_rank + *latent.query_rank * queries;
    w.norms += norm_weights(model, *latent.query_rank);
    bias += *latent.query_rank;
  } else {
    w.qkv += h * queries;
  }
  w.projection = model.heads * value * h;
  if (biases(model) != Biases::none) w.biases += bias;
}

void add_experts(const TransformerSpec& model, LayerWeights& w) {
  const ExpertsSpec& experts = *model.experts;
  const double inner = experts.ffn.value_or(model.ffn);
  const double shared_inner = experts.shared_ffn ? double(*experts.shared_ffn) : inner;
  w.expert = ffn_matrices(model, inner);
  w.expert_biases = ffn_biases(model, inner);
  w.experts = experts.count;
  w.experts_per_token = experts.per_token;
  w.ffn = experts.shared * ffn_matrices(model, shared_inner);
  w.biases += experts.shared * ffn_biases(model, shared_inner);
  w.router = double(model.hidden) * experts.count;
  if (experts.router_bias) w.biases += experts.count;
}

TransformerSpec uniform(const TransformerSpec& model) {
  TransformerSpec layer = model;
  layer.layer_table.clear();
  if (layer.experts) {
    layer.experts->first_dense = 0;
    layer.experts->every = 1;
  }
  return layer;
}

TransformerSpec like_row(const TransformerSpec& model, const LayerSpec& row) {
  TransformerSpec layer = uniform(model);
  layer.heads = row.heads.value_or(model.heads);
  if (row.kv_heads) layer.kv_heads = row.kv_heads;
  if (!model.latent_attention) layer.head_size = row.head_size.value_or(head_size(model));
  layer.ffn = row.ffn.value_or(model.ffn);
  layer.gated = row.gated.value_or(model.gated);
  // The model's own `gated` decides what is left out, not that of a row.
  layer.biases = biases(model);
  layer.norm = norm(model);
  layer.experts = row.experts;
  return layer;
}

// Scores and weighted values, forward, per token and block, over the full square: a mask, of a
// window too, hides part of it and changes nothing here.
double attention_forward_flops(const TransformerSpec& model, int sequence) {
  double query = head_size(model);
  double value = query;
  if (model.latent_attention) {
    query += model.latent_attention->rotary_size;
    value = model.latent_attention->value_size.value_or(model.latent_attention->head_size);
  }
  return 2.0 * sequence * model.heads * (query + value);
}

// The share of the square that the causal mask leaves: half of it; with a window of w tokens the
// mean of min(position, w) over the sequence.
double seen_share(const TransformerSpec& model, int sequence) {
  const double s = sequence;
  const double w = std::min(s, double(model.attention_window.value_or(sequence)));
  return w / s * (1.0 - w / (2.0 * s));
}

// Slots that are computed beyond those that tokens are sent to; at most all tokens at all experts.
double padding_forward_flops(const TransformerSpec& model) {
  if (!model.experts || !model.experts->capacity_factor) return 0;
  const LayerWeights w = layer_weights(model);
  const double slots =
      std::min(*model.experts->capacity_factor * w.experts_per_token, double(w.experts));
  return 2.0 * (slots - w.experts_per_token) * w.expert;
}

// A matrix from the last layer's output and the next token's embedding to `hidden`.
double prediction_matrix(const TransformerSpec& model) {
  return 2.0 * model.hidden * model.hidden;
}

// Sum of a figure of a layer over all layers. Each further prediction has a layer like the last.
template <class Figure>
double over_layers(const TransformerSpec& model, const Figure& figure) {
  const std::vector<LayerGroup> groups = layer_groups(model);
  double sum = 0;
  for (const LayerGroup& group : groups) sum += group.count * figure(group.layer);
  if (model.extra_predictions > 0) sum += model.extra_predictions * figure(groups.back().layer);
  return sum;
}

double attention_of_all(const TransformerSpec& model, int sequence) {
  return over_layers(model, [&](const TransformerSpec& layer) {
    return attention_forward_flops(layer, sequence);
  });
}

}  // namespace

int kv_heads(const TransformerSpec& model) {
  return model.kv_heads.value_or(model.heads);
}

int head_size(const TransformerSpec& model) {
  if (model.latent_attention) return model.latent_attention->head_size;
  return model.head_size.value_or(model.heads > 0 ? model.hidden / model.heads : 0);
}

Biases biases(const TransformerSpec& model) {
  return model.biases.value_or(model.gated ? Biases::none : Biases::all);
}

Positions positions(const TransformerSpec& model) {
  return model.positions.value_or(model.gated ? Positions::rotary : Positions::learned);
}

Norm norm(const TransformerSpec& model) {
  return model.norm.value_or(model.gated ? Norm::rms_norm : Norm::layer_norm);
}

std::vector<LayerGroup> layer_groups(const TransformerSpec& model) {
  std::vector<LayerGroup> groups;
  for (const LayerSpec& row : model.layer_table)
    groups.push_back({row.count, like_row(model, row)});
  if (!groups.empty()) return groups;

  const TransformerSpec alike = uniform(model);
  if (!model.experts) return {{model.layers, alike}};
  TransformerSpec dense = alike;
  dense.experts.reset();
  const auto add = [&groups](int count, const TransformerSpec& layer) {
    if (count > 0) groups.push_back({count, layer});
  };
  const int first = std::min(model.experts->first_dense, model.layers);
  const int every = model.experts->every;
  add(first, dense);
  if (every == 1) {
    add(model.layers - first, alike);
    return groups;
  }
  for (int layer = first; layer < model.layers; layer += every) {
    add(1, alike);
    add(std::min(every, model.layers - layer) - 1, dense);
  }
  return groups;
}

LayerWeights layer_weights(const TransformerSpec& model) {
  LayerWeights w;
  w.norms = model.norms_per_layer * norm_weights(model, model.hidden);
  if (model.latent_attention)
    add_latent_attention(model, w);
  else
    add_attention(model, w);
  if (biases(model) == Biases::all) w.biases += model.hidden;  // of the projection
  if (model.experts) {
    add_experts(model, w);
  } else {
    w.ffn = ffn_matrices(model, model.ffn);
    w.biases += ffn_biases(model, model.ffn);
  }
  return w;
}

double embedding_weights(const TransformerSpec& model, int sequence) {
  const double rows =
      model.vocabulary + (positions(model) == Positions::learned ? double(sequence) : 0.0);
  return rows * model.hidden + (model.embedding_norm ? norm_weights(model, model.hidden) : 0.0);
}

double head_weights(const TransformerSpec& model) {
  return norm_weights(model, model.hidden) +
         (model.tied_embeddings ? 0.0 : double(model.vocabulary) * model.hidden);
}

// Norms of both inputs and of the output, and the matrix that joins the inputs.
double prediction_weights(const TransformerSpec& model) {
  return model.extra_predictions *
         (prediction_matrix(model) + 3 * norm_weights(model, model.hidden));
}

double parameters(const TransformerSpec& model, int sequence) {
  return over_layers(model, [](const TransformerSpec& l) { return layer_weights(l).total(); }) +
         prediction_weights(model) + embedding_weights(model, sequence) + head_weights(model);
}

double active_parameters(const TransformerSpec& model, int sequence) {
  return over_layers(model, [](const TransformerSpec& l) { return layer_weights(l).active(); }) +
         prediction_weights(model) + embedding_weights(model, sequence) + head_weights(model);
}

double matrix_weights(const TransformerSpec& model) {
  return over_layers(model, [](const TransformerSpec& l) { return layer_weights(l).matrices(); }) +
         model.extra_predictions * prediction_matrix(model);
}

double active_matrix_weights(const TransformerSpec& model) {
  return over_layers(model,
                     [](const TransformerSpec& l) { return layer_weights(l).active_matrices(); }) +
         model.extra_predictions * prediction_matrix(model);
}

double model_flops_per_token(const TransformerSpec& model, int sequence,
                             FlopsConvention convention) {
  const double attention = attention_of_all(model, sequence);
  const double products = 2.0 * active_matrix_weights(model) +
                          (1 + model.extra_predictions) * head_forward_flops(model);
  const double L = model.layers, h = model.hidden, V = model.vocabulary, S = sequence;
  switch (convention) {
    case FlopsConvention::full_attention:
      return 3.0 * (products + attention);
    case FlopsConvention::causal_attention:
      return 3.0 * (products + seen_share(model, sequence) * attention);
    case FlopsConvention::six_n:
      return 6.0 * active_parameters(model, sequence);
    case FlopsConvention::palm:
      return 6.0 * active_parameters(model, sequence) + 3.0 * attention;
    case FlopsConvention::gpt_formula:
      return 72 * L * h * h * (1 + S / (6 * h) + V / (12 * L * h));
  }
  return 0;
}

double hardware_flops_per_token(const TransformerSpec& model, int sequence, Recompute recompute) {
  const double padding = over_layers(model, padding_forward_flops);
  const double once = model_flops_per_token(model, sequence) + 3.0 * padding;
  switch (recompute) {
    case Recompute::none:
      return once;
    case Recompute::selective:
      return once + attention_of_all(model, sequence);
    case Recompute::per_operation:  // every other matrix product (docs/models/kernels.md)
      return once + 0.5 * 2.0 * active_matrix_weights(model);
    case Recompute::full:
      return once + padding + over_layers(model, [&](const TransformerSpec& layer) {
               return layer_forward_flops(layer, sequence);
             });
  }
  return once;
}

double gpt_formula_with_recompute(const TransformerSpec& model, int sequence) {
  const double L = model.layers, h = model.hidden, V = model.vocabulary, S = sequence;
  return 96 * L * h * h * (1 + S / (6 * h) + V / (16 * L * h));
}

double layer_forward_flops(const TransformerSpec& model, int sequence) {
  return 2.0 * layer_weights(model).active_matrices() + attention_forward_flops(model, sequence);
}

double head_forward_flops(const TransformerSpec& model) {
  return 2.0 * model.vocabulary * model.hidden;
}

std::vector<FlopsRow> flops_table(const TransformerSpec& model, int sequence) {
  const auto counted = [&](FlopsConvention c) { return model_flops_per_token(model, sequence, c); };
  const auto executed = [&](Recompute r) { return hardware_flops_per_token(model, sequence, r); };
  return {
      {"full attention", "model: 6 (active matrices + V h) + 12 L a d S",
       counted(FlopsConvention::full_attention)},
      {"causal attention", "model: 6 (active matrices + V h) + 6 L a d S",
       counted(FlopsConvention::causal_attention)},
      {"6N", "model: 6 N, N active parameters", counted(FlopsConvention::six_n)},
      {"PaLM", "model: 6 N + 12 L a d S", counted(FlopsConvention::palm)},
      {"GPT formula", "model: 72 L h^2 (1 + S/(6h) + V/(12 L h))",
       counted(FlopsConvention::gpt_formula)},
      {"GPT formula, recomputed", "executed: 96 L h^2 (1 + S/(6h) + V/(16 L h))",
       gpt_formula_with_recompute(model, sequence)},
      {"no recomputation", "executed: full attention, and padding of experts",
       executed(Recompute::none)},
      {"selective recomputation", "executed: and the attention core once more",
       executed(Recompute::selective)},
      {"full recomputation", "executed: and the forward pass of the layers once more",
       executed(Recompute::full)},
  };
}

}  // namespace trainyard::models
