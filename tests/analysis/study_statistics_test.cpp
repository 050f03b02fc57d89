#include "analysis/study_statistics.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "sim/check.hpp"
#include "sim/random.hpp"

namespace trainyard::analysis {
namespace {

using testing::ElementsAre;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

/// Axes a (1, 2) and b (x, y); one metric, of which more is better; values[point][replication].
Study grid(const std::vector<std::vector<double>>& values) {
  Study s;
  s.axes = {{"a", "cluster.spares", "1", false}, {"b", "", "", false}};
  s.metrics = {{"goodput", "jobs.llm.goodput", "1", Better::higher}};
  s.points = {{{"1", "x"}, {1, none}},
              {{"1", "y"}, {1, none}},
              {{"2", "x"}, {2, none}},
              {{"2", "y"}, {2, none}}};
  for (std::size_t p = 0; p < values.size(); ++p)
    for (std::size_t r = 0; r < values[p].size(); ++r) {
      StudyRun run;
      run.point = p;
      run.replication = r;
      run.seed = 1 + r;
      run.state = std::isnan(values[p][r]) ? "failed" : "complete";
      run.fingerprint = std::to_string(values[p][r]);
      run.values = {values[p][r]};
      s.runs.push_back(run);
    }
  return s;
}

TEST(StudyStatistics, ranks_points_on_equal_luck) {
  // Differences to the first are 1 exactly, whatever luck does; point 3 is level with it.
  const Study s = grid({{5, 7, 9}, {4, 6, 8}, {4, 6, 8}, {5.1, 6.9, 9}});
  const auto rankings = rank_points(s, 0);
  ASSERT_EQ(rankings.size(), 1u);
  const PointRanking* ranking = &rankings[0];
  EXPECT_EQ(ranking->replications, 3u);
  EXPECT_THAT(ranking->points, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(ranking->ranking.best, 0u);
  EXPECT_FALSE(ranking->ranking.systems[1].is_tied);
  EXPECT_TRUE(ranking->ranking.systems[3].is_tied);
  EXPECT_DOUBLE_EQ(ranking->ranking.systems[1].behind.mean, 1);
  EXPECT_DOUBLE_EQ(ranking->ranking.systems[0].value.mean, 7);
  // Only point 3 has a paired difference that varies: -0.1, 0.1, 0: its variance is 0.01. Unpaired:
  // 4 and that of 5.1, 6.9, 9, which is 3.81. sqrt(7.81 / 0.01) = 27.9.
  EXPECT_NEAR(ranking->pairing_gain, 27.946, 0.001);
}

TEST(StudyStatistics, the_lowest_can_be_the_best) {
  Study s = grid({{5, 7}, {4, 6}, {8, 9}, {5, 7}});
  s.metrics[0].better = Better::lower;
  const auto rankings = rank_points(s, 0);
  ASSERT_EQ(rankings.size(), 1u);
  const PointRanking* ranking = &rankings[0];
  EXPECT_EQ(ranking->ranking.best, 1u);
  EXPECT_DOUBLE_EQ(ranking->ranking.systems[1].value.mean, 5);
  EXPECT_DOUBLE_EQ(ranking->ranking.systems[0].behind.mean, 1);  // behind is worse, above zero
  s.metrics[0].better = Better::neither;
  EXPECT_TRUE(rank_points(s, 0).empty());
}

TEST(StudyStatistics, points_are_ranked_for_each_value_that_is_given) {
  Study s = grid({{5, 7}, {4, 6}, {8, 9}, {9, 10}});
  s.axes[0].is_given = true;
  const auto rankings = rank_points(s, 0);
  ASSERT_EQ(rankings.size(), 2u);
  EXPECT_THAT(rankings[0].points, ElementsAre(0, 1));
  EXPECT_EQ(rankings[0].points[rankings[0].ranking.best], 0u);
  EXPECT_EQ(rankings[1].points[rankings[1].ranking.best], 3u);
  EXPECT_EQ(s.name_of_part(3, true), "a 2");
  EXPECT_EQ(s.name_of_part(3, false), "b y");
}

TEST(StudyStatistics, a_replication_that_failed_somewhere_is_left_out_everywhere) {
  const Study s = grid({{5, none, 9}, {4, 6, 8}, {4, 6, 8}, {5, 7, 9}});
  const auto rankings = rank_points(s, 0);
  const PointRanking* ranking = &rankings.at(0);
  EXPECT_EQ(ranking->replications, 2u);
  EXPECT_DOUBLE_EQ(ranking->ranking.systems[1].value.mean, 6);  // of 4 and 8
  EXPECT_EQ(finite(values_of(s, 0, 0)).size(), 2u);
}

TEST(StudyStatistics, what_an_axis_does_is_told_over_pairs_of_points) {
  // b = y against x: at a = 1 by -1, -1, at a = 2 by -3, -5. Means over pairs of points: -2, -3.
  const Study s = grid({{5, 7}, {4, 6}, {8, 9}, {5, 4}});
  const auto effects = axis_effects(s, 0);
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_EQ(effects[1].axis, 1u);
  EXPECT_EQ(effects[1].label, "y");
  EXPECT_EQ(effects[1].against, "x");
  EXPECT_EQ(effects[1].points, 2u);
  EXPECT_DOUBLE_EQ(effects[1].difference.mean, -2.5);
  // t(0.975, 1) s / sqrt(2) = 12.7062 * 0.7071 / 1.4142 = 6.3531
  EXPECT_NEAR(effects[1].difference.half_width, 6.3531, 1e-4);
  EXPECT_DOUBLE_EQ(effects[1].mean_against, 7.25);
  // Means over pairs at x: 6.5, 8; at y: 4.5, 5. Variances 1.125, 0.125 against 0.5 of -2, -3.
  EXPECT_NEAR(effects[1].pairing_gain, std::sqrt(1.25 / 0.5), 1e-12);
}

TEST(StudyStatistics, an_axis_that_changes_nothing_is_found) {
  Study s = grid({{5, 7}, {5, 7}, {8, 9}, {8, 9}});
  auto found = axes_without_effect(s);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].axis, 1u);
  EXPECT_TRUE(found[0].is_same_run);
  EXPECT_EQ(found[0].pairs, 4u);
  s.runs[2].fingerprint = "other events, the same figures";
  found = axes_without_effect(s);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].is_same_run);
  s.runs[2].values[0] = std::nextafter(s.runs[2].values[0], 9);
  EXPECT_TRUE(axes_without_effect(s).empty());
}

TEST(StudyStatistics, the_top_of_a_curve_lies_where_it_was_put) {
  Study s;
  s.axes = {{"interval", "jobs.llm.checkpoint.interval", "s", false}};
  s.metrics = {{"goodput", "", "1", Better::higher}};
  sim::Stream luck(sim::Seed{8}, "curve");
  const std::vector<double> at{100, 200, 400, 800, 1600, 3200};
  for (std::size_t p = 0; p < at.size(); ++p) {
    s.points.push_back({{std::to_string(at[p])}, {at[p]}});
    for (std::size_t r = 0; r < 6; ++r) {
      StudyRun run;
      run.point = p;
      run.replication = r;
      run.state = "complete";
      const double x = std::log(at[p] / 500);  // the top is at 500
      run.values = {0.9 - 0.01 * x * x + 0.002 * luck.normal()};
      s.runs.push_back(run);
    }
  }
  const auto found = optima(s, 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].is_log);
  ASSERT_TRUE(found[0].top.has_value());
  EXPECT_NEAR(found[0].top->at, 500, 50);
  EXPECT_LT(found[0].top->low, 500);
  EXPECT_GT(found[0].top->high, 500);
  EXPECT_NEAR(found[0].top->value, 0.9, 0.003);
  EXPECT_THAT(found[0].points, ElementsAre(0, 1, 2, 3, 4));  // near the best: at 400
  // A curve whose best is its first point says nothing of where the top is.
  for (StudyRun& run : s.runs) run.values[0] = 1 - 0.01 * double(run.point);
  const auto falling = optima(s, 0);
  ASSERT_EQ(falling.size(), 1u);
  EXPECT_TRUE(falling[0].is_at_end);
  EXPECT_FALSE(falling[0].top.has_value());
}

TEST(Bootstrap, covers_a_skewed_mean_about_as_often_as_it_says) {
  sim::Stream luck(sim::Seed{3}, "skewed");
  int covered = 0, covered_by_student = 0;
  constexpr int studies = 400;
  for (int i = 0; i < studies; ++i) {
    std::vector<double> x(30);
    for (double& v : x) v = luck.exponential(1.0);  // mean 1
    const BootstrapInterval b = bootstrap_mean(x, 0.95);
    covered += b.low <= 1 && 1 <= b.high ? 1 : 0;
    const MeanInterval m = mean_interval(x, 0.95);
    covered_by_student += m.low() <= 1 && 1 <= m.high() ? 1 : 0;
    EXPECT_LE(b.low, b.mean);
    EXPECT_GE(b.high, b.mean);
  }
  EXPECT_NEAR(covered / double(studies), 0.93, 0.03);
  EXPECT_NEAR(covered_by_student / double(studies), 0.93, 0.03);
  EXPECT_THROW(bootstrap_mean({1}, 0.95), CheckFailed);
  const BootstrapInterval same = bootstrap_mean({2, 2, 2}, 0.95);
  EXPECT_EQ(same.low, 2);
  EXPECT_EQ(same.high, 2);
}

TEST(Quantile, lies_between_the_order_statistics_of_the_books) {
  std::vector<double> x;
  for (int i = 10; i >= 1; --i) x.push_back(i);
  // The median of ten: the second and the ninth value, with a confidence of 97.9 %.
  const QuantileInterval median = quantile(x, 0.5, 0.95);
  EXPECT_DOUBLE_EQ(median.value, 5.5);
  EXPECT_EQ(median.low, 2);
  EXPECT_EQ(median.high, 9);
  // Five values cannot bound their median at 95 %: 1 - 2/32 = 93.75 %.
  const QuantileInterval few = quantile({1, 2, 3, 4, 5}, 0.5, 0.95);
  EXPECT_EQ(few.low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(few.high, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace trainyard::analysis
