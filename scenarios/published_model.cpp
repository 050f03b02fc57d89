#include "scenarios/published_model.hpp"

#include <charconv>
#include <regex>

#include "scenarios/published_stack.hpp"

namespace trainyard::scenarios {
namespace {

using models::TransformerSpec;

/// The number that a pattern's first group that matched holds; none: the words are not there.
std::optional<int> number_in(std::string_view text, const char* pattern) {
  const std::regex words(pattern, std::regex::icase);
  std::match_results<std::string_view::const_iterator> found;
  if (!std::regex_search(text.begin(), text.end(), found, words)) return std::nullopt;
  for (std::size_t group = 1; group < found.size(); ++group) {
    if (!found[group].matched) continue;
    const std::string digits = found[group].str();
    int value = 0;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem == std::errc{}) return value;
  }
  return std::nullopt;
}

/// DeepSeek-V3 limits every token to experts on 4 servers and predicts one further token in
/// training (DeepSeek-V3 Technical Report, arXiv 2412.19437, sections 2.1.2 and 2.2).
constexpr int deepseek_server_limit = 4;
constexpr int deepseek_extra_predictions = 1;

/// What the columns do not tell, from a model of the catalog.
void take_over(TransformerSpec& model, const TransformerSpec& family) {
  model.tied_embeddings = family.tied_embeddings;
  model.biases = family.biases;
  model.positions = family.positions;
  model.norm = family.norm;
  model.norms_per_layer = family.norms_per_layer;
  model.query_key_norm = family.query_key_norm;
  model.embedding_norm = family.embedding_norm;
  if (model.experts && family.experts) {
    model.experts->router_bias = family.experts->router_bias;
    model.experts->server_limit = family.experts->server_limit;
  }
}

/// Without a model of the catalog: plain blocks with as many key as query heads are GPT's, which
/// ties its embeddings; grouped queries came with rotary positions and an output matrix of its own.
void assume_usual(TransformerSpec& model) {
  const bool is_grouped = model.kv_heads && *model.kv_heads < model.heads;
  model.tied_embeddings = !model.gated && !is_grouped;
  if (!model.gated && is_grouped) {
    model.biases = models::Biases::none;
    model.positions = models::Positions::rotary;
  }
}

void add_latent_attention(TransformerSpec& model, const TransformerSpec* family,
                          PublishedParts& parts, std::vector<std::string>& rules) {
  if (!family || !family->latent_attention) {
    TransformerSpec deepseek;
    deepseek.hidden = 7168, deepseek.heads = 128, deepseek.ffn = 18432, deepseek.gated = true;
    deepseek.experts.emplace();
    family = parts.family_of(deepseek);
    rules.emplace_back("latent attention without sizes: those of DeepSeek-V3");
  }
  if (!family || !family->latent_attention) return;
  model.latent_attention = family->latent_attention;
  model.kv_heads.reset();
  model.head_size.reset();
  model.query_key_norm = false;
  if (!model.experts) return;
  model.experts->server_limit = model.experts->server_limit.value_or(deepseek_server_limit);
  model.extra_predictions = deepseek_extra_predictions;
  rules.emplace_back(
      "further predictions and routing limit not given: one, and 4 servers (DeepSeek-V3)");
}

}  // namespace

ExpertsText read_experts(std::string_view text) {
  ExpertsText out;
  models::ExpertsSpec& e = out.experts;
  e.count = number_in(text, R"((\d+)\s+(?:routed\s+)?experts)").value_or(0);
  e.per_token = number_in(text, R"(top[-\s]?(\d+))").value_or(0);
  e.ffn = number_in(text, R"(expert\s+ffn\s+(\d+))");
  e.shared = number_in(text, R"((\d+)\s+shared)").value_or(0);
  if (e.shared > 0) e.shared_ffn = number_in(text, R"(shared\s+(?:expert\s+)?ffn\s+(\d+))");
  e.first_dense = number_in(text, R"(first\s+(\d+)\s+(?:layers?\s+)?dense|(\d+)\s+dense\s+layers?)")
                      .value_or(0);
  if (mentions(text, "first layer dense")) e.first_dense = 1;
  e.every = mentions(text, "every other") ? 2 : number_in(text, R"(every\s+(\d+))").value_or(1);
  out.has_latent_attention = mentions(text, "MLA") || mentions(text, "latent attention");
  out.is_hybrid = mentions(text, "hybrid") || mentions(text, "mamba");
  return out;
}

std::variant<TransformerSpec, std::string> published_model(const PublishedRow& row,
                                                           PublishedParts& parts,
                                                           std::vector<std::string>& rules) {
  TransformerSpec model;
  const auto need = [&](std::string_view column, int& value) {
    const auto found = row.count(column);
    value = found.value_or(0);
    return found.has_value();
  };
  if (!need("layers", model.layers) || !need("hidden", model.hidden) ||
      !need("heads", model.heads) || !need("ffn", model.ffn) || !need("vocab", model.vocabulary))
    return "shape of the model not stated";
  model.name = std::string(row.text("model"));
  model.gated = row.flag("gated_mlp").value_or(false);
  if (const auto kv = row.count("kv_heads"); kv && *kv != model.heads) model.kv_heads = kv;
  if (const auto size = row.count("head_dim"); size && *size * model.heads != model.hidden)
    model.head_size = size;
  if (model.kv_heads && model.heads % *model.kv_heads != 0)
    return "key/value heads do not divide the heads";
  if (!model.head_size && model.hidden % model.heads != 0)
    return "heads do not divide the width, and head_dim is not stated";

  const std::string_view words = row.text("moe");
  const ExpertsText text = read_experts(words);
  if (text.is_hybrid) return "layers that are no transformer blocks are not modelled";
  if (text.experts.count > 0) {
    const models::ExpertsSpec& e = text.experts;
    if (e.per_token < 1 || e.per_token > e.count || e.first_dense >= model.layers || e.every < 1)
      return "experts are not described fully";
    model.experts = e;
  } else if (!words.empty() && !text.has_latent_attention) {
    return "experts are not described fully";
  }
  const TransformerSpec* family = parts.family_of(model);
  if (family)
    take_over(model, *family);
  else
    assume_usual(model);
  if (text.has_latent_attention) add_latent_attention(model, family, parts, rules);
  return model;
}

}  // namespace trainyard::scenarios
