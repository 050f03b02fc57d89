#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/training/job_spec.hpp"
#include "scenarios/scenario.hpp"
#include "sim/problem.hpp"
#include "sim/units.hpp"

/// Which layout of a job is fastest: every parallel plan that divides, in the order of its
/// predicted step on the real fabric.
///
///     for (const RankedPlan& p : search_plans(scenario, "llm", {.top = 20}).plans) …
///
/// 1. Candidates: plan_layouts.hpp. Recomputation is not a dimension: the least that fits in memory
///    is taken, because less is always faster.
/// 2. Memory: what does not fit even with full recomputation is dropped.
/// 3. A lower bound: the pipeline played without a network (bound_s). Candidates are played on the
///    fabric in the order of this bound, and once `top` plans are known that are faster than the
///    bound of the next one, none that is left can be among them.
///
/// Cost: candidates . (passes of one pipeline) for 1 to 3, and one step model for each that is not
/// ruled out. Page: docs/guide/plan.md.
namespace trainyard::scenarios {

struct PlanOptions {
  std::size_t top = 20;
  bool play_all = false;     // also those that cannot be among the first
  double fill = 1;           // share of the memory that a plan may take
  double compute_scale = 1;  // compute is faster by this: MeasuredPoint::compute_scale
  int threads = 2;           // the result does not depend on it
};

struct RankedPlan {
  models::ParallelSpec parallel;
  double step_s = 0;
  double tokens_per_s = 0;
  double mfu = 0;  // of the dense peak of the precision in use
  Bytes memory;    // of the fullest GPU
  double memory_share = 0;
  double bound_s = 0;
};

struct PlanSearch {
  std::vector<RankedPlan> plans;  // fastest first; at most `top` unless all are played
  std::size_t candidates = 0;     // layouts that divide
  std::size_t too_large = 0;      // of these: do not fit in memory
  std::size_t played = 0;
  std::size_t ruled_out = 0;  // by their bound
  std::string least_memory;   // when none fits: what comes nearest
};

/// The job as it stands in the scenario gives model, batch, sequence, software, precision; its
/// layout and its measured_step are not looked at. The fabric must be one that can be built.
PlanSearch search_plans(const Scenario& scenario, const std::string& job,
                        const PlanOptions& options = {});

/// A measured step of the scenario's own layout, and what it says about the prediction.
struct MeasuredPoint {
  std::string layout;
  int gpus = 0;
  double measured_s = 0;
  double predicted_s = 0;    // as calibrated in the catalog
  double compute_scale = 1;  // compute has to be faster by this to meet the measurement
};

/// Why the fabric cannot be built; paths are relative to the scenario.
Problems fabric_problems(const Scenario& scenario);
/// Why measured_step of this job cannot be met; paths are relative to the job.
Problems check_measured(const Scenario& scenario, const std::string& job);
/// Needs measured_step, and check_measured() empty.
MeasuredPoint measured_point(const Scenario& scenario, const std::string& job);

/// "tp 8 pp 16x8 dp 128 mb 1 zero-1 recompute full": stages x chunks.
std::string layout_text(const models::ParallelSpec& parallel, int gpus);

/// 6 . N . D: how long, how many GPUs, or how many tokens.
struct Sizing {
  double parameters = 0;     // N: that one token meets
  double tokens = 0;         // D
  double flops = 0;          // 6 N D
  double flops_per_gpu = 0;  // peak . mfu
  double mfu = 0;
  double gpus = 0;     // asked for, or needed (not rounded)
  double seconds = 0;  // asked for, or needed

  double flops_per_s() const { return flops / seconds; }
  double whole_gpus() const;  // rounded up
};

Sizing time_for(double parameters, double tokens, double peak_flops, double mfu, double gpus);
Sizing gpus_for(double parameters, double tokens, double peak_flops, double mfu, double seconds);
Sizing tokens_for(double parameters, double peak_flops, double mfu, double gpus, double seconds);

}  // namespace trainyard::scenarios
