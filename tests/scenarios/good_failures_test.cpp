#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "scenarios/check.hpp"
#include "scenarios/run.hpp"
#include "tests/scenarios/test_catalog.hpp"

namespace trainyard::scenarios {
namespace {

/// Everything at once, on the fabric, for six hours: what no test of one setting would meet.
TEST(GoodFailures, the_scenario_with_every_setting_runs) {
  std::filesystem::current_path(std::filesystem::path(TRAINYARD_SOURCE_DIR) / "tests/scenarios");
  const ReadResult read = read_scenario("good_failures.json", {}, test::catalog());
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  ASSERT_EQ(to_text(check_scenario(read)), "");
  const RunResult result = run(read.scenario, {});
  EXPECT_EQ(result.state, RunState::complete) << result.failure;
  EXPECT_EQ(result.simulated_s, 6 * 3600.0);
  ASSERT_EQ(result.jobs.size(), 2u);
  const JobResult& llm = result.jobs.front();
  EXPECT_GT(llm.steps_kept, 0);
  EXPECT_GT(llm.checkpoints, 0);
  EXPECT_GE(llm.interruptions, 2);  // those of the script: "dead" and "restarted"
  EXPECT_EQ(result.jobs.back().state, "done");
  EXPECT_EQ(result.jobs.back().steps_kept, 500);
}

/// The examples of the guide are scenarios, each laid over one of the library, and none of their
/// settings is without effect.
TEST(FailuresGuide, every_example_passes_the_check) {
  std::ifstream in(std::string(TRAINYARD_SOURCE_DIR) + "/docs/guide/failures.md");
  int examples = 0;
  for (std::string line; std::getline(in, line);) {
    if (line != "```json") continue;
    std::string text;
    while (std::getline(in, line) && line != "```") text += line + '\n';
    SCOPED_TRACE(text);
    const ReadResult read =
        read_scenario_text(text, std::string(TRAINYARD_LIBRARY) + "/guide.json");
    EXPECT_EQ(to_text(read.ok() ? check_scenario(read) : read.diagnostics), "");
    EXPECT_EQ(settings_without_effect(read), std::vector<std::string>{});
    ++examples;
  }
  EXPECT_EQ(examples, 7);
}

}  // namespace
}  // namespace trainyard::scenarios
