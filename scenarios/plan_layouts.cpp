#include "scenarios/plan_layouts.hpp"

#include <algorithm>

#include "models/training/memory.hpp"
#include "models/training/pipeline.hpp"
#include "models/training/plan.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/transformer.hpp"

namespace trainyard::scenarios {
namespace {

using models::JobSpec;
using models::ParallelSpec;

constexpr int largest_micro_batch = 8;
constexpr int largest_context = 16;
constexpr int shortest_piece = 2048;  // tokens: shorter pieces of a sequence starve the kernels
constexpr int most_chunks = 16;

std::vector<int> powers_of_two(int most) {
  std::vector<int> out;
  for (int x = 1; x <= most; x *= 2) out.push_back(x);
  return out;
}

std::vector<int> divisors(int n) {
  std::vector<int> out;
  for (int d = 1; d <= n; ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

int routed_experts(const models::TransformerSpec& model) {
  int count = 0;
  for (const models::LayerGroup& group : models::layer_groups(model))
    if (group.layer.experts) count = std::max(count, group.layer.experts->count);
  return count;
}

/// What all layouts of the search keep of the job.
JobSpec without_layout(const JobSpec& job) {
  JobSpec bare = job;
  bare.parallel = {};
  bare.parallel.precision = job.parallel.precision;
  bare.parallel.order = job.parallel.order;
  bare.parallel.context_exchange = job.parallel.context_exchange;
  bare.measured_step.reset();
  return bare;
}

class Layouts {
 public:
  Layouts(const JobSpec& job, const models::ServerSpec& server)
      : bare_(without_layout(job)), server_(server) {}

  std::vector<JobSpec> list() {
    const int experts = routed_experts(bare_.model);
    const std::vector<int> expert_sizes = experts > 0 ? divisors(experts) : std::vector<int>{1};
    for (const int tensor : powers_of_two(server_.gpus))
      for (const int pipeline : divisors(bare_.gpus))
        for (const int context : powers_of_two(largest_context)) {
          if (pipeline > bare_.model.layers + 2 || bare_.gpus / pipeline < tensor) continue;
          if (context > 1 && bare_.sequence / context < shortest_piece) continue;
          for (const int expert : expert_sizes) {
            ParallelSpec p = bare_.parallel;
            p.tensor = tensor;
            p.pipeline = pipeline;
            p.context = context;
            p.expert = expert;
            if (expert > 1) p.expert_tensor = 1;
            with_micro_batches(p);
          }
        }
    return std::move(found_);
  }

 private:
  void with_micro_batches(ParallelSpec p) {
    for (const int micro_batch : powers_of_two(p.context > 1 ? 1 : largest_micro_batch)) {
      p.micro_batch = micro_batch;
      p.schedule = models::Schedule::one_f_one_b;
      p.chunks = 1;
      p.sharding = models::Sharding::zero1;
      add(p);
      if (p.pipeline == 1) {
        p.sharding = models::Sharding::fsdp;
        add(p);
        continue;
      }
      p.schedule = models::Schedule::interleaved;
      for (p.chunks = 2; p.chunks <= most_chunks; ++p.chunks) add(p);
    }
  }

  void add(const ParallelSpec& p) {
    JobSpec job = bare_;
    job.parallel = p;
    if (models::check_plan(job, server_.gpus).empty()) found_.push_back(std::move(job));
  }

  const JobSpec bare_;
  const models::ServerSpec& server_;
  std::vector<JobSpec> found_;
};

/// Every byte that a rank lacks has to come in, at the line rate.
models::CommCosts at_line_rate(const models::Plan& plan, const models::GpuSpec& gpu) {
  const auto group = [&](int members) {
    const double share = double(members - 1) / members / gpu.scale_up_rate.value();
    const auto seconds = [share](double bytes) { return share * bytes; };
    return models::GroupCosts{seconds, seconds, seconds};
  };
  models::CommCosts costs = models::CommCosts::free();
  costs.tensor = group(plan.tensor);
  costs.context = group(plan.context);
  return costs;
}

}  // namespace

std::vector<JobSpec> layouts_of(const JobSpec& job, const models::ServerSpec& server) {
  return Layouts(job, server).list();
}

Problems why_no_layout(const JobSpec& job, const models::ServerSpec& server) {
  return models::check_plan(without_layout(job), server.gpus);
}

FittedLayout fitted(JobSpec job, Bytes memory) {
  using R = models::Recompute;
  FittedLayout out{std::move(job), {}, false};
  for (const R recompute : {R::none, R::selective, R::full}) {
    // A fused attention kernel keeps nothing that selective recomputation could drop.
    if (recompute == R::selective && out.job.software.flash_attention) continue;
    out.job.parallel.recompute = recompute;
    out.memory = models::largest_stage_memory(models::make_plan(out.job), out.job.software);
    out.fits = out.memory <= memory;
    if (out.fits) break;
  }
  return out;
}

double bound_s(const JobSpec& job, const models::GpuSpec& gpu, double scale) {
  const models::Plan plan = models::make_plan(job);
  const models::StepCosts costs =
      models::step_costs(gpu, plan, job.software, {at_line_rate(plan, gpu)});
  models::PipelineInput in;
  in.stages = plan.pipeline;
  in.chunks = plan.chunks;
  in.micro_batches = plan.micro_batches;
  in.schedule = plan.schedule;
  for (const models::PassPair& pass : costs.chunks) {
    in.forward_s.push_back(pass.forward.total_s(scale));
    in.backward_s.push_back(pass.backward.total_s(scale));
  }
  in.forward_transfer_s.assign(std::size_t(plan.pipeline), 0.0);
  in.backward_transfer_s.assign(std::size_t(plan.pipeline), 0.0);
  const double optimizer_s = *std::max_element(costs.optimizer_s.begin(), costs.optimizer_s.end());
  return models::play_pipeline(in).makespan_s + optimizer_s / scale;
}

}  // namespace trainyard::scenarios
