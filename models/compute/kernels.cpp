#include "models/compute/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace trainyard::models {
namespace {

// The rate of one A100 SM, FLOP/s: the device on which k_half is stated (312 TFLOP/s, 108 SMs).
constexpr double reference_sm_rate = 2.89e12;

// Output tile of the usual GEMM kernels, and the step to which a narrow side is padded.
constexpr double tile_elements = 128.0 * 128.0;
constexpr double padding = 64.0;
constexpr double fewest_waves = 0.25;  // below a quarter wave split-k kernels take over

constexpr double attention_tile = 128.0;     // Dao 2023
constexpr double flash_backward_work = 2.5;  // five products instead of two (Dao et al. 2022)
// Bytes per score of softmax, mask and dropout in 16 bit (Korthikanti et al. 2022, section 4).
constexpr double unfused_forward_bytes = 13.0;
constexpr double unfused_backward_bytes = 17.0;

// Launches: the fused kernel alone, its backward with a sum over the output before it; unfused two
// products, softmax with mask, dropout, and twice as many backward.
constexpr double flash_forward_launches = 1.0;
constexpr double flash_backward_launches = 2.0;
constexpr double unfused_forward_launches = 4.0;
constexpr double unfused_backward_launches = 8.0;

double padded(double x) {
  return std::ceil(x / padding) * padding / x;
}

// Achieved share of peak for infinite k.
double asymptote(const GpuCalibration& c, Operands operands) {
  switch (operands) {
    case Operands::bits16:
      return c.gemm_16bit;
    case Operands::fp8:
      return c.gemm_fp8;
    case Operands::fp8_rowwise:
      return c.gemm_fp8_rowwise;
    case Operands::mxfp8:
      return c.gemm_mxfp8;
    case Operands::nvfp4:
      return c.gemm_nvfp4;
  }
  return 0;
}

double operand_bytes(Operands operands) {
  switch (operands) {
    case Operands::bits16:
      return 2.0;
    case Operands::fp8:
    case Operands::fp8_rowwise:
    case Operands::mxfp8:
      return 1.0;
    case Operands::nvfp4:
      return 0.5;
  }
  return 0;
}

double floors_s(const GpuSpec& gpu, KernelTerms terms, double launches) {
  return terms.floor ? launches * to_seconds(gpu.calibration.kernel_floor) : 0;
}

double value_size(const AttentionShape& shape) {
  return shape.value_size > 0 ? shape.value_size : shape.head_size;
}

double flash_rate(const GpuSpec& gpu, const AttentionShape& shape) {
  const GpuCalibration& c = gpu.calibration;
  const double small = shape.head_size <= 64 ? c.small_head : 1.0;
  return gpu.peak_16bit.value() * c.attention * small;
}

double executed_flops(const AttentionShape& shape) {
  return attention_flops(shape) * executed_attention_share(shape);
}

double unfused_products_s(const GpuSpec& gpu, const AttentionShape& shape) {
  const GpuCalibration& c = gpu.calibration;
  return attention_flops(shape) / (gpu.peak_16bit.value() * c.gemm_16bit * c.unfused_products);
}

double unfused_softmax_s(const GpuSpec& gpu, const AttentionShape& shape, double bytes_per_score) {
  const double scores = shape.tokens * shape.sequence * shape.heads;
  return hbm_s(gpu, gpu.calibration.unfused_bytes * bytes_per_score * scores);
}

}  // namespace

double peak_flops(const GpuSpec& gpu, Operands operands) {
  switch (operands) {
    case Operands::bits16:
      return gpu.peak_16bit.value();
    case Operands::fp8:
    case Operands::fp8_rowwise:
    case Operands::mxfp8:
      return gpu.peak_fp8.value();
    case Operands::nvfp4:
      return gpu.peak_fp4.value();
  }
  return 0;
}

double grouped_gemm_s(const GpuSpec& gpu, Operands operands, double groups, double m, double n,
                      double k, KernelTerms terms) {
  if (groups <= 0 || m <= 0 || n <= 0 || k <= 0) return 0;
  const GpuCalibration& c = gpu.calibration;
  const double peak = peak_flops(gpu, operands);

  double products_s = 2.0 * m * n * k / (peak * asymptote(c, operands));
  if (terms.shape) {
    const double waves = m * n / (tile_elements * gpu.sms);
    products_s *= (1.0 + c.wave_penalty / std::max(waves, fewest_waves)) * padded(m) * padded(n);
    if (terms.saturation) {
      const double k_half = c.k_half * (peak / gpu.sms) / reference_sm_rate;
      products_s *= 1.0 + k_half / k;
    }
  }
  const double memory_s = hbm_s(gpu, operand_bytes(operands) * (m * k + k * n) + 2.0 * m * n);
  return groups * std::max(products_s, memory_s) + floors_s(gpu, terms, 1);
}

double gemm_s(const GpuSpec& gpu, Operands operands, double m, double n, double k,
              KernelTerms terms) {
  return grouped_gemm_s(gpu, operands, 1, m, n, k, terms);
}

double hbm_s(const GpuSpec& gpu, double bytes) {
  return bytes / (gpu.calibration.hbm * gpu.memory_rate.value());
}

double linear_forward_s(const GpuSpec& gpu, Operands operands, const LinearShape& shape,
                        KernelTerms terms) {
  return grouped_gemm_s(gpu, operands, shape.groups, shape.tokens, shape.out, shape.in, terms);
}

double linear_backward_s(const GpuSpec& gpu, Operands operands, const LinearShape& shape,
                         KernelTerms terms) {
  return grouped_gemm_s(gpu, operands, shape.groups, shape.tokens, shape.in, shape.out, terms) +
         linear_weight_gradient_s(gpu, operands, shape, terms);
}

double linear_weight_gradient_s(const GpuSpec& gpu, Operands operands, const LinearShape& shape,
                                KernelTerms terms) {
  return grouped_gemm_s(gpu, operands, shape.groups, shape.in, shape.out, shape.tokens, terms);
}

double attention_flops(const AttentionShape& shape) {
  return 2.0 * shape.tokens * shape.sequence * shape.heads * (shape.head_size + value_size(shape));
}

// A token sees s/2 others on average, w (1 - w/2s) inside a window of w; a border of the mask
// through a tile costs half a tile more: the diagonal for every token, the far end of the window
// for those that have one.
double executed_attention_share(const AttentionShape& shape) {
  const double s = shape.sequence;
  const double w = shape.window > 0 ? std::min(shape.window, s) : s;
  const double seen = w * (1.0 - w / (2.0 * s));
  const double borders = 0.5 * attention_tile * (2.0 - w / s);
  return std::min(1.0, (seen + borders) / s);
}

double flash_attention_forward_s(const GpuSpec& gpu, const AttentionShape& shape,
                                 KernelTerms terms) {
  return executed_flops(shape) / flash_rate(gpu, shape) +
         floors_s(gpu, terms, flash_forward_launches);
}

double flash_attention_backward_s(const GpuSpec& gpu, const AttentionShape& shape,
                                  KernelTerms terms) {
  return flash_backward_work * executed_flops(shape) /
             (flash_rate(gpu, shape) * gpu.calibration.attention_backward) +
         floors_s(gpu, terms, flash_backward_launches);
}

double unfused_attention_forward_s(const GpuSpec& gpu, const AttentionShape& shape,
                                   KernelTerms terms) {
  return unfused_products_s(gpu, shape) + unfused_softmax_s(gpu, shape, unfused_forward_bytes) +
         floors_s(gpu, terms, unfused_forward_launches);
}

double unfused_attention_backward_s(const GpuSpec& gpu, const AttentionShape& shape,
                                    KernelTerms terms) {
  return 2.0 * unfused_products_s(gpu, shape) +
         unfused_softmax_s(gpu, shape, unfused_backward_bytes) +
         floors_s(gpu, terms, unfused_backward_launches);
}

}  // namespace trainyard::models
