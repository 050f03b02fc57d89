#include "cli/terminal.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace trainyard::cli {
namespace {

using testing::ElementsAre;

TEST(Numbers, have_three_significant_digits_and_change_magnitude_where_they_round_up) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(950), "950");
  EXPECT_EQ(short_number(2.4), "2.40");
  EXPECT_EQ(short_number(999.4), "999");
  EXPECT_EQ(short_number(999.5), "1.00 k");
  EXPECT_EQ(short_number(12345), "12.3 k");
  EXPECT_EQ(short_number(999'499), "999 k");
  EXPECT_EQ(short_number(999'500), "1.00 M");
  EXPECT_EQ(short_number(21.2e6), "21.2 M");
  EXPECT_EQ(short_number(9.994), "9.99");
  EXPECT_EQ(short_number(9.996), "10.0");
  EXPECT_EQ(short_number(-12345), "-12.3 k");
  EXPECT_EQ(short_number(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Numbers, get_a_comma_every_three_digits) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(-123), "-123");
  EXPECT_EQ(with_commas(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Percent, does_not_round_to_all_or_nothing) {
  EXPECT_EQ(percent(0), "0.0 %");
  EXPECT_EQ(percent(0.00049), "< 0.1 %");
  EXPECT_EQ(percent(0.0005), "0.1 %");
  EXPECT_EQ(percent(0.999), "99.9 %");
  EXPECT_EQ(percent(0.9996), "> 99.9 %");
  EXPECT_EQ(percent(1), "100.0 %");
  EXPECT_EQ(percent(1.5), "150.0 %");
  EXPECT_EQ(percent(0.0 / 0.0), "-");
}

TEST(Bar, is_drawn_in_eighths_of_a_column) {
  const Terminal unicode{.unicode = true};
  EXPECT_EQ(bar(unicode, 0, 4), "");
  EXPECT_EQ(bar(unicode, 0.5, 4), "██");
  EXPECT_EQ(bar(unicode, 1.0 / 32, 4), "▏");
  EXPECT_EQ(bar(unicode, 31.0 / 32, 4), "███▉");
  EXPECT_EQ(bar(unicode, 7, 4), "████");
  EXPECT_EQ(bar(unicode, 0.0 / 0.0, 4), "");
  EXPECT_EQ(bar(Terminal{}, 0.5, 4), "##");
}

TEST(Text, columns_are_counted_in_characters_not_bytes) {
  EXPECT_EQ(columns_of("█▏x"), 3u);
  EXPECT_EQ(right("é", 3), "  é");
  EXPECT_EQ(left("long", 2), "long");
}

TEST(Text, is_wrapped_at_spaces_and_a_long_word_stays_whole) {
  EXPECT_THAT(wrapped("aa bb cc", 5), ElementsAre("aa bb", "cc"));
  EXPECT_THAT(wrapped("aa bb cc", 4), ElementsAre("aa", "bb", "cc"));
  EXPECT_THAT(wrapped("  aaaaaaaa b ", 4), ElementsAre("aaaaaaaa", "b"));
  EXPECT_TRUE(wrapped("", 4).empty());
}

TEST(Colour, only_where_the_terminal_has_it) {
  EXPECT_EQ(painted(Terminal{.colour = false}, Colour::red, "x"), "x");
  EXPECT_EQ(painted(Terminal{.colour = true}, Colour::red, "x"), "\033[31mx\033[0m");
}

}  // namespace
}  // namespace trainyard::cli
