#pragma once

#include <optional>
#include <string>

#include "models/compute/gpu_spec.hpp"
#include "models/training/job_spec.hpp"

/// What to change when a job does not fit.
///
/// Changes of sharding, micro-batch, recomputation, tensor, context, expert and pipeline size are
/// tried in order of a price that says how much they are likely to cost: sharding 1 to 3, halving
/// the micro-batch 2 and 1 more each time, selective recomputation 2, full recomputation of a
/// quarter, half, three quarters, all of the layers 2 to 5, doubling a size 4. The cheapest plan
/// that check_plan() accepts and that fits is named, with its size.
///
///     nearest_plan_that_fits(job, gpu, 8);     // sharding "zero-1" (79.7 GB)
///
/// Page: docs/models/memory.md.
namespace trainyard::models {

/// In words. Needs a job without problems of its plan that does not fit.
std::string nearest_plan_that_fits(const JobSpec& job, const GpuSpec& gpu, int gpus_per_server);

/// The smallest of 1/3, 1/2, 2/3, 3/4 and 1 of the layers whose full recomputation makes the job
/// fit: the rule for published runs that recompute an unstated share of their layers. Empty when
/// even 1 does not fit. Needs check_plan() empty.
std::optional<double> least_recompute_share(const JobSpec& job, const GpuSpec& gpu);

}  // namespace trainyard::models
