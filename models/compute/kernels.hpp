#pragma once

#include "models/compute/gpu_spec.hpp"

/// How long one kernel takes on one GPU: pure functions of shape, doubles in seconds (suffix _s).
///
/// A matrix product (m x k)(k x n) is bound by the tensor cores or by memory, whichever is slower,
/// plus the launch and tail of one kernel:
///
///     t     = max( 2mnk / (P e) . (1 + K/k) . (1 + q / max(W, 1/4)) . pad(m) pad(n),  bytes / H )
///             + tau
///     K     = k_half . (P / SMs) / (A100: 312e12 / 108)     a fixed time per output tile, so it
///                                                           grows with the rate of one SM
///     W     = m n / (128^2 . SMs)                           waves of output tiles
///     pad   = ceil(x/64) . 64 / x
///     bytes = operand bytes . (mk + kn) + 2mn,   H = hbm . memory_rate
///
/// P is the dense peak of the operands, e its asymptote for infinite k *under sustained load*: one
/// number a GPU type and kind of operand. Scaling K by the rate of an SM is what lets one law serve
/// A100 and Blackwell, 16, 8 and 4 bits.
///
///     GpuSpec h100 = …;
///     double forward = gemm_s(h100, Operands::bits16, 8192, 7168, 8192);   // 1.366 ms
///     double norms = hbm_s(h100, 8.0 * hidden * tokens);
///
/// Law and constants: docs/models/kernels.md. Jitter between steps is not here: it belongs to the
/// run level.
namespace trainyard::models {

enum class Operands { bits16, fp8, fp8_rowwise, mxfp8, nvfp4 };

/// Dense peak of products with these operands, FLOP/s. Zero: the device has no such units.
double peak_flops(const GpuSpec& gpu, Operands operands);

/// Terms of the laws, to be left out in ablations (docs/validation.md).
struct KernelTerms {
  bool shape = true;       // saturation, waves and padding of matrix products
  bool saturation = true;  // K/k alone
  bool floor = true;       // tau
};

double gemm_s(const GpuSpec& gpu, Operands operands, double m, double n, double k,
              KernelTerms terms = {});

/// `groups` equal products in one launch, one after the other: those of the experts on a GPU.
double grouped_gemm_s(const GpuSpec& gpu, Operands operands, double groups, double m, double n,
                      double k, KernelTerms terms = {});

/// Memory-bound work: bytes at the achieved memory rate.
double hbm_s(const GpuSpec& gpu, double bytes);

/// y = x W with x (tokens x in) and W (in x out); or `groups` of them in one launch.
struct LinearShape {
  double tokens = 0;
  double in = 0;
  double out = 0;
  double groups = 1;
};

double linear_forward_s(const GpuSpec& gpu, Operands operands, const LinearShape& shape,
                        KernelTerms terms = {});
/// Gradient of the input and gradient of the weights: two products.
double linear_backward_s(const GpuSpec& gpu, Operands operands, const LinearShape& shape,
                         KernelTerms terms = {});
/// The second of them alone.
double linear_weight_gradient_s(const GpuSpec& gpu, Operands operands, const LinearShape& shape,
                                KernelTerms terms = {});

/// The attention core of one micro-batch on one GPU; causal.
struct AttentionShape {
  double tokens = 0;  // of the micro-batch on this GPU
  double sequence = 0;
  double heads = 0;       // query heads on this GPU
  double head_size = 0;   // of queries and keys
  double value_size = 0;  // 0: head_size
  double window = 0;      // tokens that a token sees at most; 0: the whole sequence
};

/// FLOPs of scores and weighted values over the full square, forward, whatever a mask hides:
/// 2 . tokens . sequence . heads . (head_size + value_size).
double attention_flops(const AttentionShape& shape);

/// The part of the square that a fused kernel computes: below the diagonal, inside the window, in
/// whole tiles of 128.
double executed_attention_share(const AttentionShape& shape);

/// One fused kernel (flash attention).
double flash_attention_forward_s(const GpuSpec& gpu, const AttentionShape& shape,
                                 KernelTerms terms = {});
double flash_attention_backward_s(const GpuSpec& gpu, const AttentionShape& shape,
                                  KernelTerms terms = {});

/// Two batched products on the full square, with softmax, mask and dropout between them through
/// memory.
double unfused_attention_forward_s(const GpuSpec& gpu, const AttentionShape& shape,
                                   KernelTerms terms = {});
double unfused_attention_backward_s(const GpuSpec& gpu, const AttentionShape& shape,
                                    KernelTerms terms = {});

}  // namespace trainyard::models
