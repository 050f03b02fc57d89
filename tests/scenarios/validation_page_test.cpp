#include "scenarios/validation_page.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "scenarios/calibrate_files.hpp"
#include "scenarios/markdown.hpp"

/// The page, assembled from made-up figures whose summary can be done by hand.
namespace trainyard::scenarios {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

PublishedTable table_of(const std::string& name, const std::string& text) {
  std::istringstream in(text);
  std::vector<Diagnostic> mistakes;
  PublishedTable out = read_published_table(in, name, mistakes);
  EXPECT_THAT(mistakes, IsEmpty());
  return out;
}

ValidatedRow row(int line, double published, double predicted, bool experts, bool derived) {
  const std::string end = experts ? ", experts" : "";
  ValidatedRow out;
  out.id = "R" + std::to_string(line);
  out.line = line;
  out.error_pct = 100 * (predicted / published - 1);
  out.prediction.published = published;
  out.prediction.predicted = predicted;
  out.prediction.groups = {{"layers", experts ? "experts" : "dense"},
                           {"target", derived ? "derived" : "reported"},
                           {"GPUs", "<= 8" + end},
                           {"stack, GPU, precision", "own, H100, bf16" + end}};
  return out;
}

/// Twelve dense rows, 1 % too long each, of which four are derived; one with experts, 50 % too
/// long.
PageTable training() {
  PageTable out;
  std::string text = "id,gpus\n";
  out.report.kind = "training";
  out.report.table = "some/where/t.csv";
  std::vector<double> dense;
  for (int i = 0; i < 13; ++i) {
    const bool experts = i == 12;
    text += "R" + std::to_string(i + 2) + ",8\n";
    out.report.predictions.push_back(row(i + 2, 2, experts ? 3 : 2.02, experts, i < 4));
    if (!experts) dense.push_back(1);
  }
  out.report.groups = {{"stack, GPU, precision", "own, H100, bf16", summary_of(dense)},
                       {"stack, GPU, precision", "own, H100, bf16, experts", summary_of({50})}};
  out.report.skipped = {{"R15", 15, "no time | stated"}, {"R16", 16, "no time | stated"}};
  out.report.rules = {{"chunks not given: 1", 3}};
  out.table = table_of("some/where/t.csv", text);
  return out;
}

TEST(ValidationPage, sums_up_rows_by_part_and_target) {
  const std::string page = validation_page({.tables = {training()}});
  EXPECT_THAT(page, HasSubstr("| t.csv | dense | % | 2 | 12 | 1.0 | 1.0 | 1.0 | +1.0 |"));
  EXPECT_THAT(page, HasSubstr("| dense, reported | % |  | 8 | 1.0"));
  EXPECT_THAT(page, HasSubstr("| dense, derived | % |  | 4 | 1.0"));
  EXPECT_THAT(page, HasSubstr("| experts | % |  | 1 | 50.0 | 50.0 | 50.0 | +50.0 |"));
  EXPECT_THAT(page, HasSubstr("| R14 | +50.0 | 2 | 3 | own, H100, bf16, experts | 8 |"));
  EXPECT_THAT(page, HasSubstr("| chunks not given: 1 | t.csv 3 |"));
  EXPECT_THAT(page, HasSubstr("| t.csv | 2 | no time \\| stated | R15, R16 |"));
  EXPECT_THAT(page, Not(HasSubstr("\n\n\n")));
  EXPECT_EQ(page, validation_page({.tables = {training()}}));
}

TEST(ValidationPage, marks_a_sign_of_ten_rows_beyond_two_percent) {
  const auto marked = [](std::size_t rows, double error_pct) {
    PageTable t = training();
    t.report.groups[0].error = summary_of(std::vector<double>(rows, error_pct));
    return validation_page({.tables = {t}}).find("**sign**") != std::string::npos;
  };
  EXPECT_TRUE(marked(10, 2.1));
  EXPECT_TRUE(marked(10, -2.1));
  EXPECT_FALSE(marked(9, 2.1));
  EXPECT_FALSE(marked(10, 1.9));
}

TEST(ValidationPage, leaves_out_sections_without_tables) {
  const std::string page = validation_page({.tables = {training()}});
  for (const char* title : {"MLPerf", "Memory", "Collectives", "Scaling", "vTrain"})
    EXPECT_THAT(page, Not(HasSubstr("## " + std::string(title))));
}

TEST(ValidationPage, ends_with_the_notes) {
  const std::string page =
      validation_page({.tables = {training()}, .notes = "## Known misses\n\nOne.\n"});
  EXPECT_TRUE(page.ends_with("\n\n## Known misses\n\nOne.\n"));
}

TEST(ValidationPage, fills_errors_into_the_notes) {
  const PageInput input{.tables = {training()}};
  EXPECT_EQ(with_errors("{R14} {t.csv:R2}, {T9} {R2", input), "+50.0 +1.0, {T9} {R2");
}

TEST(ValidationPage, orders_ablations_by_what_they_cost) {
  const auto effect = [](const char* name, double error) {
    return AblationEffect{name, summary_of({error}), {}};
  };
  AblationEffect bubble = effect("bubble", 5);
  bubble.suffers = {{"a", summary_of({1, 3}), summary_of({-9, -11})}};
  const std::string page =
      validation_page({.ablations = {effect("nothing", 1), effect("jitter", 2), bubble}});
  EXPECT_THAT(page, HasSubstr("| bubble | 5.0 | +5.0 | a 2.0 -> 10.0 (-10.0) |\n"
                              "| jitter | 2.0 | +2.0 | - |\n"));
  EXPECT_THAT(page, Not(HasSubstr("| nothing |")));
}

CarryStudy study() {
  return {.constants = "abc",
          .rows = 600,
          .largest_gpus = 8,
          .larger = {{"runs on more than 8 GPUs", 200, summary_of({-2, 4})}},
          .left_out = {{"MLPerf", 570, summary_of({3})}}};
}

TEST(ValidationPage, says_when_studies_are_of_other_constants) {
  PageInput input{.constants_digest = "abc", .carry = study()};
  const std::string fresh = validation_page(input);
  EXPECT_THAT(fresh, HasSubstr("| runs on more than 8 GPUs | 200 | 2 | 3.0 | 3.0 | 3.8 | +1.0 |"));
  EXPECT_THAT(fresh, HasSubstr("| MLPerf | 570 | 1 | 3.0 | 3.0 | 3.0 | +3.0 |"));
  EXPECT_THAT(fresh, Not(HasSubstr("other constants than")));
  input.constants_digest = "abd";
  EXPECT_THAT(validation_page(input), HasSubstr("other constants than"));
  input.carry.reset();
  EXPECT_THAT(validation_page(input), HasSubstr("Not at hand"));
}

TEST(Carry, reads_what_it_wrote) {
  std::vector<Diagnostic> mistakes;
  const auto read = read_carry(carry_json(study()), "carry.json", mistakes);
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(mistakes, IsEmpty());
  EXPECT_EQ(carry_json(*read), carry_json(study()));
  EXPECT_EQ(read->larger[0].error.used, 2u);
}

TEST(Carry, another_file_is_a_mistake) {
  for (const char* text : {"", "{}", "[1]", "{\"schema\": \"trainyard-calibrate-1\"}",
                           "{\"schema\": \"trainyard-carry-1\", \"constants\": 3}"}) {
    std::vector<Diagnostic> mistakes;
    EXPECT_FALSE(read_carry(text, "carry.json", mistakes)) << text;
    EXPECT_THAT(mistakes, SizeIs(1)) << text;
  }
}

TEST(Carry, digest_changes_with_the_fourth_digit_of_a_constant) {
  ConstantTable table;
  table.constants = {{"a", 1, 0.2, 0, 2, {}, "why"}, {"b", 1, 0.2, 0, 2, {}, "why"}};
  const std::string digest = constants_digest(table, {0.5, 0.25});
  EXPECT_EQ(digest, constants_digest(table, {0.5, 0.250001}));
  EXPECT_NE(digest, constants_digest(table, {0.5, 0.2501}));
  EXPECT_NE(digest, constants_digest(table, {0.25, 0.5}));
}

TEST(ConstantLines, hold_what_the_parts_say) {
  std::vector<Diagnostic> mistakes;
  const std::string part =
      "{\"part\": \"a100\", \"kind\": \"calibration\", \"title\": \"A100\", \"retrieved\": "
      "\"2026-11-30\", \"figures\": {\"k_half\": {\"value\": 105, \"prior\": 120, "
      "\"standard_error\": 20, \"rows\": \"t.csv: 12 rows (a 7, b 5); u.csv: 2 rows (c 2)\", "
      "\"source\": \"fit\", \"sure\": \"fit\"}}}";
  const Catalog catalog = Catalog::from_texts({{"calibration/a100.json", part}}, mistakes);
  ASSERT_THAT(mistakes, IsEmpty()) << to_text(mistakes);
  ConstantTable table;
  table.constants = {{"k_half", 120, 0.3, 20, 500, {{"calibration", "*", "k_half"}}, "tiles"},
                     {"gone", 1, 0.3, 0, 2, {{"calibration", "*", "gone"}}, "of no file"}};
  const auto lines = constant_lines(catalog, table);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].value, "105");
  EXPECT_EQ(lines[0].rows, "t.csv: 12 rows; u.csv: 2 rows");
  EXPECT_EQ(lines[1].value, "-");
}

TEST(Markdown, table_and_numbers) {
  MarkdownTable table{"what", "rows>"};
  EXPECT_TRUE(table.is_empty());
  table.row({"a|b\nc", "3"});
  EXPECT_EQ(table.text(), "\n| what | rows |\n|---|---:|\n| a\\|b c | 3 |\n\n");
  EXPECT_EQ(signed_digit(0.04), "0.0");
  EXPECT_EQ(signed_digit(-0.04), "0.0");
  EXPECT_EQ(signed_digit(-0.06), "-0.1");
  EXPECT_EQ(signed_digit(2), "+2.0");
  EXPECT_EQ(one_digit(-0.01), "0.0");
}

}  // namespace
}  // namespace trainyard::scenarios
