#pragma once

#include "scenarios/run.hpp"

namespace trainyard::cli {

/// A finished run that nobody simulated, with round figures: 16 GPUs for 10 hours.
inline scenarios::RunResult made_up_run() {
  using models::Account;
  scenarios::RunResult r;
  r.scenario = "small-cluster";
  r.scenario_file = "small-cluster.json";
  r.seed = 7;
  r.fingerprint = "00112233aabbccdd";
  r.simulated_s = 36000;
  r.wall_s = 0.25;
  r.events = 1234;
  r.peak_rss_bytes = 52'000'000;
  r.profiles_computed = 3;
  r.profiles_reused = 4;
  r.run_file = "small-cluster.h5";
  r.warnings = {
      "job llm: the save to store lustre takes longer (12 min) than the interval between saves (10 "
      "min)"};
  r.no_effect = {"cluster.spares: no server failed"};

  scenarios::JobResult job;
  job.name = "llm";
  job.model = "Example 7B";
  job.gpus = 14;
  job.state = "running";
  job.step_s = 2.5;
  job.steps_kept = 12960;
  job.tokens = 5.4e10;
  job.mfu = 0.5;
  job.hfu = 0.55;
  job.goodput = 0.9;
  job.ettr = 0.9;
  job.interruptions = 2;
  job.expected_interruptions = 2.4;
  job.interruptions_by_class = {{"gpu", 1}, {"nic", 1}, {"software", 0}};
  job.mtbi_s = 18000;
  job.checkpoints = 58;
  job.saves_lost = 1;
  // 9 of 10 hours in kept steps, half of them useful.
  const auto spend = [](models::Ledger& ledger, Account account, std::int64_t gpus, double s) {
    ledger.add(account, gpus, seconds(s));
  };
  spend(job.ledger, Account::useful, 14, 16200);
  spend(job.ledger, Account::kernel_inefficiency, 14, 8100);
  spend(job.ledger, Account::bubble, 14, 5400);
  spend(job.ledger, Account::exposed_dp, 14, 2700);
  spend(job.ledger, Account::checkpoint_stall, 14, 20);
  spend(job.ledger, Account::lost_work, 14, 1800);
  spend(job.ledger, Account::detection, 14, 10);
  spend(job.ledger, Account::restart, 14, 1770);
  r.jobs = {job};

  r.cluster.nodes = 8;
  r.cluster.gpus = 16;
  r.cluster.energy_J = 3.2e8;
  r.cluster.availability = 0.99;
  r.cluster.ledger.add(job.ledger);
  spend(r.cluster.ledger, Account::spare_idle, 2, 36000);
  return r;
}

}  // namespace trainyard::cli
