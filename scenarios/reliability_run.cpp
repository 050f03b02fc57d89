#include "scenarios/reliability_run.hpp"

#include <algorithm>
#include <cmath>

#include "models/storage/store.hpp"
#include "models/training/job.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/read.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

constexpr const char* store_name = "store";
constexpr double normal_99 = 2.5758;  // two-sided 99 %

class OneStep final : public models::StepSource {
 public:
  explicit OneStep(Duration step) {
    profile_.step = step;
    profile_.parts[0] = step;
  }
  const models::StepProfile& profile(const models::Placement&) override { return profile_; }

 private:
  models::StepProfile profile_;
};

/// Mean number in repair at the rates of the classes, and five standard deviations of it.
std::int64_t enough_spares(const ReliabilityRun& run, double failures_per_s, double mean_repair_s) {
  if (run.spares) return *run.spares;
  const double down = failures_per_s * mean_repair_s;
  return std::int64_t(std::ceil(down + 5 * std::sqrt(down))) + 8;
}

double mean_s(const models::DelaySpec& delay) {
  if (delay.law == models::Law::log_normal)
    return to_seconds(delay.value) * std::exp(delay.sigma * delay.sigma / 2);
  if (delay.law != models::Law::empirical) return to_seconds(delay.value);
  double sum = 0;
  for (const Duration d : delay.values) sum += to_seconds(d);
  return sum / double(delay.values.size());
}

std::int64_t units(models::Component component, const ReliabilityRun& run, std::int64_t servers) {
  return component == models::Component::gpu || component == models::Component::nic
             ? servers * run.gpus_per_server
             : servers;
}

}  // namespace

ReliabilityOutcome run_once(const ReliabilityRun& run, std::uint64_t seed) {
  const std::int64_t needed = (run.gpus + run.gpus_per_server - 1) / run.gpus_per_server;
  double failures_per_s = 0, repair_s = 0;
  for (const auto& [name, cls] : run.failures.classes) {
    if (!cls.replace) continue;
    const double rate = double(units(cls.component, run, needed)) / cls.lifetime.mean_s();
    failures_per_s += rate;
    repair_s += rate * mean_s(cls.repair);
  }
  const std::int64_t spares =
      enough_spares(run, failures_per_s, failures_per_s > 0 ? repair_s / failures_per_s : 0);

  sim::Engine engine{sim::Seed{seed}};
  sim::NullRecorder recorder;
  models::FluidNetwork network(engine, "storage");
  models::SharedStore store(engine, network, store_name, run.store);
  OneStep steps(run.step);
  models::ServerPool pool(engine, recorder,
                          {.servers = needed + spares,
                           .gpus_per_server = run.gpus_per_server,
                           .nics_per_server = run.gpus_per_server,
                           .spares = spares});
  models::FailureClocks clocks(engine, recorder, run.failures, pool.counts());
  pool.attach(clocks);
  models::JobSpec spec;
  spec.gpus = int(run.gpus);
  spec.checkpoint = run.checkpoint;
  spec.restart = run.restart;
  const models::StoreShelf shelf{{store_name, {&store, {}}}};  // the job keeps what is on it
  models::Job job(engine, recorder, pool, shelf, steps,
                  {.name = "job", .spec = spec, .checkpoint_size = run.checkpoint_size});
  engine.run_until(start_of_run + run.duration);
  job.close();
  pool.settle();

  const models::JobStats stats = job.stats();
  ReliabilityOutcome out;
  out.effective = stats.goodput;
  out.interruptions = stats.interruptions;
  out.planned = stats.planned;
  out.wall_s = to_seconds(stats.wall);
  out.by_class = stats.interruptions_by_class;
  out.by_class.insert(stats.planned_by_class.begin(), stats.planned_by_class.end());
  out.servers = needed + spares;
  for (const models::InterruptionRow& row : job.interruptions())
    out.at_s.push_back(to_seconds(row.when - start_of_run));
  for (std::int64_t s = 0; s < needed + spares; ++s)
    out.failures_of_server.push_back(pool.failures_of(topologies::HostId(std::size_t(s))));
  models::Ledger ledger = pool.ledger();
  ledger.add(job.ledger());
  out.down_server_s = ledger.gpu_s(models::Account::down_repair) / double(run.gpus_per_server);
  return out;
}

MeanWithInterval mean_of(const std::vector<double>& values) {
  check(values.size() > 1, "an interval needs two values", values.size());
  double mean = 0, squares = 0;
  for (const double v : values) mean += v / double(values.size());
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double n = double(values.size());
  return {mean, normal_99 * std::sqrt(squares / (n - 1) / n)};
}

ReliabilityEstimate estimate(const ReliabilityRun& run, int seeds) {
  ReliabilityEstimate out;
  std::vector<double> effective, interruptions;
  double wall_s = 0, count = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const ReliabilityOutcome& one = out.runs.emplace_back(run_once(run, std::uint64_t(seed)));
    effective.push_back(one.effective);
    interruptions.push_back(double(one.interruptions));
    wall_s += one.wall_s;
    count += double(one.interruptions);
  }
  out.effective = mean_of(effective);
  out.interruptions = mean_of(interruptions);
  if (count > 0)
    out.between_interruptions_s = {wall_s / count, normal_99 * wall_s / std::pow(count, 1.5)};
  return out;
}

std::optional<models::FailureInputs> failures_of(std::string_view profile) {
  const auto part = make_part<models::FailureProfileSpec>(Catalog::standard(), profile);
  if (!part) return std::nullopt;
  models::FailureInputs inputs;
  inputs.classes = part->classes;
  inputs.lemons = part->lemons;
  return inputs;
}

models::FailureInputs failures_every(Duration mean, std::int64_t servers) {
  models::FailureClassSpec node;
  node.component = models::Component::server;
  node.lifetime.mean = seconds(to_seconds(mean) * double(servers));
  models::FailureInputs inputs;
  inputs.classes["node"] = node;
  return inputs;
}

models::FailureInputs server_failures(double per_1000_server_days) {
  return failures_every(seconds(86'400'000 / per_1000_server_days), 1);
}

models::CheckpointSpec saves_every(Duration interval, Duration stall) {
  models::CheckpointSpec spec;
  spec.store = store_name;
  spec.interval = interval;
  spec.mode = models::SaveMode::asynchronous;
  spec.stall = stall;
  return spec;
}

}  // namespace trainyard::scenarios
