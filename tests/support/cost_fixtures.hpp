#pragma once

#include <vector>

#include "models/compute/kernels.hpp"
#include "models/training/stage_costs.hpp"
#include "tests/support/training_fixtures.hpp"

/// Layers on an H100 and traffic that can be counted, for tests of costs by hand.
namespace trainyard::models::fixtures {

inline constexpr double us = 1e-6;
inline constexpr double tau = 4.1 * us;

/// Every collective takes a constant time: exposures are counts.
inline CommCosts counted() {
  const auto always = [](double s) { return [s](double) { return s; }; };
  CommCosts comm;
  comm.tensor = {always(1), always(2), always(4)};
  comm.context = {always(8), always(16), always(32)};
  comm.context_step_s = always(64);
  comm.expert_exchange_s = [](const ExpertExchange&) { return 128.0; };
  return comm;
}

inline JobSpec job_on(const TransformerSpec& model, int tensor, int context = 1) {
  JobSpec job;
  job.model = model;
  job.gpus = tensor * context;
  job.global_batch = 1;
  job.sequence = 8192;
  job.parallel.tensor = tensor;
  job.parallel.context = context;
  job.software.tensor_overlap_backward = 0;
  job.software.tensor_regather = 0;
  return job;
}

/// 8 experts of width 3072, 2 a token.
inline TransformerSpec mixture() {
  TransformerSpec model = llama3(2, 1024, 16, 4096);
  model.experts = ExpertsSpec{.count = 8, .per_token = 2, .ffn = 3072};
  return model;
}

inline PassPair layer(const JobSpec& job, const CommCosts& comm = CommCosts::free(),
                      const GpuSpec& gpu = h100()) {
  const Plan plan = make_plan(job);
  return layer_costs(gpu, plan, plan.kinds.back(), job.software, comm);
}
inline PassPair without(bool Mechanisms::*mechanism, JobSpec job,
                        const CommCosts& comm = CommCosts::free()) {
  job.mechanisms.*mechanism = false;
  return layer(job, comm);
}

inline double bytes_s(double bytes) {
  return hbm_s(h100(), bytes);
}
inline double products_forward_s(const std::vector<LinearShape>& linears,
                                 Operands operands = Operands::bits16, KernelTerms terms = {}) {
  double sum = 0;
  for (const LinearShape& linear : linears)
    sum += linear_forward_s(h100(), operands, linear, terms);
  return sum;
}
inline double products_backward_s(const std::vector<LinearShape>& linears) {
  double sum = 0;
  for (const LinearShape& linear : linears)
    sum += linear_backward_s(h100(), Operands::bits16, linear);
  return sum;
}

}  // namespace trainyard::models::fixtures
