#include "scenarios/run.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "analysis/run_writer.hpp"
#include "models/compute/kernels.hpp"
#include "scenarios/check.hpp"
#include "scenarios/plant_record.hpp"
#include "scenarios/power_meter.hpp"
#include "scenarios/run_tables.hpp"
#include "scenarios/world.hpp"

namespace trainyard::scenarios {
namespace {

using Wall =
    std::chrono::steady_clock;  // progress messages and wall_s only; no result depends on it

constexpr std::uint64_t events_between_looks = 64;  // at the wall clock and the cancel flag
constexpr auto flush_each = std::chrono::seconds(1);
constexpr auto progress_each = std::chrono::milliseconds(100);

// Series that change with events: one sample a change.
class Observer {
 public:
  Observer(World& world, sim::Recorder& recorder)
      : world_(world),
        recorder_(recorder),
        down_(recorder.series("servers_down", "1", "servers in repair or cut off")),
        spares_(recorder.series("spares_free", "1", "warm spares at hand")) {
    for (const World::JobWorld& j : world.jobs())
      steps_.push_back({recorder.series("jobs/" + analysis::path_component(j.name) + "/step_time",
                                        "s", "time of one step; 0 while the job does not train")});
  }

  void observe(Time now) {
    sample(down_, last_down_, double(world_.pool().down_servers()), now);
    sample(spares_, last_spares_, double(world_.pool().spare_servers()), now);
    for (std::size_t j = 0; j < steps_.size(); ++j) {
      const models::Job& job = *world_.jobs()[j].job;
      const models::StepProfile* profile =
          job.state() == models::JobState::training ? job.current_profile() : nullptr;
      sample(steps_[j].series, steps_[j].last, profile ? to_seconds(profile->step) : 0.0, now);
    }
  }

 private:
  void sample(sim::SeriesId series, double& last, double value, Time now) {
    if (value == last) return;
    recorder_.sample(series, now, value);
    last = value;
  }

  struct Step {
    sim::SeriesId series;
    double last = -1;
  };
  World& world_;
  sim::Recorder& recorder_;
  sim::SeriesId down_, spares_;
  double last_down_ = -1, last_spares_ = -1;
  std::vector<Step> steps_;
};

/// Of the servers of a job and what they share, every unit at its mean and at its reference pace.
double unplanned_rate_per_s(const Scenario& scenario, std::int64_t servers, std::int64_t leaves) {
  if (!scenario.failures.enabled) return 0;
  using C = models::Component;
  const models::ParentsSpec& parents = scenario.cluster.parents;
  double rate = 0;
  for (const auto& [name, cls] : scenario.failures.all_classes()) {
    if (cls.effect == models::Effect::maintenance) continue;
    const auto shared = [&](const std::optional<int>& by) {
      return by ? double(servers) / *by : 0.0;
    };
    double units = 0;
    if (cls.component == C::gpu) units = double(servers) * scenario.cluster.server.gpus;
    if (cls.component == C::nic && cls.effect != models::Effect::slow)
      units = double(servers) * scenario.cluster.server.nics;
    if (cls.component == C::server) units = double(servers);
    if (cls.component == C::leaf_switch) units = double(leaves);
    if (cls.component == C::rack) units = shared(parents.servers_per_rack);
    if (cls.component == C::pdu) units = shared(parents.servers_per_pdu);
    if (cls.component == C::cdu) units = shared(parents.servers_per_cdu);
    rate += units / cls.lifetime.mean_s();
  }
  return rate;
}

JobResult job_result(const Scenario& scenario, World& world, const World::JobWorld& j) {
  const models::Job& job = *j.job;
  const models::JobSpec& spec = job.setup().spec;
  const models::JobStats stats = job.stats();
  JobResult out;
  out.name = j.name;
  out.model = spec.model.name;
  out.gpus = spec.gpus;
  out.state = stats.state;
  out.step_s = stats.step_s;
  out.steps_kept = stats.steps_kept;
  out.tokens = stats.tokens;
  const models::Operands operands = spec.parallel.precision == models::Precision::fp8
                                        ? models::Operands::fp8
                                        : models::Operands::bits16;
  const double peak = models::peak_flops(scenario.cluster.server.gpu, operands) * spec.gpus;
  double in_steps_s = stats.step_s * double(stats.steps_kept);
  if (stats.shrinks > 0) {  // in terms of the whole job
    in_steps_s = 0;
    for (std::size_t p = 0; p < models::step_parts; ++p)
      in_steps_s += job.ledger().gpu_s(models::account_of(models::StepPart(p))) / spec.gpus;
  }
  if (in_steps_s > 0) {
    out.mfu = stats.model_flops / (peak * in_steps_s);
    out.hfu = stats.hardware_flops / (peak * in_steps_s);
  }
  out.kept_s = to_seconds(stats.step_time);
  out.elapsed_s = to_seconds(stats.wall);
  out.goodput = stats.goodput;
  out.ettr = stats.ettr;
  out.interruptions = stats.interruptions;
  out.mtbi_s = stats.mtbi_s;
  out.checkpoints = stats.checkpoints;
  out.saves_lost = stats.saves_lost;
  out.reroutes = stats.reroutes;
  out.cuts = stats.cuts;
  out.planned = stats.planned;
  out.saves_refused = stats.saves_refused;
  out.shrinks = stats.shrinks;
  out.data_wait = stats.data_wait;
  out.data_limit = stats.data_limit;
  out.restores_by_level = stats.restores_by_level;
  out.interruptions_by_class = stats.interruptions_by_class;
  out.planned_by_class = stats.planned_by_class;
  out.ledger = job.ledger();
  if (!job.profiles().empty()) out.first_profile = *job.profiles().front();
  const std::vector<topologies::HostId> servers = first_placement(scenario, spec).servers;
  // Dual-homed servers survive the loss of a leaf.
  const bool is_dual_homed = world.site().fabric->servers().ports_per_nic > 1;
  const std::int64_t leaves_at_risk = is_dual_homed ? 0 : world.pool().leaves_of(servers);
  out.expected_interruptions =
      unplanned_rate_per_s(scenario, std::int64_t(servers.size()), leaves_at_risk) *
      to_seconds(stats.wall);
  return out;
}

void add_warnings(const Scenario& scenario, World& world, RunResult& result) {
  result.warnings = scenario_warnings(scenario);
  std::size_t at = 0;
  for (const World::JobWorld& j : world.jobs()) {
    const JobResult& r = result.jobs[at++];
    const models::StepProfile& p = r.first_profile;
    const double step_s = to_seconds(p.step);
    if (step_s <= 0) continue;
    double exposed = 0;
    for (const models::StepPart part :
         {models::StepPart::exposed_tp, models::StepPart::exposed_dp, models::StepPart::exposed_pp,
          models::StepPart::exposed_cp, models::StepPart::exposed_ep})
      exposed += to_seconds(p.part(part));
    if (exposed > 0.3 * step_s)
      result.warnings.push_back(
          "jobs." + j.name + ": " + std::to_string(int(std::lround(100 * exposed / step_s))) +
          " % of the step is exposed communication; above 30 % a job scales poorly");
    const models::JobStats stats = j.job->stats();
    if (stats.saves_late > 0)
      result.warnings.push_back("jobs." + j.name + ": " + std::to_string(stats.saves_late) +
                                " saves were due before the one before them was complete: the "
                                "store is too slow for this interval");
    if (stats.cuts > 0)
      result.warnings.push_back("jobs." + j.name + ": stood still " + std::to_string(stats.cuts) +
                                (stats.cuts == 1 ? " time" : " times") +
                                " because the fabric had no path left; the last time " +
                                stats.last_cut);
    if (stats.saves_refused > 0)
      result.warnings.push_back("jobs." + j.name + ": " + std::to_string(stats.saves_refused) +
                                " saves were not made because the store was full: keep fewer, or "
                                "give it more capacity");
    if (stats.data_wait > 0.1)
      result.warnings.push_back("jobs." + j.name + ": steps wait for data " +
                                std::to_string(int(std::lround(100 * stats.data_wait))) +
                                " % of the time; above 10 % the data path holds training back (" +
                                stats.data_limit + ")");
    if (stats.watchdogs > 0)
      result.warnings.push_back("jobs." + j.name + ": " + std::to_string(stats.watchdogs) +
                                " times the watchdog gave up servers without a network path");
    if (r.interruptions > 0 && r.checkpoints == 0)
      result.warnings.push_back("jobs." + j.name +
                                ": no save was ever completed, so every failure lost all work");
    for (const std::string& note : p.notes)
      result.warnings.push_back("jobs." + j.name + ": " + note);
  }
}

void add_no_effect(const Scenario& scenario, const World& world, RunResult& result) {
  std::map<std::string, std::int64_t> strikes;
  std::int64_t interruptions = 0;
  for (const JobResult& j : result.jobs) {
    interruptions += j.interruptions;
    for (const auto* struck : {&j.interruptions_by_class, &j.planned_by_class})
      for (const auto& [cls, n] : *struck) strikes[cls] += n;
  }
  if (scenario.failures.enabled)
    for (const auto& [name, cls] : scenario.failures.all_classes())
      if (strikes[name] == 0 && world.fabric_faults().faults_of(name) == 0)
        result.no_effect.push_back(
            (scenario.failures.false_alarms && name == models::false_alarm_name
                 ? std::string("failures.false_alarms")
                 : "failures.classes." + name) +
            (cls.component == models::Component::link ||
                     cls.component == models::Component::upper_switch ||
                     cls.component == models::Component::access_link ||
                     cls.component == models::Component::store_server
                 ? ": nothing of it failed in this run"
                 : ": struck no server of a job in this run"));
  if (scenario.cluster.spares > 0 && interruptions == 0)
    result.no_effect.push_back("cluster.spares: nothing failed, so no spare was taken");
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::uint64_t(usage.ru_maxrss) * 1024u;
}

analysis::RunState file_state(RunState s) {
  return s == RunState::complete    ? analysis::RunState::complete
         : s == RunState::cancelled ? analysis::RunState::cancelled
                                    : analysis::RunState::failed;
}

}  // namespace

RunResult run(const Scenario& scenario, const RunOptions& options) {
  const Wall::time_point began = Wall::now();
  Stage stage(scenario);
  RunResult result = run(scenario, stage, options);
  result.wall_s = std::chrono::duration<double>(Wall::now() - began).count();
  return result;
}

RunResult run(const Scenario& scenario, Stage& stage, const RunOptions& options) {
  const Wall::time_point began = Wall::now();
  RunResult result;
  result.scenario = scenario.name;
  result.seed = scenario.seed;

  std::unique_ptr<analysis::RunWriter> writer;
  sim::NullRecorder nobody;
  if (options.run_file)
    writer = std::make_unique<analysis::RunWriter>(
        *options.run_file, analysis::RunInfo{.creator_version = options.version,
                                             .git_commit = options.commit,
                                             .command_line = options.command_line,
                                             .scenario_name = scenario.name,
                                             .scenario = options.resolved,
                                             .seed = scenario.seed,
                                             .planned = scenario.duration});
  sim::Recorder& recorder = writer ? static_cast<sim::Recorder&>(*writer) : nobody;

  const std::uint64_t computed_before = stage.profiles_computed();
  const std::uint64_t reused_before = stage.profiles_reused();
  World world(scenario, recorder, stage, options.ties);
  sim::Engine& engine = world.engine();
  PowerMeter power(scenario, world, power_of_switches(*world.site().fabric), recorder);
  std::optional<PlantRecord> plant;
  if (writer && world.facility()) plant.emplace(scenario, *world.facility(), recorder);
  std::optional<CostMeter> cost;
  if (scenario.economics) cost.emplace(scenario, world);
  const auto look_at_power = [&] {
    if (world.facility()) world.facility()->observe();
    if (plant) plant->observe(engine.now());
    power.observe(engine.now());
    if (cost) cost->observe(engine.now(), power);
  };
  Observer observer(world, recorder);
  if (writer) writer->begin();

  // The loop: one event, what it changed, now and then a look at the wall clock.
  const Time end = add(start_of_run, scenario.duration);
  Wall::time_point flushed = began, shown = began;
  std::uint64_t until_look = 0;
  look_at_power();
  const auto look = [&] {
    look_at_power();
    observer.observe(engine.now());
  };
  if (scenario.fidelity == Fidelity::fast_forward) engine.allow_gliding(end, look);
  for (;;) {
    const std::optional<Time> next = engine.next_event();
    if (!next || *next > end) break;
    engine.step();
    look();
    if (world.all_done()) break;
    if (until_look-- > 0) continue;
    until_look = events_between_looks;
    if (options.cancel && options.cancel->load(std::memory_order_relaxed)) {
      result.state = RunState::cancelled;
      break;
    }
    const Wall::time_point now = Wall::now();
    if (writer && now - flushed >= flush_each) {
      writer->flush();
      flushed = now;
    }
    if (options.progress && now - shown >= progress_each) {
      options.progress(to_seconds(engine.now()) / to_seconds(scenario.duration), engine.now(),
                       engine.events_processed());
      shown = now;
    }
  }
  if (result.state == RunState::complete && !world.all_done()) engine.run_until(end);
  look_at_power();

  for (World::JobWorld& j : world.jobs()) {
    const std::string state = j.job->stats().state;
    if (result.state == RunState::complete && state.rfind("stalled", 0) == 0) {
      result.state = RunState::failed;
      result.failure = "jobs." + j.name + ' ' + state + "\n" + engine.describe_waiting();
    }
  }
  for (World::JobWorld& j : world.jobs()) j.job->close();
  world.pool().settle();

  result.simulated_s = to_seconds(engine.now());
  result.events = engine.events_processed();
  result.cluster.nodes = scenario.cluster.servers;
  result.cluster.gpus = world.pool().gpus();
  result.cluster.ledger = world.pool().ledger();
  result.cluster.energy_J = power.energy().value();
  for (const World::JobWorld& j : world.jobs()) {
    result.jobs.push_back(job_result(scenario, world, j));
    result.cluster.ledger.add(j.job->ledger());
    for (std::size_t a = 0; a < models::accounts; ++a)
      engine.note(std::uint64_t(j.job->ledger()[static_cast<models::Account>(a)]));
  }
  result.profiles_computed = stage.profiles_computed() - computed_before;
  result.profiles_reused = stage.profiles_reused() - reused_before;
  const models::GpuNanoseconds all =
      models::GpuNanoseconds(result.cluster.gpus) * engine.now().time_since_epoch().count();
  check(result.cluster.ledger.total() == all,
        "every GPU-nanosecond of the cluster is in exactly one account");
  double down = 0;
  for (const models::Account a : {models::Account::down_repair, models::Account::down_fed,
                                  models::Account::down_cooled, models::Account::down_connected})
    down += result.cluster.ledger.gpu_s(a);
  result.cluster.availability = all > 0 ? 1 - down / (double(all) * 1e-9) : 1;
  if (world.facility()) {
    result.facility =
        world.facility()->result(power.energy() - power.switch_energy(), power.switch_energy());
    result.facility->peak = power.site_peak();
    result.facility->peak_at = power.site_peak_at();
  }
  if (cost) result.cost = cost->cost();
  result.fingerprint = to_text(engine.fingerprint());
  add_warnings(scenario, world, result);
  result.no_effect = options.unread_no_effect;
  add_no_effect(scenario, world, result);

  if (writer) {
    std::vector<analysis::Table> tables = run_tables(world, result);
    if (plant)
      for (analysis::Table& table : plant->tables()) tables.push_back(std::move(table));
    writer->close({.state = file_state(result.state),
                   .simulated = engine.now() - start_of_run,
                   .failure = result.failure,
                   .tables = std::move(tables),
                   .summary = run_summary(result),
                   .attributes = {}});
    result.run_file = *options.run_file;
  }
  result.peak_rss_bytes = peak_rss_bytes();
  result.wall_s = std::chrono::duration<double>(Wall::now() - began).count();
  return result;
}

}  // namespace trainyard::scenarios
