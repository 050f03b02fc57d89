#include "cli/plan_input.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "models/training/stage_costs.hpp"
#include "scenarios/plan_layouts.hpp"
#include "scenarios/published_cluster.hpp"
#include "scenarios/world.hpp"
#include "topologies/catalog.hpp"

namespace trainyard::cli {
namespace {

using Json = nlohmann::ordered_json;

// 4 M tokens: what Llama 2 trained with, and Llama 3 began with.
constexpr double usual_batch_tokens = 4194304;

constexpr int modular_ports = 576;  // scenarios/parts/switch/chassis-576x400g.json

bool is_scenario(const std::string& argument) {
  return argument.ends_with(".json");
}

std::string rate_text(BytesPerSecond rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g Gb/s", rate.value() * 8 / 1e9);
  return text;
}

Json fabric_of(const models::ServerSpec& server, int servers) {
  topologies::FabricSpec f = scenarios::non_blocking_fabric(
      servers, server.nics, scenarios::rails_of(server.nics), server.nic.rate);
  // Modular spines spare the third tier as long as every leaf has a port on them.
  const int leaves = (servers + *f.hosts_per_leaf - 1) / *f.hosts_per_leaf * f.rails.value_or(1);
  if (*f.tiers > 2 && leaves <= modular_ports) {
    f.tiers = 2;
    f.spine_switch.ports = modular_ports;
  }
  const auto box = [](const topologies::SwitchSpec& s) {
    return Json{{"ports", s.ports},
                {"port_rate", rate_text(s.port_rate)},
                {"latency", std::to_string(s.latency.count()) + " ns"}};
  };
  Json out{{"kind", std::string(name_of(f.kind))},
           {"routing", std::string(name_of(f.routing))},
           {"tiers", *f.tiers},
           {"hosts_per_leaf", *f.hosts_per_leaf}};
  if (f.rails && *f.rails != server.nics) out["rails"] = *f.rails;
  out["leaf_switch"] = box(f.leaf_switch);
  out["spine_switch"] = box(f.spine_switch);
  if (*f.tiers > 2) out["core_switch"] = box(f.core_switch);
  return out;
}

/// The scenario that the options describe, as a user would write it, so that the reader checks it.
PlanInput of_model(const Parsed& args) {
  const std::string& model = args.positional[0];
  for (const char* option : {"job", "measured"})
    if (args.has(option)) throw UsageError("--" + std::string(option) + " needs a scenario");
  const std::string server_name = args.value("server").value_or("hgx-h100");
  auto server =
      scenarios::make_part<models::ServerSpec>(scenarios::Catalog::standard(), server_name);
  PlanInput out;
  out.job = "plan";
  out.searches = args.has("gpus");
  std::vector<std::string> overrides;
  int gpus = whole(args, "gpus", 0);
  if (!server) server = models::ServerSpec{};  // the reader says what is wrong with the name
  if (gpus == 0) gpus = server->gpus;
  // A rack-scale domain is cut to what the job divides into (64 of the 72 GPUs of an NVL72).
  constexpr int largest_server = 16;
  if (server->gpus > largest_server && gpus > server->gpus && gpus % server->gpus != 0) {
    const int used = scenarios::domain_size(gpus, server->gpus, 1);
    if (used > 1 && used * server->nics % server->gpus == 0) {
      out.note = std::to_string(used) + " of the " + std::to_string(server->gpus) +
                 " GPUs of a server are used";
      server->nics = used * server->nics / server->gpus;
      server->gpus = used;
      overrides.push_back("cluster.server.gpus=" + std::to_string(server->gpus));
      overrides.push_back("cluster.server.nics=" + std::to_string(server->nics));
    }
  }
  const int servers = (gpus + server->gpus - 1) / server->gpus;
  const int sequence = whole(args, "sequence", 8192);
  const int batch = whole(args, "batch", std::max(1, int(usual_batch_tokens / sequence)));
  const Json job{{"model", model},
                 {"gpus", gpus},
                 {"global_batch", batch},
                 {"sequence", sequence},
                 {"software", args.value("software").value_or("megatron-core")},
                 {"parallel", {{"precision", args.value("precision").value_or("bf16")}}},
                 {"checkpoint", {{"enabled", false}}}};
  const Json scenario{
      {"cluster",
       {{"servers", servers}, {"server", server_name}, {"fabric", fabric_of(*server, servers)}}},
      {"jobs", {{out.job, job}}}};
  for (const std::string& set : args.values("set")) overrides.push_back(set);
  out.read = scenarios::read_scenario_text(scenario.dump(1), "plan " + model, overrides);
  return out;
}

std::string job_name(const scenarios::Scenario& s, const Parsed& args) {
  const auto wanted = args.value("job");
  if (!wanted) return s.jobs.begin()->first;
  if (!s.jobs.contains(*wanted)) {
    std::string names;
    for (const auto& [name, job] : s.jobs) names += (names.empty() ? "" : ", ") + name;
    throw UsageError("there is no job '" + *wanted + "'; there is: " + names);
  }
  return *wanted;
}

void locate(PlanInput& out, const Problems& problems, const std::string& prefix) {
  for (const Problem& p : problems) out.read.diagnostics.push_back(out.read.locate(p, prefix));
}

PlanInput of_scenario(const Parsed& args) {
  const std::string& file = args.positional[0];
  for (const char* option : {"server", "software", "precision"})
    if (args.has(option))
      throw UsageError("--" + std::string(option) +
                       " belongs to a model of the catalog; in a scenario use --set");
  PlanInput out;
  out.searches = true;
  std::vector<std::string> overrides = args.values("set");
  out.read = scenarios::read_scenario(file, overrides);
  if (!out.read.ok()) return out;
  out.job = job_name(out.read.scenario, args);
  const std::string path = "jobs." + out.job;

  // The measured point first: it belongs to the job as the scenario has it.
  if (const auto measured = args.value("measured")) {
    std::vector<std::string> with = overrides;
    with.push_back(path + ".measured_step=" + Json(*measured).dump());
    out.read = scenarios::read_scenario(file, with);
    if (!out.read.ok()) return out;
  }
  if (out.read.scenario.jobs.at(out.job).measured_step) {
    locate(out, scenarios::fabric_problems(out.read.scenario), "");
    if (out.read.ok()) locate(out, scenarios::check_measured(out.read.scenario, out.job), path);
    if (!out.read.ok()) return out;
    out.measured = scenarios::measured_point(out.read.scenario, out.job);
  }

  const scenarios::Scenario& s = out.read.scenario;
  const models::JobSpec& job = s.jobs.at(out.job);
  if (!args.has("gpus") && !args.has("batch") && !args.has("sequence")) return out;
  const int gpus = whole(args, "gpus", job.gpus), per_server = s.cluster.server.gpus;
  const int servers = (gpus + per_server - 1) / per_server + s.cluster.spares;
  overrides.push_back(path + ".gpus=" + std::to_string(gpus));
  overrides.push_back(path +
                      ".global_batch=" + std::to_string(whole(args, "batch", job.global_batch)));
  overrides.push_back(path + ".sequence=" + std::to_string(whole(args, "sequence", job.sequence)));
  if (servers > s.cluster.servers) {
    out.note = "the cluster is enlarged from " + std::to_string(s.cluster.servers) + " to " +
               std::to_string(servers) + " servers";
    overrides.push_back("cluster.servers=" + std::to_string(servers));
  }
  out.read = scenarios::read_scenario(file, overrides);
  return out;
}

}  // namespace

double positive(const Parsed& args, const std::string& option, double otherwise) {
  const auto text = args.value(option);
  if (!text) return otherwise;
  char* end = nullptr;
  const double x = std::strtod(text->c_str(), &end);
  if (end == text->c_str() || *end != '\0' || !(x > 0) || !std::isfinite(x))
    throw UsageError("--" + option + " must be a number above 0, found '" + *text + "'");
  return x;
}

int whole(const Parsed& args, const std::string& option, int otherwise) {
  if (!args.has(option)) return otherwise;
  const double x = positive(args, option, 1);
  if (x != std::floor(x) || x > 1e9)
    throw UsageError("--" + option + " must be a whole number up to 1e9, found '" +
                     *args.value(option) + "'");
  return int(x);
}

PlanInput read_plan_input(const Parsed& args) {
  PlanInput out = is_scenario(args.positional[0]) ? of_scenario(args) : of_model(args);
  if (!out.read.ok()) return out;
  const scenarios::Scenario& s = out.read.scenario;
  locate(out, scenarios::fabric_problems(s), "");
  const models::JobSpec& job = s.jobs.at(out.job);
  locate(out, models::check_precision(job, s.cluster.server.gpu), "jobs." + out.job);
  return out;
}

}  // namespace trainyard::cli
