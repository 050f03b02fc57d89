#include "models/compute/kernels.hpp"

#include <gmock/gmock.h>

#include <random>

#include "tests/support/training_fixtures.hpp"

namespace trainyard::models {
namespace {

using fixtures::a100;
using fixtures::gb200;
using fixtures::h100;

GpuSpec ideal() {  // 1 FLOP/s and 1 byte/s a unit, no losses: results are counts
  GpuSpec gpu;
  gpu.peak_16bit = FlopsPerSecond(1);
  gpu.peak_fp8 = FlopsPerSecond(2);
  gpu.peak_fp4 = FlopsPerSecond(4);
  gpu.sms = 1;
  gpu.memory_rate = BytesPerSecond(1);
  GpuCalibration& c = gpu.calibration;
  c.gemm_16bit = c.gemm_fp8 = c.gemm_fp8_rowwise = c.gemm_mxfp8 = c.gemm_nvfp4 = 1;
  c.attention = c.hbm = 1;
  c.k_half = c.wave_penalty = 0;
  c.kernel_floor = Duration(0);
  return gpu;
}

struct Case {
  const char* name;
  GpuSpec gpu;
  Operands operands;
  double m, n, k;
  double us;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class GemmReference : public testing::TestWithParam<Case> {};

// Values of an independent implementation of the same law with the same constants: 0.5 %.
TEST_P(GemmReference, AgreesWithin) {
  const Case& c = GetParam();
  EXPECT_NEAR(gemm_s(c.gpu, c.operands, c.m, c.n, c.k) * 1e6, c.us, 0.005 * c.us);
}

INSTANTIATE_TEST_SUITE_P(
    Gemm, GemmReference,
    testing::Values(Case{"a100_ffn", a100(), Operands::bits16, 8192, 12288, 4096, 3203},
                    Case{"a100_small", a100(), Operands::bits16, 2048, 6144, 12288, 1218},
                    Case{"h100_bf16", h100(), Operands::bits16, 8192, 7168, 8192, 1366},
                    Case{"h100_fp8", h100(), Operands::fp8, 8192, 7168, 8192, 743},
                    Case{"gb200_fp8", gb200(), Operands::fp8, 8192, 26624, 16384, 2641}),
    [](const auto& c) { return std::string(c.param.name); });

struct Measured {
  const char* name;
  GpuSpec gpu;
  Operands operands;
  double m, n, k;
  double tflops;
  double tolerance;
};
void PrintTo(const Measured& c, std::ostream* out) {
  *out << c.name;
}

class GemmMeasured : public testing::TestWithParam<Measured> {};

// Published micro-benchmarks (Microsoft Azure AI-benchmarking-guide, ND_A100_v4 and ND_H100_v5).
// They run cold, our constants describe sustained training, so A100 lies high; small H100 products
// scatter more (docs/models/kernels.md).
TEST_P(GemmMeasured, IsMet) {
  const Measured& c = GetParam();
  const double rate = 2 * c.m * c.n * c.k / gemm_s(c.gpu, c.operands, c.m, c.n, c.k) / 1e12;
  EXPECT_NEAR(rate / c.tflops, 1.0, c.tolerance) << rate << " TFLOP/s, measured " << c.tflops;
}

INSTANTIATE_TEST_SUITE_P(
    Azure, GemmMeasured,
    testing::Values(
        Measured{"a100_2048", a100(), Operands::bits16, 2048, 2048, 2048, 221.8, 0.12},
        Measured{"a100_16384", a100(), Operands::bits16, 16384, 16384, 16384, 256.5, 0.12},
        Measured{"a100_6144", a100(), Operands::bits16, 6144, 12288, 12288, 250.8, 0.12},
        Measured{"h100_4096", h100(), Operands::fp8, 4096, 4096, 4096, 1216.9, 0.08},
        Measured{"h100_8192", h100(), Operands::fp8, 8192, 8192, 8192, 1290.1, 0.08},
        Measured{"h100_16384", h100(), Operands::fp8, 16384, 16384, 16384, 1377.3, 0.08},
        Measured{"h100_2048", h100(), Operands::fp8, 2048, 2048, 2048, 1011.3, 0.25}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(Gemm, WithoutLossesIsFlopsOverPeak) {
  EXPECT_DOUBLE_EQ(gemm_s(ideal(), Operands::bits16, 128, 64, 256), 2.0 * 128 * 64 * 256);
  EXPECT_DOUBLE_EQ(gemm_s(ideal(), Operands::fp8, 128, 64, 256),
                   128.0 * 64 * 256);  // twice the peak
  EXPECT_DOUBLE_EQ(gemm_s(ideal(), Operands::nvfp4, 128, 64, 256), 128.0 * 64 * 256 / 2);
}

TEST(Gemm, EveryKindOfOperandHasItsPeakAndAsymptote) {
  GpuSpec gpu = ideal();
  gpu.calibration.gemm_fp8 = 0.8;
  gpu.calibration.gemm_fp8_rowwise = 0.4;
  gpu.calibration.gemm_mxfp8 = 0.5;
  gpu.calibration.gemm_nvfp4 = 0.25;
  const double flops = 2.0 * 128 * 64 * 256;
  const auto time = [&](Operands operands) { return gemm_s(gpu, operands, 128, 64, 256); };
  EXPECT_DOUBLE_EQ(time(Operands::bits16), flops);
  EXPECT_DOUBLE_EQ(time(Operands::fp8), flops / 1.6);
  EXPECT_DOUBLE_EQ(time(Operands::fp8_rowwise), flops / 0.8);
  EXPECT_DOUBLE_EQ(time(Operands::mxfp8), flops);
  EXPECT_DOUBLE_EQ(time(Operands::nvfp4), flops);
}

TEST(Gemm, OperandsAreReadInTheirWidthAndTheResultIsWrittenInSixteenBits) {
  GpuSpec gpu = ideal();
  gpu.peak_16bit = gpu.peak_fp8 = gpu.peak_fp4 = FlopsPerSecond(1e9);  // compute is free
  const double in = 2 * 64 * 1024, out = 2 * 64 * 64;
  EXPECT_DOUBLE_EQ(gemm_s(gpu, Operands::bits16, 64, 64, 1024), 2 * in + out);
  EXPECT_DOUBLE_EQ(gemm_s(gpu, Operands::fp8, 64, 64, 1024), in + out);
  EXPECT_DOUBLE_EQ(gemm_s(gpu, Operands::nvfp4, 64, 64, 1024), in / 2 + out);
}

TEST(Gemm, AGroupIsItsProductsWithOneLaunch) {
  const double one = gemm_s(h100(), Operands::bits16, 512, 4096, 2048);
  EXPECT_NEAR(grouped_gemm_s(h100(), Operands::bits16, 8, 512, 4096, 2048),
              8 * (one - 4.1e-6) + 4.1e-6, 1e-12);
  EXPECT_EQ(grouped_gemm_s(h100(), Operands::bits16, 8, 0, 4096, 2048), 0);
}

TEST(Gemm, TermsAreLeftOutOneByOne) {
  const double m = 1000, n = 1000, k = 1000;  // padded to 1024; 0.462 waves on 132 SMs
  const GpuSpec gpu = h100();
  const double flat = 2e9 / (989.4e12 * 0.75);
  const double waves = m * n / (16384 * 132);
  const double shape = (1 + 0.27 / waves) * 1.024 * 1.024;
  const double half = 126 * (989.4e12 / 132) / 2.89e12;
  const auto time = [&](KernelTerms terms) {
    return gemm_s(gpu, Operands::bits16, m, n, k, terms);
  };
  EXPECT_NEAR(time({}), flat * shape * (1 + half / k) + 4.1e-6, 1e-12);
  EXPECT_NEAR(time({.saturation = false}), flat * shape + 4.1e-6, 1e-12);
  EXPECT_NEAR(time({.shape = false}), flat + 4.1e-6, 1e-12);
  EXPECT_NEAR(time({.shape = false, .floor = false}), flat, 1e-12);
}

TEST(Gemm, NarrowSidePaysForTheWholeTile) {
  const double one = gemm_s(ideal(), Operands::bits16, 4096, 64, 4096);
  EXPECT_DOUBLE_EQ(gemm_s(ideal(), Operands::bits16, 4096, 63, 4096), one);
  EXPECT_DOUBLE_EQ(gemm_s(ideal(), Operands::bits16, 4096, 65, 4096), 2 * one);
}

TEST(Gemm, ThinProductsAreBoundByMemory) {
  GpuSpec gpu = ideal();
  gpu.peak_16bit = FlopsPerSecond(1e9);  // compute is free
  // 2 bytes of (64 x 1024 + 1024 x 64) in, 2 bytes of 64 x 64 out.
  EXPECT_DOUBLE_EQ(gemm_s(gpu, Operands::bits16, 64, 64, 1024), 2 * 2 * 65536 + 2 * 4096);
}

TEST(Gemm, HalfTheAsymptoteAtKHalfAndWavePenaltyOnASingleWave) {
  GpuSpec gpu = ideal();
  gpu.peak_16bit = FlopsPerSecond(2.89e12);  // the reference SM
  gpu.memory_rate = BytesPerSecond(1e30);
  gpu.calibration.k_half = 512;
  const double full = 2.0 * 128 * 128 * 512 / 2.89e12;
  EXPECT_NEAR(gemm_s(gpu, Operands::bits16, 128, 128, 512), 2 * full, 1e-12 * full);
  gpu.calibration.k_half = 0;
  gpu.calibration.wave_penalty = 0.5;  // one tile on one SM: exactly one wave
  EXPECT_NEAR(gemm_s(gpu, Operands::bits16, 128, 128, 512), 1.5 * full, 1e-12 * full);
}

TEST(Gemm, MoreHardwareIsNeverSlowerAndPeakNeverBeaten) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto size = [&random] { return double(1 + random() % 20000); };
    const double m = size(), n = size(), k = size();
    const GpuSpec gpu = h100();
    const double now = gemm_s(gpu, Operands::bits16, m, n, k);
    EXPECT_GE(now, 2 * m * n * k / gpu.peak_16bit.value());
    GpuSpec faster = gpu;
    faster.peak_16bit *= 1.5;
    EXPECT_LE(gemm_s(faster, Operands::bits16, m, n, k), now);
    GpuSpec wider = gpu;
    wider.memory_rate *= 1.5;
    EXPECT_LE(gemm_s(wider, Operands::bits16, m, n, k), now);
    EXPECT_LT(gemm_s(gpu, Operands::bits16, m, n, k), gemm_s(gpu, Operands::bits16, m, n, k + 64));
  }
}

TEST(Linear, BackwardIsBothGradients) {
  const GpuSpec gpu = h100();
  const LinearShape linear{4096, 1024, 2048};
  EXPECT_DOUBLE_EQ(linear_forward_s(gpu, Operands::bits16, linear),
                   gemm_s(gpu, Operands::bits16, 4096, 2048, 1024));
  EXPECT_DOUBLE_EQ(linear_weight_gradient_s(gpu, Operands::bits16, linear),
                   gemm_s(gpu, Operands::bits16, 1024, 2048, 4096));
  EXPECT_DOUBLE_EQ(linear_backward_s(gpu, Operands::bits16, linear),
                   gemm_s(gpu, Operands::bits16, 4096, 1024, 2048) +
                       linear_weight_gradient_s(gpu, Operands::bits16, linear));
}

TEST(Attention, FlashComputesHalfTheSquareAndTheDiagonal) {
  // 4 . 4096 . 4096 . 1 . 128 FLOPs over the square, half of it and 128/4096 more.
  const AttentionShape shape{4096, 4096, 1, 128};
  const double flops = 4.0 * 4096 * 4096 * 128 * 0.5 * (1 + 128.0 / 4096);
  EXPECT_DOUBLE_EQ(flash_attention_forward_s(ideal(), shape), flops);
  EXPECT_NEAR(flash_attention_backward_s(ideal(), shape), 2.5 * flops / 0.76, 1e-6 * flops);
  // Never more than the square, even for a sequence shorter than a tile.
  const AttentionShape tiny{64, 64, 1, 128};
  EXPECT_DOUBLE_EQ(flash_attention_forward_s(ideal(), tiny), attention_flops(tiny));
}

TEST(Attention, ValuesMayBeNarrowerThanKeys) {
  EXPECT_DOUBLE_EQ(attention_flops({10, 100, 2, 192, 128}), 2.0 * 10 * 100 * 2 * (192 + 128));
  EXPECT_DOUBLE_EQ(attention_flops({10, 100, 2, 128}), 2.0 * 10 * 100 * 2 * 256);
}

// Twin: count, tile by tile, what a mask leaves.
TEST(Attention, ExecutesTheTilesThatTheMaskTouches) {
  const auto tiles = [](int sequence, int window) {
    const int n = sequence / 128;
    double computed = 0;
    for (int row = 0; row < n; ++row)
      for (int column = 0; column <= row; ++column) {
        // The oldest key that the first query of this row of tiles sees.
        const int oldest = row * 128 - window + 1;
        if ((column + 1) * 128 > oldest) computed += 1;
      }
    return computed / n / n;
  };
  for (const int sequence : {1024, 4096, 8192})
    for (const int window : {512, 1024, 2048, 4096, 8192}) {
      SCOPED_TRACE(testing::Message() << sequence << " tokens, window " << window);
      const double share =
          executed_attention_share({double(sequence), double(sequence), 1, 128, 0, double(window)});
      EXPECT_NEAR(share, tiles(sequence, window), 1e-12);
      EXPECT_EQ(window >= sequence,
                share == executed_attention_share({double(sequence), double(sequence), 1, 128}));
    }
}

TEST(Attention, LaunchesAreCounted) {
  GpuSpec gpu = ideal();
  const AttentionShape shape{4096, 4096, 1, 128};
  const double forward = flash_attention_forward_s(gpu, shape);
  const double backward = flash_attention_backward_s(gpu, shape);
  const double unfused = unfused_attention_forward_s(gpu, shape);
  gpu.calibration.kernel_floor = std::chrono::seconds(1);
  EXPECT_DOUBLE_EQ(flash_attention_forward_s(gpu, shape), forward + 1);
  EXPECT_DOUBLE_EQ(flash_attention_backward_s(gpu, shape), backward + 2);
  EXPECT_DOUBLE_EQ(unfused_attention_forward_s(gpu, shape), unfused + 4);
  EXPECT_DOUBLE_EQ(flash_attention_forward_s(gpu, shape, {.floor = false}), forward);
}

TEST(Attention, SmallHeadsRunSlower) {
  const AttentionShape at{8192, 8192, 8, 64}, above{8192, 8192, 8, 65};
  EXPECT_NEAR(flash_attention_forward_s(ideal(), at) / attention_flops(at) /
                  (flash_attention_forward_s(ideal(), above) / attention_flops(above)),
              1 / 0.93, 1e-12);
}

TEST(Attention, UnfusedMovesEveryScoreThroughMemory) {
  GpuSpec gpu = ideal();
  gpu.peak_16bit = FlopsPerSecond(1e30);
  const AttentionShape shape{2048, 2048, 12, 128};
  const double scores = 2048.0 * 2048 * 12;
  EXPECT_NEAR(unfused_attention_forward_s(gpu, shape), 1.1 * 13 * scores, 1e-9 * scores);
  EXPECT_NEAR(unfused_attention_backward_s(gpu, shape), 1.1 * 17 * scores, 1e-9 * scores);
  EXPECT_GT(unfused_attention_forward_s(h100(), shape), flash_attention_forward_s(h100(), shape));
}

}  // namespace
}  // namespace trainyard::models
