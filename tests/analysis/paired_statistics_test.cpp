#include "analysis/paired_statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/random.hpp"

namespace trainyard::analysis {
namespace {

TEST(Student, quantiles_are_those_of_the_tables) {
  // Table of percentage points of the t-distribution (Abramowitz and Stegun, 26.10; NIST/SEMATECH
  // e-Handbook, 1.3.6.7.2): degrees of freedom, p, t.
  const struct {
    double degrees, p, t;
  } table[] = {{1, 0.975, 12.706}, {2, 0.975, 4.303},   {3, 0.99, 4.541},    {4, 0.975, 2.776},
               {5, 0.95, 2.015},   {9, 0.975, 2.262},   {10, 0.995, 3.169},  {19, 0.975, 2.093},
               {30, 0.999, 3.385}, {100, 0.975, 1.984}, {1, 0.9995, 636.619}};
  for (const auto& row : table)
    EXPECT_NEAR(student_quantile(row.p, row.degrees), row.t, 0.0005 * std::max(1.0, row.t / 100))
        << row.degrees << ' ' << row.p;
}

TEST(Student, one_and_two_degrees_have_closed_forms) {
  for (const double p : {0.0001, 0.01, 0.3, 0.5, 0.7, 0.975, 0.9999}) {
    const double one = std::tan(M_PI * (p - 0.5));
    const double two = (2 * p - 1) / std::sqrt(2 * p * (1 - p));
    EXPECT_NEAR(student_quantile(p, 1), one, 1e-11 * std::max(1.0, std::abs(one))) << p;
    EXPECT_NEAR(student_quantile(p, 2), two, 1e-11 * std::max(1.0, std::abs(two))) << p;
  }
}

TEST(Student, many_degrees_are_the_normal_law) {
  EXPECT_NEAR(student_quantile(0.975, 1e7), 1.959964, 1e-6);
  EXPECT_NEAR(student_cdf(-3.0, 1e7), 0.001349898, 1e-8);
}

TEST(Student, the_quantile_undoes_the_distribution) {
  for (const double degrees : {1.0, 3.0, 7.5, 40.0})
    for (const double t : {-15.0, -8.0, -1.0, -0.01, 0.3, 2.0})
      EXPECT_NEAR(student_quantile(student_cdf(t, degrees), degrees), t, 1e-8 * std::abs(t))
          << degrees << ' ' << t;
}

TEST(PairedDifference, by_hand) {
  // d = 1, 2, 1: mean 4/3, variance 1/3, standard error 1/3, t(0.975, 2) = 4.3027.
  const double x[] = {3, 5, 4}, y[] = {2, 3, 3};
  const MeanInterval d = paired_difference(x, y, 0.95);
  EXPECT_NEAR(d.mean, 4.0 / 3, 1e-15);
  EXPECT_NEAR(d.half_width, 4.302653 / 3, 1e-6);
  EXPECT_EQ(d.n, 3u);
}

TEST(PairedDifference, of_one_value_is_unbounded_and_of_equal_values_exact) {
  const double one[] = {3}, same[] = {2, 2, 2}, less[] = {1, 1, 1};
  EXPECT_TRUE(std::isinf(mean_interval(one, 0.95).half_width));
  EXPECT_EQ(paired_difference(same, less, 0.95).half_width, 0);
}

TEST(RankSystems, common_luck_cancels) {
  // Luck moves all by 10; the second is 1 +- 0.1 better. Unpaired, nothing could be said.
  const std::vector<std::vector<double>> x{{0, 10, 20, 30}, {1.1, 10.9, 21.1, 30.9}};
  const Ranking r = rank_systems(x, 0.95);
  EXPECT_EQ(r.best, 1u);
  EXPECT_TRUE(r.systems[1].is_tied);
  EXPECT_FALSE(r.systems[0].is_tied);
  EXPECT_NEAR(r.systems[0].behind.mean, 1.0, 1e-12);
  EXPECT_GT(r.systems[0].value.half_width, 15);
}

TEST(RankSystems, both_sides_of_the_boundary) {
  // d = m + (-1, 0, 1): s = 1; one-sided t(0.95, 2) = 2.920, so the bound is 2.920 / sqrt(3) =
  // 1.6859.
  for (const double m : {1.68, 1.69}) {
    const Ranking r = rank_systems({{0, 0, 0}, {m - 1, m, m + 1}}, 0.95);
    EXPECT_EQ(r.systems[0].is_tied, m < 1.6859) << m;
  }
}

TEST(MeanInterval, covers_the_truth_as_often_as_it_says) {
  // 4000 intervals from 6 normal values each: coverage 0.90 +- 4 x 0.0047.
  sim::Stream stream(sim::Seed{7}, "coverage");
  int held = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    std::vector<double> x(6);
    for (double& v : x) v = 5 + 2 * stream.normal();
    const MeanInterval m = mean_interval(x, 0.90);
    held += m.low() <= 5 && 5 <= m.high();
  }
  EXPECT_NEAR(held / 4000.0, 0.90, 0.019);
}

TEST(RankSystems, keeps_the_best_as_often_as_it_says) {
  // Five systems, four of them equally good and one hardly better: the worst case for a screening.
  sim::Stream stream(sim::Seed{11}, "screening");
  int kept = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::vector<double>> x(5, std::vector<double>(8));
    for (std::size_t r = 0; r < 8; ++r) {
      const double luck = 3 * stream.normal();
      for (std::size_t i = 0; i < 5; ++i) x[i][r] = luck + stream.normal() + (i == 2 ? 0.001 : 0.0);
    }
    kept += rank_systems(x, 0.95).systems[2].is_tied;
  }
  EXPECT_GE(kept / 2000.0, 0.95 - 0.015);  // three standard errors
}

TEST(ParabolaTop, of_an_exact_parabola_is_its_top) {
  // 5 - (x - 2)^2, with the same luck in all points of a replication.
  const std::vector<double> at{0, 1, 2, 3, 5};
  std::vector<std::vector<double>> y;
  for (const double x : at) y.push_back({5 - (x - 2) * (x - 2), 6 - (x - 2) * (x - 2)});
  const auto top = parabola_top(at, y, 0.95);
  ASSERT_TRUE(top.has_value());
  EXPECT_NEAR(top->at, 2, 1e-12);
  EXPECT_NEAR(top->low, 2, 1e-6);
  EXPECT_NEAR(top->high, 2, 1e-6);
  EXPECT_NEAR(top->value, 5.5, 1e-12);
}

TEST(ParabolaTop, a_flat_or_hollow_curve_has_none) {
  const std::vector<double> at{0, 1, 2};
  EXPECT_FALSE(parabola_top(at, {{1, 2, 3}, {1.1, 1.9, 3}, {1, 2, 3.1}}, 0.95).has_value());
  EXPECT_FALSE(parabola_top(at, {{4, 4}, {1, 1}, {4, 4}}, 0.95).has_value());
}

TEST(ParabolaTop, its_interval_covers_the_truth) {
  sim::Stream stream(sim::Seed{13}, "fieller");
  const std::vector<double> at{-1, -0.5, 0, 0.5, 1};
  int held = 0, found = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::vector<double>> y(at.size(), std::vector<double>(8));
    for (std::size_t r = 0; r < 8; ++r)
      for (std::size_t i = 0; i < at.size(); ++i)
        y[i][r] = -(at[i] - 0.2) * (at[i] - 0.2) + 0.15 * stream.normal();
    const auto top = parabola_top(at, y, 0.95);
    if (!top) continue;
    ++found;
    held += top->low <= 0.2 && 0.2 <= top->high;
  }
  EXPECT_GT(found, 1900);
  EXPECT_NEAR(double(held) / found, 0.95, 0.02);
}

TEST(UnpairedDifference, is_the_interval_of_welch) {
  // Variances of the means: 1 / 3 and 4 / 3; degrees (5/3)^2 / ((1/9) / 2 + (16/9) / 2) = 2.941;
  // t(0.975, 2.941) = 3.218, times sqrt(5/3).
  const std::vector<double> x{4, 5, 6}, y{0, 2, 4};
  const MeanInterval d = unpaired_difference(x, y, 0.95);
  EXPECT_DOUBLE_EQ(d.mean, 3);
  EXPECT_NEAR(d.half_width, student_quantile(0.975, 50.0 / 17) * std::sqrt(5.0 / 3), 1e-12);
  EXPECT_NEAR(d.half_width, 4.154, 0.005);
  EXPECT_TRUE(std::isinf(unpaired_difference(std::vector<double>{1.0}, y, 0.95).half_width));
}

}  // namespace
}  // namespace trainyard::analysis
