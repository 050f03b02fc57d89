#include "scenarios/run_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/facility_at_rest.hpp"

namespace trainyard::scenarios {

using Json = nlohmann::ordered_json;  // keys in the order in which they are documented

namespace {

std::string decimal(models::GpuNanoseconds n) {
  const bool negative = n < 0;
  std::string out;
  do {
    const int digit = int(n % 10);
    out += char('0' + (digit < 0 ? -digit : digit));
    n /= 10;
  } while (n != 0);
  if (negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

void add_ledger(Json& out, const models::Ledger& ledger) {
  Json gpu_s, gpu_ns;
  for (std::size_t a = 0; a < models::accounts; ++a) {
    const std::string name(name_of(models::Account(a)));
    gpu_s[name] = ledger.gpu_s(models::Account(a));
    gpu_ns[name] = decimal(ledger[models::Account(a)]);
  }
  gpu_ns["total"] = decimal(ledger.total());
  out["ledger_gpu_s"] = std::move(gpu_s);
  out["ledger_gpu_ns"] = std::move(gpu_ns);
}

Json job_json(const JobResult& job) {
  Json out;
  out["model"] = job.model;
  out["gpus"] = job.gpus;
  out["state"] = job.state;
  out["step_s"] = job.step_s;
  out["steps_kept"] = job.steps_kept;
  out["tokens"] = job.tokens;
  out["mfu"] = job.mfu;
  out["hfu"] = job.hfu;
  out["kept_s"] = job.kept_s;
  out["elapsed_s"] = job.elapsed_s;
  out["goodput"] = job.goodput;
  out["ettr"] = job.ettr;
  out["interruptions"] = job.interruptions;
  out["expected_interruptions"] = job.expected_interruptions;
  out["interruptions_by_class"] = Json(job.interruptions_by_class);
  out["mtbi_s"] = job.interruptions > 0 ? Json(job.mtbi_s) : Json(nullptr);
  out["checkpoints"] = job.checkpoints;
  out["saves_lost"] = job.saves_lost;
  out["saves_refused"] = job.saves_refused;
  out["planned_interruptions"] = job.planned;
  out["planned_by_class"] = Json(job.planned_by_class);
  out["restores_by_level"] = Json(job.restores_by_level);
  out["shrinks"] = job.shrinks;
  out["data_wait"] = job.data_wait;
  if (!job.data_limit.empty()) out["data_limit"] = job.data_limit;
  out["reroutes"] = job.reroutes;
  out["cuts"] = job.cuts;
  add_ledger(out, job.ledger);
  return out;
}

Json optional_json(const std::optional<Dollars>& amount) {
  return amount ? Json(amount->value()) : Json(nullptr);
}

Json cost_of_one(const models::JobCost& cost) {
  Json out;
  out["total_USD"] = cost.sum.cost.total().value();
  out["gpu_h"] = cost.gpu_h();
  out["useful_gpu_h"] = cost.useful_gpu_h();
  out["per_gpu_h_USD"] = optional_json(cost.per_gpu_h());
  out["per_useful_gpu_h_USD"] = optional_json(cost.per_useful_gpu_h());
  out["per_useful_pflop_USD"] = optional_json(cost.per_useful_pflop());
  out["per_useful_eflop_USD"] = optional_json(cost.per_useful_eflop());
  out["per_million_tokens_USD"] = optional_json(cost.per_million_tokens());
  out["energy_kWh"] = cost.kWh();
  out["carbon_tCO2e"] = cost.tCO2e();
  Json accounts;
  for (std::size_t a = 0; a < models::accounts; ++a)
    accounts[std::string(name_of(models::Account(a)))] = cost.by_account[a].cost.total().value();
  out["accounts_USD"] = std::move(accounts);
  return out;
}

Json cost_json(const RunCost& cost) {
  Json out = cost_of_one(cost.report.cluster);
  Json groups, prices;
  for (std::size_t g = 0; g < models::spending_groups; ++g) {
    const std::string name(trainyard::name_of(models::SpendingGroup(g)));
    groups[name] = cost.report.by_group[g].value();
    prices[name] = {{"price_USD", cost.report.capex[g].price.value()},
                    {"per_year_USD", cost.report.capex[g].per_year.value()},
                    {"life_years", cost.report.capex[g].life_years},
                    {"basis", cost.report.capex[g].basis}};
  }
  out["groups_USD"] = std::move(groups);
  out["capex"] = std::move(prices);
  out["opex_per_year_USD"] = cost.report.opex_per_year.value();
  out["pue"] = cost.pue;
  Json blocks = Json::object();
  for (const auto& block : cost.blocks)
    blocks[block.name] = {{"energy_kWh", block.energy.value() / models::joules_per_kWh},
                          {"price_USD_per_kWh", block.price.value()}};
  out["tariff"] = std::move(blocks);
  Json months = Json::array();
  for (const models::MonthPeak& month : cost.months)
    months.push_back({{"month", month.month},
                      {"peak_W", month.peak.value()},
                      {"covered", month.covered},
                      {"demand_USD", month.cost.value()}});
  out["months"] = std::move(months);
  Json jobs = Json::object();
  for (const models::JobCost& job : cost.report.jobs) jobs[job.name] = cost_of_one(job);
  out["jobs"] = std::move(jobs);
  out["utilisation"] = cost.utilisation;
  out["rent_or_own"] = cost.rent_or_own;
  out["assumed"] = cost.assumed;
  return out;
}

/// Null: something is asked of a part of which nothing runs.
Json utilisation(double of_limit) {
  return of_limit > nothing_left ? Json() : Json(of_limit);
}

Json facility_json(const FacilityResult& f) {
  Json out = {{"it_J", f.it.value()},
              {"cooling_J", f.cooling.value()},
              {"losses_J", f.losses.value()},
              {"others_J", f.others.value()},
              {"site_J", f.site.value()},
              {"fans_J", f.fans.value()},
              {"pumps_J", f.pumps.value()},
              {"chillers_J", f.chillers.value()},
              {"coolers_J", f.coolers.value()},
              {"heat_stored_J", f.heat_stored.value()},
              {"power_imbalance", f.power_imbalance},
              {"heat_imbalance", f.heat_imbalance},
              {"pue", f.pue},
              {"wue_L_per_kWh", f.wue},
              {"water_m3", f.water_m3},
              {"peak_W", f.peak.value()},
              {"peak_at_s", to_seconds(f.peak_at - start_of_run)},
              {"hottest_gpu_C", f.hottest_gpu_C},
              {"racks_unfed", f.racks_unfed},
              {"racks_uncooled", f.racks_uncooled},
              {"racks_shed", f.racks_shed},
              {"racks_limited", f.limits}};
  Json kinds = Json::object();
  for (const auto& [kind, lost] : f.losses_by_kind) kinds[kind] = lost.value();
  out["losses_by_kind_J"] = std::move(kinds);
  if (!f.worst.part.empty())
    out["worst_limit"] = {{"at_s", to_seconds(f.worst.at - start_of_run)},
                          {"limit", f.worst.part},
                          {"utilisation", utilisation(f.worst.utilisation)}};
  if (f.hottest_hour)
    out["hottest_hour"] = {{"from_s", to_seconds(f.hottest_hour->from - start_of_run)},
                           {"dry_C", f.hottest_hour->dry_C},
                           {"wet_C", f.hottest_hour->wet_C},
                           {"limit", f.hottest_hour->part},
                           {"utilisation", utilisation(f.hottest_hour->utilisation)}};
  return out;
}

}  // namespace

std::string shape_of_run_json(const Scenario& scenario) {
  RunResult shape;
  for (const auto& [name, job] : scenario.jobs) {
    JobResult& result = shape.jobs.emplace_back();
    result.name = name;
    result.interruptions = 1;
    for (const auto& [failure, spec] : scenario.failures.classes)
      result.interruptions_by_class[failure] = 0;
  }
  if (scenario.facility) shape.facility.emplace();
  if (scenario.economics) {
    shape.cost.emplace();
    for (const auto& [name, job] : scenario.jobs)
      shape.cost->report.jobs.emplace_back().name = name;
  }
  return run_json(shape);
}

std::string run_json(const RunResult& result) {
  Json out;
  out["schema"] = "trainyard-run-1";
  out["scenario"] = result.scenario;
  out["scenario_file"] = result.scenario_file;
  out["seed"] = result.seed;
  out["state"] = name_of(result.state);
  if (!result.failure.empty()) out["failure"] = result.failure;
  out["fingerprint"] = result.fingerprint;
  out["simulated_s"] = result.simulated_s;
  out["wall_s"] = result.wall_s;
  out["events"] = result.events;
  out["peak_rss_bytes"] = result.peak_rss_bytes;
  out["profiles_computed"] = result.profiles_computed;
  out["profiles_reused"] = result.profiles_reused;
  out["run_file"] = result.run_file.empty() ? Json(nullptr) : Json(result.run_file);
  out["warnings"] = result.warnings;
  out["no_effect"] = result.no_effect;

  Json cluster;
  cluster["nodes"] = result.cluster.nodes;
  cluster["gpus"] = result.cluster.gpus;
  cluster["energy_J"] = result.cluster.energy_J;
  cluster["availability"] = result.cluster.availability;
  add_ledger(cluster, result.cluster.ledger);
  out["cluster"] = std::move(cluster);

  if (result.facility) out["facility"] = facility_json(*result.facility);
  if (result.cost) out["cost"] = cost_json(*result.cost);
  Json jobs = Json::object();
  for (const JobResult& job : result.jobs) jobs[job.name] = job_json(job);
  out["jobs"] = std::move(jobs);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace trainyard::scenarios
