#include "cli/command.hpp"

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
    {"export", "a run file as CSV, as a trace for Perfetto, as OpenMetrics", export_command},
    {"repair", "make the run file of a killed run readable", repair_command},
    {"completion", "completion of commands and options for bash, zsh and fish", completion_command},
    {"man", "the manual page", man_command},
    {"schema", "the JSON schema of scenario files, for editors", schema_command},
};

}  // namespace

std::span<const Command> commands() {
  return table;
}

}  // namespace trainyard::cli
