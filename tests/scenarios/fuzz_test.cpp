#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "scenarios/read.hpp"
#include "tests/scenarios/test_catalog.hpp"

namespace trainyard::scenarios {
namespace {

const std::filesystem::path bad_folder =
    std::filesystem::path(TRAINYARD_SOURCE_DIR) / "tests/scenarios";

std::string text_of(const char* file) {
  std::ifstream in(bad_folder / file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Words of the file and some that do not belong there.
std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> out{"null",  "true",          "-1",       "0",
                               "1e999", "\"\"",          "NaN",      "{}",
                               "[]",    "\"400 Gb/s\"",  "\"-3 d\"", "99999999999999999999",
                               "0.5",   "\"h\xC3\xA9\"", "\xFF",     "//",
                               "/*"};
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '"') {
      ++i;
      continue;
    }
    const std::size_t end = text.find('"', i + 1);
    if (end == std::string::npos) break;
    out.push_back(text.substr(i, end - i + 1));
    i = end + 1;
  }
  return out;
}

/// A reader must end, and end with a scenario that writes and reads back, or with a diagnostic.
/// Under the sanitizers this also looks for undefined behaviour.
struct Original {
  const char* name;
  const char* file;
  int times;
  int accepted;  // at least: changed comments, names, numbers
};
std::ostream& operator<<(std::ostream& out, const Original& o) {
  return out << o.file;
}

class Fuzz : public testing::TestWithParam<Original> {
 protected:
  void SetUp() override { std::filesystem::current_path(bad_folder); }  // for "extends"
};

TEST_P(Fuzz, mutated_scenarios_are_read_or_refused) {
  const unsigned seed = 4711;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::string good = text_of(GetParam().file);
  const std::vector<std::string> tokens = tokens_of(good);
  const Catalog catalog = test::catalog();
  int accepted = 0, refused = 0;
  for (int i = 0; i < GetParam().times; ++i) {
    std::string text = good;
    const auto at = [&] { return text.empty() ? 0 : random() % text.size(); };
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) switch (random() % 6) {
        case 0:
          if (!text.empty()) text[at()] = static_cast<char>(random());
          break;
        case 1:
          text.resize(at());
          break;
        case 2:
          text.insert(at(), tokens[random() % tokens.size()]);
          break;
        case 3:
          text.erase(at(), 1 + random() % 20);
          break;
        default: {  // one word for another: mostly still JSON
          const std::string& word = tokens[random() % tokens.size()];
          const std::size_t found = text.find(word, at());
          if (found != std::string::npos)
            text.replace(found, word.size(), tokens[random() % tokens.size()]);
        }
      }
    const ReadResult read = read_scenario_text(text, "fuzz.json", {}, catalog);
    if (!read.ok()) {
      ++refused;
      for (const Diagnostic& d : read.diagnostics) {
        ASSERT_FALSE(d.what.empty()) << text;
        ASSERT_FALSE(d.text().empty());
      }
      continue;
    }
    ++accepted;
    settings_without_effect(read);
    const ReadResult again = read_scenario_text(read.resolved, "again.json", {}, catalog);
    ASSERT_TRUE(again.ok()) << text << "\n" << to_text(again.diagnostics);
    ASSERT_EQ(again.resolved, read.resolved) << text;
  }
  EXPECT_GT(accepted, GetParam().accepted);
  EXPECT_GT(refused, GetParam().times / 2);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Fuzz,
                         testing::Values(Original{"small", "good.json", 20000, 100},
                                         Original{"with_failures", "good_failures.json", 4000, 40}),
                         [](const auto& test_case) { return test_case.param.name; });

TEST(FuzzOverrides, of_any_form_are_applied_or_refused) {
  const unsigned seed = 815;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::filesystem::current_path(bad_folder);
  const std::string small = text_of("good.json"), full = text_of("good_failures.json");
  const Catalog catalog = test::catalog();
  const std::vector<std::string> words{"cluster",
                                       "server",
                                       "gpu",
                                       "jobs",
                                       "llm",
                                       "fabric",
                                       "leaf_switch",
                                       "part",
                                       "name",
                                       ".",
                                       ".",
                                       ".",
                                       ".",
                                       "=",
                                       "=",
                                       "4",
                                       "\"x\"",
                                       "{",
                                       "}",
                                       "null",
                                       "[1]",
                                       "{\"part\": \"box-8\"}",
                                       "storage",
                                       "pfs",
                                       "\xFF",
                                       "parallel",
                                       "tensor",
                                       "0",
                                       "context",
                                       "expert",
                                       "expert_tensor",
                                       "order",
                                       "tp-pp-cp-dp",
                                       "schedule",
                                       "interleaved",
                                       "chunks",
                                       "stage_layers",
                                       "[12, 12]",
                                       "shard_group",
                                       "zero-2",
                                       "precision",
                                       "mxfp8",
                                       "recompute_share",
                                       "software",
                                       "bucket",
                                       "calibration",
                                       "experts",
                                       "failures",
                                       "classes",
                                       "gpu",
                                       "repair",
                                       "night_crews",
                                       "script",
                                       "dead",
                                       "fail",
                                       "node-1",
                                       "levels",
                                       "peer",
                                       "apart",
                                       "rack",
                                       "elastic",
                                       "min_data",
                                       "data",
                                       "store",
                                       "common_cause",
                                       "neighbours",
                                       "log"};
  for (int i = 0; i < 4000; ++i) {
    std::vector<std::string> overrides(1 + random() % 3);
    for (std::string& o : overrides)
      for (std::uint64_t n = random() % 10; n > 0; --n) o += words[random() % words.size()];
    const ReadResult read =
        read_scenario_text(i % 4 == 0 ? full : small, "fuzz.json", overrides, catalog);
    EXPECT_EQ(read.ok(), !read.resolved.empty());
    EXPECT_EQ(to_text(read.diagnostics).empty(), read.ok());
  }
}

}  // namespace
}  // namespace trainyard::scenarios
