#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

#include "cli/options.hpp"
#include "cli/study_report.hpp"
#include "cli/version.hpp"
#include "scenarios/study_run.hpp"

/// trainyard-mpi STUDY -o DIR: a sweep whose blocks are dealt out as ranks ask for them.
///
/// Rank 0 deals and works too: its main thread alone calls MPI and answers requests, another one
/// runs blocks. The other ranks ask, run, ask again. Results go to one folder, as with shards; the
/// table does not depend on who ran what.
namespace trainyard::cli {
namespace {

constexpr int ask_tag = 1, answer_tag = 2;
constexpr std::int64_t nothing = -1;

const Usage& usage() {
  static const Usage table{
      .command = "sweep",
      .arguments = "STUDY -o DIR [OPTIONS]",
      .what =
          "trainyard-mpi runs a study on many nodes: every rank takes the next block of runs when "
          "it is done with one. The folder must be on a file system that all ranks share. The same "
          "table as trainyard sweep.",
      .examples = {{"mpirun -np 64 trainyard-mpi big.json -o out", "on 64 ranks"}},
      .options = {{"output,o", "DIR", "folder of the results"},
                  {"resume", "", "go on in a folder that has results of this study"},
                  {"replications", "N", "runs of each point, instead of what the study says"},
                  {"set", "PATH=VALUE", "override a value of the scenario; repeatable", true},
                  {"json", "", "print what was found as one JSON object"}},
      .least = 1,
      .most = 1};
  return table;
}

/// Of a rank that asks rank 0.
class AskedWork final : public scenarios::StudyWork {
 public:
  std::optional<std::size_t> next(std::optional<std::size_t> stage) override {
    std::int64_t ask = stage ? std::int64_t(*stage) : nothing, answer = nothing;
    MPI_Send(&ask, 1, MPI_INT64_T, 0, ask_tag, MPI_COMM_WORLD);
    MPI_Recv(&answer, 1, MPI_INT64_T, 0, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (answer == nothing) return std::nullopt;
    return std::size_t(answer);
  }
};

/// Answers until every other rank was told that nothing is left.
void deal(scenarios::StudyWork& work, int ranks) {
  for (int busy = ranks - 1; busy > 0;) {
    int is_there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, ask_tag, MPI_COMM_WORLD, &is_there, &status);
    if (is_there == 0) {  // a blocking receive would take a core from the runs
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    std::int64_t ask = nothing;
    MPI_Recv(&ask, 1, MPI_INT64_T, status.MPI_SOURCE, ask_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const auto block = work.next(ask == nothing ? std::nullopt : std::optional(std::size_t(ask)));
    std::int64_t answer = block ? std::int64_t(*block) : nothing;
    MPI_Send(&answer, 1, MPI_INT64_T, status.MPI_SOURCE, answer_tag, MPI_COMM_WORLD);
    if (!block) --busy;
  }
}

std::optional<std::size_t> replications(const Parsed& args) {
  const auto text = args.value("replications");
  if (!text) return std::nullopt;
  const std::uint64_t n = parse_seed(*text);
  if (n < 1 || n > 1000000) throw UsageError("--replications needs 1 to 1,000,000");
  return std::size_t(n);
}

Exit sweep(const Parsed& args, int rank, int ranks) {
  scenarios::StudyChanges changes{.set = args.values("set")};
  changes.replications = replications(args);
  const scenarios::StudyReadResult read = scenarios::read_study_file(args.positional[0], changes);
  if (!read.ok()) {
    if (rank == 0) std::cerr << to_text(read.diagnostics);
    return Exit::usage;
  }
  const auto path = args.value("output");
  if (!path) throw UsageError("say where results go: -o DIR");
  // Rank 0 makes the folder; the others find it.
  std::optional<scenarios::StudyFolder> folder;
  int is_good = 1;
  std::string why;
  if (rank == 0) try {
      folder.emplace(read.design, *path, args.has("resume"));
    } catch (const std::exception& error) {
      is_good = 0;
      why = error.what();
    }
  MPI_Bcast(&is_good, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (is_good == 0) {
    if (rank == 0) std::cerr << "trainyard-mpi: " << why << '\n';
    return Exit::usage;
  }
  if (rank != 0) folder.emplace(read.design, *path, true);

  scenarios::StudyRunOptions options;
  options.command_line = "trainyard sweep " + args.positional[0];
  options.version = version();
  options.commit = commit();
  SweepFacts facts;
  const auto start = std::chrono::steady_clock::now();
  if (rank == 0) {
    const scenarios::StudyBlocks blocks(read.design);
    const auto all = scenarios::work_of_shard(blocks, 0, 1);
    options.work = all.get();
    std::jthread runs([&] { facts.outcome = run_study(read.design, *folder, options); });
    deal(*all, ranks);
    runs.join();
  } else {
    AskedWork asked;
    options.work = &asked;
    facts.outcome = run_study(read.design, *folder, options);
  }
  std::array<std::uint64_t, 6> mine{facts.outcome.done,
                                    facts.outcome.found,
                                    facts.outcome.failed,
                                    facts.outcome.events,
                                    facts.outcome.profiles_computed,
                                    facts.outcome.profiles_reused},
      sum{};
  MPI_Reduce(mine.data(), sum.data(), int(mine.size()), MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank != 0) return Exit::done;
  facts.outcome.done = sum[0];
  facts.outcome.found = sum[1];
  facts.outcome.failed = sum[2];
  facts.outcome.events = sum[3];
  facts.outcome.profiles_computed = sum[4];
  facts.outcome.profiles_reused = sum[5];
  facts.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  facts.folder = *path;
  return finish_sweep(*folder, facts, args.has("json"));
}

int run_program(const Arguments& arguments, int rank, int ranks) {
  try {
    const Parsed args = parse(usage(), arguments);
    if (args.help) {
      if (rank == 0) printed_help(usage(), args);
      return int(Exit::done);
    }
    return int(sweep(args, rank, ranks));
  } catch (const UsageError& error) {
    if (rank == 0) std::cerr << "trainyard-mpi: " << error.what() << '\n';
    return int(Exit::usage);
  } catch (const std::exception& error) {
    std::cerr << "trainyard-mpi: rank " << rank << ": " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, int(Exit::failed));  // the others would wait for ever
    return int(Exit::failed);
  }
}

}  // namespace
}  // namespace trainyard::cli

int main(int argc, char** argv) {
  int given = 0, rank = 0, ranks = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int status =
      trainyard::cli::run_program(trainyard::cli::Arguments(argv + 1, argv + argc), rank, ranks);
  MPI_Finalize();
  return status;
}
