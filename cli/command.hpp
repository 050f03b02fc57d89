#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// What every subcommand is: a name for the table in main.cpp and one function.
namespace trainyard::cli {

/// Exit statuses, the same for all commands.
enum class Exit : int {
  done = 0,
  failed = 1,
  usage = 2,
  expectation_missed = 3,
  interrupted = 130
};

using Arguments = std::vector<std::string>;

struct Command {
  const char* name;
  const char* summary;                 // one line of `trainyard --help`
  Exit (*run)(const Arguments& args);  // what stands after the command's name
};

/// A command line that cannot be understood: main prints it with the way to the command's help,
/// status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file that cannot be read or written, a number that cannot be had: status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// All of them, in the order of `trainyard --help`.
std::span<const Command> commands();

// One small file each.
Exit check_command(const Arguments&);
Exit run_command(const Arguments&);
Exit step_command(const Arguments&);
Exit flows_command(const Arguments&);
Exit topology_command(const Arguments&);
Exit facility_command(const Arguments&);
Exit collective_command(const Arguments&);
Exit validate_command(const Arguments&);
Exit calibrate_command(const Arguments&);
Exit compare_command(const Arguments&);
Exit completion_command(const Arguments&);
Exit man_command(const Arguments&);
Exit plan_command(const Arguments&);
Exit report_command(const Arguments&);
Exit sweep_command(const Arguments&);
Exit tune_command(const Arguments&);
Exit catalog_command(const Arguments&);
Exit explain_command(const Arguments&);
Exit export_command(const Arguments&);
Exit repair_command(const Arguments&);
Exit schema_command(const Arguments&);

}  // namespace trainyard::cli
