#include "scenarios/study_run.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "analysis/study_file.hpp"
#include "analysis/study_statistics.hpp"
#include "analysis/text_file.hpp"
#include "scenarios/run.hpp"
#include "scenarios/run_json.hpp"

namespace trainyard::scenarios {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

StudyDesign design_of(const std::string& body) {
  StudyReadResult read = read_study_text("{\"extends\": \"quickstart.json\", " + body + "}",
                                         std::string(TRAINYARD_LIBRARY) + "/study.json");
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return std::move(read.design);
}

const char* const small = R"("scenario": {"duration": "1 d"}, "replications": 4, "axes": {
    "interval": {"path": "jobs.llama.checkpoint.interval", "values": ["10 min", "1 h"]},
    "routing": {"path": "cluster.fabric.routing", "values": ["spray", "ecmp"]}})";

/// An empty folder of this name.
std::string fresh(const std::string& name) {
  const fs::path path = fs::path(testing::TempDir()) / ("study-" + name);
  fs::remove_all(path);
  return path.string();
}

/// The merged table as the bytes of both files.
std::string bytes(const StudyFolder& folder) {
  const analysis::Study study = folder.merged();
  analysis::write_study(study, folder.table(), "1", "c");
  return analysis::read_text_file(folder.table()) + analysis::study_csv(study);
}

TEST(StudyRun, threads_shards_and_interruptions_change_no_byte) {
  const StudyDesign design = design_of(small);
  const StudyFolder one(design, fresh("one"), false);
  const StudyOutcome outcome = run_study(design, one, {});
  EXPECT_EQ(outcome.done, 16u);
  EXPECT_EQ(outcome.failed, 0u);
  EXPECT_GT(outcome.profiles_reused, outcome.profiles_computed);
  const std::string expected = bytes(one);

  const StudyFolder two(design, fresh("two"), false);
  run_study(design, two, {.threads = 2});
  EXPECT_TRUE(bytes(two) == expected);

  // Three parts; the second stops after two runs and goes on later.
  const StudyFolder parts(design, fresh("parts"), false);
  const StudyBlocks blocks(design);
  std::size_t sum = 0;
  for (std::size_t shard = 0; shard < 3; ++shard) {
    const auto work = work_of_shard(blocks, shard, 3);
    std::atomic<bool> cancel = false;
    StudyRunOptions options{.work = work.get(), .cancel = &cancel};
    if (shard == 1) options.progress = [&](std::size_t runs, std::uint64_t) { cancel = runs >= 2; };
    const StudyOutcome part = run_study(design, parts, options);
    EXPECT_EQ(part.is_cancelled, shard == 1);
    sum += part.done;
  }
  EXPECT_LT(sum, 16u);
  EXPECT_FALSE(bytes(parts) == expected);
  const StudyFolder again(design, parts.path(), true);
  const StudyOutcome rest = run_study(design, again, {});
  EXPECT_EQ(rest.found, sum);
  EXPECT_EQ(rest.done, 16 - sum);
  EXPECT_TRUE(bytes(again) == expected);
  again.write_manifest(again.merged());
  EXPECT_THAT(analysis::read_text_file(parts.path() + "/manifest.jsonl"),
              HasSubstr(R"({"run":0,"point":0,"replication":0,"seed":1,"state":"complete",)"
                        R"("file":"runs/p0000-r0000.json","parameters":{"interval":"10 min",)"));
}

TEST(StudyRun, a_folder_is_used_for_one_study_and_only_when_asked) {
  const StudyDesign design = design_of(small);
  const std::string path = fresh("used");
  const StudyFolder first(design, path, false);
  EXPECT_THROW(StudyFolder(design, path, false), StudyRefused);
  EXPECT_NO_THROW(StudyFolder(design, path, true));
  const StudyDesign other = design_of(R"("scenario": {"duration": "2 d"})");
  EXPECT_THROW(StudyFolder(other, path, true), StudyRefused);
  analysis::write_text_file(path + "/runs/p0000-r0000.json", "{}");
  try {
    (void)first.merged();
    FAIL();
  } catch (const StudyRefused& error) {
    EXPECT_THAT(error.what(), HasSubstr("p0000-r0000.json"));
  }
}

TEST(StudyRun, replications_are_added_until_the_interval_is_narrow_enough) {
  const StudyDesign design = design_of(R"("scenario": {"duration": "4 d"},
      "metrics": {"interruptions": "jobs.llama.interruptions"},
      "replications": {"least": 4, "most": 200, "half_width": 0.5})");
  const StudyFolder folder(design, fresh("precise"), false);
  run_study(design, folder, {});
  const analysis::Study study = folder.merged();
  const auto values = analysis::values_of(study, 0, 0);
  EXPECT_GT(values.size(), 4u);
  EXPECT_LT(values.size(), 200u);
  EXPECT_LE(analysis::mean_interval(values, 0.95).half_width, 0.5);
  // Not before: at the look before, it was wider.
  std::vector<double> before(values.begin(), values.end() - 1);
  while (before.size() > 4 && !is_settled(design, before)) before.pop_back();
  EXPECT_FALSE(before.size() > 4 || is_settled(design, before));
}

TEST(StudyRun, a_run_that_failed_is_a_result_and_counts_nowhere) {
  const StudyDesign design = design_of(R"("scenario": {"duration": "6 h"}, "replications": 2)");
  const StudyFolder folder(design, fresh("failed"), false);
  RunResult stuck;
  stuck.state = RunState::failed;
  stuck.failure = "nobody goes on";
  folder.save(0, 0, run_json(stuck), "", "1", "c");
  const StudyOutcome outcome = run_study(design, folder, {});
  EXPECT_EQ(outcome.found, 1u);  // it would fail again
  EXPECT_EQ(outcome.done, 1u);
  const analysis::Study study = folder.merged();
  ASSERT_EQ(study.runs.size(), 2u);
  EXPECT_EQ(study.runs[0].state, "failed");
  EXPECT_EQ(study.runs[1].state, "complete");
  EXPECT_EQ(analysis::finite(analysis::values_of(study, 0, 0)).size(), 1u);
}

TEST(StudyRun, run_files_of_first_replications_are_kept) {
  const StudyDesign design =
      design_of(R"("scenario": {"duration": "6 h"}, "replications": 2, "run_files": "first")");
  const StudyFolder folder(design, fresh("files"), false);
  run_study(design, folder, {});
  EXPECT_TRUE(fs::exists(folder.run_file(0, 0)));
  EXPECT_FALSE(fs::exists(folder.run_file(0, 1)));
  for (const auto& entry : fs::directory_iterator(folder.path() + "/runs"))
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
}

TEST(StudyRun, a_warm_up_is_taken_off) {
  const char* const body = R"("scenario": {"duration": "6 d"}, "replications": 3,
      "metrics": {"goodput": "jobs.llama.goodput", "interruptions": "jobs.llama.interruptions",
                  "days": "simulated_s / 86400"})";
  const StudyDesign whole = design_of(body);
  const StudyDesign warm = design_of(std::string(body) + R"(, "warm_up": "2 d")");
  EXPECT_NE(whole.hash, warm.hash);
  const StudyFolder of_whole(whole, fresh("whole"), false), of_warm(warm, fresh("warm"), false);
  run_study(whole, of_whole, {});
  run_study(warm, of_warm, {});
  Scenario start = whole.points[0].scenario;
  start.duration = std::chrono::hours(48);
  for (std::size_t r = 0; r < 3; ++r) {
    const auto w = of_whole.result(0, r), rest = of_warm.result(0, r);
    start.seed = whole.seed_of(0, r);
    const RunResult before = run(start, {});
    EXPECT_EQ(rest->values[1], w->values[1] - double(before.jobs[0].interruptions));
    EXPECT_NEAR(rest->values[2], 4, 1e-9);
    const RunResult all = [&] {
      Scenario s = whole.points[0].scenario;
      s.seed = start.seed;
      return run(s, {});
    }();
    EXPECT_NEAR(rest->values[0], (all.jobs[0].kept_s - before.jobs[0].kept_s) / (4 * 86400.0),
                1e-12);
    EXPECT_EQ(w->values[0], all.jobs[0].goodput);
  }
  const auto refused = read_study_text(
      "{\"extends\": \"quickstart.json\", \"warm_up\": \"1 d\", \"metrics\": {\"m\": "
      "\"jobs.llama.mfu\"}}",
      std::string(TRAINYARD_LIBRARY) + "/study.json");
  EXPECT_THAT(to_text(refused.diagnostics), HasSubstr("does not add up over time"));
  const auto late = read_study_text("{\"extends\": \"quickstart.json\", \"warm_up\": \"8 d\"}",
                                    std::string(TRAINYARD_LIBRARY) + "/study.json");
  EXPECT_THAT(to_text(late.diagnostics), HasSubstr("over before it is warm"));
}

/// Failures of one exponential class, without any time in which a server cannot fail: the number of
/// interruptions is Poisson with the mean 23 / (1,000 d) x 32 servers x 7 d = 5.152. 200 studies of
/// 20 runs.
TEST(StudyRun, intervals_cover_a_known_mean_as_often_as_they_say) {
  const StudyDesign design = design_of(R"("scenario": {
      "failures": {"classes": {"gpu-or-host": null,
        "software-hang": {"effect": "crash", "detection": {"value": "0 s"}, "lifetime": {"count": 23}}}},
      "jobs": {"llama": {"restart": {"replace": "0 s", "start_up": "0 s"}, "checkpoint": {"enabled": false}}}},
      "metrics": {"interruptions": "jobs.llama.interruptions"}, "replications": 4000)");
  const StudyFolder folder(design, fresh("coverage"), false);
  run_study(design, folder, {.threads = 2});
  const auto all = analysis::values_of(folder.merged(), 0, 0);
  ASSERT_EQ(all.size(), 4000u);
  constexpr double known = 23.0 / 1000 * 32 * 7;
  int covered = 0, covered_by_bootstrap = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::vector<double> x(all.begin() + std::ptrdiff_t(20 * i),
                                all.begin() + std::ptrdiff_t(20 * (i + 1)));
    const auto student = analysis::mean_interval(x, 0.95);
    covered += student.low() <= known && known <= student.high() ? 1 : 0;
    const auto bootstrap = analysis::bootstrap_mean(x, 0.95);
    covered_by_bootstrap += bootstrap.low <= known && known <= bootstrap.high ? 1 : 0;
  }
  std::cout << "covered by Student " << covered << ", by bootstrap " << covered_by_bootstrap
            << " of 200\n";
  EXPECT_NEAR(covered / 200.0, 0.95, 0.03);
  EXPECT_NEAR(covered_by_bootstrap / 200.0, 0.93, 0.04);
}

}  // namespace
}  // namespace trainyard::scenarios
