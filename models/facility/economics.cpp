#include "models/facility/economics.hpp"

#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr std::size_t index(SpendingGroup g) {
  return static_cast<std::size_t>(g);
}

std::optional<Dollars> ratio(Dollars cost, double of) {
  if (of <= 0) return {};
  return cost / of;
}

/// Splits what a job used over its accounts. What all draw alike at (nothing known but time) goes
/// by time.
std::array<double, accounts> energy_shares(const Ledger& ledger,
                                           const std::array<double, accounts>& power) {
  std::array<double, accounts> share{};
  double sum = 0;
  for (std::size_t a = 0; a < accounts; ++a)
    sum += share[a] = ledger.gpu_s(static_cast<Account>(a)) * power[a];
  if (sum == 0)
    for (std::size_t a = 0; a < accounts; ++a)
      sum += share[a] = ledger.gpu_s(static_cast<Account>(a));
  // A job that never held a server draws nothing; whatever it was given all the same must not get
  // lost.
  if (sum == 0) sum = share[static_cast<std::size_t>(Account::unallocated)] = 1;
  for (double& s : share) s /= sum;
  return share;
}

/// Charges of the whole run that are shared like energy.
struct Shared {
  Dollars demand{};
  Dollars water{};
};

JobCost cost_of_one(const JobFacts& facts, const RunFacts& run, const Cost& fixed_per_gpu_s,
                    const Shared& shared, double share_of_shared, Dollars carbon_price) {
  JobCost j;
  j.name = facts.name;
  j.model_flops = facts.model_flops;
  j.tokens = facts.tokens;
  const std::array<double, accounts> share = energy_shares(facts.ledger, run.account_power);
  for (std::size_t a = 0; a < accounts; ++a) {
    AccountCost& c = j.by_account[a];
    c.gpu_s = facts.ledger.gpu_s(static_cast<Account>(a));
    c.energy = facts.energy.site * share[a];
    c.co2e_kg = facts.energy.co2e_kg * share[a];
    c.cost.capital = fixed_per_gpu_s.capital * c.gpu_s;
    c.cost.opex = fixed_per_gpu_s.opex * c.gpu_s;
    c.cost.energy = facts.energy.cost * share[a];
    c.cost.demand = shared.demand * (share_of_shared * share[a]);
    c.cost.water = shared.water * (share_of_shared * share[a]);
    c.cost.carbon = carbon_price * (c.co2e_kg / 1000);
    j.sum.gpu_s += c.gpu_s;
    j.sum.cost += c.cost;
    j.sum.energy += c.energy;
    j.sum.co2e_kg += c.co2e_kg;
  }
  return j;
}

void add_to(JobCost& all, const JobCost& one) {
  const auto add = [](AccountCost& to, const AccountCost& from) {
    to.gpu_s += from.gpu_s;
    to.cost += from.cost;
    to.energy += from.energy;
    to.co2e_kg += from.co2e_kg;
  };
  for (std::size_t a = 0; a < accounts; ++a) add(all.by_account[a], one.by_account[a]);
  add(all.sum, one.sum);
  all.model_flops += one.model_flops;
  all.tokens += one.tokens;
}

}  // namespace

std::array<double, accounts> typical_account_power() {
  constexpr double busy = 1, polling = 0.65, idle = 0.25, off = 0;
  std::array<double, accounts> p{};
  const auto set = [&](double power, std::initializer_list<Account> in) {
    for (const Account a : in) p[static_cast<std::size_t>(a)] = power;
  };
  set(busy, {Account::useful, Account::kernel_inefficiency, Account::recompute});
  // Steps that a failure made void computed as others did, with their bubbles and waits.
  set(0.9, {Account::lost_work});
  set(polling, {Account::bubble, Account::exposed_tp, Account::exposed_dp, Account::exposed_pp,
                Account::exposed_cp, Account::exposed_ep, Account::data_stall, Account::slow,
                Account::checkpoint_stall, Account::detection});
  set(idle, {Account::restart, Account::waiting_for_nodes, Account::spare_idle,
             Account::unallocated, Account::down_connected});
  set(off, {Account::down_repair, Account::down_fed, Account::down_cooled});
  return p;
}

double annuity(double rate, double years) {
  check(years > 0 && rate >= 0, "money is used up in some time", rate, years);
  return rate == 0 ? 1 / years : rate / -std::expm1(-years * std::log1p(rate));
}

Dollars charge_per_year(Dollars price, double residual, double rate, double years) {
  return price * ((1 - residual * std::pow(1 + rate, -years)) * annuity(rate, years));
}

Dollars price_of(const CapexTree& tree) {
  Dollars sum{};
  for (const GroupCapex& g : tree) sum += g.price;
  return sum;
}

Dollars charge_of(const CapexTree& tree) {
  Dollars sum{};
  for (const GroupCapex& g : tree) sum += g.per_year;
  return sum;
}

Dollars opex_of(const EconomicsSpec& spec, const SiteFacts& site, const CapexTree& tree) {
  const OpexSpec& o = spec.opex;
  const Dollars it = price_of(tree) - tree[index(SpendingGroup::power_and_cooling)].price;
  return o.per_year + o.per_gpu * double(site.gpus) + o.per_MW * (site.it_power.value() / 1e6) +
         it * o.maintenance + o.staff_cost * o.staff;
}

Cost& Cost::operator+=(const Cost& o) {
  capital += o.capital;
  opex += o.opex;
  energy += o.energy;
  demand += o.demand;
  water += o.water;
  carbon += o.carbon;
  return *this;
}

double JobCost::useful_gpu_h() const {
  double s = 0;
  for (std::size_t part = 0; part < step_parts; ++part)
    s += by_account[static_cast<std::size_t>(account_of(static_cast<StepPart>(part)))].gpu_s;
  return s / 3600;
}

std::optional<Dollars> JobCost::per_gpu_h() const {
  return ratio(sum.total(), gpu_h());
}
std::optional<Dollars> JobCost::per_useful_gpu_h() const {
  return ratio(sum.total(), useful_gpu_h());
}
std::optional<Dollars> JobCost::per_useful_pflop() const {
  return ratio(sum.total(), model_flops.value() / 1e15);
}
std::optional<Dollars> JobCost::per_useful_eflop() const {
  return ratio(sum.total(), model_flops.value() / 1e18);
}
std::optional<Dollars> JobCost::per_million_tokens() const {
  return ratio(sum.total(), tokens / 1e6);
}

CostReport cost_of(const EconomicsSpec& spec, const SiteFacts& site, const RunFacts& facts) {
  Ledger all = facts.pool.ledger;
  EnergyUse energy = facts.pool.energy;
  for (const JobFacts& j : facts.jobs) {
    all.add(j.ledger);
    energy += j.energy;
  }
  check(all.total() == GpuNanoseconds(site.gpus) * facts.simulated.count(),
        "every GPU-nanosecond is in one account", site.gpus, facts.simulated.count());

  CostReport r;
  r.capex = capex_of(spec, site);
  r.opex_per_year = opex_of(spec, site, r.capex);
  const double gpu_s_per_year = double(site.gpus) * hours_per_year * 3600;
  Cost fixed;
  if (site.gpus > 0) {
    fixed.capital = charge_of(r.capex) / gpu_s_per_year;
    fixed.opex = r.opex_per_year / gpu_s_per_year;
  }
  r.fixed_per_gpu_h = fixed.total() * 3600;

  const Shared shared{facts.demand, spec.water_price * facts.water_m3};
  const double site_J = energy.site.value();
  const auto one = [&](const JobFacts& j, bool is_pool) {
    // Nobody drew anything: it belongs to nobody.
    const double share = site_J > 0 ? j.energy.site.value() / site_J : is_pool ? 1 : 0;
    return cost_of_one(j, facts, fixed, shared, share, spec.carbon.price);
  };
  r.cluster.name = "cluster";
  for (const JobFacts& j : facts.jobs) {
    r.jobs.push_back(one(j, false));
    add_to(r.cluster, r.jobs.back());
  }
  r.pool = one(facts.pool, true);
  add_to(r.cluster, r.pool);

  const double years = to_seconds(facts.simulated) / 3600 / hours_per_year;
  for (std::size_t g = 0; g < spending_groups; ++g) r.by_group[g] = r.capex[g].per_year * years;
  const Cost& sum = r.cluster.sum.cost;
  r.by_group[index(SpendingGroup::power_and_cooling)] +=
      sum.energy + sum.demand + sum.water + sum.carbon;
  r.by_group[index(SpendingGroup::operations)] += sum.opex;
  return r;
}

GpuHourCost gpu_hour(const GpuHourInputs& in) {
  check(in.utilisation > 0 && in.goodput > 0, "some of the hours are useful", in.utilisation,
        in.goodput);
  GpuHourCost c;
  c.capital = in.capital_per_year / hours_per_year;
  c.opex = in.opex_per_year / hours_per_year;
  c.energy = in.price * (in.power.value() / 1000 * in.load * in.pue);
  c.per_useful_hour = c.per_hour() / (in.utilisation * in.goodput);
  return c;
}

GpuHourInputs gpu_hour_inputs(const EconomicsSpec& spec, const SiteFacts& site) {
  check(site.gpus > 0, "a site has GPUs");
  const CapexTree tree = capex_of(spec, site);
  GpuHourInputs in;
  in.capital_per_year = charge_of(tree) / double(site.gpus);
  in.opex_per_year = opex_of(spec, site, tree) / double(site.gpus);
  in.power = site.it_power / double(site.gpus);
  in.pue = spec.pue;
  in.price = Tariff(spec).mean_price();
  return in;
}

}  // namespace trainyard::models
