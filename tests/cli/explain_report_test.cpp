#include "cli/explain_report.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command.hpp"
#include "tests/analysis/explained_run.hpp"
#include "tests/cli/golden.hpp"

/// Figures: the comment of explained_run.hpp. A second of the job is a GPU-hour.
namespace trainyard::cli {
namespace {

using analysis::test::ExplainedRun;
using analysis::test::TemporaryFolder;
using analysis::test::write_explained;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr Terminal paper{.width = 100, .interactive = false, .colour = false, .unicode = false};

struct Reported {
  explicit Reported(const ExplainedRun& what = {}) {
    write_explained(folder / "run.h5", what);
    run = std::make_unique<analysis::RunReader>(folder / "run.h5");
    log = std::make_unique<analysis::CauseLog>(*run);
    report.run_file = "run.h5";
    report.scenario = "explained";
    report.run_state = "complete";
    report.log = log.get();
    report.jobs.push_back(analysis::explain(*run, what.job, *log));
  }
  TemporaryFolder folder;
  std::unique_ptr<analysis::RunReader> run;
  std::unique_ptr<analysis::CauseLog> log;
  ExplainReport report;
};

TEST(ExplainReport, of_a_run_that_was_added_by_hand) {
  expect_golden("explain.txt", explain_text(Reported().report, paper));
}

TEST(ExplainReport, tells_the_story_of_an_interruption) {
  const Reported r;
  expect_golden("explain_crash.txt", interruption_text(r.report, 1, paper));
  expect_golden("explain_hang.txt", interruption_text(r.report, 3, paper));
}

TEST(ExplainReport, begins_with_the_answer) {
  // 3,200 of 6,030 s; 2,200, 310, 280, 20 and 20 s are 36.5, 5.1, 4.6, 0.33 and 0.33 points.
  std::string text = explain_text(Reported().report, paper);
  std::replace(text.begin(), text.end(), '\n', ' ');
  EXPECT_THAT(text,
              StartsWith("llm: goodput 53.1 %; of the 46.9 % lost: lost work 36.5, "
                         "detection 5.1, restarts 4.6, saves 0.33, waiting for servers 0.33; "
                         "largest single lever: save to scratch every 4 min 21 s of training, "
                         "not 45 min (+21.6 points)"));
}

TEST(ExplainReport, a_run_that_did_not_finish_says_so_first) {
  Reported r;
  r.report.notice = "The run was cancelled.";
  EXPECT_THAT(explain_text(r.report, paper), StartsWith("  ! The run was cancelled."));
  EXPECT_THAT(interruption_text(r.report, 1, paper), StartsWith("  ! The run was cancelled."));
}

TEST(ExplainReport, no_line_is_wider_than_the_terminal) {
  const Reported r;
  for (const int width : {72, 80, 100, 120}) {
    Terminal terminal = paper;
    terminal.width = width;
    for (const std::string& text :
         {explain_text(r.report, terminal), interruption_text(r.report, 3, terminal)}) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(columns_of(line), std::size_t(width)) << line;
    }
  }
}

TEST(ExplainReport, top_limits_ranked_lists_and_says_how_many_there_are) {
  Reported r;
  r.report.top = 20;
  EXPECT_THAT(explain_text(r.report, paper), Not(HasSubstr("the first")));
  r.report.top = 1;
  const std::string text = explain_text(r.report, paper);
  EXPECT_THAT(text, HasSubstr("share of its time, the first 1 of 3"));
  EXPECT_THAT(text, HasSubstr("server-hang"));
  EXPECT_THAT(text, Not(HasSubstr("gpu-crash")));
}

TEST(ExplainReport, json_holds_the_figures_and_they_add_up) {
  const auto json = nlohmann::json::parse(explain_json(Reported().report));
  EXPECT_EQ(json["schema"], "trainyard-explain-1");
  const auto& job = json["jobs"]["llm"];
  EXPECT_DOUBLE_EQ(job["goodput"], 3200.0 / 6030);
  double shares = job["goodput"], in_classes = 0;
  for (const auto& t : job["costs"]["outside"]) shares += t["share"].get<double>();
  EXPECT_NEAR(shares, 1, 1e-12);
  for (const auto& c : job["costs"]["classes"]) {
    EXPECT_NEAR(c["detection_gpu_h"].get<double>() + c["lost_gpu_h"].get<double>() +
                    c["restart_gpu_h"].get<double>() + c["waiting_gpu_h"].get<double>() +
                    c["slow_gpu_h"].get<double>(),
                c["total_gpu_h"].get<double>(), 1e-9);
    in_classes += c["total_gpu_h"].get<double>();
  }
  EXPECT_NEAR(in_classes, 900 + 540 + 1350, 1e-9);
  ASSERT_EQ(job["interruptions"].size(), 3u);
  const auto& crash = job["interruptions"][0];
  EXPECT_DOUBLE_EQ(crash["cost_s"], 900);
  EXPECT_EQ(crash["restored_level"], "scratch");
  EXPECT_EQ(crash["chain"]["events"].size(), 7u);
  EXPECT_DOUBLE_EQ(crash["chain"]["events"][6]["since_failure_s"], 100);
  EXPECT_DOUBLE_EQ(crash["chain"]["events"][6]["value"], 1000);
  EXPECT_EQ(job["levers"][1]["points_of"], "goodput");
}

TEST(ExplainReport, json_of_one_interruption_holds_that_one) {
  const auto json = nlohmann::json::parse(explain_json(Reported().report, 2));
  const auto& all = json["jobs"]["llm"]["interruptions"];
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["number"], 2);
  EXPECT_EQ(all[0]["class"], "gpu-slow");
}

TEST(ExplainReport, many_events_alike_are_one_line) {
  const Reported r;
  EXPECT_THAT(interruption_text(r.report, 3, paper),
              HasSubstr("node-0 .. node-2 (3): fan stopped"));
}

TEST(ExplainReport, small_texts) {
  EXPECT_EQ(clock_text(0), "00:00:00");
  EXPECT_EQ(clock_text((3 * 86400 + 2 * 3600 + 11 * 60 + 5) * std::int64_t{1'000'000'000}),
            "3 d 02:11:05");
  EXPECT_EQ(points_text(4.06), "4.1");
  EXPECT_EQ(points_text(0.994), "0.99");
  EXPECT_EQ(points_text(0.0004), "0.0004");
  EXPECT_EQ(
      event_text(
          {.kind = "job training", .unit_of_value = "step", .subject = "llm", .value = 51200}),
      "llm: job training, step 51,200");
  EXPECT_EQ(
      event_text(
          {.kind = "servers let go", .unit_of_value = "servers", .subject = "llm", .value = 1}),
      "llm: servers let go, 1 server");
  EXPECT_EQ(event_text({.kind = "server down", .subject = "node-3"}), "node-3: server down");
}

// --- the command ---------------------------------------------------------------------------------

template <class Error>
std::string complaint(const Arguments& arguments) {
  try {
    explain_command(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(ExplainCommand, refuses_what_it_cannot_explain) {
  const TemporaryFolder folder;
  const std::string run = folder / "run.h5";
  write_explained(run);
  EXPECT_THAT(complaint<UsageError>({run, "--job", "lln"}), HasSubstr("did you mean \"llm\"?"));
  EXPECT_THAT(complaint<UsageError>({run, "--job", "vision"}), HasSubstr("its jobs: llm"));
  EXPECT_THAT(complaint<UsageError>({run, "--interruption", "4"}), HasSubstr("llm has 3"));
  EXPECT_THAT(complaint<UsageError>({run, "--interruption", "0"}), HasSubstr("from 1 on"));
  EXPECT_THAT(complaint<UsageError>({run, "--top", "2x"}), HasSubstr("\"2x\""));
  EXPECT_THAT(complaint<analysis::RunFileError>({folder / "none.h5"}), HasSubstr("none.h5"));

  write_explained(run, {}, [](analysis::Ending& ending) { ending.tables.clear(); });
  EXPECT_THAT(complaint<Failure>({run}), HasSubstr("no jobs in this run"));
  analysis::RunInfo info;
  { analysis::RunWriter(folder / "live.h5", info).begin(); }
  EXPECT_THAT(complaint<Failure>({folder / "live.h5"}), HasSubstr("did not finish"));
}

TEST(ExplainCommand, asks_which_job_an_interruption_is_of) {
  const TemporaryFolder folder;
  const std::string run = folder / "run.h5";
  write_explained(run, {}, [](analysis::Ending& ending) {
    for (analysis::Table& t : analysis::test::explained_tables({.job = "other"}))
      if (t.path.starts_with("jobs/")) ending.tables.push_back(std::move(t));
  });
  EXPECT_THAT(complaint<UsageError>({run, "--interruption", "1"}), HasSubstr("one of llm, other"));
}

}  // namespace
}  // namespace trainyard::cli
