#include <iostream>

#include "cli/command.hpp"
#include "cli/files.hpp"
#include "cli/options.hpp"
#include "cli/validate_report.hpp"

/// trainyard validate TABLE.csv: published rows in, predicted beside published out.
namespace trainyard::cli {

namespace {

std::string kinds_text() {
  std::string out;
  for (const scenarios::TableKind& kind : scenarios::table_kinds()) {
    out += (out.empty() ? "" : "; ") + kind.name + " (";
    for (std::size_t i = 0; i < kind.required.size(); ++i)
      out += (i ? ", " : "") + kind.required[i];
    for (std::size_t i = 0; i < kind.one_of.size(); ++i)
      out += (i ? " or " : " and ") + kind.one_of[i];
    out += ')';
  }
  return out;
}

const Usage& usage() {
  static const Usage table{
      .command = "validate",
      .arguments = "TABLE.csv [OPTIONS]",
      .what =
          "Predicts every complete row of a table of published figures and prints the error by "
          "group, signed, with what was not used and why. Columns are found by name, others are "
          "ignored. Kinds of table and the columns by which they are known: " +
          kinds_text() + ".",
      .examples = {{"trainyard validate collectives.csv", "errors by system, size, node count"},
                   {"trainyard validate collectives.csv --csv rows.csv",
                    "every prediction beside its published figure"}},
      .options = {{"json", "", "print the report as one JSON object"},
                  {"csv", "FILE", "write every prediction there"}},
      .least = 1,
      .most = 1};
  return table;
}

}  // namespace

Exit validate_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  std::ifstream file = open_to_read(args.positional[0]);
  std::vector<scenarios::Diagnostic> mistakes;
  const scenarios::PublishedTable table =
      scenarios::read_published_table(file, args.positional[0], mistakes);
  // A broken header is said once, not again as an unknown kind of table.
  const scenarios::TableKind* kind =
      table.columns.empty() ? nullptr : scenarios::kind_of(table, mistakes);
  scenarios::ValidationReport report;
  if (kind) report = scenarios::validate(table, *kind, mistakes);
  if (!mistakes.empty()) {
    std::cerr << scenarios::to_text(mistakes);
    return Exit::usage;
  }
  if (const auto out = args.value("csv")) write_file(*out, validation_csv(report));
  std::cout << (args.has("json") ? validation_json(report)
                                 : validation_text(report, stdout_terminal()));
  return Exit::done;
}

}  // namespace trainyard::cli
