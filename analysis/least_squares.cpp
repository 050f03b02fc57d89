#include "analysis/least_squares.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <exception>
#include <thread>

#include "sim/check.hpp"

namespace trainyard::analysis {

namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr double longest_step = 0.7;  // of one parameter at once: a factor of two

/// Calls f(row) for every row, spread over threads. Each call writes only what belongs to its row,
/// so the number of threads changes nothing but the time.
template <class F>
void for_each_row(std::size_t rows, unsigned threads, const F& f) {
  threads = std::max(1u, std::min<unsigned>(threads, unsigned(std::max<std::size_t>(rows, 1))));
  std::vector<std::exception_ptr> thrown(threads);
  const auto work = [&](unsigned mine) {
    try {
      for (std::size_t row = mine; row < rows; row += threads) f(row);
    } catch (...) {
      thrown[mine] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned t = 1; t < threads; ++t) workers.emplace_back(work, t);
    work(0);
  }
  for (const std::exception_ptr& e : thrown)
    if (e) std::rethrow_exception(e);
}

class Solver {
 public:
  explicit Solver(const RobustFit& fit)
      : fit_(fit),
        parameters_(fit.parameters.size()),
        x_(Vector::Zero(Eigen::Index(parameters_))),
        jacobian_(Matrix::Zero(Eigen::Index(fit.rows), Eigen::Index(parameters_))) {
    check(bool(fit.residual), "a fit has a residual");
    check(fit.noise > 0 && fit.difference > 0, "noise and difference are above 0");
    check(fit.weights.empty() || fit.weights.size() == fit.rows, "one weight a row");
    check(fit.touching.empty() || fit.touching.size() == fit.rows, "one list of parameters a row");
    for (std::size_t j = 0; j < parameters_; ++j) {
      const FitParameter& p = fit.parameters[j];
      check(p.prior > 0 && p.sigma > 0 && p.low > 0 && p.low < p.high,
            "a parameter has a prior and bounds above 0, in order", j, p.prior, p.low, p.high);
      const double start = p.start > 0 ? p.start : p.prior;
      x_[Eigen::Index(j)] = std::log(std::clamp(start, p.low, p.high));
      all_.push_back(j);
    }
  }

  FitOutcome run() {
    FitOutcome out;
    std::vector<double> residuals = residuals_at(x_);
    out.residuals_before = residuals;
    double cost = cost_of(residuals, x_);
    out.cost_before = cost;
    double damping = 1e-3;
    while (!out.is_converged && out.steps < fit_.most_steps) {
      differentiate(residuals);
      build(residuals);
      // Damp until a step lowers the cost; no such step: this is the minimum as far as differences
      // can tell.
      bool is_lower = false;
      while (!is_lower && damping < 1e8) {
        const Vector next = step(damping);
        const double moved = (next - x_).lpNorm<Eigen::Infinity>();
        if (moved < 0.01 * fit_.tolerance) break;
        std::vector<double> tried = residuals_at(next);
        const double tried_cost = cost_of(tried, next);
        if (tried_cost < cost) {
          out.is_converged = moved < fit_.tolerance;
          x_ = next;
          residuals = std::move(tried);
          cost = tried_cost;
          damping = std::max(damping / 5, 1e-9);
          is_lower = true;
        } else {
          damping *= 5;
        }
      }
      ++out.steps;
      if (!is_lower) out.is_converged = true;
    }
    build(residuals);
    report(residuals, out);
    out.cost = cost;
    out.evaluations = evaluations_;
    return out;
  }

 private:
  const std::vector<std::size_t>& touching(std::size_t row) const {
    return fit_.touching.empty() ? all_ : fit_.touching[row];
  }
  double weight(std::size_t row) const { return fit_.weights.empty() ? 1.0 : fit_.weights[row]; }
  double sigma(std::size_t j) const { return fit_.parameters[j].sigma; }

  std::vector<double> values_at(const Vector& x) const {
    std::vector<double> values(parameters_);
    for (std::size_t j = 0; j < parameters_; ++j)
      // exp(log(bound)) may miss the bound by a rounding.
      values[j] =
          std::clamp(std::exp(x[Eigen::Index(j)]), fit_.parameters[j].low, fit_.parameters[j].high);
    return values;
  }

  double residual(std::span<const double> values, std::size_t row) const {
    const double r = fit_.residual(values, row);
    check(std::isfinite(r), "a residual is a finite number; row", row);
    return r;
  }

  std::vector<double> residuals_at(const Vector& x) {
    const std::vector<double> values = values_at(x);
    std::vector<double> out(fit_.rows);
    for_each_row(fit_.rows, fit_.threads,
                 [&](std::size_t row) { out[row] = residual(values, row); });
    evaluations_ += fit_.rows;
    return out;
  }

  double cost_of(const std::vector<double>& residuals, const Vector& x) const {
    double sum = 0;
    for (std::size_t i = 0; i < fit_.rows; ++i) {
      const double z = residuals[i] / fit_.noise;
      sum += weight(i) * 2 * z * z / (std::sqrt(1 + z * z) + 1);  // without cancellation
    }
    for (std::size_t j = 0; j < parameters_; ++j) {
      const double off = (x[Eigen::Index(j)] - std::log(fit_.parameters[j].prior)) / sigma(j);
      sum += off * off;
    }
    return sum;
  }

  /// One-sided, away from the nearer bound. Rows are spread over threads whole: what a residual
  /// keeps for its row is used by one thread at a time.
  void differentiate(const std::vector<double>& residuals) {
    const std::vector<double> here = values_at(x_);
    std::vector<double> change(parameters_);
    for (std::size_t j = 0; j < parameters_; ++j) {
      const FitParameter& p = fit_.parameters[j];
      const bool up = here[j] * here[j] < p.low * p.high;
      change[j] = up ? std::min(fit_.difference, std::log(p.high / here[j]))
                     : -std::min(fit_.difference, std::log(here[j] / p.low));
    }
    for_each_row(fit_.rows, fit_.threads, [&](std::size_t row) {
      std::vector<double> values = here;
      for (const std::size_t j : touching(row)) {
        values[j] = here[j] * std::exp(change[j]);
        jacobian_(Eigen::Index(row), Eigen::Index(j)) =
            (residual(values, row) - residuals[row]) / change[j];
        values[j] = here[j];
      }
    });
    for (std::size_t row = 0; row < fit_.rows; ++row) evaluations_ += touching(row).size();
  }

  /// Half the gradient of the cost, and its curvature from the observations alone: `curvature_` as
  /// a sum of weighted squares, which the errors come from, and `newton_` with the second
  /// derivative of soft L1. An outlier is nearly straight there, and steps of the former would fall
  /// short.
  void build(const std::vector<double>& residuals) {
    const auto n = Eigen::Index(parameters_);
    gradient_ = Vector::Zero(n);
    curvature_ = Matrix::Zero(n, n);
    newton_ = Matrix::Zero(n, n);
    const double s = fit_.noise;
    for (std::size_t i = 0; i < fit_.rows; ++i) {
      const double z = residuals[i] / s;
      const double v = weight(i) / std::sqrt(1 + z * z);
      for (const std::size_t j : touching(i)) {
        const double slope = jacobian_(Eigen::Index(i), Eigen::Index(j)) / s;
        gradient_[Eigen::Index(j)] += v * z * slope;
        for (const std::size_t k : touching(i)) {
          const double product = v * slope * jacobian_(Eigen::Index(i), Eigen::Index(k)) / s;
          curvature_(Eigen::Index(j), Eigen::Index(k)) += product;
          newton_(Eigen::Index(j), Eigen::Index(k)) += product / (1 + z * z);
        }
      }
    }
    for (std::size_t j = 0; j < parameters_; ++j)
      gradient_[Eigen::Index(j)] +=
          (x_[Eigen::Index(j)] - std::log(fit_.parameters[j].prior)) / (sigma(j) * sigma(j));
  }

  Matrix with_priors(Matrix out) const {
    for (std::size_t j = 0; j < parameters_; ++j)
      out(Eigen::Index(j), Eigen::Index(j)) += 1 / (sigma(j) * sigma(j));
    return out;
  }

  bool is_at(std::size_t j, double bound) const {
    return std::abs(x_[Eigen::Index(j)] - std::log(bound)) < 1e-12;
  }

  /// The damped step, kept inside the bounds: a parameter that stands at one and is pushed outwards
  /// stays where it is, and the others are solved without it.
  Vector step(double damping) const {
    std::vector<Eigen::Index> free;
    for (std::size_t j = 0; j < parameters_; ++j) {
      const double g = gradient_[Eigen::Index(j)];
      const bool is_held = (g > 0 && is_at(j, fit_.parameters[j].low)) ||
                           (g < 0 && is_at(j, fit_.parameters[j].high));
      if (!is_held) free.push_back(Eigen::Index(j));
    }
    const Matrix full = with_priors(newton_);
    const auto n = Eigen::Index(free.size());
    Matrix a(n, n);
    Vector b(n);
    for (Eigen::Index j = 0; j < n; ++j) {
      b[j] = -gradient_[free[std::size_t(j)]];
      for (Eigen::Index k = 0; k < n; ++k)
        a(j, k) = full(free[std::size_t(j)], free[std::size_t(k)]);
      a(j, j) *= 1 + damping;
    }
    const Vector solved = a.ldlt().solve(b);
    Vector next = x_;
    for (Eigen::Index j = 0; j < n; ++j) {
      const Eigen::Index at = free[std::size_t(j)];
      const FitParameter& p = fit_.parameters[std::size_t(at)];
      next[at] = std::clamp(x_[at] + std::clamp(solved[j], -longest_step, longest_step),
                            std::log(p.low), std::log(p.high));
    }
    return next;
  }

  void report(const std::vector<double>& residuals, FitOutcome& out) const {
    out.values = values_at(x_);
    out.residuals = residuals;
    out.sensitivity.assign(fit_.rows * parameters_, 0.0);
    double squares = 0;
    for (std::size_t i = 0; i < fit_.rows; ++i) {
      const double z = residuals[i] / fit_.noise;
      squares += weight(i) / std::sqrt(1 + z * z) * z * z;
      for (std::size_t j = 0; j < parameters_; ++j)
        out.sensitivity[i * parameters_ + j] = jacobian_(Eigen::Index(i), Eigen::Index(j));
    }
    const auto n = Eigen::Index(parameters_);
    const Matrix inverse = with_priors(curvature_).ldlt().solve(Matrix::Identity(n, n));
    out.effective_parameters = (inverse * curvature_).trace();
    // Fewer rows than they would determine: nothing is left over to measure the noise with.
    const double freedom = double(fit_.rows) - out.effective_parameters;
    const double excess = freedom >= 1 ? squares / freedom : 1.0;
    out.noise = fit_.noise * std::sqrt(excess);
    // An exact fit has no noise: no error either, where there are rows at all.
    const Matrix covariance =
        with_priors(curvature_ / std::max(excess, 1e-12)).ldlt().solve(Matrix::Identity(n, n));
    for (std::size_t j = 0; j < parameters_; ++j) {
      out.errors.push_back(std::sqrt(covariance(Eigen::Index(j), Eigen::Index(j))));
      out.is_at_bound.push_back(is_at(j, fit_.parameters[j].low) ||
                                is_at(j, fit_.parameters[j].high));
    }
  }

  const RobustFit& fit_;
  std::size_t parameters_;
  std::vector<std::size_t> all_;
  Vector x_;  // logarithms
  Matrix jacobian_;
  Vector gradient_;
  Matrix curvature_;
  Matrix newton_;
  std::size_t evaluations_ = 0;
};

}  // namespace

FitOutcome solve(const RobustFit& fit) {
  return Solver(fit).run();
}

}  // namespace trainyard::analysis
