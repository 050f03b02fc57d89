#include "cli/run_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace trainyard::cli {

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

Json job_json(const scenarios::JobResult& job) {
  Json out;
  out["model"] = job.model;
  out["gpus"] = job.gpus;
  out["state"] = job.state;
  out["step_s"] = job.step_s;
  out["steps_kept"] = job.steps_kept;
  out["tokens"] = job.tokens;
  out["mfu"] = job.mfu;
  out["hfu"] = job.hfu;
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

}  // namespace

std::string run_json(const scenarios::RunResult& result) {
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

  Json jobs = Json::object();
  for (const scenarios::JobResult& job : result.jobs) jobs[job.name] = job_json(job);
  out["jobs"] = std::move(jobs);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace trainyard::cli
