#include <iostream>

#include "analysis/export_csv.hpp"
#include "cli/options.hpp"

/// trainyard export RUN.h5 --csv FOLDER
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "export",
      .arguments = "RUN.h5 --csv FOLDER",
      .what =
          "Writes events, series, tables and summary of a run file as CSV files with the unit of "
          "each column in its header. "
          "The paths written are printed.",
      .examples = {{"trainyard export run.h5 --csv run-csv", "everything, into a folder"},
                   {"trainyard export run.h5 --csv . | grep ledger", "where the ledgers are"}},
      .options = {{"csv", "FOLDER", "write CSV files there"}},
      .least = 1,
      .most = 1};
  return table;
}

}  // namespace

Exit export_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const auto folder = args.value("csv");
  if (!folder) throw UsageError("say what to write: --csv FOLDER");
  const analysis::RunReader run(args.positional[0]);
  if (const auto notice = run.notice()) std::cerr << "trainyard export: " << *notice << '\n';
  for (const std::string& path : analysis::export_csv(run, *folder)) std::cout << path << '\n';
  return Exit::done;
}

}  // namespace trainyard::cli
