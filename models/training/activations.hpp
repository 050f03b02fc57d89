#pragma once

#include "models/training/plan.hpp"

/// Bytes that one micro-batch leaves on one GPU in one block, for its backward pass.
///
/// What is kept is what the backward pass of an operation reads: inputs of norms and of matrix
/// products, queries, keys, values and the output of attention, both factors of a gated activation.
/// Per token, in bytes (h hidden, a heads, kv key/value heads, d head size, f ffn; t tensor;
/// s = t with sequence parallelism, else 1):
///
///     residual stream   8 h/s                       and 2 h/s of dropout masks in unfused stacks
///     attention         4 (a + kv) d/t              latent: page
///     scores            5 a . sequence/t            unfused attention only
///     feed-forward      4 f/t, gated 6 f/t
///     experts           k (2 h ETP + 2 h + 6 f_e)/t + 6 f_shared/t + 8 . experts/s   top-k, gated
///
/// Without experts and with 4 f that is s b h (10/s + 24/t + 5 a sequence/(h t)) of Korthikanti et
/// al. 2022. Recomputation keeps less of it:
///
///     selective         all but the scores
///     per_operation     input 2 h/s, output of attention 2 a d/t, half of the outputs of products
///     full              input 2 h/s
///
///     double bytes = block_activation_bytes(plan, plan.kinds[0], software, Recompute::none);
///
/// Context parallelism is in the tokens of a rank. Page: docs/models/memory.md.
namespace trainyard::models {

/// `kind`: one of Plan::kinds.
double block_activation_bytes(const Plan& plan, const TransformerSpec& kind,
                              const SoftwareSpec& software, Recompute recompute);

/// With the plan's recomputation: recompute_share of the layers recompute, the others keep all.
double kept_block_bytes(const Plan& plan, const TransformerSpec& kind,
                        const SoftwareSpec& software);

/// Tokens' copies that one expert layer computes on one GPU for one micro-batch, experts evenly
/// loaded: tokens . top-k . expert_tensor / tensor (with a capacity: its slots).
double expert_copies(const Plan& plan, const TransformerSpec& kind);

/// Keys and values of one token of one micro-batch on one GPU.
double key_value_bytes(const Plan& plan, const TransformerSpec& kind);

}  // namespace trainyard::models
