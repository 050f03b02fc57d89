#include "scenarios/run.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "analysis/run_reader.hpp"
#include "scenarios/check.hpp"

namespace trainyard::scenarios {
namespace {

Scenario library(const std::string& name, const std::vector<std::string>& overrides = {}) {
  const ReadResult read = load_scenario(std::string(TRAINYARD_LIBRARY) + '/' + name, overrides);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return read.scenario;
}

// 64 GPUs, failures every few hours, saves every 20 minutes: small enough to play every step.
std::vector<std::string> small_cluster() {
  return {"duration=12 h",
          "cluster.servers=10",
          "cluster.spares=2",
          "jobs.llama.model=llama3-8b",
          "jobs.llama.gpus=64",
          "jobs.llama.global_batch=256",
          "jobs.llama.parallel.pipeline=2",
          "jobs.llama.parallel.chunks=2",
          "jobs.llama.parallel.tensor=4",
          "jobs.llama.checkpoint.interval=20 min",
          "failures.classes.gpu-or-host.lifetime.count=450",
          "failures.classes.gpu-or-host.repair.value=2 h",
          "failures.classes.software-hang.lifetime.count=150"};
}

TEST(Run, every_gpu_nanosecond_of_the_cluster_is_in_exactly_one_account) {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    Scenario s = library("quickstart.json", small_cluster());
    s.seed = seed;
    const RunResult r = run(s, {});
    const models::GpuNanoseconds all = models::GpuNanoseconds(80) * 12 * 3600 * 1'000'000'000;
    EXPECT_TRUE(r.cluster.ledger.total() == all) << "seed " << seed;
    EXPECT_GT(r.jobs[0].interruptions, 0) << "seed " << seed;
  }
}

TEST(Run, the_same_scenario_and_seed_give_the_same_run_and_another_seed_another) {
  Scenario s = library("quickstart.json", small_cluster());
  const RunResult a = run(s, {}), b = run(s, {});
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.jobs[0].steps_kept, b.jobs[0].steps_kept);
  s.seed = 2;
  EXPECT_NE(run(s, {}).fingerprint, a.fingerprint);
}

TEST(Run, the_order_of_simultaneous_events_changes_no_result) {
  const Scenario s = library("quickstart.json", small_cluster());
  const RunResult a = run(s, {});
  RunOptions shuffled;
  shuffled.ties = sim::TieOrder::shuffled;
  const RunResult b = run(s, shuffled);
  EXPECT_EQ(a.jobs[0].steps_kept, b.jobs[0].steps_kept);
  EXPECT_EQ(a.jobs[0].interruptions, b.jobs[0].interruptions);
  EXPECT_EQ(a.jobs[0].goodput, b.jobs[0].goodput);
  EXPECT_EQ(a.cluster.energy_J, b.cluster.energy_J);
  for (std::size_t k = 0; k < models::accounts; ++k) {
    const auto account = static_cast<models::Account>(k);
    EXPECT_TRUE(a.cluster.ledger[account] == b.cluster.ledger[account]) << models::name_of(account);
  }
}

TEST(Run, fast_forward_agrees_with_every_step_within_one_per_cent_over_20_seeds) {
  double kept_fast = 0, kept_slow = 0, goodput_fast = 0, goodput_slow = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Scenario s = library("quickstart.json", small_cluster());
    s.seed = seed;
    const RunResult fast = run(s, {});
    s.fidelity = Fidelity::every_step;
    const RunResult slow = run(s, {});
    kept_fast += double(fast.jobs[0].steps_kept);
    kept_slow += double(slow.jobs[0].steps_kept);
    goodput_fast += fast.jobs[0].goodput;
    goodput_slow += slow.jobs[0].goodput;
    EXPECT_GT(slow.events, 10 * fast.events) << "each step should be an event, seed " << seed;
  }
  EXPECT_NEAR(kept_fast / kept_slow, 1.0, 0.01);
  EXPECT_NEAR(goodput_fast / goodput_slow, 1.0, 0.01);
}

TEST(Run, cancelled_runs_close_their_books) {
  std::atomic<bool> cancel = true;
  RunOptions options;
  options.cancel = &cancel;
  const RunResult r = run(library("quickstart.json", small_cluster()), options);
  EXPECT_EQ(r.state, RunState::cancelled);
  EXPECT_LT(r.simulated_s, 12 * 3600.0);
  const models::GpuNanoseconds all = models::GpuNanoseconds(80) * std::llround(r.simulated_s * 1e9);
  EXPECT_TRUE(r.cluster.ledger.total() == all);
}

TEST(Run, a_job_of_given_steps_ends_the_run) {
  std::vector<std::string> o = small_cluster();
  o.push_back("jobs.llama.steps=100");
  o.push_back("failures.enabled=false");
  const RunResult r = run(library("quickstart.json", o), {});
  EXPECT_EQ(r.jobs[0].state, "done");
  EXPECT_EQ(r.jobs[0].steps_kept, 100);
  EXPECT_LT(r.simulated_s, 12 * 3600.0);
  EXPECT_EQ(r.jobs[0].interruptions, 0);
}

TEST(Run, the_run_file_holds_what_the_result_says) {
  const std::string file = testing::TempDir() + "run_test.h5";
  RunOptions options;
  options.run_file = file;
  options.resolved = "{}";
  const RunResult r = run(library("quickstart.json", small_cluster()), options);
  const analysis::RunReader reader(file);
  const analysis::Table ledger = reader.table("cluster/ledger");
  double gpu_s = 0;
  for (std::size_t row = 0; row < ledger.rows(); ++row)
    gpu_s += std::get<double>((*ledger.find("gpu_s"))[row]);
  EXPECT_NEAR(gpu_s, 80 * 12 * 3600.0, 1e-3);
  EXPECT_EQ(std::int64_t(reader.table("jobs/llama/interruptions").rows()), r.jobs[0].interruptions);
  std::filesystem::remove(file);
}

TEST(Run, a_measured_step_out_of_reach_is_the_users_mistake) {
  const std::string file = std::string(TRAINYARD_LIBRARY) + "/quickstart.json";
  const ReadResult impossible = load_scenario(file, {"jobs.llama.measured_step=1 ms"});
  ASSERT_EQ(impossible.diagnostics.size(), 1u);
  EXPECT_EQ(impossible.diagnostics[0].path, "jobs.llama.measured_step");
  EXPECT_TRUE(load_scenario(file, {"jobs.llama.measured_step=6 s"}).ok());
}

TEST(Run, power_is_integrated_exactly) {
  // Nothing fails and nothing is saved: start-up, then one profile to the end.
  std::vector<std::string> o = small_cluster();
  for (const char* more : {"failures.enabled=false", "jobs.llama.checkpoint.enabled=false",
                           "jobs.llama.restart.start_up=1 h"})
    o.push_back(more);
  const Scenario s = library("quickstart.json", o);
  const RunResult r = run(s, {});
  const models::ServerSpec& server = s.cluster.server;
  const double idle_W = server.gpu.power_idle.value() * 8 + server.power_overhead.value();
  const topologies::FabricSpec& f = s.cluster.fabric;
  // 3 leaves of 4 servers; spines from the report of the fabric
  const double before_J = 10 * idle_W * 3600.0;
  const double training_J =
      (models::mean_power(r.jobs[0].first_profile).value() + 2 * idle_W) * 11 * 3600.0;
  const double boxes =
      (r.cluster.energy_J - before_J - training_J) / (12 * 3600.0) / f.leaf_switch.power.value();
  EXPECT_NEAR(boxes, std::round(boxes), 1e-6);  // what is left are whole switches
  EXPECT_GE(boxes, 4);
}

}  // namespace
}  // namespace trainyard::scenarios
