#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "scenarios/check.hpp"
#include "scenarios/read.hpp"
#include "tests/scenarios/test_catalog.hpp"

/// Every file bad/<name>.json is a scenario with one kind of mistake (some with several);
/// bad/<name>.txt is what the user is told: by the reader, or, if it reads well, by what knows the
/// fabric and the jobs. A first line "// --set a=b" gives overrides.
/// UPDATE_GOLDEN=1 writes the .txt files anew.
namespace trainyard::scenarios {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path folder = fs::path(TRAINYARD_SOURCE_DIR) / "tests/scenarios/bad";

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> overrides_of(const std::string& text) {
  std::vector<std::string> out;
  if (!text.starts_with("// --set ")) return out;
  std::istringstream line(text.substr(3, text.find('\n') - 3));
  for (std::string word; line >> word;)
    if (word != "--set") out.push_back(word);
  return out;
}

class BadScenario : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { fs::current_path(folder); }  // messages name the file as it was given
};

TEST_P(BadScenario, is_told_what_is_wrong_where_and_what_would_be_right) {
  const std::string file = GetParam() + ".json";
  const ReadResult read = read_scenario(file, overrides_of(content(file)), test::catalog());
  EXPECT_EQ(read.resolved.empty(), !read.ok());
  const std::string told = to_text(read.ok() ? check_scenario(read) : read.diagnostics);
  ASSERT_NE(told, "");
  const fs::path golden = GetParam() + ".txt";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(golden, std::ios::binary) << told;
  EXPECT_EQ(told, content(golden));
}

INSTANTIATE_TEST_SUITE_P(Golden, BadScenario, testing::ValuesIn(bad_files()),
                         [](const auto& test_case) { return test_case.param; });

TEST(BadScenarioFile, a_missing_file_names_a_near_one) {
  fs::current_path(folder.parent_path());
  const ReadResult read = read_scenario("god.json", {}, test::catalog());
  EXPECT_EQ(to_text(read.diagnostics),
            "god.json: error: there is no such file\n  hint: did you mean good.json?\n1 mistake\n");
}

TEST(BadScenarioFile, a_folder_is_no_scenario) {
  fs::current_path(folder.parent_path());
  const ReadResult read = read_scenario("bad", {}, test::catalog());
  ASSERT_EQ(read.diagnostics.size(), 1u);
  EXPECT_THAT(read.diagnostics[0].text(),
              HasSubstr("bad: error: is a folder, not a scenario file"));
}

TEST(BadScenarioFile, an_unreadable_file_says_why) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const fs::path file =
      fs::temp_directory_path() / ("trainyard_unreadable_" + std::to_string(getpid()) + ".json");
  std::ofstream(file) << "{}";
  fs::permissions(file, fs::perms::none);
  const ReadResult read = read_scenario(file, {}, test::catalog());
  fs::remove(file);
  ASSERT_EQ(read.diagnostics.size(), 1u);
  EXPECT_THAT(read.diagnostics[0].what, HasSubstr("cannot be read"));
}

TEST(BadScenarioFile, a_file_beyond_the_size_limit_is_refused) {
  const fs::path file =
      fs::temp_directory_path() / ("trainyard_large_" + std::to_string(getpid()) + ".json");
  std::ofstream(file) << "{" << std::string(max_file_bytes, ' ') << "}";
  const ReadResult read = read_scenario(file, {}, test::catalog());
  fs::remove(file);
  ASSERT_EQ(read.diagnostics.size(), 1u);
  EXPECT_THAT(read.diagnostics[0].what, HasSubstr("larger than 16 MiB"));
}

TEST(BadScenarioFile, a_flood_of_mistakes_is_cut_and_counted) {
  std::string text = R"({"extends": "good.json", "jobs": {)";
  for (int i = 0; i < 300; ++i) text += (i ? ", " : "") + ("\"j" + std::to_string(i)) + "\": 1";
  fs::current_path(folder.parent_path());
  const ReadResult read = read_scenario_text(text + "}}", "flood.json", {}, test::catalog());
  EXPECT_EQ(read.diagnostics.size(), max_diagnostics + 1);
  EXPECT_EQ(read.diagnostics.back().what, "and 200 more mistakes");
}

}  // namespace
}  // namespace trainyard::scenarios
