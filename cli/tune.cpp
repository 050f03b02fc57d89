#include <algorithm>
#include <charconv>
#include <iostream>
#include <sstream>
#include <thread>

#include "cli/files.hpp"
#include "cli/interrupt.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/tune_report.hpp"
#include "scenarios/units_text.hpp"

/// trainyard tune checkpoint|spares SCENARIO: how often to save, how many spares to keep.
namespace trainyard::cli {
namespace {

constexpr int most_threads = 16;

std::vector<Option> with_common(std::vector<Option> options) {
  for (const Option& o : std::vector<Option>{
           {"job", "NAME", "whose goodput; default: the only job"},
           {"replications", "N",
            "at most so many runs of each point; fewer if differences are known to 0.1 points "
            "before; default: 20"},
           {"seed", "N", "seed of the first replication, instead of the scenario's"},
           {"set", "PATH=VALUE", "override a value of the scenario; repeatable", true},
           {"threads", "N", "threads; the result does not depend on it; default: all cores"},
           {"json", "", "print the figures as one JSON object"},
           {"csv", "FILE", "write one line a point"},
           {"progress", "KIND",
            "auto (a bar if stderr is a terminal), bar, json (one object a line) or off"}})
    options.push_back(o);
  return options;
}

const Usage& checkpoint_usage() {
  static const Usage table{
      .command = "tune checkpoint",
      .arguments = "SCENARIO [OPTIONS]",
      .what =
          "Simulates a scenario with many intervals between saves on equal luck, and says which "
          "interval is best, which ones cannot be told from it, what Young, Daly and the exact "
          "exponential optimum say, and where the time goes.",
      .examples = {{"trainyard tune checkpoint scenarios/library/quickstart.json",
                    "a grid around the optimum of the formulas"},
                   {"trainyard tune checkpoint big.json --intervals \"10 min,20 min,40 min\"",
                    "these three against each other"}},
      .options = with_common(
          {{"level", "NAME", "which checkpoint level; default: the one on the store"},
           {"intervals", "LIST", "intervals to try, \"10 min,20 min\"; default: a grid"},
           {"from", "TIME", "shortest interval of the grid; default: a quarter of the optimum"},
           {"to", "TIME", "longest interval of the grid; default: four times the optimum"},
           {"points", "N", "points of the grid; default: 11"}}),
      .least = 1,
      .most = 1};
  return table;
}

const Usage& spares_usage() {
  static const Usage table{
      .command = "tune spares",
      .arguments = "SCENARIO [OPTIONS]",
      .what =
          "Simulates a scenario with several numbers of spare servers and repair crews on equal "
          "luck, and says how many spares suffice. The cluster has the servers that its jobs need, "
          "and the spares.",
      .examples = {{"trainyard tune spares scenarios/library/quickstart.json",
                    "numbers around what is down at once"},
                   {"trainyard tune spares big.json --spares 4,8,16 --crews 1,2,4",
                    "these spares with these crews"}},
      .options = with_common(
          {{"spares", "LIST",
            "numbers of spares, \"0,2,4,8\"; default: around what is down at once"},
           {"crews", "LIST",
            "numbers of repair crews, 0 for no limit; default: what the scenario has"}}),
      .least = 1,
      .most = 1};
  return table;
}

int whole(const std::string& option, const std::string& text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least)
    throw UsageError("--" + option + " needs a whole number of at least " + std::to_string(least) +
                     ", found '" + text + "'");
  return value;
}

int whole(const Parsed& args, const std::string& option, int otherwise, int least) {
  const auto text = args.value(option);
  return text ? whole(option, *text, least) : otherwise;
}

Duration duration(const std::string& option, const std::string& text) {
  scenarios::UnitError error;
  const auto value = scenarios::parse_duration(text, error);
  if (!value)
    throw UsageError("--" + option + ": " + error.what +
                     (error.right.empty() ? "" : "; " + error.right + " would do"));
  if (*value <= Duration::zero())
    throw UsageError("--" + option + ": an interval is above zero, found '" + text + "'");
  return *value;
}

/// Between commas, blanks around them taken away.
std::vector<std::string> items(const Parsed& args, const std::string& option) {
  std::vector<std::string> out;
  const auto text = args.value(option);
  if (!text) return out;
  std::istringstream in(*text);
  for (std::string item; std::getline(in, item, ',');) {
    const auto from = item.find_first_not_of(' ');
    if (from == std::string::npos)
      throw UsageError("--" + option + ": there is an empty item in '" + *text + "'");
    out.push_back(item.substr(from, item.find_last_not_of(' ') - from + 1));
  }
  if (out.empty()) throw UsageError("--" + option + " needs a list with commas");
  return out;
}

scenarios::TuneOptions common_options(const Parsed& args, Progress& progress) {
  scenarios::TuneOptions out;
  out.job = args.value("job").value_or("");
  out.most = std::size_t(whole(args, "replications", 20, 2));
  const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  out.threads = std::min(whole(args, "threads", cores, 1), most_threads);
  out.cancel = &watch_interrupts();
  if (!progress.is_off())
    out.progress = [&progress](double done, Time simulated, std::uint64_t events) {
      progress.report(done, simulated, events);
    };
  return out;
}

template <class Tune>
Exit print(const Tune& tune, const Parsed& args) {
  if (tune.is_cancelled) {
    std::cerr << "trainyard tune: interrupted\n";
    return Exit::interrupted;
  }
  if (const auto file = args.value("csv")) write_file(*file, tune_csv(tune));
  std::cout << (args.has("json") ? tune_json(tune) : tune_text(tune, stdout_terminal()));
  return Exit::done;
}

/// Reads the scenario and lets `tune(scenario, common options)` work on it.
template <class F>
Exit tuned(const Parsed& args, F&& tune) {
  const ProgressKind kind = parse_progress(args.value("progress").value_or("auto"));
  std::vector<std::string> overrides = args.values("set");
  if (const auto seed = args.value("seed"))
    overrides.push_back("seed=" + std::to_string(parse_seed(*seed)));
  const auto read = load_or_complain(args.positional[0], overrides);
  if (!read) return Exit::usage;
  try {
    auto result = [&] {
      Progress progress(kind, std::cerr, stderr_terminal());
      return tune(read->scenario, common_options(args, progress));
    }();
    return print(result, args);
  } catch (const scenarios::TuneRefused& refused) {
    throw UsageError(refused.what());
  }
}

Exit checkpoint(const Arguments& arguments) {
  const Parsed args = parse(checkpoint_usage(), arguments);
  if (printed_help(checkpoint_usage(), args)) return Exit::done;
  if (args.has("intervals"))
    for (const char* other : {"from", "to", "points"})
      if (args.has(other))
        throw UsageError("--intervals and --" + std::string(other) + " contradict each other");
  scenarios::CheckpointTuneOptions options;
  options.level = args.value("level").value_or("");
  for (const std::string& item : items(args, "intervals"))
    options.intervals.push_back(duration("intervals", item));
  if (const auto text = args.value("from")) options.from = duration("from", *text);
  if (const auto text = args.value("to")) options.to = duration("to", *text);
  options.points = std::size_t(whole(args, "points", 11, 3));
  return tuned(args, [&](const scenarios::Scenario& scenario, scenarios::TuneOptions common) {
    options.common = std::move(common);
    return scenarios::tune_checkpoint(scenario, options);
  });
}

Exit spares(const Arguments& arguments) {
  const Parsed args = parse(spares_usage(), arguments);
  if (printed_help(spares_usage(), args)) return Exit::done;
  scenarios::SparesTuneOptions options;
  for (const std::string& item : items(args, "spares"))
    options.spares.push_back(whole("spares", item, 0));
  for (const std::string& item : items(args, "crews"))
    options.crews.push_back(whole("crews", item, 0));
  return tuned(args, [&](const scenarios::Scenario& scenario, scenarios::TuneOptions common) {
    options.common = std::move(common);
    return scenarios::tune_spares(scenario, options);
  });
}

}  // namespace

Exit tune_command(const Arguments& arguments) {
  const std::string what = arguments.empty() ? "" : arguments.front();
  const Arguments rest(arguments.empty() ? arguments.begin() : arguments.begin() + 1,
                       arguments.end());
  if (what == "checkpoint") return checkpoint(rest);
  if (what == "spares") return spares(rest);
  if (what == "--help" || what == "-h") {
    Parsed help;
    help.help = true;
    printed_help(checkpoint_usage(), help);
    printed_help(spares_usage(), help);
    return Exit::done;
  }
  throw UsageError(what.empty() ? "say what to tune: checkpoint or spares"
                                : "cannot tune '" + what + "': checkpoint or spares");
}

}  // namespace trainyard::cli
