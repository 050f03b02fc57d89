#pragma once

#include "models/compute/gpu_spec.hpp"
#include "models/training/job_spec.hpp"

/// Published devices and models, as tests need them: data sheets and papers, constants of
/// docs/models/kernels.md.
namespace trainyard::models::fixtures {

inline GpuSpec h100() {
  GpuSpec gpu;
  gpu.name = "H100 SXM";
  gpu.peak_16bit = FlopsPerSecond(989.4e12);
  gpu.peak_fp8 = FlopsPerSecond(1978.9e12);
  gpu.sms = 132;
  gpu.memory = Bytes(80e9);
  gpu.memory_rate = BytesPerSecond(3.35e12);
  gpu.scale_up_rate = BytesPerSecond(450e9);
  gpu.calibration.gemm_16bit = 0.750;
  gpu.calibration.gemm_fp8 = 0.718;
  gpu.calibration.attention = 0.417;
  return gpu;
}

inline GpuSpec a100() {
  GpuSpec gpu;
  gpu.name = "A100 80GB SXM";
  gpu.peak_16bit = FlopsPerSecond(312e12);
  gpu.sms = 108;
  gpu.memory = Bytes(80e9);
  gpu.memory_rate = BytesPerSecond(2.039e12);
  gpu.scale_up_rate = BytesPerSecond(300e9);
  gpu.calibration.gemm_16bit = 0.856;
  gpu.calibration.attention = 0.542;
  gpu.calibration.scale_up_efficiency = 234.0 / 300.0;
  return gpu;
}

/// Of a GB200 board.
inline GpuSpec gb200() {
  GpuSpec gpu;
  gpu.name = "GB200";
  gpu.peak_16bit = FlopsPerSecond(2450e12);
  gpu.peak_fp8 = FlopsPerSecond(4900e12);
  gpu.peak_fp4 = FlopsPerSecond(9800e12);
  gpu.sms = 148;
  gpu.memory = Bytes(186e9);
  gpu.memory_rate = BytesPerSecond(8e12);
  gpu.scale_up_rate = BytesPerSecond(900e9);
  gpu.calibration.gemm_16bit = 0.596;
  gpu.calibration.gemm_fp8 = 0.604;
  gpu.calibration.gemm_mxfp8 = 0.617;
  gpu.calibration.gemm_nvfp4 = 0.574;
  gpu.calibration.attention = 0.761;
  gpu.calibration.scale_up_efficiency = 680.0 / 900.0;
  return gpu;
}

inline TransformerSpec llama3(int layers, int hidden, int heads, int ffn) {
  TransformerSpec m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.kv_heads = 8;
  m.ffn = ffn;
  m.gated = true;
  m.vocabulary = 128256;
  return m;
}
inline TransformerSpec llama3_8b() {
  return llama3(32, 4096, 32, 14336);
}
inline TransformerSpec llama3_70b() {
  return llama3(80, 8192, 64, 28672);
}
inline TransformerSpec llama3_405b() {
  return llama3(126, 16384, 128, 53248);
}

/// GPT of Megatron papers: ffn 4 hidden, vocabulary padded to 51200, tied embeddings.
inline TransformerSpec gpt(int layers, int hidden, int heads, int vocabulary = 51200) {
  TransformerSpec m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.ffn = 4 * hidden;
  m.vocabulary = vocabulary;
  m.tied_embeddings = true;
  return m;
}

/// Llama 3 405B on 16,384 GPUs, 8 k sequences (The Llama 3 Herd of Models, 2024, Table 4); chunks:
/// one layer each.
inline JobSpec llama3_405b_16k() {
  JobSpec job;
  job.model = llama3_405b();
  job.gpus = 16384;
  job.global_batch = 2048;
  job.sequence = 8192;
  job.parallel.tensor = 8;
  job.parallel.pipeline = 16;
  job.parallel.schedule = Schedule::interleaved;
  job.parallel.chunks = 8;
  job.parallel.sharding = Sharding::zero2;
  return job;
}

/// Training stack of 2020 to 2022: unfused attention, dropout.
inline SoftwareSpec unfused_software() {
  SoftwareSpec software;
  software.flash_attention = false;
  return software;
}

}  // namespace trainyard::models::fixtures
