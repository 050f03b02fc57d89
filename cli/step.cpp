#include <cstdio>
#include <iostream>
#include <map>

#include "cli/expect.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/step_report.hpp"
#include "cli/step_trace.hpp"
#include "models/compute/kernels.hpp"
#include "models/training/memory.hpp"
#include "models/training/step_model.hpp"
#include "scenarios/run_tables.hpp"
#include "scenarios/uncertainty.hpp"
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
                  {"slow", "GPU=SPEED",
                   "a GPU, counted within the job from 0, at this share of its speed: \"17=0.8\"; "
                   "repeatable",
                   true},
                  {"expect", "PATH>=X",
                   "exit status 3 if a figure of --json misses the bound; repeatable", true},
                  {"trace", "FILE",
                   "write the step as a trace for ui.perfetto.dev; compressed if the name ends in "
                   ".gz"},
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

/// In the order of the GPUs, each once.
std::vector<models::SlowGpu> slow_gpus(const Parsed& args, int gpus) {
  std::map<int, double> speeds;
  for (const std::string& text : args.values("slow")) {
    int gpu = 0;
    double speed = 0;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%d=%lf%c", &gpu, &speed, &rest) != 2)
      throw UsageError("--slow must be GPU=SPEED such as 17=0.8, found '" + text + "'");
    if (gpu < 0 || gpu >= gpus)
      throw UsageError("--slow " + text + ": the job has GPUs 0 to " + std::to_string(gpus - 1));
    if (!(speed > 0 && speed <= 1))
      throw UsageError("--slow " + text + ": a speed is above 0 and at most 1");
    if (!speeds.emplace(gpu, speed).second)
      throw UsageError("--slow names GPU " + std::to_string(gpu) + " twice");
  }
  std::vector<models::SlowGpu> slow;
  for (const auto& [gpu, speed] : speeds) slow.push_back({gpu, speed});
  return slow;
}

StepReport report_of(const scenarios::Scenario& scenario, const std::string& name,
                     const std::string& scenario_name, const Parsed& args) {
  const models::JobSpec& job = scenario.jobs.at(name);
  const models::ServerSpec& server = scenario.cluster.server;
  const scenarios::Site site(scenario);
  models::StepModel model(job, server, site.router);

  StepReport out;
  out.scenario = scenario_name;
  out.job = name;
  out.model = job.model.name;
  out.gpus = job.gpus;
  models::Placement placement = scenarios::first_placement(scenario, job);
  placement.slow = slow_gpus(args, job.gpus);
  out.profile = model.profile(placement);
  if (!out.profile.cut_off.empty()) throw Failure("jobs." + out.job + ": " + out.profile.cut_off);
  for (const models::SlowGpu& slow : placement.slow) {
    const models::RankPlace place = model.plan().place_of(int(slow.gpu));
    out.slow.push_back({slow.gpu, slow.speed, place.pipeline, place.data});
  }
  if (!placement.slow.empty()) {
    out.replicas_played = model.distinct_replicas(placement);
    out.step_without_slow = model.profile({placement.servers, {}}).step;
  }
  if (const auto file = args.value("trace"))
    analysis::write_maybe_gzip(*file,
                               step_trace(name, model.timeline(placement), out.profile).json);
  const double peak = models::peak_flops(server.gpu, models::operands_of(job.parallel.precision));
  const double peak_flops = peak * double(job.gpus) * to_seconds(out.profile.step);
  out.mfu = out.profile.model_flops / peak_flops;
  out.hfu = out.profile.hardware_flops / peak_flops;

  const scenarios::Uncertainty uncertainty = scenarios::uncertainty_of(
      scenarios::Catalog::standard(), server.gpu, job.software, job.parallel.precision);
  out.uncertainty = std::string(scenarios::text_of(uncertainty));
  out.expected_error = std::string(scenarios::expected_step_error(uncertainty));

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
                                      name_of_scenario(read->scenario, file), args);
  const std::string json = step_json(report);
  std::cout << (args.has("json") ? json : step_text(report, stdout_terminal()));
  const std::vector<std::string> misses = missed(bounds, json);
  for (const std::string& miss : misses) std::cerr << "trainyard step: " << miss << '\n';
  return misses.empty() ? Exit::done : Exit::expectation_missed;
}

}  // namespace trainyard::cli
