#include "scenarios/replicate.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::scenarios {

Replication replication_of(const RunResult& result, const std::string& job) {
  const auto found = std::find_if(result.jobs.begin(), result.jobs.end(),
                                  [&](const JobResult& j) { return j.name == job; });
  check(found != result.jobs.end(), "the job that is looked at was in the run", job);
  const JobResult& j = *found;
  Replication out;
  out.goodput = j.goodput;
  out.step_s = j.step_s;
  out.interruptions = double(j.interruptions);
  out.saves = double(j.checkpoints + j.saves_lost);
  out.saves_lost = double(j.saves_lost);
  out.is_failed = result.state == RunState::failed;
  out.events = double(result.events);
  double kept_gpu_s = 0;
  for (std::size_t p = 0; p < models::step_parts; ++p)
    kept_gpu_s += j.ledger.gpu_s(models::account_of(models::StepPart(p)));
  // goodput = kept time / wall time, and all GPUs of a job are in a step together.
  out.wall_s = j.goodput > 0 ? kept_gpu_s / double(j.gpus) / j.goodput : result.simulated_s;
  const double all_gpu_s = out.wall_s * double(j.gpus);
  for (std::size_t a = 0; all_gpu_s > 0 && a < models::accounts; ++a)
    out.share[a] = j.ledger.gpu_s(models::Account(a)) / all_gpu_s;
  const double cluster_gpu_s = double(result.cluster.gpus) * result.simulated_s;
  if (cluster_gpu_s > 0) out.up_share = kept_gpu_s / cluster_gpu_s;
  out.down_servers = (1 - result.cluster.availability) * double(result.cluster.nodes);
  return out;
}

Replicator::Replicator(std::vector<Scenario> stages, ReplicateOptions options)
    : stage_scenarios_(std::move(stages)), options_(std::move(options)) {
  check(!stage_scenarios_.empty() && options_.threads >= 1, "runs have a stage and a thread");
  stages_.resize(std::size_t(options_.threads));
  for (auto& of_thread : stages_) of_thread.resize(stage_scenarios_.size());
}

Replicator::~Replicator() = default;

std::size_t Replicator::add(Variant variant) {
  check(variant.stage < stage_scenarios_.size(), "a variant has a stage", variant.stage);
  variants_.push_back(std::move(variant));
  done_.emplace_back();
  return variants_.size() - 1;
}

bool Replicator::run_to(std::size_t replications) {
  struct Task {
    std::size_t variant, replication;
  };
  // All variants of a replication on one thread: they meet the same failures, hence mostly the same
  // placements, and share what a stage knows of them. Stage by stage, so that a thread rarely needs
  // a second one.
  std::vector<Task> tasks;
  std::vector<std::size_t> begins;  // of the tasks of one replication
  for (std::size_t stage = 0; stage < stage_scenarios_.size(); ++stage)
    for (std::size_t r = 0; r < replications; ++r) {
      begins.push_back(tasks.size());
      for (std::size_t v = 0; v < variants_.size(); ++v)
        if (variants_[v].stage == stage && r >= done_[v].size()) tasks.push_back({v, r});
      if (begins.back() == tasks.size()) begins.pop_back();
    }
  const auto end_of = [&](std::size_t group) {
    return group + 1 < begins.size() ? begins[group + 1] : tasks.size();
  };
  std::vector<Replication> made(tasks.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;  // over what follows, and progress
  std::exception_ptr failure;

  const auto work = [&](std::size_t lane) {
    try {
      std::size_t group = 0, t = 0, end = 0;
      for (; !stop; ++t) {
        if (t == end) {
          if ((group = next++) >= begins.size()) return;
          t = begins[group];
          end = end_of(group);
        }
        const Variant& variant = variants_[tasks[t].variant];
        std::unique_ptr<Stage>& stage = stages_[lane][variant.stage];
        if (!stage) stage = std::make_unique<Stage>(stage_scenarios_[variant.stage]);
        Scenario scenario = variant.scenario;
        scenario.seed = options_.seed + tasks[t].replication;
        RunOptions options;
        options.cancel = options_.cancel;
        const RunResult result = run(scenario, *stage, options);
        if (result.state == RunState::cancelled) {
          stop = true;
          return;
        }
        made[t] = replication_of(result, options_.job);
        const std::lock_guard lock(mutex);
        ++runs_;
        simulated_s_ += result.simulated_s;
        events_ += result.events;
        if (options_.progress)
          options_.progress(runs_, start_of_run + seconds(simulated_s_), events_);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      stop = true;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t lane = 1; lane < stages_.size(); ++lane) threads.emplace_back(work, lane);
    work(0);
  }
  if (failure) std::rethrow_exception(failure);
  if (stop) return false;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    std::vector<Replication>& done = done_[tasks[t].variant];
    check(done.size() == tasks[t].replication, "replications are kept in their order");
    done.push_back(made[t]);
  }
  return true;
}

}  // namespace trainyard::scenarios
