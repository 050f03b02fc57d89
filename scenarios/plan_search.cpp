#include "scenarios/plan_search.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "models/compute/kernels.hpp"
#include "models/training/memory.hpp"
#include "models/training/plan.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/step_model.hpp"
#include "scenarios/plan_layouts.hpp"
#include "scenarios/world.hpp"
#include "sim/check.hpp"
#include "topologies/catalog.hpp"

namespace trainyard::scenarios {
namespace {

using models::JobSpec;

// Played together: of a fixed size, so that what is ruled out does not depend on the threads.
constexpr std::size_t round_size = 16;

struct Candidate {
  JobSpec job;
  Bytes memory;
  double bound_s = 0;
};

/// f(i, lane) for all i below n, on so many threads (lanes); results must not depend on the order.
template <class F>
void in_parallel(std::size_t n, int threads, const F& f) {
  const std::size_t lanes =
      std::clamp<std::size_t>(std::size_t(std::max(threads, 1)), 1, std::max<std::size_t>(n, 1));
  std::vector<std::exception_ptr> failed(lanes);
  {
    std::vector<std::jthread> workers;
    for (std::size_t lane = 0; lane < lanes; ++lane)
      workers.emplace_back([&, lane] {
        try {
          for (std::size_t i = lane; i < n; i += lanes) f(i, lane);
        } catch (...) {
          failed[lane] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& e : failed)
    if (e) std::rethrow_exception(e);
}

RankedPlan play(const Candidate& candidate, const ClusterSpec& cluster, const Site& site,
                const models::Placement& placement, double scale) {
  const JobSpec& job = candidate.job;
  models::StepModel model(job, cluster.server, site.router);
  model.scale_compute(scale);
  const models::StepProfile& profile = model.profile(placement);
  check(profile.cut_off.empty(), "an intact fabric connects the job", profile.cut_off);
  const double step_s = to_seconds(profile.step);
  const double peak =
      models::peak_flops(cluster.server.gpu, models::operands_of(job.parallel.precision));
  return {.parallel = job.parallel,
          .step_s = step_s,
          .tokens_per_s = profile.tokens / step_s,
          .mfu = profile.model_flops / (peak * job.gpus * step_s),
          .memory = candidate.memory,
          .memory_share = candidate.memory / cluster.server.gpu.memory,
          .bound_s = candidate.bound_s};
}

/// Those that fit, by their bound.
std::vector<Candidate> candidates_of(const std::vector<JobSpec>& layouts,
                                     const models::GpuSpec& gpu, const PlanOptions& options,
                                     PlanSearch& out) {
  std::vector<FittedLayout> checked(layouts.size());
  std::vector<double> bounds(layouts.size(), 0.0);
  in_parallel(layouts.size(), options.threads, [&](std::size_t i, std::size_t) {
    checked[i] = fitted(layouts[i], gpu.memory * options.fill);
    if (checked[i].fits) bounds[i] = bound_s(checked[i].job, gpu, options.compute_scale);
  });
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < checked.size(); ++i)
    if (checked[i].fits)
      candidates.push_back({std::move(checked[i].job), checked[i].memory, bounds[i]});
  out.candidates = layouts.size();
  out.too_large = layouts.size() - candidates.size();
  if (candidates.empty() && !layouts.empty()) {
    const FittedLayout& nearest = *std::min_element(
        checked.begin(), checked.end(),
        [](const FittedLayout& a, const FittedLayout& b) { return a.memory < b.memory; });
    out.least_memory = layout_text(nearest.job.parallel, nearest.job.gpus) + ": " +
                       models::gigabytes(nearest.memory) + " GB of " +
                       models::gigabytes(gpu.memory * options.fill) + " GB";
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bound_s < b.bound_s; });
  return candidates;
}

}  // namespace

PlanSearch search_plans(const Scenario& scenario, const std::string& name,
                        const PlanOptions& options) {
  const JobSpec& job = scenario.jobs.at(name);
  PlanSearch out;
  const std::vector<Candidate> candidates = candidates_of(
      layouts_of(job, scenario.cluster.server), scenario.cluster.server.gpu, options, out);
  if (candidates.empty()) return out;

  // The job alone on the cluster, in the layout that looks best: what adaptive routes learn.
  Scenario alone = scenario;
  alone.jobs = {{name, candidates.front().job}};
  // Routers remember paths, so every thread has its own.
  std::vector<std::unique_ptr<Site>> sites(std::size_t(std::max(1, options.threads)));
  in_parallel(sites.size(), options.threads,
              [&](std::size_t i, std::size_t) { sites[i] = std::make_unique<Site>(alone); });
  const models::Placement placement = first_placement(scenario, job);
  for (std::size_t first = 0; first < candidates.size(); first += round_size) {
    if (!options.play_all && out.plans.size() >= options.top &&
        out.plans[options.top - 1].step_s < candidates[first].bound_s) {
      out.ruled_out = candidates.size() - first;
      break;
    }
    const std::size_t n = std::min(round_size, candidates.size() - first);
    const std::size_t before = out.plans.size();
    out.plans.resize(before + n);
    in_parallel(n, options.threads, [&](std::size_t i, std::size_t lane) {
      out.plans[before + i] = play(candidates[first + i], scenario.cluster, *sites[lane], placement,
                                   options.compute_scale);
    });
    out.played += n;
    std::stable_sort(out.plans.begin(), out.plans.end(),
                     [](const RankedPlan& a, const RankedPlan& b) { return a.step_s < b.step_s; });
  }
  if (!options.play_all && out.plans.size() > options.top) out.plans.resize(options.top);
  return out;
}

Problems fabric_problems(const Scenario& scenario) {
  Problems problems =
      topologies::build_fabric(scenario.cluster.fabric, host_shape(scenario)).problems;
  // What the builder says of servers is written one level up.
  for (Problem& p : problems)
    p.path = (p.path.rfind("server", 0) == 0 ? "cluster." : "cluster.fabric.") + p.path;
  return problems;
}

Problems check_measured(const Scenario& scenario, const std::string& name) {
  const JobSpec& job = scenario.jobs.at(name);
  Problems problems = models::check_plan(job, scenario.cluster.server.gpus);
  if (!problems.empty() || !job.measured_step) return problems;
  Scenario alone = scenario;
  alone.jobs = {{name, job}};
  const Site site(alone);
  models::StepModel model(job, scenario.cluster.server, site.router);
  const auto [fastest, slowest] = model.scalable_range(first_placement(scenario, job));
  if (*job.measured_step < fastest || *job.measured_step > slowest)
    problems.push_back(
        {"measured_step",
         trainyard::to_text(*job.measured_step) + " cannot be met by scaling compute of " +
             layout_text(job.parallel, job.gpus),
         "between " + trainyard::to_text(fastest) + " and " + trainyard::to_text(slowest)});
  return problems;
}

MeasuredPoint measured_point(const Scenario& scenario, const std::string& name) {
  Scenario alone = scenario;
  alone.jobs = {{name, scenario.jobs.at(name)}};
  JobSpec job = scenario.jobs.at(name);
  const Site site(alone);
  const models::Placement placement = first_placement(scenario, job);
  MeasuredPoint out{.layout = layout_text(job.parallel, job.gpus),
                    .gpus = job.gpus,
                    .measured_s = to_seconds(job.measured_step.value())};
  models::StepModel scaled(job, scenario.cluster.server, site.router);
  scaled.profile(placement);
  out.compute_scale = scaled.compute_scale();
  job.measured_step.reset();
  models::StepModel predicted(job, scenario.cluster.server, site.router);
  out.predicted_s = to_seconds(predicted.profile(placement).step);
  return out;
}

std::string layout_text(const models::ParallelSpec& p, int gpus) {
  const int data = gpus / (p.tensor * p.pipeline * p.context);
  std::string out = "tp " + std::to_string(p.tensor) + " pp " + std::to_string(p.pipeline);
  if (p.chunks > 1) out += "x" + std::to_string(p.chunks);
  if (p.context > 1) out += " cp " + std::to_string(p.context);
  if (p.expert > 1) out += " ep " + std::to_string(p.expert);
  out += " dp " + std::to_string(data) + " mb " + std::to_string(p.micro_batch) + " " +
         std::string(name_of(p.sharding));
  if (p.recompute != models::Recompute::none)
    out += " recompute " + std::string(name_of(p.recompute));
  return out;
}

double Sizing::whole_gpus() const {
  return std::ceil(gpus * (1 - 1e-12));  // 16 that came out as 16.000000000000004 are 16
}

Sizing time_for(double parameters, double tokens, double peak_flops, double mfu, double gpus) {
  Sizing s{.parameters = parameters,
           .tokens = tokens,
           .flops = 6 * parameters * tokens,
           .flops_per_gpu = peak_flops * mfu,
           .mfu = mfu,
           .gpus = gpus};
  s.seconds = s.flops / (s.flops_per_gpu * gpus);
  return s;
}

Sizing gpus_for(double parameters, double tokens, double peak_flops, double mfu, double seconds) {
  Sizing s = time_for(parameters, tokens, peak_flops, mfu, 1);
  s.gpus = s.flops / (s.flops_per_gpu * seconds);
  s.seconds = seconds;
  return s;
}

Sizing tokens_for(double parameters, double peak_flops, double mfu, double gpus, double seconds) {
  const double tokens = peak_flops * mfu * gpus * seconds / (6 * parameters);
  return time_for(parameters, tokens, peak_flops, mfu, gpus);
}

}  // namespace trainyard::scenarios
