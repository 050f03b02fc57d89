#include <iostream>

#include "cli/facility_report.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"

/// trainyard facility SCENARIO: the plant at rest.
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "facility",
      .arguments = "SCENARIO [OPTIONS]",
      .what =
          "The power and cooling of a scenario without a run: what the site draws with all GPUs "
          "idle and at their limit, the load of every part over its rating, what the loss of any "
          "one part does, what redundant feeds share, and how the power of training swings.",
      .examples = {{"trainyard facility big.json", "a design review of the plant"},
                   {"trainyard facility big.json --json", "every node, for scripts"}},
      .options = {{"set", "PATH=VALUE",
                   "override a value of the scenario; repeatable, the last one wins", true},
                  {"json", "", "print the figures as one JSON object"}},
      .least = 1,
      .most = 1};
  return table;
}

}  // namespace

Exit facility_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const std::string& file = args.positional[0];
  const auto read = load_or_complain(file, args.values("set"));
  if (!read) return Exit::usage;
  if (!read->scenario.facility) {
    std::cerr << file << ": error: facility: the scenario says nothing about its plant; give it "
              << "\"facility\": { \"power\": …, \"cooling\": … }\n";
    return Exit::usage;
  }
  scenarios::FacilityReport report = scenarios::facility_report(read->scenario);
  report.scenario = name_of_scenario(read->scenario, file);
  std::cout << (args.has("json") ? facility_json(report)
                                 : facility_text(report, stdout_terminal()));
  return Exit::done;
}

}  // namespace trainyard::cli
