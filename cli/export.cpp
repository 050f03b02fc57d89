#include <cmath>
#include <iostream>

#include "analysis/export_csv.hpp"
#include "analysis/export_openmetrics.hpp"
#include "analysis/export_trace.hpp"
#include "analysis/text_file.hpp"
#include "cli/options.hpp"
#include "scenarios/units_text.hpp"

/// trainyard export RUN.h5 --csv FOLDER | --trace FILE | --openmetrics FILE
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "export",
      .arguments = "RUN.h5 --csv FOLDER | --trace FILE | --openmetrics FILE",
      .what =
          "Writes a run file in other forms: all tables as CSV with the unit of each column in its "
          "header; a trace that ui.perfetto.dev and chrome://tracing open; series as OpenMetrics. "
          "The paths written are printed.",
      .examples = {{"trainyard export run.h5 --csv run-csv", "everything, into a folder"},
                   {"trainyard export run.h5 --csv . | grep ledger", "where the ledgers are"},
                   {"trainyard export run.h5 --trace run.json.gz --from \"3 d\" --to \"4 d\"",
                    "the fourth day as a trace"}},
      .options = {{"csv", "FOLDER", "write CSV files there"},
                  {"trace", "FILE",
                   "write a Chrome trace: jobs, saves, events, series; compressed if the name ends "
                   "in .gz"},
                  {"from", "TIME", "of the trace: begin of the window, in simulated time"},
                  {"to", "TIME", "of the trace: its end"},
                  {"most", "N", "of the trace: at most so many entries; default: 1,000,000"},
                  {"openmetrics", "FILE", "write series and summary as OpenMetrics text"}},
      .least = 1,
      .most = 1};
  return table;
}

std::int64_t instant(const Parsed& args, const std::string& option, std::int64_t otherwise) {
  const auto text = args.value(option);
  if (!text) return otherwise;
  scenarios::UnitError error;
  const auto value = scenarios::parse_duration(*text, error);
  if (!value)
    throw UsageError("--" + option + ": " + error.what +
                     (error.right.empty() ? "" : "; " + error.right + " would do"));
  return value->count();
}

void export_trace(const analysis::RunReader& run, const std::string& file, const Parsed& args) {
  analysis::TraceOptions options;
  options.from_ns = instant(args, "from", options.from_ns);
  options.to_ns = instant(args, "to", options.to_ns);
  if (options.to_ns < options.from_ns) throw UsageError("--to lies before --from");
  if (const auto most = args.value("most")) options.most = std::size_t(parse_seed(*most));
  const analysis::Trace trace = analysis::trace_of(run, options);
  analysis::write_maybe_gzip(file, trace.json);
  std::cout << file << '\n';
  if (trace.left_out > 0)
    std::cerr << "trainyard export: " << trace.left_out << " of " << trace.events + trace.left_out
              << " entries were left out; --from and --to take a shorter time, --most takes more\n";
}

}  // namespace

Exit export_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const auto folder = args.value("csv"), trace = args.value("trace"),
             metrics = args.value("openmetrics");
  if (!folder && !trace && !metrics)
    throw UsageError("say what to write: --csv FOLDER, --trace FILE or --openmetrics FILE");
  for (const char* option : {"from", "to", "most"})
    if (args.has(option) && !trace)
      throw UsageError("--" + std::string(option) + " is of --trace, which is not there");
  const analysis::RunReader run(args.positional[0]);
  if (const auto notice = run.notice()) std::cerr << "trainyard export: " << *notice << '\n';
  if (folder)
    for (const std::string& path : analysis::export_csv(run, *folder)) std::cout << path << '\n';
  if (trace) export_trace(run, *trace, args);
  if (metrics) {
    analysis::write_text_file(*metrics, analysis::openmetrics_of(run, 0));
    std::cout << *metrics << '\n';
  }
  return Exit::done;
}

}  // namespace trainyard::cli
