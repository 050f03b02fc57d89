#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/json_tree.hpp"

namespace trainyard::scenarios {
namespace {

Node parsed(const std::string& text) {
  std::vector<Diagnostic> mistakes;
  const auto source = make_source("t.json", text, mistakes);
  Node node = source ? parse_json(source, mistakes) : Node{};
  EXPECT_TRUE(mistakes.empty()) << to_text(mistakes);
  return node;
}

std::string place(const Node& node) {
  const Place& p = node.place;
  return std::to_string(p.key_line) + ":" + std::to_string(p.key_column) + " " +
         std::to_string(p.line) + ":" + std::to_string(p.column);
}

// Columns counted by hand; 'ä' is one character.
TEST(JsonTree, knows_where_each_key_and_value_stands) {
  const Node root = parsed(
      "// first line\n"
      "{ \"a\": 12,/* x */\"b\" : [ true, null,\n"
      "   -3.5e2 ], \"\xC3\xA4\": \"\\\"q\", // end\n"
      "  \"o\": {\"p\":\n"
      "    {}}}\n");
  EXPECT_EQ(place(root), "2:1 2:1");
  EXPECT_EQ(place(*root.find("a")), "2:3 2:8");
  EXPECT_EQ(place(*root.find("b")), "2:18 2:24");
  EXPECT_EQ(place(root.find("b")->items[0]), "2:26 2:26");
  EXPECT_EQ(place(root.find("b")->items[1]), "2:32 2:32");
  EXPECT_EQ(place(root.find("b")->items[2]), "3:4 3:4");
  EXPECT_EQ(root.find("b")->items[2].text, "-3.5e2");
  EXPECT_EQ(place(*root.find("\xC3\xA4")), "3:14 3:19");
  EXPECT_EQ(root.find("\xC3\xA4")->text, "\"q");
  EXPECT_EQ(place(*root.find("o")->find("p")), "4:9 5:5");
}

TEST(JsonTree, a_comment_right_behind_a_number_does_not_shift_places) {
  const Node root = parsed("{\"a\": 1/* c, \"x\": */,\n\"b\": 2// d\n}");
  EXPECT_EQ(place(*root.find("a")), "1:2 1:7");
  EXPECT_EQ(place(*root.find("b")), "2:1 2:6");
}

TEST(JsonTree, a_byte_order_mark_and_windows_line_ends_are_tolerated) {
  const Node root = parsed("\xEF\xBB\xBF{\r\n  \"a\": 1\r\n}\r\n");
  EXPECT_EQ(place(root), "1:1 1:1");
  EXPECT_EQ(place(*root.find("a")), "2:3 2:8");
}

TEST(JsonTree, one_level_more_than_allowed_is_too_deep) {
  const auto nested = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']');
  };
  parsed(nested(max_depth));
  std::vector<Diagnostic> mistakes;
  parse_json(make_source("t.json", nested(max_depth + 1), mistakes), mistakes);
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_EQ(mistakes[0].code, "too-deep");
}

TEST(JsonTree, twice_the_same_key_is_found_in_each_object_by_itself) {
  parsed(R"({"a": {"x": 1}, "b": {"x": 1}})");
  std::vector<Diagnostic> mistakes;
  parse_json(make_source("t.json", R"({"a": {"x": 1, "x": 2}, "a": 3})", mistakes), mistakes);
  ASSERT_EQ(mistakes.size(), 2u);
  EXPECT_EQ(mistakes[0].column, 16);
  EXPECT_EQ(mistakes[1].column, 25);
}

TEST(Nearest, finds_slips_but_not_other_words) {
  const std::vector<std::string> keys{"gpus", "global_batch", "sequence", "checkpoint"};
  EXPECT_EQ(nearest("gpu", keys), "gpus");
  EXPECT_EQ(nearest("GPUs", keys), "gpus");
  EXPECT_EQ(nearest("gups", keys), "gpus");  // a swap
  EXPECT_EQ(nearest("global-batch", keys), "global_batch");
  EXPECT_EQ(nearest("chekpiont", keys), "checkpoint");
  EXPECT_EQ(nearest("colour", keys), "");
  EXPECT_EQ(nearest("", keys), "");
}

}  // namespace
}  // namespace trainyard::scenarios
