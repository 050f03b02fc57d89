#include "cli/compare.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/study_file.hpp"
#include "cli/command.hpp"
#include "cli/html_report.hpp"
#include "cli/study_report.hpp"

namespace trainyard::cli {
namespace {

using analysis::Better;
using analysis::Study;
using testing::HasSubstr;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

/// Two points, three replications from the seed 1 on; goodput and losses as given.
Study study_of(const std::vector<std::vector<double>>& goodput, std::uint64_t first_seed = 1) {
  Study s;
  s.name = "made-up";
  s.question = "<1:1> or 4:1?";
  s.base = R"({"name": "x", "cluster": {"spares": 2, "servers": 34}})";
  s.axes = {{"taper", "cluster.fabric.leaf_oversubscription", "1", false}};
  s.metrics = {{"goodput", "jobs.llm.goodput", "1", Better::higher},
               {"step_s", "jobs.llm.step_s", "s", Better::lower}};
  s.accounts = {"useful", "restart"};
  for (std::size_t p = 0; p < goodput.size(); ++p) {
    s.points.push_back({{std::to_string(1 + p)}, {double(1 + p)}});
    for (std::size_t r = 0; r < goodput[p].size(); ++r)
      s.runs.push_back({p,
                        r,
                        first_seed + r,
                        std::isnan(goodput[p][r]) ? "failed" : "complete",
                        "f",
                        {goodput[p][r], 2.0},
                        {goodput[p][r], 1 - goodput[p][r]}});
  }
  return s;
}

CompareSide side(const Study& study, std::optional<std::size_t> point) {
  CompareSide out;
  out.name = "side";
  out.study = study;
  out.scenario = study.base;
  out.point = point;
  if (point) std::erase_if(out.study.runs, [&](const auto& r) { return r.point != *point; });
  return out;
}

TEST(Compare, points_of_a_study_are_compared_on_equal_luck) {
  const Study s = study_of({{0.90, 0.80, 0.70}, {0.88, 0.79, 0.67}});
  const Comparison c = compare(side(s, 0), side(s, 1));
  ASSERT_EQ(c.metrics.size(), 2u);
  EXPECT_TRUE(c.metrics[0].is_paired);
  EXPECT_EQ(c.metrics[0].n_a, 3u);
  // -0.02, -0.01, -0.03: mean -0.02, s = 0.01, t(0.975, 2) = 4.3027.
  EXPECT_NEAR(c.metrics[0].difference.mean, -0.02, 1e-12);
  EXPECT_NEAR(c.metrics[0].difference.half_width, 4.3027 * 0.01 / std::sqrt(3), 1e-5);
  EXPECT_THAT(c.metrics[0].verdict, HasSubstr("cannot be told apart at 95 %"));
  EXPECT_EQ(c.metrics[1].verdict, "equal");
  ASSERT_EQ(c.settings.size(), 1u);
  EXPECT_EQ(c.settings[0].path, "axis taper");
  EXPECT_EQ(c.settings[0].b, "2");
  EXPECT_NEAR(c.ledger[0].a, 0.8, 1e-12);
}

TEST(Compare, the_verdict_knows_what_is_better) {
  const Study s = study_of({{0.90, 0.80, 0.70}, {0.85, 0.75, 0.65}});
  EXPECT_EQ(compare(side(s, 0), side(s, 1)).metrics[0].verdict, "a is better");
  EXPECT_EQ(compare(side(s, 1), side(s, 0)).metrics[0].verdict, "b is better");
  Study low = s;
  low.metrics[0].better = Better::lower;
  EXPECT_EQ(compare(side(low, 0), side(low, 1)).metrics[0].verdict, "b is better");
  low.metrics[0].better = Better::neither;
  EXPECT_EQ(compare(side(low, 0), side(low, 1)).metrics[0].verdict, "a is higher");
}

TEST(Compare, other_seeds_are_not_paired_and_it_is_said) {
  const Comparison c = compare(side(study_of({{0.9, 0.8, 0.7}, {1, 1, 1}}), 0),
                               side(study_of({{0.5, 0.4, 0.3}, {1, 1, 1}}, 100), 0));
  EXPECT_FALSE(c.metrics[0].is_paired);
  EXPECT_NEAR(c.metrics[0].difference.mean, -0.4, 1e-12);
  EXPECT_THAT(c.notes, testing::Contains(HasSubstr("no two runs have the same seed")));
}

TEST(Compare, studies_are_compared_over_their_common_points_and_settings) {
  Study other = study_of({{0.8, 0.7, 0.6}, {0.7, none, 0.5}});
  other.base = R"({"name": "y", "cluster": {"spares": 4, "servers": 34}})";
  const Comparison c =
      compare(side(study_of({{0.90, 0.80, 0.70}, {0.8, 0.7, 0.6}}), {}), side(other, {}));
  EXPECT_EQ(c.metrics[0].n_a, 2u);  // the second replication failed at one point
  EXPECT_NEAR(c.metrics[0].difference.mean, -0.1, 1e-12);
  ASSERT_EQ(c.settings.size(), 1u);
  EXPECT_EQ(c.settings[0].path, "cluster.spares");
  const auto json = nlohmann::json::parse(compare_json(c));
  EXPECT_EQ(json["goodput"]["verdict"], "a is better");
  EXPECT_EQ(json["settings"][0]["a"], "2");
}

TEST(Compare, one_run_a_side_has_no_interval) {
  const Study s = study_of({{0.9}, {0.8}});
  const Comparison c = compare(side(s, 0), side(s, 1));
  EXPECT_EQ(c.metrics[0].verdict, "a is better, in one run");
  EXPECT_THAT(compare_text(c, Terminal{}),
              HasSubstr("what luck does to the differences is not known"));
  EXPECT_TRUE(nlohmann::json::parse(compare_json(c))["goodput"]["low"].is_null());
}

TEST(Compare, a_point_and_a_whole_study_cannot_be_compared) {
  const Study s = study_of({{0.9, 0.8}, {0.8, 0.7}});
  EXPECT_THROW(compare(side(s, 0), side(s, {})), Failure);
  EXPECT_THROW(read_side("no-such-file.h5"), Failure);
}

TEST(StudyReport, figures_have_the_digits_that_their_interval_deserves) {
  EXPECT_EQ(figure(0.93214567, 0.0021), "0.9321");
  EXPECT_EQ(figure(825.34, 2.7), "825.3");
  EXPECT_EQ(figure(2575516, 0), "2,575,516");
  EXPECT_EQ(figure(4.562543158, 4e-16), "4.5625");
  EXPECT_EQ(with_interval(0.5, 0.01, Terminal{}), "0.500 +- 0.010");
  EXPECT_EQ(with_interval(1e-16, 2e-16, Terminal{}), "0 +- 0");
}

TEST(StudyReport, says_the_answer_the_axis_that_does_nothing_and_what_failed) {
  Study s = study_of({{0.9, 0.8, 0.7}, {0.9, 0.8, 0.7}});
  const std::string text = study_text(s, Terminal{});
  EXPECT_THAT(text, HasSubstr("goodput is highest with taper 1"));
  EXPECT_THAT(text, HasSubstr("the axis taper changes nothing"));
  s.builds = "0.1.0 a, 0.1.0 b";
  EXPECT_THAT(study_warnings(s)[0], HasSubstr("several builds"));
  s.builds = "0.1.0 a";
  s.no_effect = {"cluster.fabric.leaf_oversubscription: no traffic crosses a leaf"};
  EXPECT_THAT(study_warnings(s)[0], HasSubstr("The runs say why: no traffic crosses a leaf"));
  s.runs[0].state = "failed";
  s.runs[0].values = {none, none};
  SweepFacts facts;
  EXPECT_THAT(sweep_text(s, facts, Terminal{}), HasSubstr("1 run failed"));
  const auto json = nlohmann::json::parse(sweep_json(s, facts));
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["done"], 5);
  EXPECT_EQ(json["axes_without_effect"][0]["axis"], "taper");
}

TEST(StudyReport, a_html_report_needs_nothing_else_and_escapes) {
  const std::string html = study_html(study_of({{0.9, 0.8, 0.7}, {0.85, 0.75, 0.68}}));
  EXPECT_THAT(html, HasSubstr("&lt;1:1&gt; or 4:1?"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  for (const char* foreign : {"src=", "href=", "<script", "@import", "url("})
    EXPECT_THAT(html, testing::Not(HasSubstr(foreign))) << foreign;
  EXPECT_LT(html.find("goodput is highest"), html.find("<svg"));  // the answer comes first
}

}  // namespace
}  // namespace trainyard::cli
