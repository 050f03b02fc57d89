#pragma once

#include <string>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// Plain inputs that describe one accelerator. Figures: scenarios/parts/gpu/ (data sheet) and
/// scenarios/parts/calibration/ (fitted); what the efficiencies mean: docs/models/kernels.md.
namespace trainyard::models {

/// Fractions of nominal peak and kernel constants, one set a GPU type, never per run. `rows` names
/// the published measurements they were fitted on. Those marked "shared" have one value for all
/// types (docs/models/kernels.md).
struct GpuCalibration {
  std::string name;
  double gemm_16bit = 0.75;  // asymptote of GEMM rate over peak, BF16 and FP16, sustained load
  double gemm_fp8 = 0.72;    // scaled by tensor
  double gemm_fp8_rowwise = 0.40;  // scaled by row
  double gemm_mxfp8 = 0.62;        // scaled by blocks of 32, over FP8 peak
  double gemm_nvfp4 = 0.57;        // scaled by blocks of 16, over FP4 peak
  double attention = 0.42;         // flash attention forward, over 16-bit peak
  double hbm = 0.85;               // achieved over nominal memory bandwidth; shared
  double k_half =
      126;  // inner dimension at which an A100-class GEMM reaches half its asymptote; shared
  double wave_penalty = 0.27;        // loss of a single wave of output tiles; shared
  Duration kernel_floor{4100};       // launch and tail of one kernel; shared
  double attention_backward = 0.76;  // rate of the backward over the forward kernel; shared
  double small_head = 0.93;          // rate with heads of 64 or less over 128; shared
  double unfused_products = 0.6;     // batched products per head over one large GEMM; shared
  double unfused_bytes = 1.1;        // softmax traffic over the least; shared
  double logit_bytes = 22;           // loss, both passes, bytes a logit; shared
  double optimizer_bytes = 40;       // Adam step, bytes a parameter; shared
  double scale_up_efficiency = 365.0 / 450.0;  // achieved ring bandwidth over scale_up_rate
  std::string rows;
};

template <class Visitor>
void describe(Visitor& v, GpuCalibration& s) {
  v.optional("name", s.name, "name shown in reports");
  v.optional("gemm_16bit", s.gemm_16bit, "GEMM rate over 16-bit peak for long inner dimensions",
             between(0.01, 1));
  v.optional("gemm_fp8", s.gemm_fp8, "GEMM rate over FP8 peak for long inner dimensions",
             between(0.01, 1));
  v.optional("gemm_fp8_rowwise", s.gemm_fp8_rowwise, "the same for FP8 products scaled row by row",
             between(0.01, 1));
  v.optional("gemm_mxfp8", s.gemm_mxfp8, "the same for MXFP8 products (scaled by blocks of 32)",
             between(0.01, 1));
  v.optional("gemm_nvfp4", s.gemm_nvfp4, "NVFP4 GEMM rate over FP4 peak for long inner dimensions",
             between(0.01, 1));
  v.optional("attention", s.attention, "flash attention forward rate over 16-bit peak",
             between(0.01, 1));
  v.optional("hbm", s.hbm, "achieved over nominal memory bandwidth", between(0.01, 1));
  v.optional("k_half", s.k_half, "inner dimension of half efficiency for an A100-class tensor core",
             at_least(0));
  v.optional("wave_penalty", s.wave_penalty, "loss of a single wave of output tiles", at_least(0));
  v.optional("kernel_floor", s.kernel_floor, "least time of one kernel", at_least(0));
  v.optional("attention_backward", s.attention_backward,
             "rate of the backward attention kernel over the forward one", between(0.05, 2));
  v.optional("small_head", s.small_head, "attention rate with heads of 64 or less over 128",
             between(0.05, 2));
  v.optional("unfused_products", s.unfused_products,
             "rate of batched products per head over one large GEMM (unfused attention)",
             between(0.05, 1));
  v.optional("unfused_bytes", s.unfused_bytes,
             "memory traffic of unfused softmax, mask and dropout over the least", at_least(0));
  v.optional("logit_bytes", s.logit_bytes, "bytes moved by the loss for one logit, both passes",
             at_least(0));
  v.optional("optimizer_bytes", s.optimizer_bytes, "bytes moved by one Adam step for one parameter",
             at_least(0));
  v.optional("scale_up_efficiency", s.scale_up_efficiency,
             "ring bandwidth of a collective inside the scale-up domain over scale_up_rate",
             between(0.01, 1));
  v.optional("rows", s.rows, "the published measurements behind these constants");
}

struct GpuSpec {
  std::string name;
  FlopsPerSecond peak_16bit;  // dense BF16 and FP16
  FlopsPerSecond peak_fp8;    // dense; zero: no such units
  FlopsPerSecond peak_fp4;    // dense; zero: no such units
  int sms = 132;
  Bytes memory;                  // HBM capacity
  BytesPerSecond memory_rate;    // HBM, nominal
  BytesPerSecond scale_up_rate;  // NVLink, one direction
  Watts power_max;               // TDP
  Watts power_idle;
  Watts power_communicating;  // while waiting in or running a collective
  Dollars price;
  GpuCalibration calibration;
};

template <class Visitor>
void describe(Visitor& v, GpuSpec& s) {
  v.optional("name", s.name, "name shown in reports");
  v.required("peak_16bit", s.peak_16bit, "dense BF16/FP16 peak", above(0));
  v.optional("peak_fp8", s.peak_fp8, "dense FP8 peak; leave out if the device has none",
             at_least(0));
  v.optional("peak_fp4", s.peak_fp4, "dense FP4 peak; leave out if the device has none",
             at_least(0));
  v.required("sms", s.sms, "streaming multiprocessors or their like", at_least(1));
  v.required("memory", s.memory, "HBM capacity", above(0));
  v.required("memory_rate", s.memory_rate, "nominal HBM bandwidth", above(0));
  v.required("scale_up_rate", s.scale_up_rate, "scale-up link (NVLink), one direction", above(0));
  v.required("power_max", s.power_max, "board power limit", above(0));
  v.required("power_idle", s.power_idle, "board power when idle", at_least(0));
  v.optional("power_communicating", s.power_communicating,
             "board power while in a collective; 0: 0.36 of the limit", at_least(0));
  v.optional("price", s.price, "list price", at_least(0));
  v.part("calibration", s.calibration, "calibration", "achieved efficiencies");
}

}  // namespace trainyard::models
