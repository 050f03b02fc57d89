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

// Fitted together with the constants of GpuCalibration on public step times
// (docs/models/kernels.md).
constexpr double flash_backward_rate = 0.76;  // backward over forward rate of flash attention
constexpr double flash_backward_work = 2.5;   // five products instead of two (Dao et al. 2022)
constexpr double small_head_rate = 0.93;      // heads of 64 or less, over heads of 128
constexpr double unfused_product_rate = 0.6;  // batched products per head, over one large GEMM
constexpr double unfused_forward_bytes =
    13.0;  // per score: softmax, mask, dropout (Korthikanti et al. 2022)
constexpr double unfused_backward_bytes = 17.0;
constexpr double unfused_bytes_factor = 1.1;  // achieved traffic over that count

double padded(double x) {
  return std::ceil(x / padding) * padding / x;
}

double efficiency(const GpuSpec& gpu, Operands operands) {
  return operands == Operands::fp8 ? gpu.calibration.gemm_fp8 : gpu.calibration.gemm_16bit;
}

double flash_rate(const GpuSpec& gpu, const AttentionShape& shape) {
  const double small = shape.head_size <= 64 ? small_head_rate : 1.0;
  return gpu.peak_16bit.value() * gpu.calibration.attention * small;
}

// Tiles of 128 on the diagonal are computed whole, hence a little more than half.
double executed_causal_flops(const AttentionShape& shape) {
  return attention_flops(shape) * 0.5 * (1.0 + 128.0 / std::max(shape.sequence, 128.0));
}

double unfused_products_s(const GpuSpec& gpu, const AttentionShape& shape) {
  return attention_flops(shape) /
         (gpu.peak_16bit.value() * gpu.calibration.gemm_16bit * unfused_product_rate);
}

double unfused_softmax_s(const GpuSpec& gpu, const AttentionShape& shape, double bytes_per_score) {
  const double scores = shape.tokens * shape.sequence * shape.heads;
  return hbm_s(gpu, unfused_bytes_factor * bytes_per_score * scores);
}

}  // namespace

double peak_flops(const GpuSpec& gpu, Operands operands) {
  return operands == Operands::fp8 ? gpu.peak_fp8.value() : gpu.peak_16bit.value();
}

double gemm_s(const GpuSpec& gpu, Operands operands, double m, double n, double k) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  const GpuCalibration& c = gpu.calibration;
  const double peak = peak_flops(gpu, operands);
  const double operand_bytes = operands == Operands::fp8 ? 1.0 : 2.0;

  const double k_half = c.k_half * (peak / gpu.sms) / reference_sm_rate;
  const double waves = m * n / (tile_elements * gpu.sms);
  const double products_s =
      2.0 * m * n * k / (peak * efficiency(gpu, operands)) * (1.0 + k_half / k) *
      (1.0 + c.wave_penalty / std::max(waves, fewest_waves)) * padded(m) * padded(n);
  const double memory_s = hbm_s(gpu, operand_bytes * (m * k + k * n) + 2.0 * m * n);
  return std::max(products_s, memory_s) + to_seconds(c.kernel_floor);
}

double hbm_s(const GpuSpec& gpu, double bytes) {
  return bytes / (gpu.calibration.hbm * gpu.memory_rate.value());
}

double linear_forward_s(const GpuSpec& gpu, Operands operands, double tokens, double in,
                        double out) {
  return gemm_s(gpu, operands, tokens, out, in);
}

double linear_backward_s(const GpuSpec& gpu, Operands operands, double tokens, double in,
                         double out) {
  return gemm_s(gpu, operands, tokens, in, out) + gemm_s(gpu, operands, in, out, tokens);
}

double attention_flops(const AttentionShape& shape) {
  return 4.0 * shape.tokens * shape.sequence * shape.heads * shape.head_size;
}

double flash_attention_forward_s(const GpuSpec& gpu, const AttentionShape& shape) {
  return executed_causal_flops(shape) / flash_rate(gpu, shape);
}

double flash_attention_backward_s(const GpuSpec& gpu, const AttentionShape& shape) {
  return flash_backward_work * executed_causal_flops(shape) /
         (flash_rate(gpu, shape) * flash_backward_rate);
}

double unfused_attention_forward_s(const GpuSpec& gpu, const AttentionShape& shape) {
  return unfused_products_s(gpu, shape) + unfused_softmax_s(gpu, shape, unfused_forward_bytes);
}

double unfused_attention_backward_s(const GpuSpec& gpu, const AttentionShape& shape) {
  return 2.0 * unfused_products_s(gpu, shape) +
         unfused_softmax_s(gpu, shape, unfused_backward_bytes);
}

}  // namespace trainyard::models
