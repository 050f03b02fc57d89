#pragma once

#include <vector>

#include "models/compute/server_spec.hpp"
#include "models/training/job_spec.hpp"
#include "sim/problem.hpp"
#include "sim/units.hpp"

/// The layouts that a search looks at, and what can be said of one without a network.
namespace trainyard::scenarios {

/// Every layout that divides, as a job each: tensor sizes within a server, any pipeline that
/// divides the GPUs, model chunks, context sizes that leave pieces of at least 2,048 tokens, expert
/// sizes that divide the experts, micro-batches of up to 8 sequences. Optimizer state is sharded
/// (zero-1); without a pipeline also weights (fsdp). Precision, rank order and context exchange are
/// the job's.
///
/// Context parallelism comes with one sequence a micro-batch: two sequences, each cut in two, are
/// what one whole sequence is, with more traffic.
std::vector<models::JobSpec> layouts_of(const models::JobSpec& job,
                                        const models::ServerSpec& server);

/// Why not even the simplest layout (one stage, no groups) divides; empty if it does.
Problems why_no_layout(const models::JobSpec& job, const models::ServerSpec& server);

struct FittedLayout {
  models::JobSpec job;  // with the least recomputation that fits, or all of it if none does
  Bytes memory;         // of the fullest GPU
  bool fits = false;
};

/// `memory`: what may be filled.
FittedLayout fitted(models::JobSpec job, Bytes memory);

/// No step of this layout is shorter, in seconds: its pipeline played with transfers that take no
/// time, collectives of tensor- and context-parallel groups at the line rate of the scale-up domain
/// without latency, all other traffic free, no jitter. Compute is faster by `scale`.
double bound_s(const models::JobSpec& job, const models::GpuSpec& gpu, double scale);

}  // namespace trainyard::scenarios
