#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/training/ledger.hpp"
#include "models/training/step_profile.hpp"
#include "scenarios/facility.hpp"
#include "scenarios/run_cost.hpp"
#include "scenarios/scenario.hpp"
#include "sim/engine.hpp"
#include "sim/time.hpp"

/// One run: Scenario in, RunResult out, a run file beside it.
namespace trainyard::scenarios {

enum class RunState { complete, cancelled, failed };
constexpr const char* name_of(RunState s) {
  return s == RunState::complete ? "complete" : s == RunState::cancelled ? "cancelled" : "failed";
}

struct JobResult {
  std::string name;
  std::string model;
  std::int64_t gpus = 0;
  std::string state;            // "running" at the end of the simulation, "done", "stalled: …"
  double step_s = 0;            // mean step time of kept steps
  std::int64_t steps_kept = 0;  // steps that no failure made void, at the end
  double tokens = 0;            // of kept steps
  double mfu =
      0;  // model FLOPs of kept steps / (peak x GPUs x wall time of the job spent in steps)
  double hfu = 0;
  double kept_s = 0;               // time in kept steps
  double elapsed_s = 0;            // first start to end
  double goodput = 0;              // kept_s / elapsed_s
  double ettr = 0;                 // the same over wall time with queueing
  std::int64_t interruptions = 0;  // unplanned: failures that struck the servers of the job
  double mtbi_s = 0;               // wall time / interruptions; 0 if none
  std::int64_t checkpoints = 0;    // completed saves
  std::int64_t saves_lost = 0;     // interrupted saves
  std::int64_t reroutes = 0;       // times that its traffic moved away from a failed link or switch
  std::int64_t cuts = 0;           // times that it stood still because no path was left
  std::int64_t planned = 0;        // interruptions by maintenance and preemption
  std::int64_t saves_refused = 0;  // the store was full
  std::int64_t shrinks = 0;        // times that it went on with fewer replicas
  double data_wait = 0;            // share of the time in steps spent waiting for batches
  std::string data_limit;          // what limited their supply
  std::map<std::string, std::int64_t> restores_by_level;  // "": from the beginning
  std::map<std::string, std::int64_t> interruptions_by_class;
  std::map<std::string, std::int64_t> planned_by_class;
  models::Ledger ledger;
  models::StepProfile first_profile;
  double expected_interruptions = 0;  // configured rate x time, all classes on the job's servers
};

struct ClusterResult {
  std::int64_t nodes = 0;
  std::int64_t gpus = 0;
  models::Ledger ledger;
  double energy_J = 0;
  double availability = 0;  // 1 - share of GPU time in the down accounts
};

struct RunResult {
  std::string scenario;  // name
  std::string scenario_file;
  std::uint64_t seed = 0;
  std::string fingerprint;  // hex
  RunState state = RunState::complete;
  std::string failure;  // why, if failed: who waits for what
  double simulated_s = 0;
  double wall_s = 0;
  std::uint64_t events = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t profiles_computed = 0;  // step profiles
  std::uint64_t profiles_reused = 0;
  std::string run_file;  // empty: none written
  std::vector<std::string> warnings;
  std::vector<std::string> no_effect;  // settings that did nothing
  ClusterResult cluster;
  std::vector<JobResult> jobs;
  std::optional<FacilityResult> facility;  // if the scenario has one
  std::optional<RunCost> cost;             // if the scenario has economics
};

struct RunOptions {
  std::optional<std::string> run_file;  // write here
  sim::TieOrder ties = sim::TieOrder::as_scheduled;
  const std::atomic<bool>* cancel =
      nullptr;  // set by SIGINT: close properly and return `cancelled`
  std::function<void(double done, Time now, std::uint64_t events)>
      progress;              // at most ten times a wall second
  std::string command_line;  // kept in the run file, like version and commit
  std::string version;
  std::string commit;
  std::string resolved;                       // the scenario as run, every default filled in (JSON)
  std::vector<std::string> unread_no_effect;  // found by the reader
};

/// Runs to the end of the simulated time, or until cancelled. The scenario must have passed
/// check_scenario().
RunResult run(const Scenario& scenario, const RunOptions& options);

class Stage;
/// The same on a stage that other runs may have used before: the same result, sooner.
RunResult run(const Scenario& scenario, Stage& stage, const RunOptions& options);

}  // namespace trainyard::scenarios
