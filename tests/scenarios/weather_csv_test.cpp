#include "scenarios/weather_csv.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <numbers>
#include <sstream>

namespace trainyard::scenarios {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

WeatherFile read(const std::string& text, const models::WeatherSpec& spec = {}) {
  std::istringstream in(text);
  return read_weather_csv(in, "week.csv", spec);
}

models::WeatherSeries series_of(const std::string& text, const models::WeatherSpec& spec = {}) {
  const WeatherFile file = read(text, spec);
  EXPECT_EQ(to_text(file.diagnostics), "");
  return file.series.value_or(models::WeatherSeries{});
}

TEST(WeatherCsv, has_one_line_an_hour) {
  const models::WeatherSeries s = series_of("dry_C,wet_C\n21.4,17.9\n-3,-4.25\n1e1,9\n");
  EXPECT_THAT(s.dry, ElementsAre(21.4, -3, 10));
  EXPECT_THAT(s.wet, ElementsAre(17.9, -4.25, 9));
  EXPECT_EQ(s.reading, models::SeriesReading::steps);
}

TEST(WeatherCsv, may_have_comments_blanks_and_other_line_ends) {
  const std::vector<double> dry = {21.4, 20.8}, wet = {17.9, 17.6};
  for (const char* text :
       {"dry_C,wet_C\r\n21.4,17.9\r\n20.8,17.6\r\n", "dry_C,wet_C\n21.4,17.9\n20.8,17.6",
        "\xEF\xBB\xBF"
        "dry_C,wet_C\n21.4,17.9\n20.8,17.6\n",
        "\xEF\xBB\xBF# a comment, with a comma and a \" quote\n\n  # "
        "two\ndry_C,wet_C\n21.4,17.9\n# x\n"
        "  \n20.8,17.6\n#",
        "wet_C, dry_C\n 17.9,\t21.4 \n17.6, 20.8\n",
        "\"dry_C\",wet_C\n\"21.4\",17.9\n20.8,17.6\n"}) {
    const models::WeatherSeries s = series_of(text);
    EXPECT_EQ(s.dry, dry) << text;
    EXPECT_EQ(s.wet, wet) << text;
  }
}

TEST(WeatherCsv, takes_wet_bulbs_of_rounded_saturated_air_as_the_dry_bulb) {
  EXPECT_THAT(series_of("dry_C,wet_C\n10,10.5\n10,10\n60,60.5\n").wet, ElementsAre(10, 10, 60));
  EXPECT_FALSE(read("dry_C,wet_C\n10,10.51\n").series);
}

TEST(WeatherCsv, computes_wet_bulbs_from_relative_humidity_where_they_are_missing) {
  EXPECT_THAT(series_of("dry_C,relative_humidity\n20,50\n30,100\n").wet,
              ElementsAre(DoubleEq(models::wet_bulb(20, 50)), DoubleEq(models::wet_bulb(30, 100))));
  EXPECT_THAT(series_of("dry_C,wet_C,relative_humidity\n20,,50\n20,12,50\n20,12,\n").wet,
              ElementsAre(DoubleEq(models::wet_bulb(20, 50)), 12, 12));
}

// Dry bulbs 0, 1, ... 29: the first day has a mean of 11.5, the six hours of the second 26.5.
TEST(WeatherCsv, else_takes_the_dew_point_of_each_day_from_its_mean) {
  std::string text = "dry_C\n";
  for (int i = 0; i < 30; ++i) text += std::to_string(i) + '\n';
  models::WeatherSpec spec;
  spec.dew_point_depression = 4;
  const models::WeatherSeries s = series_of(text, spec);
  ASSERT_EQ(s.wet.size(), 30u);
  const auto expected = [](double dry, double dew) {
    return models::wet_bulb(dry, models::relative_humidity(dry, dew));
  };
  EXPECT_DOUBLE_EQ(s.wet[20], expected(20, 7.5));
  EXPECT_DOUBLE_EQ(s.wet[23], expected(23, 7.5));
  EXPECT_DOUBLE_EQ(s.wet[24], expected(24, 22.5));
  EXPECT_DOUBLE_EQ(s.wet[5], expected(5, 5));  // the dew point is not above the dry bulb
}

// A file of the sinusoid's own dry bulbs has the sinusoid's wet bulbs.
TEST(WeatherCsv, of_dry_bulbs_alone_agrees_with_the_sinusoid) {
  models::WeatherSpec spec;
  spec.year_swing = 0;
  const models::Weather sinusoid(spec);
  std::string text = "dry_C\n";
  for (int h = 0; h < 24; ++h) {
    std::ostringstream out;
    out.precision(17);
    out << sinusoid.at(start_of_run + std::chrono::hours(h)).dry;
    text += out.str() + '\n';
  }
  const models::Weather read_back(spec, series_of(text, spec));
  for (int h = 0; h < 48; ++h) {
    const Time t = start_of_run + std::chrono::hours(h);
    EXPECT_NEAR(read_back.at(t).wet, sinusoid.at(t).wet, 1e-9) << h;
  }
}

struct Mistake {
  const char* name;
  const char* text;
  const char* message;
  const char* hint;
};
std::ostream& operator<<(std::ostream& out, const Mistake& m) {
  return out << m.name;
}
class WeatherMistakes : public testing::TestWithParam<Mistake> {};
TEST_P(WeatherMistakes, are_said_with_their_place) {
  const WeatherFile file = read(GetParam().text);
  ASSERT_EQ(file.diagnostics.size(), 1u) << to_text(file.diagnostics);
  EXPECT_THAT(file.diagnostics[0].text(), HasSubstr(GetParam().message));
  EXPECT_THAT(file.diagnostics[0].text(), HasSubstr(GetParam().hint));
  EXPECT_FALSE(file.series);
}
INSTANTIATE_TEST_SUITE_P(
    WeatherCsv, WeatherMistakes,
    testing::Values(
        Mistake{"empty", "", "week.csv:1:1: error: the file is empty", "a header line"},
        Mistake{"comments_only", "# a\n# b\n", "the file is empty", "a header line"},
        Mistake{"no_hours", "# a\ndry_C,wet_C\n", "week.csv:2:1: error: there are no hours",
                "one line an hour"},
        Mistake{"column", "\n# a\ndry_c,wet_C\n1,1\n",
                "week.csv:3:1: error: unknown column \"dry_c\"", "did you mean \"dry_C\"?"},
        Mistake{"semicolon", "dry_C;wet_C\n1;1\n", "unknown column \"dry_C;wet_C\"", "hint"},
        Mistake{"no_header", "21.4\n20.9\n", "unknown column \"21.4\"", "with commas between"},
        Mistake{"no_dry", "wet_C\n1\n", "no column dry_C", "dry bulb of each hour"},
        Mistake{"twice", "dry_C,dry_C\n1,1\n", "stands in the header twice", "every name once"},
        Mistake{"ragged_more", "dry_C,wet_C\n2,1\n21,4,17\n", "week.csv:3:1: error: found 3 fields",
                "2, as in the header"},
        Mistake{"ragged_less", "dry_C,wet_C\n2\n", "week.csv:2:1: error: found 1 fields", "2,"},
        Mistake{"nan", "dry_C,wet_C\n2,nan\n", "week.csv:2:3: error: wet_C: found \"nan\"", "-60"},
        Mistake{"infinite", "dry_C\ninf\n", "week.csv:2:1: error: dry_C: found \"inf\"", "-60"},
        Mistake{"word", "dry_C\n21 C\n", "dry_C: found \"21 C\"", "such as 21.4"},
        Mistake{"hot", "dry_C\n60\n60.1\n", "week.csv:3:1: error: dry_C: found \"60.1\"", "to 60"},
        Mistake{"cold", "dry_C\n-60\n-60.1\n", "week.csv:3:1: error: dry_C: found \"-60.1\"",
                "-60"},
        Mistake{"kelvin", "dry_C\r\n294.6\r\n", "dry_C: found \"294.6\"", "degrees Celsius"},
        Mistake{"swapped", "# a\ndry_C,wet_C\n17.9,21.4\n",
                "week.csv:3:6: error: wet_C: found \"21.4\" beside a dry bulb of 17.9", "swapped"},
        Mistake{"share", "dry_C,relative_humidity\n20,0.65\n",
                "week.csv:2:4: error: relative_humidity: found \"0.65\"", "a share of 0.65 is 65"},
        Mistake{"no_dry_here", "dry_C,wet_C\n,1\n", "week.csv:2:1: error: dry_C: is empty",
                "every"},
        Mistake{"gap", "dry_C,wet_C\n1,\n", "week.csv:2:3: error: wet_C: is empty",
                "or no such column"},
        Mistake{"gap_of_both", "dry_C,wet_C,relative_humidity\n1,,\n", "wet_C: is empty",
                "a wet bulb or a relative humidity"},
        Mistake{"gap_of_humidity", "dry_C,relative_humidity\n1,\n", "relative_humidity: is empty",
                "in every hour"}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(WeatherCsv, of_many_mistakes_says_a_hundred) {
  std::string text = "dry_C\n";
  for (int i = 0; i < 300; ++i) text += "hot\n";
  EXPECT_EQ(read(text).diagnostics.size(), 101u);
}

TEST(WeatherCsv, is_read_from_a_file) {
  const auto path = std::filesystem::path(testing::TempDir()) / "weather_csv_test.csv";
  std::ofstream(path) << "dry_C,wet_C\n20,15\n";
  EXPECT_TRUE(read_weather_csv(path, {}).series);
  std::filesystem::remove(path);
  const WeatherFile missing = read_weather_csv(path, {});
  ASSERT_EQ(missing.diagnostics.size(), 1u);
  EXPECT_THAT(missing.diagnostics[0].text(), HasSubstr("there is no such file"));
  EXPECT_EQ(missing.diagnostics[0].code, "file");
  EXPECT_EQ(read_weather_csv(testing::TempDir(), {}).diagnostics.size(), 1u);
}

TEST(SummerWeek, is_what_its_header_says) {
  const WeatherFile file =
      read_weather_csv(TRAINYARD_LIBRARY "/weather/summer-week.csv", models::WeatherSpec{});
  ASSERT_TRUE(file.series) << to_text(file.diagnostics);
  ASSERT_EQ(file.series->dry.size(), 168u);
  constexpr double pi = std::numbers::pi;
  for (int i = 0; i < 168; ++i) {
    const double h = i + 0.5, w = std::pow(std::sin(pi * h / 168), 2);
    const double dry = 22 + 8 * w + 7 * std::cos(2 * pi * (h - 15) / 24), dew = 14 + 3 * w;
    const auto hour = std::size_t(i);
    EXPECT_NEAR(file.series->dry[hour], dry, 0.0501) << i;
    EXPECT_NEAR(file.series->wet[hour], models::wet_bulb(dry, models::relative_humidity(dry, dew)),
                0.0501)
        << i;
  }
}

}  // namespace
}  // namespace trainyard::scenarios
