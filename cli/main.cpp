#include <algorithm>
#include <cstring>
#include <exception>
#include <iostream>

#include "cli/command.hpp"
#include "cli/version.hpp"
#include "scenarios/diagnostic.hpp"
#include "sim/check.hpp"

namespace trainyard::cli {

namespace {

constexpr Command table[] = {
    {"check", "read and validate a scenario; --resolved prints it with every default",
     check_command},
    {"run", "simulate a scenario and write a run file", run_command},
    {"step", "one training step: its time, split, memory, link loads and bounds", step_command},
    {"flows", "raw flows over given routes: start and finish of each", flows_command},
    {"topology", "the fabric of a scenario: counts, bisection, diameter, cost", topology_command},
    {"facility",
     "the plant of a scenario at rest: power, ratings, single losses, swing of training",
     facility_command},
    {"collective", "a sweep of collectives as nccl-tests does it: time, bandwidths, busiest link",
     collective_command},
    {"plan", "GPUs for a deadline, and parallel layouts in the order of their predicted step",
     plan_command},
    {"sweep", "a study: designs with several settings on equal luck, differences with intervals",
     sweep_command},
    {"compare", "two runs or studies: settings that differ, metrics with intervals, ledgers",
     compare_command},
    {"tune", "how often to save and how many spares to keep, by simulation on equal luck",
     tune_command},
    {"validate", "published figures beside predicted ones, errors by group", validate_command},
    {"calibrate", "fits the calibrated constants of the catalog to published figures",
     calibrate_command},
    {"catalog", "the parts that scenarios can name, with their sources", catalog_command},
    {"explain", "why a run's jobs lost time: causes, costs, and what would help", explain_command},
    {"report", "one HTML file of a run or a study: the answer, figures, sources", report_command},
    {"export", "tables of a run file as CSV", export_command},
    {"repair", "make the run file of a killed run readable", repair_command},
    {"schema", "the JSON schema of scenario files, for editors", schema_command},
};

void print_help(std::ostream& out) {
  out << "Examples:\n"
         "  trainyard run scenarios/library/quickstart.json    # simulate, and say where the time "
         "went\n"
         "  trainyard run --help                               # what a command can do\n\n"
         "Usage: trainyard COMMAND [ARGUMENTS]\n\nCommands:\n";
  for (const Command& command : table)
    out << "  " << command.name << std::string(11 - std::strlen(command.name), ' ')
        << command.summary << '\n';
  out << "\nOptions:\n"
         "  --help     this text; after a command: its own\n"
         "  --version  version, commit and libraries\n\n"
         "Results go to stdout, messages and progress to stderr. Exit status: 0 done, 1 failed,\n"
         "2 usage or bad scenario, 3 an --expect bound was missed, 130 interrupted.\n";
}

Exit run_program(const Arguments& all) {
  // The command is split off by hand: a first pass of the option parser would take its --help away.
  const std::string first = all.empty() ? "--help" : all.front();
  if (first == "--help" || first == "-h" || first == "help") {
    print_help(all.empty() ? std::cerr : std::cout);
    return all.empty() ? Exit::usage : Exit::done;
  }
  if (first == "--version") {
    std::cout << version_text();
    return Exit::done;
  }
  const auto command = std::find_if(std::begin(table), std::end(table),
                                    [&](const Command& c) { return first == c.name; });
  if (command == std::end(table)) {
    std::vector<std::string> names;
    for (const Command& c : table) names.emplace_back(c.name);
    const std::string near = scenarios::nearest(first, names);
    std::cerr << "trainyard: there is no command '" << first << "'"
              << (!near.empty() ? "; did you mean '" + near + "'?" : "; see trainyard --help")
              << '\n';
    return Exit::usage;
  }
  try {
    return command->run(Arguments(all.begin() + 1, all.end()));
  } catch (const UsageError& error) {
    std::cerr << "trainyard " << first << ": " << error.what() << "\nSee: trainyard " << first
              << " --help\n";
    return Exit::usage;
  } catch (const Failure& error) {
    std::cerr << "trainyard " << first << ": " << error.what() << '\n';
    return Exit::failed;
  } catch (const CheckFailed& error) {
    std::cerr << "trainyard " << first << ": this is a mistake in trainyard, not in your input:\n"
              << error.what() << '\n';
    return Exit::failed;
  } catch (const std::exception& error) {
    std::cerr << "trainyard " << first << ": " << error.what() << '\n';
    return Exit::failed;
  }
}

}  // namespace

}  // namespace trainyard::cli

int main(int argc, char** argv) {
  using namespace trainyard::cli;
  Exit status = run_program(Arguments(argv + 1, argv + argc));
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "trainyard: stdout could not be written\n";
    if (status == Exit::done) status = Exit::failed;
  }
  return int(status);
}
