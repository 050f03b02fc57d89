#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "analysis/run_file.hpp"
#include "analysis/study_file.hpp"
#include "cli/files.hpp"
#include "cli/interrupt.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/slurm.hpp"
#include "cli/study_report.hpp"
#include "cli/version.hpp"
#include "scenarios/study_run.hpp"

/// trainyard sweep STUDY: many runs, and what they say together.
namespace trainyard::cli {
namespace {

const Usage& usage() {
  static const Usage table{
      .command = "sweep",
      .arguments = "STUDY [OPTIONS]",
      .what =
          "Runs a study: a scenario with some of its settings varied, several replications of each "
          "point on equal luck. Says which point is best, which cannot be told from it, and what "
          "each setting does. What is done stays done: an interrupted sweep goes on with --resume.",
      .examples =
          {{"trainyard sweep scenarios/studies/oversubscription.json --list", "what would run"},
           {"trainyard sweep scenarios/studies/oversubscription.json -o out", "on all cores"},
           {"trainyard sweep big.json -o out --shard 2/4", "the second quarter, as one of four"},
           {"trainyard sweep big.json -o out --merge", "the table, when all quarters are done"}},
      .options = {{"output,o", "DIR", "folder of the results; default: the study's name"},
                  {"list", "", "print the points and how many runs there would be; run nothing"},
                  {"resume", "", "go on in a folder that has results of this study"},
                  {"shard", "I/N",
                   "only the I-th of N parts, 1 to N; auto: what Slurm, Open MPI or MPICH say of "
                   "this process"},
                  {"merge", "", "run nothing, put the results that are there into one table"},
                  {"replications", "N", "runs of each point, instead of what the study says"},
                  {"seed", "N", "seed of replication 0, instead of the study's"},
                  {"set", "PATH=VALUE", "override a value of the scenario; repeatable", true},
                  {"run-files", "KIND",
                   "which run files to keep: none, first (of each point) or all; default: as the "
                   "study says, or none"},
                  {"threads", "N", "threads; results do not depend on it; default: all cores"},
                  {"slurm", "N", "print a script for sbatch that runs it as an array of N tasks"},
                  {"json", "", "print what was found as one JSON object"},
                  {"progress", "KIND",
                   "auto (a bar if stderr is a terminal), bar, json (one object a line) or off"}},
      .least = 1,
      .most = 1};
  return table;
}

std::optional<std::size_t> whole(const std::string& text) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::size_t whole(const Parsed& args, const std::string& option, std::size_t least,
                  std::size_t otherwise) {
  const auto text = args.value(option);
  if (!text) return otherwise;
  const auto value = whole(*text);
  if (!value || *value < least || *value > 1000000)
    throw UsageError("--" + option + " needs a whole number from " + std::to_string(least) +
                     " to 1,000,000, found '" + *text + "'");
  return *value;
}

struct Shard {
  std::size_t number = 0, of = 1;
};

/// What a launcher tells its processes: the number of this one and of all.
Shard shard_of_environment() {
  struct Launcher {
    const char *number, *of, *first;
  };
  constexpr Launcher launchers[] = {
      {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
      {"PMI_RANK", "PMI_SIZE", nullptr},
      {"SLURM_PROCID", "SLURM_NTASKS", nullptr}};
  const auto value = [](const char* name) {
    const char* text = name == nullptr ? nullptr : std::getenv(name);
    return whole(text == nullptr ? "" : text);
  };
  for (const Launcher& launcher : launchers) {
    const auto number = value(launcher.number), of = value(launcher.of);
    if (!number || !of) continue;
    const std::size_t first = launcher.first == nullptr ? 0 : value(launcher.first).value_or(0);
    if (*of == 0 || *number < first || *number - first >= *of)
      throw UsageError(std::string("--shard auto: ") + launcher.number + " is " +
                       std::to_string(*number) + " of " + std::to_string(*of));
    return {*number - first, *of};
  }
  throw UsageError(
      "--shard auto: this process was not started by srun, a Slurm array or mpirun (no "
      "SLURM_ARRAY_TASK_ID, OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID)");
}

Shard shard_of(const Parsed& args) {
  const auto text = args.value("shard");
  if (!text) return {};
  if (*text == "auto") return shard_of_environment();
  const std::size_t slash = text->find('/');
  const auto number = whole(text->substr(0, slash));
  const auto of = slash == std::string::npos ? std::nullopt : whole(text->substr(slash + 1));
  if (!number || !of || *number < 1 || *number > *of)
    throw UsageError("--shard needs I/N, such as 2/4 for the second of four, found '" + *text +
                     "'");
  return {*number - 1, *of};
}

void set_run_files(const Parsed& args, scenarios::StudyDesign& design) {
  using RunFiles = scenarios::StudyDesign::RunFiles;
  const auto text = args.value("run-files");
  if (!text) return;
  if (*text == "none")
    design.run_files = RunFiles::none;
  else if (*text == "first")
    design.run_files = RunFiles::first;
  else if (*text == "all")
    design.run_files = RunFiles::all;
  else
    throw UsageError("--run-files: expected none, first or all, found '" + *text + "'");
}

void require_no_contradiction(const Parsed& args) {
  constexpr std::pair<const char*, const char*> both[] = {
      {"list", "merge"},  {"list", "resume"}, {"list", "shard"}, {"merge", "shard"},
      {"slurm", "shard"}, {"slurm", "merge"}, {"slurm", "list"}};
  for (const auto& [a, b] : both)
    if (args.has(a) && args.has(b))
      throw UsageError("--" + std::string(a) + " and --" + b + " contradict each other");
}

}  // namespace

Exit finish_sweep(const scenarios::StudyFolder& folder, SweepFacts facts, bool as_json) {
  const analysis::Study study = folder.merged();
  facts.missing =
      std::size_t(std::count_if(study.runs.begin(), study.runs.end(),
                                [](const auto& run) { return run.state == "missing"; }));
  facts.table = folder.table();
  facts.csv = folder.csv();
  folder.write_manifest(study);
  analysis::write_study(study, folder.table(), version(), commit());
  write_file(folder.csv(), analysis::study_csv(study));
  std::cout << (as_json ? sweep_json(study, facts) : sweep_text(study, facts, stdout_terminal()));
  if (facts.missing > 0) {
    std::cerr << "trainyard sweep: " << facts.missing << " runs are missing; --resume runs them\n";
    return Exit::failed;
  }
  const bool has_failed = std::any_of(study.runs.begin(), study.runs.end(),
                                      [](const auto& run) { return run.state == "failed"; });
  if (has_failed) std::cerr << "trainyard sweep: some runs failed\n";
  return has_failed ? Exit::failed : Exit::done;
}

Exit sweep_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  require_no_contradiction(args);
  const std::string& file = args.positional[0];
  const ProgressKind kind = parse_progress(args.value("progress").value_or("auto"));
  const Shard shard = shard_of(args);
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int threads = int(std::min<std::size_t>(whole(args, "threads", 1, cores), 256));

  scenarios::StudyChanges changes{.set = args.values("set")};
  if (const auto seed = args.value("seed")) changes.seed = parse_seed(*seed);
  if (args.has("replications")) changes.replications = whole(args, "replications", 1, 1);
  scenarios::StudyReadResult read = scenarios::read_study_file(file, changes);
  if (!read.ok()) {
    std::cerr << to_text(read.diagnostics);
    return Exit::usage;
  }
  scenarios::StudyDesign& design = read.design;
  set_run_files(args, design);
  if (args.has("list")) {
    std::cout << study_plan_text(design, stdout_terminal());
    return Exit::done;
  }
  const std::string path =
      args.value("output").value_or(std::filesystem::path(file).stem().string());
  if (args.has("slurm")) {
    std::cout << slurm_script(arguments, design, path, whole(args, "slurm", 1, 1));
    return Exit::done;
  }
  try {
    const scenarios::StudyFolder folder(
        design, path, args.has("resume") || args.has("merge") || args.has("shard"));
    SweepFacts facts;
    facts.folder = path;
    if (args.has("merge")) return finish_sweep(folder, facts, args.has("json"));

    const scenarios::StudyBlocks blocks(design);
    const auto work = scenarios::work_of_shard(blocks, shard.number, shard.of);
    scenarios::StudyRunOptions options;
    options.threads = threads;
    options.work = work.get();
    options.cancel = &watch_interrupts();
    options.command_line = "trainyard sweep " + file;
    options.version = version();
    options.commit = commit();
    const auto start = std::chrono::steady_clock::now();
    {
      Progress progress(kind, std::cerr, stderr_terminal());
      const std::size_t planned = design.most_runs() / shard.of;
      if (!progress.is_off())
        options.progress = [&](std::size_t runs, std::uint64_t events) {
          progress.report_runs(runs, std::max(planned, runs), events);
        };
      facts.outcome = scenarios::run_study(design, folder, options);
    }
    facts.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (facts.outcome.is_cancelled) {
      folder.write_manifest(folder.merged());
      std::cerr << "trainyard sweep: interrupted; " << facts.outcome.done + facts.outcome.found
                << " runs are done, --resume goes on\n";
      return Exit::interrupted;
    }
    if (shard.of == 1) return finish_sweep(folder, facts, args.has("json"));
    std::cerr << "trainyard sweep: part " << shard.number + 1 << " of " << shard.of << ": "
              << facts.outcome.done << " runs done, " << facts.outcome.found
              << " were there; --merge makes the table when all parts are done\n";
    for (const std::string& failure : facts.outcome.failures)
      std::cerr << "trainyard sweep: " << failure << '\n';
    return facts.outcome.failed > 0 ? Exit::failed : Exit::done;
  } catch (const scenarios::StudyRefused& refused) {
    throw UsageError(refused.what());
  }
}

}  // namespace trainyard::cli
