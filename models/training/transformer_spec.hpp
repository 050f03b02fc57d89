#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/describe.hpp"
#include "sim/units.hpp"

/// Shape of a decoder-only transformer. What is counted from it: docs/models/transformer.md.
namespace trainyard::models {

enum class Biases { none, qkv, all };
enum class Positions { learned, rotary, none };
enum class Norm { layer_norm, rms_norm };

/// Layers in which a router sends each token to a few of many feed-forward blocks.
struct ExpertsSpec {
  int count = 0;
  int per_token = 0;
  std::optional<int> ffn{};  // of one expert; default: that of the model
  int shared = 0;
  std::optional<int> shared_ffn{};  // of one shared expert; default: that of a routed one
  int first_dense = 0;
  int every = 1;
  std::optional<double> capacity_factor{};  // default: dropless, nothing padded
  bool router_bias = false;
  std::optional<int> server_limit{};

  friend bool operator==(const ExpertsSpec&, const ExpertsSpec&) = default;
};

template <class Visitor>
void describe(Visitor& v, ExpertsSpec& s) {
  v.required("count", s.count, "routed experts of a layer", at_least(1));
  v.required("per_token", s.per_token, "experts that each token goes to (top-k)", at_least(1));
  v.optional("ffn", s.ffn, "inner width of one expert; default: ffn of the model", at_least(1));
  v.optional("shared", s.shared, "shared experts, which every token passes", at_least(0));
  v.optional("shared_ffn", s.shared_ffn,
             "inner width of one shared expert; default: that of a routed one", at_least(1));
  v.optional("first_dense", s.first_dense, "layers before the first one with experts", at_least(0));
  v.optional("every", s.every, "after them, one layer in so many has experts", at_least(1));
  v.optional("capacity_factor", s.capacity_factor,
             "slots of an expert over its fair share of tokens, all of them computed; default: "
             "dropless, each token computed once per expert",
             above(0));
  v.optional("router_bias", s.router_bias, "the router adds a balancing bias per expert");
  v.optional("server_limit", s.server_limit,
             "the router sends a token to experts on at most so many servers (node-limited "
             "routing); default: no limit",
             at_least(1));
  v.check(s.per_token <= s.count, "per_token", "must be at most count");
  v.check(!s.shared_ffn || s.shared > 0, "shared_ffn", "only with shared of at least 1");
}

/// Multi-head latent attention: keys and values (and queries) pass a narrow matrix first
/// (DeepSeek-V2, 2024). Replaces kv_heads and head_size.
struct LatentAttentionSpec {
  std::optional<int> query_rank{};  // default: queries are not compressed
  int kv_rank = 0;
  int head_size = 0;
  int rotary_size = 0;
  std::optional<int> value_size{};  // default: head_size

  friend bool operator==(const LatentAttentionSpec&, const LatentAttentionSpec&) = default;
};

template <class Visitor>
void describe(Visitor& v, LatentAttentionSpec& s) {
  v.optional("query_rank", s.query_rank, "width of compressed queries; default: not compressed",
             at_least(1));
  v.required("kv_rank", s.kv_rank, "width of compressed keys and values", at_least(1));
  v.required("head_size", s.head_size, "width of a query or key head without its rotary part",
             at_least(1));
  v.required("rotary_size", s.rotary_size, "rotary part of a query head; keys share one",
             at_least(0));
  v.optional("value_size", s.value_size, "width of a value head; default: head_size", at_least(1));
}

/// Equal neighbours in a model of unlike layers. What a row leaves out is as in the model.
struct LayerSpec {
  int count = 1;
  std::optional<int> heads{};
  std::optional<int> kv_heads{};
  std::optional<int> head_size{};
  std::optional<int> ffn{};
  std::optional<bool> gated{};
  std::optional<ExpertsSpec> experts{};  // default: a dense layer

  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

template <class Visitor>
void describe(Visitor& v, LayerSpec& s) {
  v.optional("count", s.count, "so many layers like this one follow each other", at_least(1));
  v.optional("heads", s.heads, "attention heads; default: as the model", at_least(1));
  v.optional("kv_heads", s.kv_heads, "key/value heads; default: as the model, or heads of this row",
             at_least(1));
  v.optional("head_size", s.head_size, "width of one head; default: as the model", at_least(1));
  v.optional("ffn", s.ffn, "inner width of the feed-forward block; default: as the model",
             at_least(1));
  v.optional("gated", s.gated, "gated feed-forward block; default: as the model");
  v.optional("experts", s.experts, "experts of these layers; default: none");
  v.check(!s.experts || (s.experts->first_dense == 0 && s.experts->every == 1), "experts",
          "first_dense and every have no meaning in a table of layers: give a row to each kind");
}

struct TransformerSpec {
  std::string name;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  std::optional<int> kv_heads{};   // default: heads (no grouping)
  std::optional<int> head_size{};  // default: hidden / heads
  int ffn = 0;
  bool gated = false;  // SwiGLU-like: three matrices instead of two
  int vocabulary = 0;
  bool tied_embeddings = false;

  // Defaults of these three: a plain model is GPT-like (all, learned, layer-norm), a gated one
  // Llama-like (none, rotary, rms-norm).
  std::optional<Biases> biases{};
  std::optional<Positions> positions{};
  std::optional<Norm> norm{};

  int norms_per_layer = 2;
  bool query_key_norm = false;
  bool embedding_norm = false;
  int extra_predictions = 0;
  bool parallel_block = false;
  std::optional<int> attention_window{};

  std::optional<LatentAttentionSpec> latent_attention{};
  std::optional<ExpertsSpec> experts{};
  std::vector<LayerSpec> layer_table{};

  friend bool operator==(const TransformerSpec&, const TransformerSpec&) = default;
};

/// Rows of a table of layers make up the model, and each fits the model's other figures.
inline bool layer_table_fits(const TransformerSpec& s) {
  std::int64_t layers = 0;
  for (const LayerSpec& row : s.layer_table) layers += row.count;
  return s.layer_table.empty() || layers == s.layers;
}

inline bool layer_heads_fit(const TransformerSpec& s) {
  for (const LayerSpec& row : s.layer_table) {
    const int heads = row.heads.value_or(s.heads);
    const int kv = row.kv_heads.value_or(s.kv_heads.value_or(heads));
    if (heads % kv != 0) return false;
  }
  return true;
}

template <class Visitor>
void describe(Visitor& v, TransformerSpec& s) {
  v.optional("name", s.name, "name shown in reports");
  v.required("layers", s.layers, "transformer blocks", at_least(1));
  v.required("hidden", s.hidden, "width of the residual stream", at_least(1));
  v.required("heads", s.heads, "attention heads", at_least(1));
  v.optional("kv_heads", s.kv_heads, "key/value heads (grouped-query attention); default: heads",
             at_least(1));
  v.optional("head_size", s.head_size, "width of one head; default: hidden / heads", at_least(1));
  v.required("ffn", s.ffn, "inner width of the feed-forward block", at_least(1));
  v.optional("gated", s.gated, "gated feed-forward block (three matrices)");
  v.required("vocabulary", s.vocabulary, "vocabulary size", at_least(1));
  v.optional("tied_embeddings", s.tied_embeddings,
             "input and output embedding share their weights");
  v.optional("biases", s.biases, "biases of the matrices; default: none if gated, else all");
  v.optional("positions", s.positions,
             "learned: a weight vector per position; rotary or none: no weights; default: rotary "
             "if gated, else learned");
  v.optional("norm", s.norm,
             "layer-norm: weight and bias; rms-norm: weight only; default: rms-norm if gated, "
             "else layer-norm");
  v.optional("norms_per_layer", s.norms_per_layer, "norms of the residual stream in a layer",
             at_least(0));
  v.optional("query_key_norm", s.query_key_norm, "queries and keys of a head are normalised");
  v.optional("embedding_norm", s.embedding_norm, "a norm follows the token embedding");
  v.optional("extra_predictions", s.extra_predictions,
             "further tokens predicted in training, by one more layer each (multi-token "
             "prediction)",
             at_least(0));
  v.optional("parallel_block", s.parallel_block,
             "attention and feed-forward block read the same input and are added (one norm, half "
             "of the tensor-parallel traffic)");
  v.optional("attention_window", s.attention_window,
             "tokens that a token attends to at most (sliding window); default: the whole sequence",
             at_least(1));
  v.optional("latent_attention", s.latent_attention,
             "multi-head latent attention, in place of kv_heads and head_size");
  v.optional("experts", s.experts, "mixture of experts");
  v.optional("layer_table", s.layer_table,
             "models of unlike layers: rows of equal layers from first to last");
  v.check(s.head_size || s.latent_attention || s.hidden % s.heads == 0, "heads",
          "must divide hidden, or give head_size");
  v.check(!s.kv_heads || s.heads % *s.kv_heads == 0, "kv_heads", "must divide heads");
  v.check(!s.latent_attention || (!s.kv_heads && !s.head_size && !s.query_key_norm),
          "latent_attention",
          "has head sizes and norms of its own: remove kv_heads, head_size and query_key_norm");
  v.check(!s.experts || s.experts->first_dense < s.layers, "experts",
          "first_dense must be less than layers");
  v.check(!s.experts || s.layer_table.empty(), "experts",
          "with layer_table, experts belong into its rows");
  v.check(layer_table_fits(s), "layer_table", "counts of the rows must add up to layers");
  v.check(layer_heads_fit(s), "layer_table", "kv_heads must divide heads in every row");
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::Biases> {
  static constexpr auto all = names<models::Biases>(
      {{models::Biases::none, "none"}, {models::Biases::qkv, "qkv"}, {models::Biases::all, "all"}});
};
template <>
struct Names<models::Positions> {
  static constexpr auto all = names<models::Positions>({{models::Positions::learned, "learned"},
                                                        {models::Positions::rotary, "rotary"},
                                                        {models::Positions::none, "none"}});
};
template <>
struct Names<models::Norm> {
  static constexpr auto all = names<models::Norm>(
      {{models::Norm::layer_norm, "layer-norm"}, {models::Norm::rms_norm, "rms-norm"}});
};
}  // namespace trainyard
