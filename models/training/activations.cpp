#include "models/training/activations.hpp"

#include <algorithm>

#include "models/training/transformer.hpp"

namespace trainyard::models {
namespace {

constexpr double element = 2;       // bytes of a 16-bit activation
constexpr double router_bytes = 8;  // logit and probability of one expert, FP32
constexpr double score_bytes = 5;   // unfused: softmax output, its dropout mask and output
constexpr double mask_bytes = 2;    // unfused: dropout masks after attention and feed-forward

// Bytes per token of one block on one GPU.
struct PerToken {
  const Plan& plan;
  const TransformerSpec& kind;
  const double t = plan.tensor;
  const double split = plan.sequence_split();
  const double h = kind.hidden;
  const double heads = kind.heads / t;
  // Fewer key/value heads than ranks are held by several ranks each.
  const double keys = std::max(1.0, kv_heads(kind) / t);
  const double d = head_size(kind);

  double query_size() const {
    return d + (kind.latent_attention ? kind.latent_attention->rotary_size : 0);
  }
  double value_size() const {
    return kind.latent_attention ? kind.latent_attention->value_size.value_or(d) : d;
  }

  // The input of every norm and of the first product of each half; a parallel block has one input.
  double stream(const SoftwareSpec& software) const {
    const int n = kind.norms_per_layer;
    const double tensors = kind.parallel_block ? 1 + n : 2 + n;
    return (element * tensors + (software.flash_attention ? 0 : mask_bytes)) * h / split;
  }

  double attention() const {
    if (kind.latent_attention) {
      const LatentAttentionSpec& latent = *kind.latent_attention;
      // Before and after the norm that follows each narrow matrix; every rank of a tensor group
      // computes them for its share of the tokens.
      const double narrow = 2.0 * (latent.query_rank.value_or(0) + latent.kv_rank);
      return element *
             ((narrow + latent.rotary_size) / split + 2 * heads * (query_size() + value_size()));
    }
    const double normed = kind.query_key_norm ? (heads + keys) * d : 0;
    return element * (2 * (heads + keys) * d + normed);
  }

  double attention_output() const { return element * heads * value_size(); }

  double scores() const {
    const int seen = std::min(plan.sequence, kind.attention_window.value_or(plan.sequence));
    return score_bytes * heads * seen;
  }

  // Both inputs of a gated product and the product; plain: before and after the activation.
  double inner() const { return element * (kind.gated ? 3.0 : 2.0); }

  double expert_ffn() const { return kind.experts->ffn.value_or(kind.ffn); }
  double shared_ffn() const {
    return double(kind.experts->shared) * kind.experts->shared_ffn.value_or(int(expert_ffn()));
  }
  double copies() const {
    const ExpertsSpec& e = *kind.experts;
    return e.capacity_factor.value_or(1.0) * e.per_token * plan.expert_tensor / t;
  }

  double feed_forward() const {
    if (!kind.experts) return inner() * kind.ffn / t;
    // An expert split over ranks reads whole tokens and hands back its share of the sum.
    const double etp = plan.expert_tensor;
    return copies() * (element * h * (1 + 1 / etp) + inner() * expert_ffn() / etp) +
           inner() * shared_ffn() / t + router_bytes * kind.experts->count / split;
  }

  double product_outputs() const {
    double qkv = (heads + 2 * keys) * d;
    if (kind.latent_attention) {
      const LatentAttentionSpec& latent = *kind.latent_attention;
      qkv = (latent.query_rank.value_or(0) + latent.kv_rank + latent.rotary_size) / split +
            heads * (query_size() + d + value_size());
    }
    const double up = kind.gated ? 2 : 1;
    double ffn = up * kind.ffn / t + h / split;
    if (kind.experts) {
      const double etp = plan.expert_tensor;
      ffn = copies() * (up * expert_ffn() + h) / etp + up * shared_ffn() / t +
            (kind.experts->shared > 0 ? h / split : 0);
    }
    return element * (qkv + h / split + ffn);
  }
};

}  // namespace

double block_activation_bytes(const Plan& plan, const TransformerSpec& kind,
                              const SoftwareSpec& software, Recompute recompute) {
  const PerToken token{plan, kind};
  const double input = element * token.h / token.split;
  double bytes = 0;
  switch (recompute) {
    case Recompute::full:
      bytes = input;
      break;
    case Recompute::per_operation:
      bytes = input + token.attention_output() + 0.5 * token.product_outputs();
      break;
    case Recompute::none:
    case Recompute::selective:
      bytes = token.stream(software) + token.attention() + token.feed_forward();
      if (recompute == Recompute::none && !software.flash_attention) bytes += token.scores();
      break;
  }
  return plan.micro_batch_tokens() * bytes;
}

double kept_block_bytes(const Plan& plan, const TransformerSpec& kind,
                        const SoftwareSpec& software) {
  const double all = block_activation_bytes(plan, kind, software, Recompute::none);
  const double kept = block_activation_bytes(plan, kind, software, plan.recompute);
  return all - plan.recompute_share * (all - kept);
}

double expert_copies(const Plan& plan, const TransformerSpec& kind) {
  return kind.experts ? plan.micro_batch_tokens() * PerToken{plan, kind}.copies() : 0;
}

double key_value_bytes(const Plan& plan, const TransformerSpec& kind) {
  const PerToken token{plan, kind};
  const double pair = token.query_size() + token.value_size();
  return element * (kind.latent_attention ? token.heads : token.keys) * pair;
}

}  // namespace trainyard::models
