#include <gmock/gmock.h>

#include <cmath>

#include "models/facility/economics.hpp"
#include "sim/check.hpp"
#include "sim/random.hpp"

// What a run cost, from its ledgers and its energy.
namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;

constexpr std::size_t at(SpendingGroup g) {
  return static_cast<std::size_t>(g);
}
constexpr std::size_t at(Account a) {
  return static_cast<std::size_t>(a);
}

/// A run of 100 GPUs for 10 hours: one job on 80, a pool of 20.
struct SmallRun {
  EconomicsSpec spec;
  SiteFacts site{.gpus = 100, .servers = 10, .nics = 100, .it_power = 100_kW};
  RunFacts facts;

  SmallRun() {
    spec.capex.accelerators.total = Dollars(8760.0 * 5 * 100);  // 1 USD a GPU-hour
    spec.capex.servers.total = spec.capex.network.total = spec.capex.storage.total = Dollars(0);
    spec.capex.power_and_cooling.total = spec.capex.operations.total = Dollars(0);
    spec.discount_rate = 0;
    spec.opex = {.per_year = Dollars(8760.0 * 100 * 0.25), .per_MW = Dollars(0)};
    facts.simulated = 10h;
    JobFacts llm{.name = "llm"};
    llm.ledger.add(Account::useful, 80, 4h);
    llm.ledger.add(Account::exposed_dp, 80, 4h);
    llm.ledger.add(Account::lost_work, 80, 1h);
    llm.ledger.add(Account::restart, 80, 1h);
    llm.energy.site = Joules(1000 * joules_per_kWh);
    llm.energy.cost = Dollars(100);
    llm.energy.co2e_kg = 400;
    llm.model_flops = Flops(2e18);
    llm.tokens = 5e6;
    facts.jobs.push_back(llm);
    facts.pool.name = "pool";
    facts.pool.ledger.add(Account::spare_idle, 20, 10h);
    facts.pool.energy.site = Joules(100 * joules_per_kWh);
    facts.pool.energy.cost = Dollars(10);
    facts.pool.energy.co2e_kg = 40;
  }
  CostReport cost() const { return cost_of(spec, site, facts); }
};

TEST(CostOfARun, by_hand) {
  const CostReport r = SmallRun().cost();
  EXPECT_NEAR(r.fixed_per_gpu_h.value(), 1.25, 1e-12);
  // 1000 GPU-hours at 1.25, and energy for 110 USD.
  EXPECT_NEAR(r.total().value(), 1360, 1e-9);
  const JobCost& llm = r.jobs[0];
  EXPECT_NEAR(llm.sum.total().value(), 1000 + 100, 1e-9);
  EXPECT_NEAR(llm.gpu_h(), 800, 1e-9);
  EXPECT_NEAR(llm.useful_gpu_h(), 640, 1e-9);
  EXPECT_NEAR(llm.per_gpu_h()->value(), 1100 / 800.0, 1e-12);
  EXPECT_NEAR(llm.per_useful_gpu_h()->value(), 1100 / 640.0, 1e-12);
  EXPECT_NEAR(llm.per_useful_pflop()->value(), 1100 / 2000.0, 1e-12);
  EXPECT_NEAR(llm.per_useful_eflop()->value(), 1100 / 2.0, 1e-9);
  EXPECT_NEAR(llm.per_million_tokens()->value(), 1100 / 5.0, 1e-9);
  EXPECT_NEAR(llm.kWh(), 1000, 1e-9);
  EXPECT_NEAR(llm.tCO2e(), 0.4, 1e-12);
  EXPECT_FALSE(r.pool.per_useful_gpu_h());
  EXPECT_FALSE(r.pool.per_million_tokens());
  EXPECT_NEAR(r.cluster.per_useful_gpu_h()->value(), 1360 / 640.0, 1e-12);
}

// One GPU for one hour in each account: the eleven parts of a step are useful.
TEST(CostOfARun, all_parts_of_a_kept_step_are_useful) {
  SmallRun run;
  run.facts.simulated = 1h;
  run.site.gpus = std::int64_t(accounts);
  run.facts.jobs[0].ledger.clear();
  run.facts.pool.ledger.clear();
  for (std::size_t a = 0; a < accounts; ++a)
    run.facts.jobs[0].ledger.add(static_cast<Account>(a), 1, 1h);
  EXPECT_NEAR(run.cost().jobs[0].useful_gpu_h(), 11, 1e-12);
  EXPECT_NEAR(run.cost().jobs[0].gpu_h(), 22, 1e-12);
}

// Lost work: 80 GPU-hours at 1.25; energy by power 1 (320), 0.65 (320), 0.9 (80), 0.25 (80).
TEST(CostOfARun, says_what_lost_work_cost) {
  const CostReport r = SmallRun().cost();
  const AccountCost& lost = r.jobs[0].by_account[at(Account::lost_work)];
  const double share = 80 * 0.9 / (320 + 320 * 0.65 + 80 * 0.9 + 80 * 0.25);
  EXPECT_NEAR(lost.total().value(), 100 + 100 * share, 1e-9);
  EXPECT_NEAR(lost.energy.value() / joules_per_kWh, 1000 * share, 1e-9);
  EXPECT_NEAR(lost.co2e_kg, 400 * share, 1e-9);
  EXPECT_EQ(r.jobs[0].by_account[at(Account::detection)].total().value(), 0);
}

TEST(CostOfARun, peaks_water_and_carbon_follow_energy) {
  SmallRun run;
  run.facts.demand = Dollars(1100);
  run.facts.water_m3 = 22;
  run.spec.water_price = Dollars(5);
  run.spec.carbon.price = Dollars(50);
  const CostReport r = run.cost();
  EXPECT_NEAR(r.jobs[0].sum.cost.demand.value(), 1000, 1e-9);
  EXPECT_NEAR(r.jobs[0].sum.cost.water.value(), 100, 1e-9);
  EXPECT_NEAR(r.jobs[0].sum.cost.carbon.value(), 20, 1e-9);
  EXPECT_NEAR(r.pool.sum.cost.demand.value(), 100, 1e-9);
  EXPECT_NEAR(r.by_group[at(SpendingGroup::power_and_cooling)].value(), 110 + 1100 + 110 + 22,
              1e-9);
  EXPECT_NEAR(r.by_group[at(SpendingGroup::operations)].value(), 250, 1e-9);
  EXPECT_NEAR(r.by_group[at(SpendingGroup::accelerators)].value(), 1000, 1e-9);
}

TEST(CostOfARun, peaks_without_energy_belong_to_the_pool) {
  SmallRun run;
  run.facts.jobs[0].energy = run.facts.pool.energy = {};
  run.facts.demand = Dollars(10);
  EXPECT_NEAR(run.cost().pool.sum.cost.demand.value(), 10, 1e-12);
}

TEST(CostOfARun, every_gpu_nanosecond_must_be_there) {
  SmallRun run;
  run.facts.simulated += 1ns;
  EXPECT_THROW(run.cost(), CheckFailed);
}

// Random ledgers and energies, and the sums in every direction.
TEST(CostOfARun, every_total_is_the_sum_of_its_parts) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Stream luck(sim::Seed{seed}, "cost");
    EconomicsSpec spec;
    spec.carbon.price = Dollars(100 * luck.uniform());
    const std::int64_t gpus = 8 * (1 + std::int64_t(luck.below(2000)));
    const SiteFacts site{
        .gpus = gpus, .servers = gpus / 8, .nics = gpus, .it_power = Watts(1275.0 * double(gpus))};
    RunFacts facts;
    facts.simulated = Duration(1 + std::int64_t(luck.below(90ull * 86'400'000'000'000)));
    facts.demand = Dollars(1e6 * luck.uniform());
    facts.water_m3 = 1e5 * luck.uniform();
    std::int64_t left = gpus;
    const auto fill = [&](JobFacts& j, std::int64_t n) {
      Duration rest = facts.simulated;
      for (int part = 0; part < 5; ++part) {
        const Duration d =
            part == 4 ? rest : Duration(std::int64_t(luck.uniform() * double(rest.count())));
        j.ledger.add(static_cast<Account>(luck.below(accounts)), n, d);
        rest -= d;
      }
      j.energy.site = Joules(luck.uniform() < 0.1 ? 0 : 1e12 * luck.uniform());
      j.energy.cost = Dollars(j.energy.site.value() * 2e-8);
      j.energy.co2e_kg = j.energy.site.value() * 1e-7;
    };
    for (int n = 0; n < 4; ++n) {
      const std::int64_t take = std::int64_t(luck.below(std::uint64_t(left) + 1));
      left -= take;
      facts.jobs.push_back({.name = "job"});
      fill(facts.jobs.back(), take);
    }
    fill(facts.pool, left);

    const CostReport r = cost_of(spec, site, facts);
    const double total = r.total().value();
    const auto near = [&](double sum, double of) { EXPECT_NEAR(sum, of, 1e-9 * std::abs(of)); };
    double by_group = 0, by_job = r.pool.sum.total().value(), by_account = 0;
    for (const Dollars g : r.by_group) by_group += g.value();
    for (const JobCost& j : r.jobs) by_job += j.sum.total().value();
    for (const AccountCost& a : r.cluster.by_account) by_account += a.total().value();
    near(by_group, total);
    near(by_job, total);
    near(by_account, total);
    double energy = facts.pool.energy.site.value(), paid = facts.pool.energy.cost.value(),
           kg = facts.pool.energy.co2e_kg;
    for (const JobFacts& j : facts.jobs) {
      energy += j.energy.site.value();
      paid += j.energy.cost.value();
      kg += j.energy.co2e_kg;
    }
    near(r.cluster.sum.energy.value(), energy);
    near(r.cluster.sum.cost.energy.value(), paid);
    near(r.cluster.sum.co2e_kg, kg);
    near(r.cluster.sum.cost.demand.value(), facts.demand.value());
    near(r.cluster.sum.cost.water.value(), facts.water_m3 * 1.5);
    near(
        r.cluster.sum.cost.capital.value() + r.cluster.sum.cost.opex.value(),
        (charge_of(r.capex) + r.opex_per_year).value() * to_seconds(facts.simulated) / 3600 / 8760);
  }
}

}  // namespace
}  // namespace trainyard::models
