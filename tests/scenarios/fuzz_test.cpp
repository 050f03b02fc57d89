#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "scenarios/read.hpp"
#include "tests/scenarios/test_catalog.hpp"

namespace trainyard::scenarios {
namespace {

std::string good_text() {
  std::ifstream in(std::filesystem::path(TRAINYARD_SOURCE_DIR) / "tests/scenarios/good.json",
                   std::ios::binary);
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
TEST(Fuzz, mutated_scenarios_are_read_or_refused) {
  const unsigned seed = 4711;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::string good = good_text();
  const std::vector<std::string> tokens = tokens_of(good);
  const Catalog catalog = test::catalog();
  int accepted = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
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
  EXPECT_GT(accepted, 100);  // changed comments, names, numbers
  EXPECT_GT(refused, 10000);
}

TEST(Fuzz, overrides_of_any_form_are_applied_or_refused) {
  const unsigned seed = 815;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::string good = good_text();
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
                                       "experts"};
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> overrides(1 + random() % 3);
    for (std::string& o : overrides)
      for (std::uint64_t n = random() % 10; n > 0; --n) o += words[random() % words.size()];
    const ReadResult read = read_scenario_text(good, "fuzz.json", overrides, catalog);
    EXPECT_EQ(read.ok(), !read.resolved.empty());
    EXPECT_EQ(to_text(read.diagnostics).empty(), read.ok());
  }
}

}  // namespace
}  // namespace trainyard::scenarios
