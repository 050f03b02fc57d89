#pragma once

#include <vector>

#include "models/compute/gpu_spec.hpp"
#include "models/training/plan.hpp"
#include "sim/problem.hpp"
#include "sim/units.hpp"

/// What a GPU of every stage holds at its fullest moment, itemised, and whether that fits.
///
/// The operations of a stage are replayed in the order of the schedule: a forward pass adds the
/// activations of its chunk, a backward pass releases them, and the first backward pass of a chunk
/// allocates its gradients. Nothing is in flight that the schedule does not have in flight, and
/// items that never coincide are not added up. Rules:
///
///     weights      2 bytes a parameter; FSDP without pipeline: over data
///     optimizer    12 bytes a parameter (FP32 weights, two moments); ZeRO-1 and FSDP: over data
///     gradients    gradient_bytes a parameter. Sharding none: whole, always. Otherwise a chunk's
///     are whole from its first
///                  backward pass until they are reduce-scattered, one chunk after its last; then a
///                  shard stays
///     activations  per token and layer, bytes (t tensor; s tensor with sequence parallelism, else
///     1):
///                    flash    8 h/s + 4 (a + kv) d/t + 4 f/t, gated 6 f/t
///                    unfused 10 h/s + 4 (a + kv) d/t + 4 f/t + 5 a sequence/t      (Korthikanti et
///                    al. 2022)
///                  full recomputation: 2 h/s, and one layer entire while it is recomputed
///     buffers      2.5 GiB driver, libraries and communicators, two gathered tensors, two boundary
///     tensors
///
///     MemoryEstimate m = memory_estimate(plan, software, gpu);
///     m.stages[1].total();                        // 79.7 GB of 80 GB
///
/// What that leaves out, and figures beside it: docs/models/memory.md.
namespace trainyard::models {

/// At the fullest moment of one stage.
struct StageMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;
  Bytes buffers;

  Bytes total() const { return weights + gradients + optimizer + activations + buffers; }
};

struct MemoryEstimate {
  std::vector<StageMemory> stages;
  Bytes capacity;

  int fullest_stage() const;
  /// total over capacity of the fullest stage: above 1 it does not fit, above 0.9 the allocator may
  /// still fail.
  double share() const;
};

/// Bytes of activations that one micro-batch leaves in one layer for its backward pass.
double layer_activation_bytes(const Plan& plan, const SoftwareSpec& software, Recompute recompute);

StageMemory stage_memory(const Plan& plan, const SoftwareSpec& software, int stage);
MemoryEstimate memory_estimate(const Plan& plan, const SoftwareSpec& software, const GpuSpec& gpu);

/// Empty when the job fits. Otherwise one problem with the items of the fullest stage and the
/// nearest plan that fits: the fewest and cheapest changes of sharding, micro_batch, recompute,
/// tensor and pipeline. Needs check_plan() empty.
Problems check_memory(const JobSpec& job, const GpuSpec& gpu, int gpus_per_server);

}  // namespace trainyard::models
