#include <algorithm>

#include "models/compute/kernels.hpp"
#include "models/training/pass_costs.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/transformer.hpp"

namespace trainyard::models {
namespace {

// Launches of one pass of a block that are no matrix products and not attention: norms, rotary,
// residual, activation; and one for each operand that is cast.
constexpr double elementwise_launches = 8.0;
constexpr double cast_launches = 4.0;

// Scales of a block of 16 or 32 elements are written with the elements, and a tensor is quantised
// along both of its sides for the forward and the gradient products: half as many bytes again as
// with one scale a tensor, which can be transposed instead (docs/models/kernels.md).
constexpr double block_scaled_casts = 1.5;

// Bytes per element to bring tokens to their experts and back, forward, in 16 bit; what travels is
// the exchange's (Megatron-Core, moe/token_dispatcher.py and moe_utils.py; docs/models/kernels.md).
// Fused: every copy is written once on its way out and read once on its way back.
constexpr double permute_row = 4.0;
// Apart: gathered (4), multiplied by its weight (4), added to its token (6).
constexpr double permute_row_unfused = 14.0;
// A deduplicating dispatcher copies what arrived into the rows of the experts, and back (DeepEP,
// HybridEP); the plain one sorts what arrived by local expert, and back, if there are several.
constexpr double arrived_row_deduplicated = 4.0;
constexpr double arrived_row_sorted = 8.0;
// FP8 and FP4 products take multiples of 16 or 32 rows: without a dispatcher that leaves room, rows
// are copied into a padded tensor and out of one.
constexpr double padded_row = 8.0;
constexpr double permute_token = 4.0;  // each token itself is read once and written once

// One kind of layer on one GPU, in tokens and widths of this GPU.
class Layer {
 public:
  Layer(const GpuSpec& gpu, const Plan& plan, const TransformerSpec& kind,
        const SoftwareSpec& software)
      : gpu_(gpu),
        plan_(plan),
        kind_(kind),
        software_(software),
        terms_(kernel_terms(plan)),
        operands_(operands_of(plan.precision)),
        T_(plan.micro_batch_tokens()),
        h_(kind.hidden),
        t_(plan.tensor),
        split_(plan.sequence_split()),
        heads_(kind.heads / t_),
        query_size_(head_size(kind)),
        value_size_(query_size_) {
    if (kind.latent_attention) {
      const LatentAttentionSpec& latent = *kind.latent_attention;
      key_heads_ = heads_;  // as the attention core sees them
      query_size_ += latent.rotary_size;
      value_size_ = latent.value_size.value_or(latent.head_size);
    } else {
      key_heads_ = std::max(1.0, kv_heads(kind) / t_);
    }
    if (kind.experts) {
      // Every expert gets its fair share of the tokens of its group, or a capacity that is filled
      // up. The group holds the tokens of expert . expert_tensor / tensor tensor-parallel groups.
      const ExpertsSpec& experts = *kind.experts;
      expert_inner_ = double(experts.ffn.value_or(kind.ffn)) / plan.expert_tensor;
      shared_inner_ =
          experts.shared * double(experts.shared_ffn.value_or(experts.ffn.value_or(kind.ffn))) / t_;
      const double slots = std::min(experts.capacity_factor.value_or(1.0) * experts.per_token,
                                    double(experts.count));
      local_experts_ = double(experts.count) / plan.expert;
      routed_ = slots * T_ * plan.expert_tensor / t_;
    }
  }

  Seconds products_s() const {
    Seconds sum = attention_products_s();
    if (!kind_.experts) return sum += ffn_s({T_, h_, double(kind_.ffn) / t_});
    if (shared_inner_ > 0) sum += ffn_s({T_, h_, shared_inner_});
    sum += linear_s(Operands::bits16, {T_ / split_, h_, double(kind_.experts->count)});  // router
    return sum += ffn_s({routed_ / local_experts_, h_, expert_inner_, local_experts_});
  }

  Seconds attention_s() const {
    const AttentionShape shape{T_,          double(plan_.sequence),
                               heads_,      query_size_,
                               value_size_, double(kind_.attention_window.value_or(0))};
    if (!software_.flash_attention)
      return {unfused_attention_forward_s(gpu_, shape, terms_),
              unfused_attention_backward_s(gpu_, shape, terms_)};
    const double rate = software_.attention_rate;
    return {flash_attention_forward_s(gpu_, shape, terms_) / rate,
            flash_attention_backward_s(gpu_, shape, terms_) / rate};
  }

  // Everything bound by memory, backward twice the bytes of the forward pass. Stacks with unfused
  // attention also have dropout.
  Seconds memory_bound_s() const {
    const double launches = elementwise_launches + (casts() ? cast_launches : 0);
    double once = launches * floor_s(gpu_, terms_);
    if (plan_.mechanisms.memory_bound_work)
      once += hbm_s(gpu_, software_.elementwise * elementwise_bytes() + cast_bytes() +
                              software_.expert_permute * permute_bytes());
    return {once, 2 * once};
  }

  // What latent attention projects up: queries, and keys with values.
  Seconds up_projections_s() const {
    if (!kind_.latent_attention) return {};
    const LatentAttentionSpec& latent = *kind_.latent_attention;
    Seconds sum = linear_s(operands_,
                           {T_, double(latent.kv_rank), heads_ * (latent.head_size + value_size_)});
    if (latent.query_rank)
      sum += linear_s(operands_, {T_, double(*latent.query_rank), heads_ * query_size_});
    return sum;
  }

  // The same once more, in the backward pass.
  double up_projected_again_s() const {
    if (!kind_.latent_attention || !software_.latent_recompute) return 0;
    const double moved =
        plan_.mechanisms.memory_bound_work ? software_.elementwise * head_elements() * T_ : 0;
    return up_projections_s().forward + hbm_s(gpu_, moved);
  }

  // Keys and values of this GPU's tokens.
  double key_value_bytes() const { return 2 * T_ * key_heads_ * (query_size_ + value_size_); }

  double useful_s() const {
    return layer_forward_flops(kind_, plan_.sequence) * T_ / t_ / peak_flops(gpu_, operands_);
  }

  // Pairs of a gather and a scatter in one pass: around attention and around the feed-forward
  // block. Routed experts take the slices of the tokens as they are.
  double tensor_pairs() const {
    if (kind_.parallel_block) return 1;
    return kind_.experts && shared_inner_ == 0 ? 1 : 2;
  }

  // Experts that are split over tensor-parallel ranks: every copy of a token is gathered on all of
  // them, and their partial results are scattered back.
  double expert_tensor_s(const CommCosts& comm) const {
    if (plan_.expert_tensor == 1) return 0;
    const double bytes = 2 * h_ * routed_;
    return comm.tensor.all_gather_s(bytes) + comm.tensor.reduce_scatter_s(bytes);
  }

  ExpertExchange exchange() const {
    return {.tokens = T_ / t_,
            .token_bytes = 2 * h_,
            .per_token = kind_.experts->per_token,
            .deduplicate = software_.expert_deduplication && plan_.mechanisms.deduplication,
            .server_limit = kind_.experts->server_limit};
  }

 private:
  Seconds linear_s(Operands operands, const LinearShape& shape) const {
    return models::linear_s(gpu_, operands, shape, terms_);
  }

  // Up (and gate, in one product) and down; `up.out` is the inner width.
  Seconds ffn_s(LinearShape up) const {
    const LinearShape down{up.tokens, up.out, h_, up.groups};
    if (kind_.gated) up.out *= 2;
    Seconds sum = linear_s(operands_, up);
    return sum += linear_s(operands_, down);
  }

  Seconds attention_products_s() const {
    Seconds sum = linear_s(operands_, {T_, heads_ * value_size_, h_});  // projection
    if (!kind_.latent_attention)
      return sum += linear_s(operands_, {T_, h_, (heads_ + 2 * key_heads_) * query_size_});
    // The narrow matrices are whole on every GPU, both in one product.
    const LatentAttentionSpec& latent = *kind_.latent_attention;
    double narrow = latent.kv_rank + latent.rotary_size;
    if (latent.query_rank)
      narrow += *latent.query_rank;
    else
      sum += linear_s(operands_, {T_, h_, heads_ * query_size_});
    sum += linear_s(operands_, {T_, h_, narrow});
    return sum += up_projections_s();
  }

  // Elements of the inner activations of the feed-forward block.
  double inner_elements() const {
    if (!kind_.experts) return T_ * kind_.ffn / t_;
    return routed_ * expert_inner_ + T_ * shared_inner_;
  }

  bool fused_experts() const { return kind_.experts && software_.fused_experts; }

  // Norms, residual, activation, and what attention turns or copies in front of its core. Fused,
  // the activation happens inside the product before it.
  double elementwise_bytes() const {
    const double norms =
        kind_.parallel_block ? std::min(kind_.norms_per_layer, 1) : kind_.norms_per_layer;
    const double residual = software_.flash_attention ? 12 : 14;
    const double activation = fused_experts() ? 0 : kind_.gated ? 6 : 4;
    return (4 * norms + residual) * h_ * T_ / split_ + activation * inner_elements() +
           head_elements() * T_;
  }

  // Bytes per token. Of a latent query only the rotary part is turned, in place; keys and values
  // leave their up-projection as one, and the rotary part is added to the keys of all heads.
  double head_elements() const {
    if (kind_.latent_attention) {
      const LatentAttentionSpec& latent = *kind_.latent_attention;
      const double up = latent.head_size + value_size_;
      return heads_ * (4.0 * latent.rotary_size + 2 * up + 2 * (up + latent.rotary_size));
    }
    return query_size_ * (positions(plan_.model) == Positions::rotary
                              ? 8 * (heads_ + key_heads_)
                              : 4 * (heads_ + 2 * key_heads_));
  }

  double permute_bytes() const {
    if (!kind_.experts) return 0;
    double row = software_.fused_permute ? permute_row : permute_row_unfused;
    if (software_.expert_deduplication)
      row += arrived_row_deduplicated;
    else
      row += (local_experts_ > 1 ? arrived_row_sorted : 0) + (casts() ? padded_row : 0);
    return h_ * (row * routed_ + permute_token * T_ / split_);
  }

  bool casts() const { return operands_ != Operands::bits16; }

  // Inputs of the four linear layers.
  double cast_bytes() const {
    if (!casts()) return 0;
    const bool by_block = operands_ == Operands::mxfp8 || operands_ == Operands::nvfp4;
    const double ffn_inputs =
        kind_.experts ? routed_ + (shared_inner_ > 0 ? T_ / split_ : 0) : T_ / split_;
    return software_.cast_bytes * (by_block ? block_scaled_casts : 1) * 4 *
           (h_ * (T_ / split_ + ffn_inputs) + heads_ * value_size_ * T_ +
            (fused_experts() ? 0 : inner_elements()));
  }

  const GpuSpec& gpu_;
  const Plan& plan_;
  const TransformerSpec& kind_;
  const SoftwareSpec& software_;
  const KernelTerms terms_;
  const Operands operands_;
  const double T_, h_, t_, split_;
  const double heads_;
  double key_heads_ = 0;
  double query_size_, value_size_;
  double local_experts_ = 0, expert_inner_ = 0, shared_inner_ = 0;
  double routed_ = 0;  // rows that the experts of this GPU compute
};

// Not hidden of the exchanges of one pass. Where a schedule runs the passes of two micro-batches
// side by side, a share that nothing hides, and what is longer than the compute of the other.
double exposed_exchange_s(double exchange_s, double compute_s, double overlap) {
  if (overlap == 0) return exchange_s;
  return std::max((1 - overlap) * exchange_s, exchange_s - compute_s);
}

// Keys and values of the other context-parallel ranks; gradients travel back.
Seconds exposed_context_s(const Layer& layer, const Plan& plan, const CommCosts& comm,
                          const Seconds& attention) {
  const double c = plan.context;
  const double bytes = layer.key_value_bytes();
  if (plan.context_exchange == ContextExchange::all_gather) {
    const double gather = comm.context.all_gather_s(bytes * c);
    return {gather, gather + comm.context.reduce_scatter_s(bytes * c)};
  }
  // A step of the ring hides behind the attention of one block.
  const auto exposed = [&](double step_bytes, double attention_s) {
    return (c - 1) * std::max(0.0, comm.context_step_s(step_bytes) - attention_s / c);
  };
  return {exposed(bytes, attention.forward), exposed(2 * bytes, attention.backward)};
}

// Scales by row are known only where the whole row is: such operands are gathered in 16 bit.
bool gathers_quantised(Operands operands) {
  return operands != Operands::bits16 && operands != Operands::fp8_rowwise;
}

}  // namespace

PassPair layer_costs(const GpuSpec& gpu, const Plan& plan, const TransformerSpec& kind,
                     const SoftwareSpec& software, const CommCosts& comm) {
  const Layer layer(gpu, plan, kind, software);
  const Mechanisms& on = plan.mechanisms;
  const Seconds products = layer.products_s();
  const Seconds memory = layer.memory_bound_s();
  Seconds attention = layer.attention_s();

  Seconds context;
  if (plan.context > 1 && on.context_traffic) {
    context = exposed_context_s(layer, plan, comm, attention);
    if (plan.context_exchange == ContextExchange::ring)
      attention = attention * (1 + software.context_overhead);
  }
  Seconds expert;
  if (kind.experts && on.expert_traffic) {
    const double exchanges =
        plan.expert > 1 ? 2 * comm.expert_exchange_s(layer.exchange()) : 0;  // there and back
    // A forward pass runs beside a backward one: on average half of both.
    const double beside = (products.forward + products.backward + memory.forward + memory.backward +
                           attention.forward + attention.backward) /
                          2;
    expert.forward = expert.backward =
        exposed_exchange_s(exchanges, beside, software.expert_overlap) +
        layer.expert_tensor_s(comm);
  }
  const Seconds tensor = exposed_tensor_s(
      plan, software, comm,
      {.pairs = layer.tensor_pairs(),
       .regathered = software.tensor_regather,
       .fp8_gathers = software.gather_in_fp8 && gathers_quantised(operands_of(plan.precision))});

  Seconds compute = products;
  compute += memory;
  compute += attention;
  if (on.host_floor && !software.cuda_graphs) {
    const double host = to_seconds(kind.experts ? software.expert_host_floor : software.host_floor);
    const auto launched = [&](double compute_s, double exposed_s) {
      return std::max(compute_s, host - exposed_s);
    };
    compute.forward = launched(compute.forward, tensor.forward + context.forward + expert.forward);
    compute.backward =
        launched(compute.backward, tensor.backward + context.backward + expert.backward);
  }

  PassPair out = split_useful(compute, layer.useful_s());
  PassCost& forward = out.forward;
  PassCost& backward = out.backward;
  forward.exposed_tp_s = tensor.forward;
  forward.exposed_cp_s = context.forward;
  forward.exposed_ep_s = expert.forward;
  backward.exposed_tp_s = tensor.backward;
  backward.exposed_cp_s = context.backward;
  backward.exposed_ep_s = expert.backward;

  const double share = on.recompute ? plan.recompute_share : 0;
  switch (plan.recompute) {
    case Recompute::none:
      if (on.recompute) backward.recompute_s = layer.up_projected_again_s();
      break;
    case Recompute::selective:
      backward.recompute_s = share * attention.forward;
      backward.exposed_cp_s += share * context.forward;
      break;
    case Recompute::per_operation:  // every other product is kept, attention too
      backward.recompute_s = share * (0.5 * products.forward + memory.forward);
      backward.exposed_tp_s += share * 0.5 * tensor.forward;
      break;
    case Recompute::full:
      backward.recompute_s = share * compute.forward;
      backward.exposed_tp_s += share * tensor.forward;
      backward.exposed_cp_s += share * context.forward;
      backward.exposed_ep_s += share * expert.forward;
      break;
  }
  return out;
}

}  // namespace trainyard::models
