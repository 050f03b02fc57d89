#include "analysis/paired_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::analysis {
namespace {

double mean_of(std::span<const double> x) {
  double sum = 0;
  for (const double v : x) sum += v;
  return x.empty() ? 0 : sum / double(x.size());
}

double covariance(std::span<const double> x, std::span<const double> y) {
  const double mx = mean_of(x), my = mean_of(y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - mx) * (y[i] - my);
  return sum / double(x.size() - 1);
}

MeanInterval interval(std::span<const double> x, double quantile) {
  MeanInterval out{mean_of(x), std::numeric_limits<double>::infinity(), x.size()};
  if (x.size() > 1)
    out.half_width = student_quantile(quantile, double(x.size() - 1)) *
                     std::sqrt(covariance(x, x) / double(x.size()));
  return out;
}

std::vector<double> difference(std::span<const double> x, std::span<const double> y) {
  check(x.size() == y.size(), "what is paired has equally many values", x.size(), y.size());
  std::vector<double> d(x.size());
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = x[i] - y[i];
  return d;
}

/// The continued fraction of I_x(a, b) by Lentz's method; converges fast for x below its mean.
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const auto kept = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / kept(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m < 10000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / kept(1 + even * d);
    c = kept(1 + even / c);
    h *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / kept(1 + odd * d);
    c = kept(1 + odd / c);
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return h;
}

/// Rows of (X'X)^-1 X' for X = 1, x, x^2: coefficient k of a parabola is row k times the values.
std::array<std::vector<double>, 3> parabola_weights(std::span<const double> x) {
  // Orthogonal polynomials p0 = 1, p1 = x - a, p2 = (x - b) p1 - c.
  const std::size_t n = x.size();
  const double a = mean_of(x);
  double s1 = 0, s1x = 0;
  for (const double v : x) {
    s1 += (v - a) * (v - a);
    s1x += v * (v - a) * (v - a);
  }
  const double b = s1x / s1, c = s1 / double(n);
  double s2 = 0;
  std::vector<double> p2(n);
  for (std::size_t i = 0; i < n; ++i) {
    p2[i] = (x[i] - b) * (x[i] - a) - c;
    s2 += p2[i] * p2[i];
  }
  std::array<std::vector<double>, 3> w;
  for (std::size_t i = 0; i < n; ++i) {
    const double w0 = 1.0 / double(n), w1 = (x[i] - a) / s1, w2 = p2[i] / s2;
    w[0].push_back(w0 - a * w1 + (a * b - c) * w2);
    w[1].push_back(w1 - (a + b) * w2);
    w[2].push_back(w2);
  }
  return w;
}

}  // namespace

double incomplete_beta(double a, double b, double x) {
  check(a > 0 && b > 0 && x >= 0 && x <= 1, "the beta function is defined", a, b, x);
  if (x == 0 || x == 1) return x;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_cdf(double t, double degrees) {
  // The smaller tail directly: no digits are lost far out.
  const double t2 = t * t;
  const double tail = t2 < degrees
                          ? 0.5 * (1 - incomplete_beta(0.5, degrees / 2, t2 / (degrees + t2)))
                          : 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t2));
  return t < 0 ? tail : 1 - tail;
}

double student_quantile(double p, double degrees) {
  check(p > 0 && p < 1 && degrees > 0, "a quantile is asked for", p, degrees);
  if (p == 0.5) return 0;
  const double tail = std::min(p, 1 - p);
  // The lower tail as a function of t > 0 falls: double until it is below, then bisect.
  const auto lower_tail = [&](double t) { return student_cdf(-t, degrees); };
  double low = 0, high = 1;
  while (lower_tail(high) > tail && high < 1e300) {
    low = high;
    high *= 2;
  }
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = (low + high) / 2;
    (lower_tail(middle) > tail ? low : high) = middle;
  }
  const double t = (low + high) / 2;
  return p < 0.5 ? -t : t;
}

MeanInterval mean_interval(std::span<const double> x, double confidence) {
  return interval(x, 1 - (1 - confidence) / 2);
}

MeanInterval unpaired_difference(std::span<const double> x, std::span<const double> y,
                                 double confidence) {
  const MeanInterval a = mean_interval(x, confidence), b = mean_interval(y, confidence);
  MeanInterval out{a.mean - b.mean, std::numeric_limits<double>::infinity(), std::min(a.n, b.n)};
  if (a.n < 2 || b.n < 2) return out;
  const auto variance_of_mean = [&](const MeanInterval& m) {
    const double s = m.half_width / student_quantile(0.5 + confidence / 2, double(m.n - 1));
    return s * s;
  };
  const double va = variance_of_mean(a), vb = variance_of_mean(b);
  if (va + vb <= 0) {
    out.half_width = 0;
    return out;
  }
  const double degrees =
      (va + vb) * (va + vb) / (va * va / double(a.n - 1) + vb * vb / double(b.n - 1));
  out.half_width = student_quantile(0.5 + confidence / 2, degrees) * std::sqrt(va + vb);
  return out;
}

MeanInterval paired_difference(std::span<const double> x, std::span<const double> y,
                               double confidence) {
  return mean_interval(difference(x, y), confidence);
}

Ranking rank_systems(const std::vector<std::vector<double>>& x, double confidence) {
  check(!x.empty(), "there are systems to rank");
  Ranking out;
  for (const std::vector<double>& values : x) {
    check(values.size() == x.front().size(), "systems have equally many replications",
          values.size(), x.front().size());
    out.systems.push_back({.value = mean_interval(values, confidence), .behind = {}});
  }
  for (std::size_t i = 1; i < x.size(); ++i)
    if (out.systems[i].value.mean > out.systems[out.best].value.mean) out.best = i;
  const double error = (1 - confidence) / double(std::max<std::size_t>(x.size(), 2) - 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    Ranked& system = out.systems[i];
    system.behind = interval(difference(x[out.best], x[i]), 1 - error / 2);
    if (i == out.best) system.behind.half_width = 0;
    system.is_tied = true;
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (j == i) continue;
      const MeanInterval by = interval(difference(x[j], x[i]), 1 - error);
      system.is_tied &= by.mean <= by.half_width;
    }
  }
  return out;
}

std::optional<Optimum> parabola_top(std::span<const double> at,
                                    const std::vector<std::vector<double>>& y, double confidence) {
  check(at.size() >= 3 && at.size() == y.size(), "a parabola goes through three points at least",
        at.size(), y.size());
  const std::size_t n = y.front().size();
  if (n < 2) return std::nullopt;
  // Around the middle, so that squares do not cancel.
  const double middle = mean_of(at);
  std::vector<double> x(at.begin(), at.end());
  for (double& v : x) v -= middle;
  const auto weights = parabola_weights(x);
  std::vector<double> level(n, 0.0), b(n, 0.0), u(n, 0.0);  // slope of replication r: b + u x
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t i = 0; i < x.size(); ++i) {
      level[r] += weights[0][i] * y[i][r];
      b[r] += weights[1][i] * y[i][r];
      u[r] += 2 * weights[2][i] * y[i][r];
    }
  const double mb = mean_of(b), mu = mean_of(u);
  const double t = student_quantile(1 - (1 - confidence) / 2, double(n - 1));
  const double k = t * t / double(n);
  // (mb + mu x)^2 <= k var(b + u x), a parabola in x that is negative between its roots.
  const double p2 = mu * mu - k * covariance(u, u);
  const double p1 = mb * mu - k * covariance(b, u);
  const double p0 = mb * mb - k * covariance(b, b);
  if (mu >= 0 || p2 <= 0) return std::nullopt;
  const double root = std::sqrt(std::max(0.0, p1 * p1 - p2 * p0));
  const double top = -mb / mu;
  return Optimum{.at = middle + top,
                 .low = middle + (-p1 - root) / p2,
                 .high = middle + (-p1 + root) / p2,
                 .value = mean_of(level) + mb * top + mu * top * top / 2};
}

}  // namespace trainyard::analysis
