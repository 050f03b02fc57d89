#include <iostream>

#include "cli/expect.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/step_report.hpp"
#include "models/compute/kernels.hpp"
#include "models/training/memory.hpp"
#include "models/training/step_model.hpp"
#include "scenarios/run_tables.hpp"
#include "scenarios/world.hpp"

/// trainyard step SCENARIO: one training step of one job on the intact cluster.
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "step",
      .arguments = "SCENARIO [OPTIONS]",
      .what =
          "One training step of a job on the intact cluster, alone on the fabric: its time and "
          "split, memory of the fullest "
          "GPU, busiest links, closed-form bounds.",
      .examples = {{"trainyard step scenarios/library/quickstart.json",
                    "where one step's time goes"},
                   {"trainyard step big.json --set jobs.llm.parallel.tensor=4",
                    "what another plan would do"}},
      .options = {{"job", "NAME", "which job; default: the first by name"},
                  {"set", "PATH=VALUE",
                   "override a value of the scenario; repeatable, the last one wins", true},
                  {"expect", "PATH>=X",
                   "exit status 3 if a figure of --json misses the bound; repeatable", true},
                  {"json", "", "print the figures as one JSON object"}},
      .least = 1,
      .most = 1};
  return table;
}

const std::string& job_name(const scenarios::Scenario& scenario, const Parsed& args) {
  const auto wanted = args.value("job");
  if (!wanted) return scenario.jobs.begin()->first;
  const auto found = scenario.jobs.find(*wanted);
  if (found != scenario.jobs.end()) return found->first;
  std::string names;
  for (const auto& [name, job] : scenario.jobs) names += (names.empty() ? "" : ", ") + name;
  throw UsageError("there is no job '" + *wanted + "'; there is: " + names);
}

StepReport report_of(const scenarios::Scenario& scenario, const std::string& name,
                     const std::string& scenario_name) {
  const models::JobSpec& job = scenario.jobs.at(name);
  const models::ServerSpec& server = scenario.cluster.server;
  const scenarios::Site site(scenario);
  models::StepModel model(job, server, site.router);

  StepReport out;
  out.scenario = scenario_name;
  out.job = name;
  out.model = job.model.name;
  out.gpus = job.gpus;
  out.profile = model.profile(scenarios::first_placement(scenario, job));
  if (!out.profile.cut_off.empty()) throw Failure("jobs." + out.job + ": " + out.profile.cut_off);
  const auto operands = job.parallel.precision == models::Precision::fp8 ? models::Operands::fp8
                                                                         : models::Operands::bits16;
  const double peak = models::peak_flops(server.gpu, operands);
  const double peak_flops = peak * double(job.gpus) * to_seconds(out.profile.step);
  out.mfu = out.profile.model_flops / peak_flops;
  out.hfu = out.profile.hardware_flops / peak_flops;

  const models::MemoryEstimate memory =
      models::memory_estimate(model.plan(), job.software, server.gpu);
  const models::StageMemory& fullest = memory.stages[std::size_t(memory.fullest_stage())];
  out.memory = {{"weights", fullest.weights.value()},
                {"gradients", fullest.gradients.value()},
                {"optimizer", fullest.optimizer.value()},
                {"activations", fullest.activations.value()},
                {"buffers", fullest.buffers.value()}};
  out.memory_total = fullest.total().value();
  out.memory_capacity = memory.capacity.value();
  const topologies::Fabric& fabric = *site.fabric;
  for (const models::LinkUse& use : out.profile.busiest_links) {
    StepReport::LinkLine line{fabric.name(use.link), use.utilisation, use.bytes,
                              use.capacity.value(),  use.users,       {}};
    for (const models::LinkUser& user : use.pairs)
      line.pairs.push_back({scenarios::user_text(out.job, user, fabric), user.bytes});
    out.busiest_links.push_back(std::move(line));
  }
  return out;
}

}  // namespace

Exit step_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const std::string& file = args.positional[0];
  const std::vector<Bound> bounds = parse_bounds(args.values("expect"));
  const auto read = load_or_complain(file, args.values("set"));
  if (!read) return Exit::usage;
  const StepReport report = report_of(read->scenario, job_name(read->scenario, args),
                                      name_of_scenario(read->scenario, file));
  const std::string json = step_json(report);
  std::cout << (args.has("json") ? json : step_text(report, stdout_terminal()));
  const std::vector<std::string> misses = missed(bounds, json);
  for (const std::string& miss : misses) std::cerr << "trainyard step: " << miss << '\n';
  return misses.empty() ? Exit::done : Exit::expectation_missed;
}

}  // namespace trainyard::cli
