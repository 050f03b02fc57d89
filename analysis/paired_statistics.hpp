#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// What simulations with common random numbers say: replication r of every system used the same
/// seed, so systems are compared replication by replication, and what luck does to both cancels.
///
///     mean           m = sum x_r / n            half width  h = t(1 - a/2, n - 1) s / sqrt(n)
///     difference     the same on d_r = x_r - y_r
///     cannot be told from the best   m_i >= m_j - t(1 - a/(k - 1), n - 1) s_ij / sqrt(n) for all j
///
/// The last line keeps the best system with a probability of at least 1 - a, whatever the
/// correlation between systems (Bonferroni over the k - 1 comparisons of the best one): the
/// screening of Nelson, Swann, Goldsman and Song, "Simple procedures for selecting the best
/// simulated system when the number of alternatives is large", Operations Research 49(6), 2001,
/// with paired differences.
///
///     paired_difference({3, 5, 4}, {2, 3, 3}, 0.95)    1.333 +- 1.434: d = 1, 2, 1, t = 4.303
///
/// Page: docs/guide/tune.md.
namespace trainyard::analysis {

/// P(T <= t) of Student's distribution; degrees of freedom above 0, whole or not.
double student_cdf(double t, double degrees);
/// The t with P(T <= t) = p, 0 < p < 1, to 12 digits.
double student_quantile(double p, double degrees);
/// I_x(a, b), the regularised incomplete beta function.
double incomplete_beta(double a, double b, double x);

struct MeanInterval {
  double mean = 0;
  double half_width = 0;  // infinite with fewer than two values
  std::size_t n = 0;
  double low() const { return mean - half_width; }
  double high() const { return mean + half_width; }
};

/// Two-sided, at `confidence` (0.95).
MeanInterval mean_interval(std::span<const double> x, double confidence);
/// Of x - y, value by value.
MeanInterval paired_difference(std::span<const double> x, std::span<const double> y,
                               double confidence);

/// Of the mean of x minus that of y, whose values are on different luck: Welch's interval, with
/// Satterthwaite's degrees of freedom. Infinite if one of them has fewer than two values.
MeanInterval unpaired_difference(std::span<const double> x, std::span<const double> y,
                                 double confidence);

/// One system among others, more is better.
struct Ranked {
  MeanInterval value;
  MeanInterval behind;   // the best minus this one; all such intervals hold together
  bool is_tied = false;  // cannot be told from the best
};
struct Ranking {
  std::size_t best = 0;  // highest mean; the first of equal ones
  std::vector<Ranked> systems;
};
/// x[system][replication], all with equally many replications.
Ranking rank_systems(const std::vector<std::vector<double>>& x, double confidence);

/// Where a parabola through the points has its top, with Fieller's interval: all places at which
/// the slope cannot be told from zero. y[point][replication].
struct Optimum {
  double at = 0, low = 0, high = 0;
  double value = 0;  // of the parabola at the top
};
/// None if the curvature cannot be told from zero, or opens upwards: the curve is too flat to place
/// its top. At least three different places.
std::optional<Optimum> parabola_top(std::span<const double> at,
                                    const std::vector<std::vector<double>>& y, double confidence);

}  // namespace trainyard::analysis
