#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/compute/gpu_spec.hpp"
#include "models/training/job_spec.hpp"
#include "scenarios/published_row.hpp"
#include "scenarios/published_stack.hpp"

/// The parallel layout of a published row. Each function fills a part of `job` and appends the
/// rules that it needed; an empty text means success, another is why the row cannot be used.
namespace trainyard::scenarios {

/// tp, pp, cp, ep, dp, zero_stage, sequence_parallel. Needs gpus.
std::string read_parallelism(const PublishedRow& row, const PublishedStack& stack,
                             models::JobSpec& job, std::vector<std::string>& rules);

/// global_batch_seqs, micro_batch, grad_accum. Needs the parallelism.
std::string read_batch(const PublishedRow& row, const PublishedStack& stack, models::JobSpec& job,
                       std::vector<std::string>& rules);

/// vp, schedule. Needs batch and model.
void read_schedule(const PublishedRow& row, const PublishedStack& stack, models::JobSpec& job,
                   std::vector<std::string>& rules);

/// Layers of every virtual stage where they do not divide evenly; empty where a plan divides them
/// itself. Embedding, head and each further prediction count as a layer.
std::vector<int> divided_layers(int layers, int pipeline, int chunks, int extra_predictions);

/// recompute. Needs all else: what is not stated is the least that fits.
std::string read_recompute(const PublishedRow& row, const PublishedStack& stack,
                           const models::GpuSpec& gpu, models::JobSpec& job,
                           std::vector<std::string>& rules);

/// precision: "bf16", "fp8", "fp8 rowwise", "mxfp8", "nvfp4", …
std::string read_precision(const PublishedRow& row, models::JobSpec& job,
                           std::vector<std::string>& rules);

}  // namespace trainyard::scenarios
