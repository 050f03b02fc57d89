#include <algorithm>
#include <deque>
#include <filesystem>
#include <iostream>

#include "cli/command.hpp"
#include "cli/files.hpp"
#include "cli/incidents_report.hpp"
#include "cli/options.hpp"
#include "cli/validate_report.hpp"
#include "cli/validation_page.hpp"
#include "scenarios/mechanism_names.hpp"

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

std::string mechanisms_text() {
  std::string out;
  for (const scenarios::MechanismName& mechanism : scenarios::mechanism_names)
    out += (out.empty() ? "" : ", ") + std::string(mechanism.name);
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
          kinds_text() +
          "; incidents (incident, scenario, step, published): replayed by their scenarios.",
      .examples = {{"trainyard validate collectives.csv", "errors by system, size, node count"},
                   {"trainyard validate training_throughput.csv --csv rows.csv",
                    "every predicted step beside its published one"},
                   {"trainyard validate scaling_efficiency.csv --with training_throughput.csv",
                    "efficiencies of runs that another table describes"},
                   {"trainyard validate validation --page docs/validation.md",
                    "one page on all tables of a directory, with constants and ablations"}},
      .options = {{"with", "FILE",
                   "a table of training runs to which rows refer; default: training_throughput.csv "
                   "beside the table; repeatable, the first that has a run counts",
                   true},
                  {"without", "MECHANISM",
                   "turn a mechanism of the step model off to see which rows suffer; repeatable: " +
                       mechanisms_text(),
                   true},
                  {"json", "", "print the report as one JSON object"},
                  {"csv", "FILE", "write every prediction there"},
                  {"page", "FILE",
                   "TABLE.csv is a directory of tables: write a Markdown page on all of them "
                   "there, with its notes.md and the studies of carry.json"}},
      .least = 1,
      .most = 1};
  return table;
}

models::Mechanisms mechanisms_without(const std::vector<std::string>& names) {
  models::Mechanisms out;
  for (const std::string& name : names) {
    const auto found = std::find_if(
        scenarios::mechanism_names.begin(), scenarios::mechanism_names.end(),
        [&](const scenarios::MechanismName& mechanism) { return mechanism.name == name; });
    if (found == scenarios::mechanism_names.end())
      throw UsageError("there is no mechanism '" + name + "'; there is: " + mechanisms_text());
    out.*(found->flag) = false;
  }
  return out;
}

/// Tables to which rows of `file` refer.
std::deque<scenarios::PublishedTable> tables_beside(const std::string& file, const Parsed& args,
                                                    std::vector<scenarios::Diagnostic>& mistakes) {
  std::vector<std::string> names = args.values("with");
  if (names.empty()) {
    const auto usual = std::filesystem::path(file).parent_path() / "training_throughput.csv";
    if (!std::filesystem::exists(usual))
      throw UsageError("rows of " + file +
                       " name runs of another table: give it by --with training_throughput.csv");
    names.push_back(usual.string());
  }
  std::deque<scenarios::PublishedTable> out;
  for (const std::string& name : names) {
    std::ifstream in = open_to_read(name);
    out.push_back(scenarios::read_published_table(in, name, mistakes));
  }
  return out;
}

/// Incidents are runs, not rows of a formula: they have a report of their own.
Exit replay(const scenarios::PublishedTable& table, const Parsed& args,
            std::vector<scenarios::Diagnostic>& mistakes) {
  for (const char* name : {"with", "without", "csv"})
    if (args.has(name))
      throw UsageError("a table of incidents goes without --" + std::string(name));
  const auto directory = std::filesystem::path(args.positional[0]).parent_path();
  const scenarios::IncidentReport report = scenarios::replay_incidents(table, directory, mistakes);
  if (!mistakes.empty()) {
    std::cerr << scenarios::to_text(mistakes);
    return Exit::usage;
  }
  std::cout << (args.has("json") ? incidents_json(report)
                                 : incidents_text(report, stdout_terminal()));
  return Exit::done;
}

Exit write_page(const Parsed& args, const std::string& page) {
  const std::string& directory = args.positional[0];
  for (const char* name : {"with", "without", "json", "csv"})
    if (args.has(name)) throw UsageError("--page goes without --" + std::string(name));
  if (!std::filesystem::is_directory(directory))
    throw UsageError("--page needs a directory of tables; '" + directory + "' is none");
  std::vector<scenarios::Diagnostic> mistakes;
  const std::string text = validation_page_of(directory, mistakes);
  if (!mistakes.empty()) {
    std::cerr << scenarios::to_text(mistakes);
    return Exit::usage;
  }
  write_file(page, text);
  return Exit::done;
}

}  // namespace

Exit validate_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  if (const auto page = args.value("page")) return write_page(args, *page);
  std::ifstream file = open_to_read(args.positional[0]);
  std::vector<scenarios::Diagnostic> mistakes;
  const scenarios::PublishedTable table =
      scenarios::read_published_table(file, args.positional[0], mistakes);
  if (mistakes.empty() && scenarios::is_incident_table(table)) return replay(table, args, mistakes);
  // A broken header is said once, not again as an unknown kind of table.
  const scenarios::TableKind* kind =
      table.columns.empty() ? nullptr : scenarios::kind_of(table, mistakes);
  scenarios::ValidationReport report;
  scenarios::ValidationSetup setup{.mechanisms = mechanisms_without(args.values("without")),
                                   .other = {}};
  std::deque<scenarios::PublishedTable> others;
  if (kind && !kind->refers_to.empty()) others = tables_beside(args.positional[0], args, mistakes);
  for (const scenarios::PublishedTable& other : others) setup.other.push_back(&other);
  if (kind) report = scenarios::validate(table, *kind, mistakes, setup);
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
