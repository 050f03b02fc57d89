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

void print_help(std::ostream& out) {
  out << "Examples:\n"
         "  trainyard run scenarios/library/quickstart.json    # simulate, and say where the time "
         "went\n"
         "  trainyard run --help                               # what a command can do\n\n"
         "Usage: trainyard COMMAND [ARGUMENTS]\n\nCommands:\n";
  for (const Command& command : commands())
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
  const auto command = std::find_if(commands().begin(), commands().end(),
                                    [&](const Command& c) { return first == c.name; });
  if (command == commands().end()) {
    std::vector<std::string> names;
    for (const Command& c : commands()) names.emplace_back(c.name);
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
