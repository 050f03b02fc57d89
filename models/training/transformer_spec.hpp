#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/describe.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

/// A dense decoder-only transformer. Counts of parameters and FLOPs: docs/models/transformer.md.
struct TransformerSpec {
  std::string name;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  std::optional<int> kv_heads;   // default: heads (no grouping)
  std::optional<int> head_size;  // default: hidden / heads
  int ffn = 0;
  bool gated = false;  // SwiGLU-like: three matrices instead of two
  int vocabulary = 0;
  bool tied_embeddings = false;
};

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
  v.check(s.head_size || s.hidden % s.heads == 0, "heads", "must divide hidden, or give head_size");
  v.check(!s.kv_heads || s.heads % *s.kv_heads == 0, "kv_heads", "must divide heads");
}

}  // namespace trainyard::models
