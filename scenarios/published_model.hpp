#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/training/transformer_spec.hpp"
#include "scenarios/published_parts.hpp"
#include "scenarios/published_row.hpp"

/// The shape of a model from the columns of a published table: layers, hidden, heads, kv_heads,
/// head_dim, ffn, gated_mlp, vocab, and experts in words in `moe`.
namespace trainyard::scenarios {

/// "256 routed experts top-8 + 1 shared; expert ffn 2048; first 3 layers dense; MLA attention".
/// Numbers beside the words experts, top, shared, expert ffn, first … dense and every; what else
/// stands there is left alone.
struct ExpertsText {
  models::ExpertsSpec experts;
  bool has_latent_attention = false;
  bool is_hybrid = false;  // layers that are no transformer blocks
};
ExpertsText read_experts(std::string_view text);

/// What a table does not tell (biases, positions, tied embeddings, latent attention, further
/// predictions) comes from the model of the catalog with such blocks, else from the usual plain
/// (GPT) or gated (Llama) block. Or why there is no such model.
std::variant<models::TransformerSpec, std::string> published_model(const PublishedRow& row,
                                                                   PublishedParts& parts,
                                                                   std::vector<std::string>& rules);

}  // namespace trainyard::scenarios
