#include "analysis/svg_chart.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <regex>

namespace trainyard::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(SvgChart, ticks_are_round_and_enclose) {
  EXPECT_THAT(nice_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(nice_ticks(0.81, 0.94, 5), testing::SizeIs(testing::Le(8u)));
  EXPECT_LE(nice_ticks(0.81, 0.94, 5).front(), 0.81);
  EXPECT_GE(nice_ticks(0.81, 0.94, 5).back(), 0.94);
  EXPECT_GE(nice_ticks(5, 5, 5).size(), 2u);  // one value has a scale, too
}

TEST(SvgChart, an_envelope_loses_no_spike) {
  std::vector<double> x, y;
  for (int i = 0; i < 1000000; ++i) {
    x.push_back(i);
    y.push_back(i == 654321 ? 9.0 : 1.0);
  }
  keep_envelope(x, y, 300);
  EXPECT_LE(x.size(), 1200u);
  EXPECT_EQ(*std::max_element(y.begin(), y.end()), 9.0);
  EXPECT_EQ(x[std::size_t(std::max_element(y.begin(), y.end()) - y.begin())], 654321);
  EXPECT_TRUE(std::is_sorted(x.begin(), x.end()));
  EXPECT_EQ(x.front(), 0);
  EXPECT_EQ(x.back(), 999999);
}

TEST(SvgChart, a_curve_has_its_intervals_and_gaps) {
  LineChart chart{.title = "A < B & \"C\"", .x_title = "x, s", .y_title = "goodput"};
  chart.series = {
      {"one", {1, 2, 3, 4}, {0.5, none, 0.7, 0.6}, {0.4, none, 0.6, 0.5}, {0.6, none, 0.8, 0.7}},
      {"two", {1, 2}, {0.2, 0.3}, {}, {}}};
  const std::string svg = svg_of(chart);
  EXPECT_THAT(svg, HasSubstr("A &lt; B &amp; &quot;C&quot;"));
  EXPECT_EQ(count(svg, "<path d=\"M"), 2u);  // a curve each
  const std::size_t path = svg.find("<path d=\"M");
  EXPECT_EQ(count(svg.substr(path, svg.find('"', path + 9) - path), "M"), 2u);  // one gap
  EXPECT_EQ(count(svg, "<circle"), 4u);  // three values and the legend
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(svg, svg_of(chart));
}

TEST(SvgChart, nothing_is_said_to_be_nothing) {
  EXPECT_THAT(svg_of(LineChart{.title = "empty", .x_title = "x", .y_title = "y"}),
              HasSubstr("no data"));
  BarChart bars{.title = "bars", .x_title = "x"};
  bars.bars = {{"a", none, 0, "", false},
               {"b", 2, std::numeric_limits<double>::infinity(), "2", true}};
  const std::string svg = svg_of(bars);
  EXPECT_THAT(svg, HasSubstr("no value"));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(SvgChart, a_waterfall_ends_where_the_losses_leave_it) {
  WaterfallChart chart{.title = "t", .whole = "peak", .rest = "useful"};
  chart.losses = {{"bubble", 0.25, 0, "25 %", false}, {"restart", 0.15, 0, "15 %", false}};
  EXPECT_THAT(svg_of(chart), HasSubstr("60.00 %"));
}

}  // namespace
}  // namespace trainyard::analysis
