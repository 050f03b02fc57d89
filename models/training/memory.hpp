#pragma once

#include <string>
#include <vector>

#include "models/compute/gpu_spec.hpp"
#include "models/training/plan.hpp"
#include "sim/problem.hpp"
#include "sim/units.hpp"

/// What a GPU of every stage holds at its fullest moment, itemised, and whether that fits.
///
/// The operations of a stage are replayed in the order of the schedule: a forward pass adds the
/// activations of its chunk, a backward pass releases them (zero-bubble: the pass for the weight
/// gradient does). Nothing is in flight that the schedule does not have in flight, and items that
/// never coincide are not added up. Rules, g = gradient_bytes, S the ranks sharded over:
///
///     sharding         weights  gradients                       optimizer    bytes a parameter
///     none             2        g                               12
///     zero1            2        g                               12/S
///     zero2            2        g/S; with a pipeline see below  12/S
///     zero3, fsdp      2/S      g/S                             12/S         with a pipeline as
///     zero2
///
/// With a pipeline, gradients of zero2 and up are whole from the first backward pass of their chunk
/// until the chunk after it is done, then a shard stays. S is shard_group, for routed experts the
/// ranks of it that hold the same experts. Activations of a block: activations.hpp. Besides:
///
///     recomputation  what it dropped of one block, while that block is at work
///     head           4 h/s and logit_memory . vocabulary/t bytes a token, once more per further
///                    prediction; not together with a block being recomputed
///     buffers        2.5 GiB driver, libraries, communicators; tensors gathered or exchanged
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

StageMemory stage_memory(const Plan& plan, const SoftwareSpec& software, int stage);
MemoryEstimate memory_estimate(const Plan& plan, const SoftwareSpec& software, const GpuSpec& gpu);

/// total() of the fullest stage, without looking at stages that cannot be it.
Bytes largest_stage_memory(const Plan& plan, const SoftwareSpec& software);

/// What the blocks of a stage keep at the fullest moment: activations without embedding, head, loss
/// and the block being recomputed. This is the quantity of Korthikanti et al. 2022, figures 1 and 7
/// (first stage).
Bytes kept_activations(const Plan& plan, const SoftwareSpec& software, int stage);

/// What PyTorch's caching allocator hands out at least: the total without driver, libraries and
/// communicators. What it *reserves*, as frameworks print it, is up to 30 % more.
Bytes allocated(const StageMemory& memory);

/// Decimal gigabytes for messages: "79.7".
std::string gigabytes(Bytes b);

/// Empty when the job fits. Otherwise one problem with the items of the fullest stage and the
/// nearest plan that fits (memory_advice.hpp). Needs check_plan() empty.
Problems check_memory(const JobSpec& job, const GpuSpec& gpu, int gpus_per_server);

}  // namespace trainyard::models
