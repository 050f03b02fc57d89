#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/economics_spec.hpp"
#include "models/facility/tariff.hpp"
#include "models/training/ledger.hpp"

/// What a run cost, by spending group, by job and by account of the ledger. Two kinds of money:
///
///     fixed      capital and opex of the site run by the clock: each GPU-second costs the same, in
///                whatever account it is
///     metered    energy, peaks, water, carbon follow what each job drew; inside a job they are
///                split over its accounts by GPU-seconds x typical power in that account
///
/// Capital of a group of price P, life n years, residual R at cost of capital r is a level charge,
///
///     (P - R / (1 + r)^n) r / (1 - (1 + r)^-n) a year,      (P - R) / n for r = 0
///
/// and from there the classic cost of a useful GPU-hour,
///
///     (capex / (life x 8760) + power x PUE x price + opex) / (utilisation x goodput)
///
///     const CostReport cost = cost_of(spec, site, facts);
///     cost.cluster.per_useful_gpu_h();  cost.jobs[0].accounts[lost_work].total();
///
/// Every total is the sum of its parts. Sources of the form: J. Koomey and others, "A Simple Model
/// for Determining True Total Cost of Ownership for Data Centers", Uptime Institute 2007; L. A.
/// Barroso, U. Hölzle, P. Ranganathan, "The Datacenter as a Computer", chapter on cost.
namespace trainyard::models {

/// What is to be paid for, as the scenario has it. Zero prices are unknown ones.
struct SiteFacts {
  std::int64_t gpus = 0;
  std::int64_t servers = 0;
  std::int64_t nics = 0;   // of all servers
  std::int64_t ports = 0;  // of all switches
  Watts it_power{};        // of all IT at its maximum: what the plant is built for
  Dollars gpu_price{};
  Dollars server_price{};  // without GPUs and adapters
  Dollars nic_price{};
  Dollars fabric_price{};  // switches, cables, optics
};

struct GroupCapex {
  Dollars price{};
  Dollars per_year{};
  double life_years = 0;
  std::string basis;  // where the price comes from, in words
};
using CapexTree = std::array<GroupCapex, spending_groups>;

/// Charge a year for each dollar that is used up in `years`; without interest 1 / years.
double annuity(double rate, double years);
/// The same for a price of which a share is left at the end.
Dollars charge_per_year(Dollars price, double residual, double rate, double years);

CapexTree capex_of(const EconomicsSpec& spec, const SiteFacts& site);
Dollars price_of(const CapexTree& tree);
Dollars charge_of(const CapexTree& tree);  // a year
/// A year of everything but energy and water.
Dollars opex_of(const EconomicsSpec& spec, const SiteFacts& site, const CapexTree& tree);

/// Power of a server in each account, over that of one that computes. Typical figures for
/// air-cooled servers of eight GPUs: 0.65 while GPUs poll or communicate, 0.25 idle.
std::array<double, accounts> typical_account_power();

struct JobFacts {
  std::string name = {};
  Ledger ledger{};
  EnergyUse energy{};
  Flops model_flops{};  // of kept steps
  double tokens = 0;    // of kept steps
};

struct RunFacts {
  Duration simulated{};
  std::vector<JobFacts> jobs = {};
  JobFacts pool{};   // what belonged to no job; all ledgers add up to GPUs x simulated, exactly
  Dollars demand{};  // EnergyMeter::demand_cost()
  double water_m3 = 0;
  std::array<double, accounts> account_power = typical_account_power();
};

/// A sum of money by what it is for.
struct Cost {
  Dollars capital{};
  Dollars opex{};
  Dollars energy{};
  Dollars demand{};
  Dollars water{};
  Dollars carbon{};

  Dollars total() const { return capital + opex + energy + demand + water + carbon; }
  Cost& operator+=(const Cost& o);
};

struct AccountCost {
  double gpu_s = 0;
  Cost cost{};
  Joules energy{};     // of the site
  double co2e_kg = 0;  // carbon dioxide equivalent
  Dollars total() const { return cost.total(); }
};

struct JobCost {
  std::string name;
  std::array<AccountCost, accounts> by_account{};
  AccountCost sum{};
  Flops model_flops{};
  double tokens = 0;

  double gpu_h() const { return sum.gpu_s / 3600; }
  /// In steps that were kept, whatever happened in them: what goodput counts.
  double useful_gpu_h() const;
  double kWh() const { return sum.energy.value() / joules_per_kWh; }
  double tCO2e() const { return sum.co2e_kg / 1000; }
  // Nothing where there is nothing to divide by.
  std::optional<Dollars> per_gpu_h() const;
  std::optional<Dollars> per_useful_gpu_h() const;
  std::optional<Dollars> per_useful_pflop() const;  // 1e15 model FLOPs of kept steps
  std::optional<Dollars> per_useful_eflop() const;
  std::optional<Dollars> per_million_tokens() const;
};

struct CostReport {
  CapexTree capex;
  Dollars opex_per_year{};
  Dollars fixed_per_gpu_h{};
  /// Of the run: capital of each group; energy, peaks, water and carbon with power and cooling,
  /// opex with operations.
  std::array<Dollars, spending_groups> by_group{};
  std::vector<JobCost> jobs;
  JobCost pool;
  JobCost cluster;  // jobs and pool

  Dollars total() const { return cluster.sum.total(); }
};

CostReport cost_of(const EconomicsSpec& spec, const SiteFacts& site, const RunFacts& facts);

/// The cost of a GPU-hour without a run. Everything is of one GPU, with its share of the site.
struct GpuHourInputs {
  Dollars capital_per_year{};
  Dollars opex_per_year{};
  Watts power{};  // IT at its maximum
  double load = 0.9;
  double pue = 1.2;
  Dollars price{};  // one kWh
  double utilisation = 1;
  double goodput = 1;
};

struct GpuHourCost {
  Dollars capital{};
  Dollars opex{};
  Dollars energy{};
  Dollars per_useful_hour{};
  Dollars per_hour() const { return capital + opex + energy; }
  double energy_share() const { return energy / per_hour(); }
};

GpuHourCost gpu_hour(const GpuHourInputs& inputs);
/// Of a site, at the mean price of its tariff.
GpuHourInputs gpu_hour_inputs(const EconomicsSpec& spec, const SiteFacts& site);

/// What was assumed, one line each, for reports.
std::vector<std::string> assumptions(const EconomicsSpec& spec, const SiteFacts& site);

/// "1.14 USD", "47.5 thousand USD", "8.5 billion USD".
std::string money_text(Dollars amount);

}  // namespace trainyard::models
