#include "analysis/least_squares.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "sim/check.hpp"

/// Problems with a known answer. Most are lines: with x_j = ln c_j and residuals linear in x, the
/// fit is ordinary linear regression, whose answer and standard errors are in every textbook.
namespace trainyard::analysis {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr double none = 1e9;   // a sigma that says nothing
constexpr double wide = 1000;  // a noise beside which no residual is an outlier

/// y_i = ln a + t_i ln b: residual = prediction - y.
struct Line {
  std::vector<double> t, y;

  RobustFit fit(double noise = wide) const {
    RobustFit out;
    out.parameters = {{.prior = 1, .sigma = none, .low = 1e-6, .high = 1e6},
                      {.prior = 1, .sigma = none, .low = 1e-6, .high = 1e6}};
    out.rows = t.size();
    out.residual = [this](std::span<const double> c, std::size_t i) {
      return std::log(c[0]) + t[i] * std::log(c[1]) - y[i];
    };
    out.noise = noise;
    return out;
  }
};

TEST(LeastSquares, recovers_the_constants_of_exact_data) {
  // Times of a rate and a latency: t(n) = n / rate + latency, not linear in the logarithms.
  const std::vector<double> sizes{1, 3, 10, 30, 100, 1000};
  RobustFit fit;
  fit.parameters = {{.prior = 30, .sigma = none, .low = 1, .high = 1000},
                    {.prior = 2, .sigma = none, .low = 0.01, .high = 100}};
  fit.rows = sizes.size();
  fit.residual = [&](std::span<const double> c, std::size_t i) {
    return std::log((sizes[i] / c[0] + c[1]) / (sizes[i] / 50 + 0.4));
  };
  fit.tolerance = 1e-9;
  const FitOutcome outcome = solve(fit);
  EXPECT_TRUE(outcome.is_converged);
  EXPECT_NEAR(outcome.values[0], 50, 50e-6);
  EXPECT_NEAR(outcome.values[1], 0.4, 0.4e-6);
  EXPECT_LT(outcome.cost, 1e-9);
  EXPECT_NEAR(outcome.residuals_before[5], std::log((1000.0 / 30 + 2) / 20.4), 1e-12);
}

TEST(LeastSquares, agrees_with_the_textbook_line_in_values_and_standard_errors) {
  // t = 0 1 2 3, y = 1 3 2 5: slope 11/10 (Sxy = 5.5, Sxx = 5), intercept 2.75 - 1.5 . 1.1 = 1.1.
  // Residuals 0.1 -0.8 1.3 -0.6 sum to 2.70 in squares; s2 = 2.70 / (4 - 2) = 1.35;
  // error of the slope sqrt(1.35 / 5), of the intercept sqrt(1.35 (1/4 + 1.5^2 / 5)).
  const Line line{{0, 1, 2, 3}, {1, 3, 2, 5}};
  const FitOutcome outcome = solve(line.fit());
  EXPECT_NEAR(std::log(outcome.values[0]), 1.1, 1e-5);
  EXPECT_NEAR(std::log(outcome.values[1]), 1.1, 1e-5);
  EXPECT_NEAR(outcome.noise, std::sqrt(1.35), 1e-4);
  EXPECT_NEAR(outcome.errors[1], std::sqrt(1.35 / 5), 1e-4);
  EXPECT_NEAR(outcome.errors[0], std::sqrt(1.35 * (0.25 + 2.25 / 5)), 1e-4);
  EXPECT_NEAR(outcome.derivative(3, 1), 3, 1e-6);
}

TEST(LeastSquares, weights_scaled_alike_change_neither_values_nor_errors) {
  const Line line{{0, 1, 2, 3}, {1, 3, 2, 5}};
  RobustFit light = line.fit();
  light.weights.assign(4, 0.1);
  const FitOutcome outcome = solve(light);
  EXPECT_NEAR(std::log(outcome.values[1]), 1.1, 1e-5);
  EXPECT_NEAR(outcome.errors[1], std::sqrt(1.35 / 5), 1e-4);
}

TEST(LeastSquares, a_row_of_weight_two_counts_as_two_rows) {
  const Line twice{{0, 1, 2, 3, 3}, {1, 3, 2, 5, 5}};
  const Line once{{0, 1, 2, 3}, {1, 3, 2, 5}};
  RobustFit weighted = once.fit();
  weighted.weights = {1, 1, 1, 2};
  const FitOutcome a = solve(twice.fit()), b = solve(weighted);
  EXPECT_NEAR(a.values[0] / b.values[0], 1, 1e-5);
  EXPECT_NEAR(a.values[1] / b.values[1], 1, 1e-5);
}

TEST(LeastSquares, outliers_hardly_move_a_robust_line) {
  // y = 0.5 + 0.2 t, and two of twenty rows off by 3: sixty times the noise.
  Line line;
  for (int i = 0; i < 20; ++i) {
    line.t.push_back(i);
    line.y.push_back(0.5 + 0.2 * i + (i == 3 || i == 17 ? 3.0 : 0.0));
  }
  const FitOutcome robust = solve(line.fit(0.05)), plain = solve(line.fit());
  // Plain: the mean of the outliers lifts the line by 2 . 3 / 20 = 0.3 at its centre.
  EXPECT_NEAR(std::log(plain.values[0]) + 9.5 * std::log(plain.values[1]), 2.4 + 0.3, 1e-4);
  // Soft L1 pulls with at most weight 1 / s each: 18 rows at r / s balance two at 1, r = s / 9.
  EXPECT_NEAR(std::log(robust.values[0]) + 9.5 * std::log(robust.values[1]), 2.4 + 0.05 / 9, 0.001);
  EXPECT_NEAR(std::log(robust.values[1]), 0.2, 0.001);
}

TEST(LeastSquares, a_constant_without_rows_stays_at_its_prior_with_its_sigma) {
  const Line line{{0, 0, 0}, {1.0, 1.1, 0.9}};  // never multiplies ln b
  RobustFit fit = line.fit();
  fit.parameters[1] = {.prior = 0.7, .sigma = 0.25, .low = 0.1, .high = 2, .start = 1.5};
  const FitOutcome outcome = solve(fit);
  EXPECT_NEAR(outcome.values[1], 0.7, 1e-6);
  EXPECT_NEAR(outcome.errors[1], 0.25, 1e-9);
  EXPECT_NEAR(outcome.effective_parameters, 1, 1e-6);
}

TEST(LeastSquares, prior_and_rows_meet_in_proportion_to_their_certainty) {
  // n rows of noise s say ln c = 1, the prior of the same width says 0: n / (n + 1). Squares below
  // the noise: soft L1 would shift it by (r/s)^2 / 2, so both are made wide.
  for (const int n : {1, 3, 9}) {
    RobustFit fit;
    fit.parameters = {{.prior = 1, .sigma = 1000, .low = 1e-3, .high = 1e3}};
    fit.rows = std::size_t(n);
    fit.noise = 1000;
    fit.residual = [](std::span<const double> c, std::size_t) { return std::log(c[0]) - 1; };
    EXPECT_NEAR(std::log(solve(fit).values[0]), n / (n + 1.0), 1e-5) << n << " rows";
  }
}

TEST(LeastSquares, a_bound_holds_and_the_rest_is_fitted_beside_it) {
  // Without the bound: slope 1.1. With ln b <= 0.5: the intercept is the mean of y - 0.5 t = 2.
  const Line line{{0, 1, 2, 3}, {1, 3, 2, 5}};
  RobustFit fit = line.fit();
  fit.parameters[1].high = std::exp(0.5);
  const FitOutcome outcome = solve(fit);
  EXPECT_EQ(outcome.values[1], std::exp(0.5));
  EXPECT_NEAR(std::log(outcome.values[0]), 2.0, 1e-5);
  EXPECT_THAT(outcome.is_at_bound, ElementsAre(false, true));
  EXPECT_TRUE(outcome.is_converged);
}

TEST(LeastSquares, only_touching_rows_are_evaluated_for_a_derivative) {
  RobustFit fit;
  fit.parameters = {{.prior = 2, .sigma = none, .low = 0.1, .high = 10},
                    {.prior = 2, .sigma = none, .low = 0.1, .high = 10}};
  fit.rows = 3;
  fit.touching = {{0}, {1}, {0, 1}};
  std::vector<int> asked(3, 0);
  fit.residual = [&](std::span<const double> c, std::size_t row) {
    ++asked[row];
    const double a = std::log(c[0]) - 0.3, b = std::log(c[1]) - 0.1;
    return row == 0 ? a : row == 1 ? b : a + b;
  };
  const FitOutcome outcome = solve(fit);
  EXPECT_NEAR(std::log(outcome.values[0]), 0.3, 1e-6);
  EXPECT_NEAR(std::log(outcome.values[1]), 0.1, 1e-6);
  // Per derivative one evaluation of rows 0 and 1 and two of row 2; the rest comes once for each.
  EXPECT_EQ(asked[0], asked[1]);
  EXPECT_GT(asked[2], asked[0]);
  EXPECT_EQ(outcome.evaluations, std::size_t(asked[0] + asked[1] + asked[2]));
  EXPECT_EQ(outcome.derivative(0, 1), 0);
}

TEST(LeastSquares, threads_do_not_change_a_bit) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.1);
  Line line;
  for (int i = 0; i < 101; ++i) {
    line.t.push_back(i * 0.01);
    line.y.push_back(0.4 - 0.3 * i * 0.01 + noise(random));
  }
  RobustFit fit = line.fit(0.05);
  const FitOutcome one = solve(fit);
  fit.threads = 3;
  const FitOutcome three = solve(fit);
  EXPECT_EQ(one.values, three.values);
  EXPECT_EQ(one.errors, three.errors);
  EXPECT_EQ(one.residuals, three.residuals);
}

/// The slow obvious twin: coordinate search on the same cost, halving its stride.
std::vector<double> twin(const RobustFit& fit) {
  std::vector<double> x;
  for (const FitParameter& p : fit.parameters) x.push_back(std::log(p.prior));
  const auto cost = [&](const std::vector<double>& at) {
    std::vector<double> c;
    for (const double v : at) c.push_back(std::exp(v));
    double sum = 0;
    for (std::size_t i = 0; i < fit.rows; ++i) {
      const double z = fit.residual(c, i) / fit.noise;
      sum += 2 * (std::sqrt(1 + z * z) - 1);
    }
    for (std::size_t j = 0; j < at.size(); ++j)
      sum += std::pow((at[j] - std::log(fit.parameters[j].prior)) / fit.parameters[j].sigma, 2);
    return sum;
  };
  double best = cost(x);
  for (double stride = 0.5; stride > 1e-8; stride /= 2)
    for (bool moved = true; moved;) {
      moved = false;
      for (double& v : x)
        for (const double change : {stride, -stride}) {
          v += change;
          if (const double c = cost(x); c < best) {
            best = c;
            moved = true;
          } else {
            v -= change;
          }
        }
    }
  for (double& v : x) v = std::exp(v);
  return x;
}

TEST(LeastSquares, agrees_with_a_coordinate_search_over_many_seeds) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 1);
    std::vector<double> a, b, y;
    for (int i = 0; i < 12; ++i) {
      a.push_back(std::exp(normal(random)));
      b.push_back(std::exp(normal(random)));
      const double outlier = i % 5 == 4 ? 0.5 * normal(random) : 0.0;
      y.push_back(std::log(2 * a.back() + 0.5 * b.back()) + 0.05 * normal(random) + outlier);
    }
    RobustFit fit;
    fit.parameters = {{.prior = 1.5, .sigma = 0.3, .low = 0.01, .high = 100},
                      {.prior = 0.8, .sigma = 0.3, .low = 0.01, .high = 100}};
    fit.rows = y.size();
    fit.residual = [&](std::span<const double> c, std::size_t i) {
      return std::log(c[0] * a[i] + c[1] * b[i]) - y[i];
    };
    fit.difference = 1e-4;
    fit.tolerance = 1e-7;
    const FitOutcome outcome = solve(fit);
    const std::vector<double> expected = twin(fit);
    for (std::size_t j = 0; j < 2; ++j)
      EXPECT_NEAR(outcome.values[j] / expected[j], 1, 1e-4) << "seed " << seed;
    EXPECT_LE(outcome.cost, outcome.cost_before) << "seed " << seed;
  }
}

TEST(LeastSquares, refuses_what_is_not_a_fit) {
  const Line line{{0, 1}, {0, 1}};
  RobustFit fit = line.fit();
  fit.parameters[0].low = 0;
  EXPECT_THROW(solve(fit), CheckFailed);
  fit = line.fit();
  fit.residual = [](std::span<const double>, std::size_t) { return std::nan(""); };
  EXPECT_THROW(solve(fit), CheckFailed);
  fit.threads = 2;  // thrown in a worker thread, caught here
  EXPECT_THROW(solve(fit), CheckFailed);
}

}  // namespace
}  // namespace trainyard::analysis
