#pragma once

#include <string>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// Plain inputs that describe one accelerator. Figures: scenarios/parts/gpu/ (data sheet) with the
/// calibration beside them; what the efficiencies mean: docs/models/kernels.md.
namespace trainyard::models {

/// Fractions of nominal peak and kernel constants, one set a GPU type, never per run. `rows` names
/// the published measurements they were fitted on.
struct GpuCalibration {
  double gemm_16bit = 0.75;  // asymptote of GEMM rate over peak, BF16 and FP16, sustained load
  double gemm_fp8 = 0.72;
  double attention = 0.42;  // flash attention forward, over 16-bit peak
  double hbm = 0.85;        // achieved over nominal memory bandwidth
  double k_half = 126;  // inner dimension at which an A100-class GEMM reaches half its asymptote
  double wave_penalty = 0.27;                  // loss of a single wave of output tiles
  Duration kernel_floor{4100};                 // launch and tail of one kernel
  double scale_up_efficiency = 365.0 / 450.0;  // achieved ring bandwidth over scale_up_rate
  double scale_up_sqrt_s_per_sqrt_B = 1.0e-8;  // chunk pipelining: sqrt(bytes) term of a collective
  std::string rows;
};

template <class Visitor>
void describe(Visitor& v, GpuCalibration& s) {
  v.optional("gemm_16bit", s.gemm_16bit, "GEMM rate over 16-bit peak for long inner dimensions",
             between(0.01, 1));
  v.optional("gemm_fp8", s.gemm_fp8, "GEMM rate over FP8 peak for long inner dimensions",
             between(0.01, 1));
  v.optional("attention", s.attention, "flash attention forward rate over 16-bit peak",
             between(0.01, 1));
  v.optional("hbm", s.hbm, "achieved over nominal memory bandwidth", between(0.01, 1));
  v.optional("k_half", s.k_half, "inner dimension of half efficiency for an A100-class tensor core",
             at_least(0));
  v.optional("wave_penalty", s.wave_penalty, "loss of a single wave of output tiles", at_least(0));
  v.optional("kernel_floor", s.kernel_floor, "least time of one kernel", at_least(0));
  v.optional("scale_up_efficiency", s.scale_up_efficiency,
             "ring bandwidth of a collective inside the scale-up domain over scale_up_rate",
             between(0.01, 1));
  v.optional("scale_up_sqrt_s_per_sqrt_B", s.scale_up_sqrt_s_per_sqrt_B,
             "seconds per square root of bytes added to a collective inside the domain",
             at_least(0));
  v.optional("rows", s.rows, "the published measurements behind these constants");
}

struct GpuSpec {
  std::string name;
  FlopsPerSecond peak_16bit;  // dense BF16 and FP16
  FlopsPerSecond peak_fp8;    // dense; zero: no such units
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
  v.required("sms", s.sms, "streaming multiprocessors or their like", at_least(1));
  v.required("memory", s.memory, "HBM capacity", above(0));
  v.required("memory_rate", s.memory_rate, "nominal HBM bandwidth", above(0));
  v.required("scale_up_rate", s.scale_up_rate, "scale-up link (NVLink), one direction", above(0));
  v.required("power_max", s.power_max, "board power limit", above(0));
  v.required("power_idle", s.power_idle, "board power when idle", at_least(0));
  v.optional("power_communicating", s.power_communicating,
             "board power while in a collective; 0: 0.36 of the limit", at_least(0));
  v.optional("price", s.price, "list price", at_least(0));
  v.optional("calibration", s.calibration, "achieved efficiencies");
}

}  // namespace trainyard::models
