#include <cmath>
#include <iostream>
#include <thread>

#include "cli/options.hpp"
#include "cli/plan_input.hpp"
#include "cli/plan_report.hpp"
#include "models/compute/kernels.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/transformer.hpp"
#include "scenarios/plan_layouts.hpp"
#include "scenarios/plan_search.hpp"

/// trainyard plan MODEL|SCENARIO: how many GPUs, how long, and which layout.
namespace trainyard::cli {

namespace {

constexpr double day_s = 86400;
constexpr double usual_mfu = 0.4;  // where no plan says: Llama 3 405B trained at 0.38 to 0.43

const Usage& usage() {
  static const Usage table{
      .command = "plan",
      .arguments = "MODEL|SCENARIO.json [OPTIONS]",
      .what =
          "Sizes a training run (6 N D: GPUs for a deadline, days or tokens for a number of GPUs) "
          "and ranks parallel layouts by their predicted step on the fabric, those that do not fit "
          "in memory left out. Takes a model of the catalog, on servers of --server and a fabric "
          "without oversubscription, or a scenario, whose job gives everything but the layout.",
      .examples = {{"trainyard plan llama3-70b --gpus 1024 --batch 1024 --sequence 8192",
                    "which layout is fastest"},
                   {"trainyard plan llama3-405b --tokens 15.6e12 --days 60 --mfu 0.4",
                    "how many GPUs by a deadline"},
                   {"trainyard plan my-run.json --measured \"12.4 s\" --gpus 4096 --batch 2048",
                    "a larger job, compute scaled to the measured step of the scenario's own"}},
      .options = {{"server", "PART", "servers of the catalog; default: hgx-h100"},
                  {"software", "PART", "software stack of the catalog; default: megatron-core"},
                  {"precision", "NAME", "bf16, fp16, fp8, mxfp8 or nvfp4; default: bf16"},
                  {"gpus", "N", "GPUs of the job"},
                  {"batch", "N", "sequences of one step; default: 4 M tokens"},
                  {"sequence", "N", "tokens of one sequence; default: 8192"},
                  {"tokens", "D", "tokens to train on: sizes the run"},
                  {"days", "X",
                   "with --tokens: GPUs that take so long; with --gpus alone: tokens in that time"},
                  {"mfu", "X",
                   "share of the peak to size with; default: that of the fastest plan, else 0.4"},
                  {"measured", "TIME",
                   "measured step of the scenario's own layout, \"12.4 s\": scales compute"},
                  {"job", "NAME", "which job of a scenario; default: the first by name"},
                  {"set", "PATH=VALUE", "override a value of the scenario; repeatable", true},
                  {"fill", "X", "share of the memory that a plan may take; default: 1"},
                  {"top", "N", "plans to print; default: 20"},
                  {"all", "",
                   "play every layout that fits, also those that cannot be among the first"},
                  {"json", "", "print the figures as one JSON object"}},
      .least = 1,
      .most = 1};
  return table;
}

double share(const Parsed& args, const std::string& option, double otherwise) {
  const double x = positive(args, option, otherwise);
  if (x > 1)
    throw UsageError("--" + option + " is a share: at most 1, found " + *args.value(option));
  return x;
}

void size(PlanReport& report, const Parsed& args, const models::ServerSpec& server) {
  const double tokens = positive(args, "tokens", 0), deadline_s = day_s * positive(args, "days", 0);
  double mfu = share(args, "mfu", usual_mfu);
  report.mfu_is_given = args.has("mfu");
  if (!report.mfu_is_given && report.search && !report.search->plans.empty()) {
    mfu = report.search->plans.front().mfu;
    report.mfu_is_predicted = true;
  }
  const double n = report.active_parameters, peak = report.peak_flops;
  double gpus = report.gpus;
  if (tokens > 0 && deadline_s > 0)
    report.sizing = scenarios::gpus_for(n, tokens, peak, mfu, deadline_s);
  else if (tokens > 0)
    report.sizing = scenarios::time_for(n, tokens, peak, mfu, gpus);
  else if (deadline_s > 0)
    report.sizing = scenarios::tokens_for(n, peak, mfu, gpus, deadline_s);
  if (report.sizing) gpus = report.sizing->whole_gpus();
  report.gpus_per_server = server.gpus;
  report.servers = std::ceil(gpus / server.gpus);
  report.power_W =
      report.servers * (server.gpu.power_max.value() * server.gpus + server.power_overhead.value());
  report.price_usd =
      report.servers * (server.gpu.price.value() * server.gpus +
                        server.nic.price.value() * server.nics + server.price.value());
}

}  // namespace

Exit plan_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const auto top = std::size_t(whole(args, "top", 20));
  const PlanInput input = read_plan_input(args);
  if (!input.read.ok()) {
    std::cerr << scenarios::to_text(input.read.diagnostics);
    return Exit::usage;
  }
  if (!input.searches && !(args.has("tokens") && args.has("days")))
    throw UsageError("give --gpus to rank layouts, or --tokens and --days to size a run");
  const scenarios::Scenario& scenario = input.read.scenario;
  const models::JobSpec& job = scenario.jobs.at(input.job);
  const models::GpuSpec& gpu = scenario.cluster.server.gpu;

  PlanReport report;
  report.model = job.model.name;
  report.parameters = models::parameters(job.model, job.sequence);
  report.active_parameters = models::active_parameters(job.model, job.sequence);
  report.gpu = gpu.name;
  report.peak_flops = models::peak_flops(gpu, models::operands_of(job.parallel.precision));
  report.precision = std::string(name_of(job.parallel.precision));
  report.note = input.note;
  report.measured = input.measured;
  if (input.searches) {
    report.gpus = job.gpus;
    report.global_batch = job.global_batch;
    report.sequence = job.sequence;
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    report.search = scenarios::search_plans(
        scenario, input.job,
        {.top = top,
         .play_all = args.has("all"),
         .fill = share(args, "fill", 1),
         .compute_scale = input.measured ? input.measured->compute_scale : 1.0,
         .threads = int(std::min(cores, 16u))});
    if (report.search->candidates == 0)
      report.no_layout = scenarios::why_no_layout(job, scenario.cluster.server);
  }
  size(report, args, scenario.cluster.server);
  std::cout << (args.has("json") ? plan_json(report) : plan_text(report, stdout_terminal()));
  const bool found = !report.search || !report.search->plans.empty();
  return found ? Exit::done : Exit::failed;
}

}  // namespace trainyard::cli
