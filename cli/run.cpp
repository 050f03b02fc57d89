#include "scenarios/run.hpp"

#include <filesystem>
#include <iostream>

#include "cli/expect.hpp"
#include "cli/interrupt.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/summary.hpp"
#include "cli/version.hpp"
#include "scenarios/run_json.hpp"

/// trainyard run SCENARIO: one run, from a scenario file to a run file and a summary.
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "run",
      .arguments = "SCENARIO [OPTIONS]",
      .what = "Simulates a scenario, writes a run file (HDF5) and says where the time went.",
      .examples = {{"trainyard run scenarios/library/quickstart.json", "256 GPUs for a week"},
                   {"trainyard run big.json --seed 7 --set cluster.spares=8 --json",
                    "another seed, more spares"}},
      .options = {{"output,o", "FILE",
                   "the run file; default: the scenario's name with .h5, in this folder"},
                  {"no-file", "", "write no run file"},
                  {"seed", "N", "seed of all random streams, instead of the scenario's"},
                  {"set", "PATH=VALUE",
                   "override a value of the scenario; repeatable, the last one wins", true},
                  {"every-step", "",
                   "play every training step instead of fast-forwarding between events"},
                  {"shuffle-ties", "",
                   "order simultaneous events by a seeded shuffle: results must not change"},
                  {"expect", "PATH>=X",
                   "exit status 3 if a figure of --json misses the bound, such as "
                   "jobs.llm.goodput>=0.9; repeatable",
                   true},
                  {"json", "", "print the results as one JSON object instead of the summary"},
                  {"progress", "KIND",
                   "auto (a bar if stderr is a terminal), bar, json (one object a line) or off"}},
      .least = 1,
      .most = 1};
  return table;
}

std::vector<std::string> overrides_of(const Parsed& args) {
  std::vector<std::string> out = args.values("set");
  if (const auto seed = args.value("seed"))
    out.push_back("seed=" + std::to_string(parse_seed(*seed)));
  if (args.has("every-step")) out.emplace_back("fidelity=every-step");
  return out;
}

std::string command_line(const Arguments& arguments) {
  std::string out = "trainyard run";
  for (const std::string& argument : arguments) out += ' ' + argument;
  return out;
}

Exit status_of(const scenarios::RunResult& result, const std::vector<std::string>& misses) {
  switch (result.state) {
    case scenarios::RunState::failed:
      return Exit::failed;
    case scenarios::RunState::cancelled:
      return Exit::interrupted;
    case scenarios::RunState::complete:
      break;
  }
  return misses.empty() ? Exit::done : Exit::expectation_missed;
}

}  // namespace

Exit run_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  if (args.has("output") && args.has("no-file"))
    throw UsageError("--output and --no-file contradict each other");
  const std::string& file = args.positional[0];
  const std::vector<Bound> bounds = parse_bounds(args.values("expect"));
  const ProgressKind progress_kind = parse_progress(args.value("progress").value_or("auto"));

  const auto read = load_or_complain(file, overrides_of(args));
  if (!read) return Exit::usage;
  require_paths(bounds, scenarios::shape_of_run_json(read->scenario));

  scenarios::RunOptions options;
  if (!args.has("no-file"))
    options.run_file =
        args.value("output").value_or(std::filesystem::path(file).stem().string() + ".h5");
  if (args.has("shuffle-ties")) options.ties = sim::TieOrder::shuffled;
  options.cancel = &watch_interrupts();
  options.command_line = command_line(arguments);
  options.version = version();
  options.commit = commit();
  options.resolved = read->resolved;
  options.unread_no_effect = scenarios::settings_without_effect(*read);

  scenarios::RunResult result;
  {
    Progress progress(progress_kind, std::cerr, stderr_terminal());
    if (!progress.is_off())
      options.progress = [&](double done, Time now, std::uint64_t events) {
        progress.report(done, now, events);
      };
    result = scenarios::run(read->scenario, options);
  }
  result.scenario = name_of_scenario(read->scenario, file);
  result.scenario_file = file;

  const std::string json = scenarios::run_json(result);
  std::cout << (args.has("json") ? json : summary(result, stdout_terminal()));
  if (result.state == scenarios::RunState::failed)
    std::cerr << "trainyard run: the run failed: " << result.failure << '\n';
  if (result.state == scenarios::RunState::cancelled) std::cerr << "trainyard run: interrupted\n";
  std::vector<std::string> misses;
  if (result.state == scenarios::RunState::complete) misses = missed(bounds, json);
  for (const std::string& miss : misses) std::cerr << "trainyard run: " << miss << '\n';
  return status_of(result, misses);
}

}  // namespace trainyard::cli
