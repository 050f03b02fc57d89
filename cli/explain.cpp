#include <algorithm>
#include <charconv>
#include <iostream>

#include "cli/explain_report.hpp"
#include "cli/options.hpp"
#include "scenarios/diagnostic.hpp"

/// trainyard explain RUN.h5
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "explain",
      .arguments = "RUN.h5 [OPTIONS]",
      .what =
          "Says why a run's jobs did not train all the time: what cost most, what would help "
          "in points of goodput, and for each interruption the chain of its causes. Everything "
          "is taken from the run file.",
      .examples = {{"trainyard explain run.h5", "what cost most, and what would help"},
                   {"trainyard explain run.h5 --interruption 17",
                    "the story of one interruption, from its first cause to the next step"},
                   {"trainyard explain run.h5 --json | jq '.jobs[].levers[0]'",
                    "the largest lever of each job"}},
      .options = {{"job", "NAME", "only this job"},
                  {"interruption", "N", "the chain of causes of one interruption, counted from 1"},
                  {"top", "N", "rows of each ranked list (10)"},
                  {"json", "", "print everything as one JSON object"}},
      .least = 1,
      .most = 1};
  return table;
}

std::size_t count_of(const Parsed& args, const std::string& option, std::size_t otherwise) {
  const auto text = args.value(option);
  if (!text) return otherwise;
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), n);
  if (error != std::errc() || end != text->data() + text->size() || n == 0)
    throw UsageError("--" + option + " takes a whole number from 1 on, found " +
                     scenarios::in_quotes(*text));
  return n;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

/// Those that are asked for.
std::vector<std::string> jobs_of(const analysis::RunReader& run, const Parsed& args) {
  const std::vector<std::string> all = analysis::job_names(run);
  if (all.empty()) {
    if (!run.is_finished())
      throw Failure(run.path() +
                    ": the run did not finish: it was stopped, or is still going on. The tables "
                    "of its jobs are written at the end, so there is nothing to explain; "
                    "trainyard export shows its events so far");
    if (run.attribute("repaired") != nullptr)
      throw Failure(run.path() +
                    ": the run did not finish, and its file was repaired: there are no tables of "
                    "jobs to explain; trainyard export shows its events");
    throw Failure(run.path() + ": there are no jobs in this run");
  }
  const auto wanted = args.value("job");
  if (!wanted) return all;
  if (std::find(all.begin(), all.end(), *wanted) == all.end()) {
    const std::string near = scenarios::nearest(*wanted, all);
    throw UsageError(
        "there is no job " + scenarios::in_quotes(*wanted) + " in this run" +
        (near.empty() ? "; its jobs: " + list_of(all) : "; did you mean \"" + near + "\"?"));
  }
  return {*wanted};
}

}  // namespace

Exit explain_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const std::size_t number = count_of(args, "interruption", 0);
  ExplainReport report;
  report.top = count_of(args, "top", report.top);

  const analysis::RunReader run(args.positional[0]);
  const std::vector<std::string> jobs = jobs_of(run, args);
  if (number > 0 && jobs.size() > 1)
    throw UsageError("say of which job: --job NAME, one of " + list_of(jobs));
  const analysis::CauseLog log(run);
  report.log = &log;
  report.run_file = run.path();
  report.scenario = run.text("scenario_name");
  report.run_state = std::string(name_of(run.state()));
  if (const auto notice = run.notice())
    report.notice = *notice;
  else if (run.state() != analysis::RunState::complete)
    report.notice = "The run was " + report.run_state + ": everything below is of the time " +
                    "simulated so far.";
  for (const std::string& job : jobs) report.jobs.push_back(analysis::explain(run, job, log));

  if (number > 0) {
    const std::size_t all = report.jobs[0].rows.interruptions.size();
    if (number > all)
      throw UsageError("there is no interruption " + std::to_string(number) + ": " + jobs[0] +
                       (all == 0 ? " was never interrupted" : " has " + std::to_string(all)));
  }
  if (args.has("json"))
    std::cout << explain_json(report, number);
  else
    std::cout << (number > 0 ? interruption_text(report, number, stdout_terminal())
                             : explain_text(report, stdout_terminal()));
  return Exit::done;
}

}  // namespace trainyard::cli
