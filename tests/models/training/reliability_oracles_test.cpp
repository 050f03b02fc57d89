#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "models/training/checkpoints.hpp"
#include "tests/models/training/reliability_rig.hpp"

// Closed forms of reliability against the run level, with the assumptions of each formula switched
// on: the value must lie in the 99 % interval of the simulated mean (validation/formula_vectors.csv
// holds the values and their sources). A formula of first order may err by its second order, and
// says so here.
namespace trainyard::models {
namespace {

// --- one level: Daly's complete model and the ETTR of renewal theory
// ------------------------------

/// Wall time from one complete checkpoint to the next, over the work between them: failures of the
/// whole job, exponential of mean M, which may strike saves and restarts; a save of C that is
/// waited for, a restart of R in place.
Sample wall_over_solve(double tau_s, double save_s, double restart_s, double mtbi_s,
                       std::int64_t checkpoints, std::uint64_t seed) {
  constexpr int steps_per_interval = 4;
  LifeSetup setup = one_server(seed);
  setup.store = {1e9_GBps, 1e9_GBps, 1e9_GBps, seconds(save_s)};  // the save is all latency
  setup.step = seconds(tau_s / steps_per_interval);
  Life life(setup);
  FailureClocks clocks(life.engine, *life.recorder, {{"job", of_servers(mtbi_s)}},
                       {.servers = 1, .gpus_per_server = 8});
  life.pool.attach(clocks);
  JobSpec spec = spec_by_hand();
  spec.gpus = 8;
  spec.checkpoint.interval = setup.step * steps_per_interval;
  spec.restart = {.replace = 0s, .start_up = seconds(restart_s), .load = false};
  spec.steps = checkpoints * steps_per_interval + 1;
  Job& job = life.add(spec);
  while (job.state() != JobState::done) life.engine.run_until(life.engine.now() + 1000h);
  life.close();
  Sample ratio;
  std::optional<Time> before;
  for (const CheckpointRow& save : job.checkpoints()) {
    if (!save.complete) continue;
    if (before) ratio.add(to_seconds(*save.complete - *before) / tau_s);
    before = save.complete;
  }
  return ratio;
}

struct DalyRow {
  double save_s, mtbi_s, restart_s, tau_s, wall_over_solve, goodput;
};
constexpr DalyRow daly_rows[] = {
    {1, 86400, 120, 415.026, 1.00622, 0.993815},  {10, 86400, 300, 1307.88, 1.0189, 0.981449},
    {30, 28440, 300, 1286.37, 1.05848, 0.944751}, {40, 604800, 600, 6929.22, 1.01259, 0.987563},
    {60, 11124, 600, 1115.72, 1.17308, 0.852459}, {60, 6480, 300, 842.27, 1.20386, 0.830658},
    {120, 6480, 600, 1168.36, 1.33832, 0.747203}, {300, 6480, 900, 1776.87, 1.58317, 0.631646},
    {600, 1800, 900, 1096.91, 4.23946, 0.235879}, {3600, 1440, 600, 1440, 48.7158, 0.0205272},
    {20, 900, 180, 176.638, 1.51967, 0.658037}};

TEST(ReliabilityOracle, wall_over_solve_time_and_goodput_of_daly_for_eleven_settings) {
  constexpr std::uint64_t seed = 2006;
  for (const DalyRow& row : daly_rows) {
    const bool is_hard = row.wall_over_solve > 10;  // some fifty failures for each checkpoint
    const Sample ratio = wall_over_solve(row.tau_s, row.save_s, row.restart_s, row.mtbi_s,
                                         is_hard ? 2'000 : 12'000, seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", C " << row.save_s << " s, M "
                                    << row.mtbi_s << " s, R " << row.restart_s << " s: simulated "
                                    << ratio << ", formula " << row.wall_over_solve);
    EXPECT_LT(std::abs(ratio.mean() - row.wall_over_solve),
              ratio.half_width() + 5e-6 * ratio.mean());
    EXPECT_LT(std::abs(1 / ratio.mean() - row.goodput),
              ratio.half_width() / (ratio.mean() * ratio.mean()) + 1e-5);
    EXPECT_LT(ratio.half_width(),
              (is_hard ? 0.07 : 0.035) * ratio.mean());  // or it would say nothing
  }
}

struct EttrRow {
  double nodes, per_1000_node_days, restart_min, interval_min, save_s, ettr;
};
constexpr EttrRow ettr_rows[] = {
    {2048, 6.5, 5, 60, 0, 0.714379},   {2048, 6.5, 5, 5, 0, 0.932933},
    {512, 6.5, 5, 60, 0, 0.921558},    {512, 6.5, 20, 60, 0, 0.890158},
    {1000, 6.5, 5, 30, 0, 0.91298},    {12500, 6.5, 5, 7, 0, 0.615025},
    {12500, 2.34, 5, 21, 0, 0.724398}, {12500, 2.34, 2, 2, 0, 0.940817},
    {2048, 3.79, 5, 30, 60, 0.865496}, {2048, 3.79, 10, 30, 60, 0.842481}};

TEST(ReliabilityOracle, ettr_of_renewal_theory_for_ten_published_settings) {
  constexpr std::uint64_t seed = 2025;
  for (const EttrRow& row : ettr_rows) {
    const double mtbi_s =
        mean_time_between_interruptions_s(row.nodes, row.per_1000_node_days / 1000);
    const Sample ratio = wall_over_solve(60 * row.interval_min, row.save_s, 60 * row.restart_min,
                                         mtbi_s, 10'000, seed);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", " << row.nodes << " nodes at " << row.per_1000_node_days
                 << ": 1 / simulated " << 1 / ratio.mean() << ", formula " << row.ettr);
    EXPECT_LT(std::abs(ratio.mean() - 1 / row.ettr), ratio.half_width());
    EXPECT_LT(ratio.half_width(), 0.03 * ratio.mean());
  }
}

// --- rates ---------------------------------------------------------------------------------------

struct MttfRow {
  std::int64_t nodes;
  double per_1000_node_days, mttf_h;
};

TEST(ReliabilityOracle, mean_time_between_failures_of_whole_systems) {
  constexpr std::uint64_t seed = 26;
  const MttfRow rows[] = {
      {128, 6.5, 28.8462},    {2048, 6.5, 1.80288},
      {16384, 6.5, 0.225361}, {12500, 6.5, 0.295385},
      {2048, 3.79, 3.09202},  {2048, 419 / 54.0 / 2.048, 3.0931}};  // Llama 3: 54 * 24 / 419 h
  for (const MttfRow& row : rows) {
    constexpr double expected = 2'000;
    LifeSetup setup;
    setup.seed = seed;
    setup.pool = {.servers = row.nodes, .gpus_per_server = 8, .nics_per_server = 8, .spares = 0};
    setup.step = 3600s;
    Life life(setup);
    FailureClocks clocks(life.engine, *life.recorder,
                         {{"node", of_servers(day_s * 1000 / row.per_1000_node_days)}},
                         {.servers = row.nodes, .gpus_per_server = 8});
    life.pool.attach(clocks);
    JobSpec spec = spec_by_hand();
    spec.gpus = int(8 * row.nodes);
    spec.checkpoint.enabled = false;
    spec.restart = {.replace = 0s, .start_up = 0s, .load = false};
    Job& job = life.add(spec);
    life.run_to(seconds(expected * row.mttf_h * 3600));
    life.close();
    const double count = double(job.stats().interruptions);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", " << row.nodes
                 << " nodes: " << expected * row.mttf_h / count << " h, formula " << row.mttf_h);
    EXPECT_LT(std::abs(count - expected), normal_99 * std::sqrt(expected));
  }
}

TEST(ReliabilityOracle, availability_of_a_server_is_mtbf_over_mtbf_and_mttr) {
  struct Row {
    double mtbf_h, mttr_h, availability;
  };
  for (const Row& row : {Row{5714.3, 132.84, 0.977281}, Row{3692.3, 24.00, 0.993542}}) {
    Sample availability;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      LifeSetup setup;
      setup.seed = seed;
      setup.pool = {.servers = 50, .gpus_per_server = 8, .nics_per_server = 8, .spares = 0};
      Life life(setup);
      FailureClassSpec node = of_servers(3600 * row.mtbf_h, true);
      node.repair = {Law::exponential, seconds(3600 * row.mttr_h), 1.0};
      FailureClocks clocks(life.engine, *life.recorder, {{"node", node}},
                           {.servers = 50, .gpus_per_server = 8});
      life.pool.attach(clocks);
      life.run_to(24h * 365 * 20);
      life.pool.settle();
      availability.add(1 - double(life.pool.ledger()[Account::down_repair]) /
                               double(life.pool.ledger().total()));
    }
    EXPECT_LT(std::abs(availability.mean() - row.availability), availability.half_width())
        << "seeds 1 to 20: " << availability << ", formula " << row.availability;
    EXPECT_LT(availability.half_width(), 0.03 * (1 - row.availability));
  }
}

// --- many servers --------------------------------------------------------------------------------

// n machines, of which each fails with probability p before its replacement is there.
TEST(ReliabilityOracle, standby_machines_that_suffice_with_99_per_cent) {
  struct Row {
    std::int64_t machines;
    double p;
    std::int64_t standby;
  };
  constexpr int seeds = 500;
  for (const Row& row :
       {Row{128, 0.001, 1}, Row{1024, 0.001, 4}, Row{1200, 0.0007, 4}, Row{2048, 0.0038, 15}}) {
    ASSERT_EQ(binomial_quantile(row.machines, row.p, 0.99), row.standby);
    int suffice = 0, one_less = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      LifeSetup setup;
      setup.seed = seed;
      setup.pool = {
          .servers = row.machines, .gpus_per_server = 8, .nics_per_server = 8, .spares = 0};
      Life life(setup);
      constexpr double window_s = 3600;
      FailureClassSpec node = of_servers(-window_s / std::log1p(-row.p), true);
      node.repair = {Law::fixed, 100h, 1.0};
      FailureClocks clocks(life.engine, *life.recorder, {{"node", node}},
                           {.servers = row.machines, .gpus_per_server = 8});
      life.pool.attach(clocks);
      life.run_to(seconds(window_s));
      suffice += life.pool.down_servers() <= row.standby;
      one_less += life.pool.down_servers() <= row.standby - 1;
    }
    const double margin = normal_99 * std::sqrt(0.99 * 0.01 / seeds);
    SCOPED_TRACE(testing::Message()
                 << "seeds 1 to " << seeds << ", " << row.machines << " machines: " << suffice
                 << " suffice, with one less " << one_less);
    EXPECT_GE(double(suffice) / seeds, 0.99 - margin);
    EXPECT_LE(double(one_less) / seeds, 0.99 + margin);
  }
}

// P(at least one slow of n) = 1 - (1 - p)^n, the slow ones being lemons of the cluster.
TEST(ReliabilityOracle, at_least_one_of_n_is_a_lemon) {
  struct Row {
    std::int64_t n;
    double probability;
  };
  constexpr int seeds = 400;
  for (const Row& row :
       {Row{128, 0.0620}, Row{1024, 0.4008}, Row{2048, 0.6409}, Row{16384, 0.9997}}) {
    int some = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      sim::Engine engine{sim::Seed{seed}};
      sim::NullRecorder recorder;
      const FailureClocks clocks(engine, recorder, FailureInputs{.lemons = LemonsSpec{5e-4, 10}},
                                 {.servers = row.n, .gpus_per_server = 8});
      bool found = false;
      for (std::int64_t s = 0; s < row.n && !found; ++s)
        found = clocks.is_lemon(topologies::HostId(std::size_t(s)));
      some += found;
    }
    const double q = row.probability;
    // With q near 1 the count of misses is Poisson: 0.12 expected, 4 have a probability of 1e-5.
    const double margin = std::max(normal_99 * std::sqrt(q * (1 - q) * seeds), 3.5);
    EXPECT_LT(std::abs(some - q * seeds), margin)
        << "seeds 1 to " << seeds << ", n " << row.n << ": " << some << ", formula " << q * seeds;
  }
}

// The same with GPUs that turn slow and are never found: a step takes what its slowest takes.
TEST(ReliabilityOracle, a_step_is_slow_as_soon_as_one_of_n_gpus_is) {
  constexpr int seeds = 400;
  for (const auto& [gpus, q] : {std::pair{128, 0.0620}, std::pair{1024, 0.4008}}) {
    int slow = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      LifeSetup setup;
      setup.seed = seed;
      setup.pool = {.servers = gpus / 8, .gpus_per_server = 8, .nics_per_server = 8, .spares = 0};
      Life life(setup);
      constexpr double window_s = 1000;
      FailureClassSpec gpu = of_servers(-window_s / std::log1p(-5e-4));
      gpu.component = Component::gpu;
      gpu.effect = Effect::slow;
      gpu.speed = 0.8;
      gpu.detection = {Law::fixed, 10000h, 1.0};
      FailureClocks clocks(life.engine, *life.recorder, {{"gpu", gpu}},
                           {.servers = gpus / 8, .gpus_per_server = 8});
      life.pool.attach(clocks);
      JobSpec spec = spec_by_hand();
      spec.gpus = gpus;
      spec.checkpoint.enabled = false;
      spec.restart = {.replace = 0s, .start_up = 0s, .load = false};
      Job& job = life.add(spec);
      life.run_to(seconds(window_s));
      slow += job.current_profile()->step > setup.step;
    }
    EXPECT_LT(std::abs(slow - q * seeds), normal_99 * std::sqrt(q * (1 - q) * seeds))
        << "seeds 1 to " << seeds << ", " << gpus << " GPUs: " << slow << ", formula " << q * seeds;
  }
}

}  // namespace
}  // namespace trainyard::models
