#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "models/training/checkpoints.hpp"
#include "tests/models/training/reliability_rig.hpp"

// Two levels of checkpoints, and saves behind training, against theory of first order.
namespace trainyard::models {
namespace {

/// Lost time over useful time of a run of `duration`, one value a seed.
template <class Configure>
Sample overhead(int seeds, Duration duration, const LifeSetup& base,
                const std::map<std::string, FailureClassSpec>& classes, Configure&& configure) {
  Sample sample;
  for (std::uint64_t seed = 1; seed <= std::uint64_t(seeds); ++seed) {
    LifeSetup setup = base;
    setup.seed = seed;
    Life life(setup);
    FailureClocks clocks(life.engine, *life.recorder, classes,
                         {.servers = setup.pool.servers, .gpus_per_server = 8});
    life.pool.attach(clocks);
    JobSpec spec = spec_by_hand();
    spec.gpus = 8;
    configure(spec);
    Job& job = life.add(spec);
    life.run_to(duration);
    life.close();
    sample.add(1 / job.stats().goodput - 1);
  }
  return sample;
}

// Level 1 (local disk, C1) repairs failures that leave the server in place, level 2 (store, C2)
// those that take it. Restarts take nothing. First order leaves out products of its terms: the
// truth is above it by less than its square. Saves of both levels at one instant overlap, which
// spares C1 / tau2.
TEST(ReliabilityOracle, two_levels_of_checkpoints_against_first_order_theory) {
  struct Row {
    double rate_1, save_1_s, rate_2, save_2_s, tau_1_s, tau_2_s, overhead;
    double days;
  };
  const Row rows[] = {
      {0.000138889, 2, 1.15741e-05, 60, 169.706, 3219.94, 0.060838, 60},
      {0.000277778, 5, 2.31481e-05, 120, 189.737, 3219.94, 0.12724, 60},
      {6.94444e-05, 1, 1.65344e-06, 300, 169.706, 19049.4, 0.0432822, 80},
  };
  for (const Row& row : rows) {
    const std::vector<LevelCost> costs{{row.save_1_s, row.rate_1}, {row.save_2_s, row.rate_2}};
    const LevelTheory theory = multi_level_first_order(costs);
    EXPECT_NEAR(theory.interval_s[0], row.tau_1_s, 1e-3 * row.tau_1_s);
    EXPECT_NEAR(theory.interval_s[1], row.tau_2_s, 1e-3 * row.tau_2_s);
    EXPECT_NEAR(theory.overhead, row.overhead, 1e-4 * row.overhead);

    LifeSetup setup = one_server(0);
    setup.pool.servers = 2;
    setup.pool.spares = 1;
    setup.pool.leaf = setup.pool.pod = {0, 0};
    setup.store = {1e9_GBps, 1e9_GBps, 1e9_GBps, seconds(row.save_2_s)};
    setup.step = seconds(row.tau_1_s / 10);
    const Sample simulated = overhead(
        30, seconds(row.days * day_s), setup,
        {{"in place", of_servers(1 / row.rate_1)}, {"server", of_servers(1 / row.rate_2, true)}},
        [&](JobSpec& spec) {
          spec.checkpoint.interval = seconds(row.tau_2_s);
          LevelSpec local;
          local.kind = LevelKind::local_nvme;
          local.interval = seconds(row.tau_1_s);
          local.mode = SaveMode::synchronous;
          local.write_rate = BytesPerSecond(100e9 / row.save_1_s);
          local.read_rate = BytesPerSecond(1e18);
          spec.checkpoint.levels["local"] = local;
          spec.restart = {.replace = 0s, .start_up = 0s, .load = false};
        });
    const double first_order = row.overhead;
    const double overlap = row.save_1_s / row.tau_2_s;
    SCOPED_TRACE(testing::Message()
                 << "seeds 1 to 30: " << simulated << ", first order " << first_order);
    EXPECT_GT(simulated.mean(), first_order - overlap - simulated.half_width());
    EXPECT_LT(simulated.mean(), first_order + first_order * first_order + simulated.half_width());
    EXPECT_LT(simulated.half_width(), 0.13 * first_order);
  }
}

// An asynchronous save stops training for Cb and can be loaded Ca later. A failure loses what was
// done since the state of the last complete save: tau / 2 + Cb + Ca on average. First order:
//
//     overhead = Cb / tau + (tau / 2 + Cb + Ca + R) / M
TEST(ReliabilityOracle, saves_behind_training_against_first_order_theory) {
  constexpr double stall_s = 2, drain_s = 60, tau_s = 600, restart_s = 120, mtbi_s = day_s;
  constexpr double first_order =
      stall_s / tau_s + (tau_s / 2 + stall_s + drain_s + restart_s) / mtbi_s;
  LifeSetup setup = one_server(0);
  setup.store = {1e9_GBps, 1e9_GBps, 1e9_GBps, seconds(drain_s)};
  setup.step = seconds(tau_s / 10);
  const auto with_drain = [&](const LifeSetup& base) {
    return overhead(40, 24h * 60, base, {{"job", of_servers(mtbi_s)}}, [&](JobSpec& spec) {
      spec.checkpoint.mode = SaveMode::asynchronous;
      spec.checkpoint.stall = seconds(stall_s);
      spec.checkpoint.interval = seconds(tau_s);
      spec.restart = {.replace = 0s, .start_up = seconds(restart_s), .load = false};
    });
  };
  const Sample simulated = with_drain(setup);
  EXPECT_LT(std::abs(simulated.mean() - first_order),
            simulated.half_width() + first_order * first_order)
      << "seeds 1 to 40: " << simulated << ", first order " << first_order;
  // The drain is seen: without it the overhead is smaller by Ca / M, of the same failures.
  setup.store.latency = 0s;
  const Sample without = with_drain(setup);
  EXPECT_NEAR(simulated.mean() - without.mean(), drain_s / mtbi_s, 0.15 * drain_s / mtbi_s);
}

}  // namespace
}  // namespace trainyard::models
