#pragma once

#include <vector>

#include "models/compute/gpu_spec.hpp"
#include "models/compute/kernels.hpp"
#include "models/training/comm_costs.hpp"
#include "models/training/parallel_spec.hpp"
#include "models/training/plan.hpp"

/// What one micro-batch costs on every chunk of every stage, from shapes: matrix products,
/// attention, memory-bound work, recomputation, and the traffic of tensor, context and expert
/// parallelism that is not hidden. One GPU at nominal speed; a slower GPU stretches the compute
/// parts only (PassCost::total_s).
///
///     forward  = products + attention + memory-bound work (bytes / H) + launches
///                + exposed traffic, and at least the host's time to launch all that
///     backward = products twice + attention backward + memory-bound work twice + launches
///                + exposed traffic + what is recomputed + gradient accumulation
///
///     const std::vector<CommCosts> comm = …;
///     const StepCosts costs = step_costs(gpu, plan, software, comm);
///     costs.chunk(stage, chunk).forward.total_s();
///
/// Plan::mechanisms leaves terms out, for ablations. Equations, constants, sources:
/// docs/models/kernels.md.
namespace trainyard::models {

/// One pass of one micro-batch.
struct PassCost {
  double useful_s = 0;   // model FLOPs at the peak of the precision in use
  double kernels_s = 0;  // what the kernels take beyond that
  double recompute_s = 0;
  double exposed_tp_s = 0;  // not hidden behind compute
  double exposed_cp_s = 0;
  double exposed_ep_s = 0;
  double weight_gradient_s = 0;  // of a backward pass, contained above: products that a zero-bubble
                                 // schedule may put off

  double compute_s() const { return useful_s + kernels_s + recompute_s; }
  /// On a GPU of this speed (1: nominal).
  double total_s(double speed = 1.0) const { return compute_s() / speed + exposed_s(); }
  double exposed_s() const { return exposed_tp_s + exposed_cp_s + exposed_ep_s; }
  PassCost& operator+=(const PassCost& o);
};

struct PassPair {
  PassCost forward;
  PassCost backward;
  PassPair& operator+=(const PassPair& o);
  friend PassPair operator*(const PassPair& pair, double n);
};

Operands operands_of(Precision precision);

/// One block of a kind (Plan::kinds); token embedding (first stage); final norm, output product and
/// loss (last stage; once more for each further prediction).
PassPair layer_costs(const GpuSpec& gpu, const Plan& plan, const TransformerSpec& kind,
                     const SoftwareSpec& software, const CommCosts& comm);
PassPair embedding_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                         const CommCosts& comm);
PassPair head_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                    const CommCosts& comm);

struct StepCosts {
  int chunks_per_stage = 1;
  std::vector<PassPair>
      chunks;  // [stage * chunks_per_stage + chunk], gradient accumulation included
  std::vector<double> optimizer_s;  // [stage], once a step

  const PassPair& chunk(int stage, int chunk) const {
    return chunks[std::size_t(stage * chunks_per_stage + chunk)];
  }
  /// Forward and backward of one micro-batch through all chunks of a stage.
  double micro_batch_s(int stage) const;
};

/// `comm`: of every stage, or one for all of them.
StepCosts step_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                     const std::vector<CommCosts>& comm);

/// A precision that the GPU does not have.
Problems check_precision(const JobSpec& job, const GpuSpec& gpu);

/// Bytes of one micro-batch between two stages, per GPU: with sequence parallelism each sends its
/// slice.
double boundary_bytes(const Plan& plan);

}  // namespace trainyard::models
