#include "models/training/memory.hpp"
#include "models/training/memory_advice.hpp"
#include "scenarios/published_layout.hpp"

namespace trainyard::scenarios {
namespace {

using models::JobSpec;
using models::ParallelSpec;
using models::Recompute;

double memory_share(const JobSpec& job, const models::GpuSpec& gpu) {
  return models::memory_estimate(models::make_plan(job), job.software, gpu).share();
}

/// The smallest share of layers with which the job fits; all of them if none does.
void recompute_what_must_be(JobSpec& job, const models::GpuSpec& gpu) {
  job.parallel.recompute = Recompute::full;
  job.parallel.recompute_share = models::least_recompute_share(job, gpu).value_or(1.0);
}

void not_given(const PublishedStack& stack, const models::GpuSpec& gpu, JobSpec& job,
               std::vector<std::string>& rules) {
  ParallelSpec& p = job.parallel;
  p.recompute = Recompute::none;
  if (memory_share(job, gpu) <= 1) {
    rules.emplace_back("recomputation not given: none");
    return;
  }
  if (stack.leaves_out_recompute) {
    rules.emplace_back(
        "recomputation not given: none, although it does not fit; the recipes offload activations");
    return;
  }
  rules.emplace_back("recomputation not given, and without it does not fit: the least that fits");
  if (!job.software.flash_attention) {
    p.recompute = Recompute::selective;
    if (memory_share(job, gpu) <= 1) return;
  }
  recompute_what_must_be(job, gpu);
}

/// States that alone exceed the GPU cannot be what was run: weights were sharded too.
void shard_what_must_be(const models::GpuSpec& gpu, JobSpec& job, std::vector<std::string>& rules) {
  ParallelSpec& p = job.parallel;
  if (p.pipeline > 1 || models::shards_weights(p.sharding)) return;
  const models::Plan plan = models::make_plan(job);
  const double bytes =
      plan.largest_stage_parameters() * (2.0 + double(job.software.gradient_bytes));
  if (bytes <= gpu.memory.value()) return;
  p.sharding = models::Sharding::fsdp;
  rules.emplace_back("weights and gradients alone exceed the GPU: weights sharded (FSDP)");
}

}  // namespace

std::string read_recompute(const PublishedRow& row, const PublishedStack& stack,
                           const models::GpuSpec& gpu, JobSpec& job,
                           std::vector<std::string>& rules) {
  const std::string_view words = row.text("recompute");
  ParallelSpec& p = job.parallel;
  shard_what_must_be(gpu, job, rules);
  p.recompute_share = 1;
  if (mentions(words, "assumed") || mentions(words, "not confirmed"))
    rules.emplace_back("recomputation assumed by the table");
  if (words.empty()) {
    not_given(stack, gpu, job, rules);
  } else if (words.substr(0, 4) == "none") {
    p.recompute = Recompute::none;
  } else if (mentions(words, "full")) {
    p.recompute = Recompute::full;
  } else if (mentions(words, "per block") ||
             (mentions(words, "selective") && stack.selective == MeaningOfSelective::per_block)) {
    recompute_what_must_be(job, gpu);
    rules.emplace_back("share of recomputed blocks not given: the least that fits");
  } else if (mentions(words, "selective")) {
    p.recompute = stack.selective == MeaningOfSelective::per_operation ? Recompute::per_operation
                                                                       : Recompute::selective;
  } else if (mentions(words, "partial")) {
    p.recompute = Recompute::per_operation;
    rules.emplace_back("partial recomputation of a kind of its own: per operation");
  } else {
    return "recomputation " + in_quotes(words) + " is not modelled";
  }
  return {};
}

}  // namespace trainyard::scenarios
