#pragma once

#include "models/compute/gpu_spec.hpp"

/// How long one kernel takes on one GPU: pure functions of shape, doubles in seconds (suffix _s).
///
/// A matrix product (m x k)(k x n) is bound by the tensor cores or by memory, whichever is slower,
/// plus the launch and tail of one kernel:
///
///     t = max( 2mnk / (P e) . (1 + K/k) . (1 + q / max(W, 1/4)) . pad(m) pad(n),  bytes / H ) +
///     tau K = k_half . (P / SMs) / (A100: 312e12 / 108)    a fixed time per output tile, so it
///     grows with the rate of one SM W = m n / (128^2 . SMs)                          waves of
///     output tiles;    pad(x) = ceil(x/64) . 64 / x bytes = operand bytes . (mk + kn) + 2mn H =
///     hbm . memory_rate
///
/// P is the dense peak of the operands, e its asymptote for infinite k *under sustained load*: one
/// number a GPU type and operand width. Scaling K by the rate of an SM is what lets one law serve
/// A100 and H100, 16 and 8 bits.
///
///     GpuSpec h100 = …;
///     double forward = gemm_s(h100, Operands::bits16, 8192, 7168, 8192);   // 1.366 ms
///     double norms = hbm_s(h100, 8.0 * hidden * tokens);
///
/// Law and constants: docs/models/kernels.md. Jitter between steps is not here: it belongs to the
/// run level.
namespace trainyard::models {

enum class Operands { bits16, fp8 };

/// Dense peak of products with these operands, FLOP/s. Zero: the device has no such units.
double peak_flops(const GpuSpec& gpu, Operands operands);

double gemm_s(const GpuSpec& gpu, Operands operands, double m, double n, double k);

/// Memory-bound work: bytes at the achieved memory rate.
double hbm_s(const GpuSpec& gpu, double bytes);

/// y = x W with x (tokens x in) and W (in x out).
double linear_forward_s(const GpuSpec& gpu, Operands operands, double tokens, double in,
                        double out);
/// Gradient of the input and gradient of the weights: two products.
double linear_backward_s(const GpuSpec& gpu, Operands operands, double tokens, double in,
                         double out);

/// The attention core of one micro-batch on one GPU; causal.
struct AttentionShape {
  double tokens = 0;    // of the micro-batch: sequences x sequence
  double sequence = 0;  // context each token sees at most
  double heads = 0;     // query heads on this GPU
  double head_size = 0;
};

/// FLOPs of scores and weighted values, forward, without the causal halving: 4 . tokens . sequence
/// . heads . head_size.
double attention_flops(const AttentionShape& shape);

/// One fused kernel (flash attention) that skips what the causal mask hides.
double flash_attention_forward_s(const GpuSpec& gpu, const AttentionShape& shape);
double flash_attention_backward_s(const GpuSpec& gpu, const AttentionShape& shape);

/// Two batched products on the full square, with softmax, mask and dropout between them through
/// memory.
double unfused_attention_forward_s(const GpuSpec& gpu, const AttentionShape& shape);
double unfused_attention_backward_s(const GpuSpec& gpu, const AttentionShape& shape);

}  // namespace trainyard::models
