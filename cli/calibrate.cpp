#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "analysis/sha256.hpp"
#include "cli/calibrate_report.hpp"
#include "cli/command.hpp"
#include "cli/files.hpp"
#include "cli/options.hpp"
#include "scenarios/calibrate_rows.hpp"
#include "scenarios/carry.hpp"

/// trainyard calibrate TABLE…: published rows in, fitted constants and their files out.
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "calibrate",
      .arguments = "TABLE.csv... [OPTIONS]",
      .what =
          "Fits the constants of GPUs and software stacks to published step times and timed "
          "products, all at once, and prints each with its prior, standard error and rows, and the "
          "errors before and after. Nothing is written without --out.",
      .examples = {{"trainyard calibrate validation/training_throughput.csv "
                    "validation/vtrain_measured_multi_node.csv validation/device_micro.csv",
                    "what the rows say about the constants"},
                   {"trainyard calibrate validation/*.csv --out scenarios/parts",
                    "write them into the catalog"},
                   {"trainyard calibrate validation/*.csv --largest-gpus 8",
                    "how far constants of small runs carry"}},
      .options = {{"out", "DIR", "write calibration/*.json and software/*.json there"},
                  {"check", "",
                   "exit status 3 if a constant is further than 3 % from its file in the catalog "
                   "and no note says why"},
                  {"largest-gpus", "N",
                   "fit once more on runs of at most N GPUs, and try it on all larger dense ones"},
                  {"leave-out", "STACK",
                   "fit once more without a software stack and predict it; \"all\": each in turn; "
                   "repeatable",
                   true},
                  {"carry", "FILE",
                   "write what --largest-gpus and --leave-out found there, for the page of "
                   "trainyard validate"},
                  {"threads", "N", "threads; the result does not depend on it; default: 2"},
                  {"json", "", "print the report as one JSON object"}},
      .least = 1,
      .most = 100};
  return table;
}

int whole_number(const Parsed& args, const std::string& name, int otherwise) {
  const auto text = args.value(name);
  if (!text) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 1)
    throw UsageError("--" + name + " needs a whole number of at least 1, found '" + *text + "'");
  return value;
}

/// The files of the catalog as they stand in `dir`; what is not there, as it was compiled in.
class Parts {
 public:
  explicit Parts(const std::string& dir) {
    for (const scenarios::PartText& part : scenarios::embedded_parts()) {
      names_.emplace_back(part.file);
      const std::filesystem::path path = std::filesystem::path(dir) / part.file;
      if (!dir.empty() && std::filesystem::exists(path)) {
        std::ostringstream text;
        text << open_to_read(path.string()).rdbuf();
        texts_.push_back(text.str());
      } else {
        texts_.emplace_back(part.text);
      }
    }
    for (std::size_t i = 0; i < names_.size(); ++i) parts_.push_back({names_[i], texts_[i]});
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  const std::vector<scenarios::PartText>& all() const { return parts_; }

 private:
  std::vector<std::string> names_, texts_;
  std::vector<scenarios::PartText> parts_;  // refer to the texts
};

void write_parts(const std::string& dir, const std::vector<scenarios::PartFile>& files) {
  for (const scenarios::PartFile& part : files) {
    const std::filesystem::path path = std::filesystem::path(dir) / part.file;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) throw Failure(path.parent_path().string() + ": " + error.message());
    write_file(path.string(), part.text);
    std::cerr << "wrote " << path.string() << '\n';
  }
}

/// The table once more with every file's rows added; empty if there were mistakes (printed).
bool read_tables(const std::vector<std::string>& files, scenarios::CalibrationSet& set,
                 CalibrateReport& report) {
  std::vector<scenarios::Diagnostic> mistakes;
  for (const std::string& file : files) {
    std::ostringstream text;
    text << open_to_read(file).rdbuf();
    std::istringstream in(text.str());
    const auto table = scenarios::read_published_table(in, file, mistakes);
    const std::size_t before = set.rows().size();
    if (mistakes.empty()) set.add(table, mistakes);
    const std::size_t added = set.rows().size() - before;
    if (added > 0)
      report.tables.push_back({set.rows().back().table, analysis::sha256(text.str()), added});
    else if (mistakes.empty())
      std::cerr << file << ": no row that constants are fitted to\n";
  }
  std::cerr << (mistakes.empty() ? "" : scenarios::to_text(mistakes));
  return mistakes.empty();
}

}  // namespace

Exit calibrate_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const int largest = whole_number(args, "largest-gpus", 0);
  scenarios::CalibrateOptions options;
  options.threads = unsigned(whole_number(args, "threads", 2));

  CalibrateReport report;
  scenarios::CalibrationSet set;
  if (!read_tables(args.positional, set, report)) return Exit::usage;
  if (set.rows().empty()) throw UsageError("the tables hold no row that constants are fitted to");
  report.rows = set.rows();
  report.skipped = set.skipped();
  report.table = &scenarios::calibrated_constants();
  std::vector<std::string> left_out = args.values("leave-out");
  const std::vector<std::string> known = scenarios::stacks_of(report.rows);
  const bool is_all = std::find(left_out.begin(), left_out.end(), "all") != left_out.end();
  if (args.has("carry") && (largest == 0 || !is_all))
    throw UsageError("--carry needs --largest-gpus N and --leave-out all");
  for (const std::string& stack : left_out)
    if (!is_all && std::find(known.begin(), known.end(), stack) == known.end()) {
      std::string names;
      for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
      throw UsageError("--leave-out: no row of the stack '" + stack + "'; there are: " + names);
    }

  const Parts parts(args.value("out").value_or(""));
  options.present = scenarios::present_values(parts.all(), *report.table);
  report.fitted = scenarios::calibrate(report.rows, *report.table, options);
  report.is_checked = args.has("check");
  if (report.is_checked)
    report.moved = scenarios::moved_without_note(parts.all(), *report.table, report.fitted);
  scenarios::CalibrateOptions again = options;  // nearby: what was found with all rows
  for (std::size_t c = 0; c < again.present.size(); ++c)
    again.present[c] = report.fitted.constants[c].value;
  if (largest > 0)
    report.larger = scenarios::small_to_large(report.rows, *report.table, again, largest);
  if (!left_out.empty())
    report.left_out = scenarios::stacks_left_out(report.rows, *report.table, again,
                                                 is_all ? std::vector<std::string>{} : left_out);
  if (const auto dir = args.value("out"))
    write_parts(*dir, scenarios::calibrated_files(parts.all(), *report.table, report.fitted,
                                                  report.tables));
  if (const auto file = args.value("carry")) {
    // The catalog as it now is: with --out, what was fitted.
    write_file(*file, scenarios::carry_json(
                          {.constants = scenarios::constants_digest(
                               *report.table, args.has("out") ? again.present : options.present),
                           .rows = report.rows.size(),
                           .largest_gpus = largest,
                           .larger = report.larger,
                           .left_out = report.left_out}));
  }
  std::cout << (args.has("json") ? calibrate_json(report)
                                 : calibrate_text(report, stdout_terminal()));
  return report.moved.empty() ? Exit::done : Exit::expectation_missed;
}

}  // namespace trainyard::cli
