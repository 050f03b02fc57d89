#include "analysis/repair.hpp"

#include <iostream>

#include "cli/options.hpp"
#include "cli/terminal.hpp"

/// trainyard repair RUN.h5
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "repair",
      .arguments = "RUN.h5",
      .what =
          "Makes an ordinary file of what a killed run left, with everything it had flushed, and "
          "marks it as failed. Not for "
          "a run that is still going on. A file that needs no repair is left as it is.",
      .examples = {{"trainyard repair run.h5", "after kill -9 or a full disk"},
                   {"trainyard repair run.h5 && trainyard export run.h5 --csv out",
                    "and look at what there is"}},
      .options = {},
      .least = 1,
      .most = 1};
  return table;
}

}  // namespace

Exit repair_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const analysis::RepairReport report = analysis::repair(args.positional[0]);
  std::cout << report.text << '\n';
  return Exit::done;
}

}  // namespace trainyard::cli
