#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

/// Fits positive constants of a model to observations: robust least squares with priors, solved by
/// Levenberg-Marquardt with reweighting.
///
/// Each constant c_j is fitted as x_j = ln c_j, so that a step is a relative change. With residuals
/// r_i (for a time: ln predicted / observed) the cost is
///
///     sum_i  w_i . 2 (sqrt(1 + (r_i / s)^2) - 1)   +   sum_j  ((x_j - ln prior_j) / sigma_j)^2
///
/// The first term ("soft L1") is (r/s)^2 for residuals well below the noise s and grows like their
/// absolute value above, so that one odd observation cannot drag a constant away. The second says
/// what was known before: a constant that no observation touches stays at its prior.
///
/// Standard errors are relative, from the inverse curvature with the noise n found in the fit
/// (weighted squares per degree of freedom) and v_i = w_i / sqrt(1 + (r_i / s)^2):
///
///     C = ( J' V J / n^2  +  diag(1 / sigma^2) )^-1        error_j = sqrt(C_jj)
///
/// Without priors that is the textbook n^2 (J' V J)^-1; without observations it is sigma.
///
///     RobustFit fit;
///     fit.parameters = {{.prior = 2, .sigma = 0.4, .low = 0.1, .high = 10}};
///     fit.rows = times.size();
///     fit.residual = [&](std::span<const double> c, std::size_t i) { return log(model(c[0], i) /
///     times[i]); }; const FitOutcome outcome = solve(fit);    // outcome.values[0],
///     outcome.errors[0]
///
/// Literature: Huber & Ronchetti, Robust Statistics (2009), chapter 7; Madsen, Nielsen & Tingleff,
/// Methods for Non-Linear Least Squares Problems (2004); Triggs et al. 2000 for soft L1.
namespace trainyard::analysis {

struct FitParameter {
  double prior = 1;    // most likely value before any observation; above 0
  double sigma = 0.3;  // of ln(value) around ln(prior)
  double low = 0;      // bounds of the value; above 0
  double high = 0;
  double start = 0;  // where the search begins; 0: the prior
};

struct RobustFit {
  std::vector<FitParameter> parameters;
  std::size_t rows = 0;
  /// Residual of one row at these values of the parameters. Called from several threads at once if
  /// `threads` is above 1, but never twice at once for one row.
  std::function<double(std::span<const double> values, std::size_t row)> residual;
  std::vector<double> weights;                     // [row]; empty: all 1
  std::vector<std::vector<std::size_t>> touching;  // [row]: the parameters that can move it, each
                                                   // once; empty: all of them
  double noise = 0.05;       // s: where a residual begins to count as an outlier
  double difference = 0.01;  // relative change of a parameter for its derivative
  double tolerance = 1e-4;   // ends when no parameter moves by more, relative
  int most_steps = 40;
  unsigned threads = 1;  // the result does not depend on it
};

struct FitOutcome {
  std::vector<double> values;  // [parameter]
  std::vector<double> errors;  // [parameter] relative standard error
  std::vector<bool> is_at_bound;
  std::vector<double> residuals_before;  // [row] at the start
  std::vector<double> residuals;         // [row]
  std::vector<double> sensitivity;       // [row * parameters + parameter]: d residual / d ln(value)
  double noise = 0;                      // found, of a row of weight 1
  double effective_parameters = 0;  // how many the observations determine, rather than the priors
  double cost_before = 0;
  double cost = 0;
  int steps = 0;
  std::size_t evaluations = 0;  // of single residuals
  bool is_converged = false;

  double derivative(std::size_t row, std::size_t parameter) const {
    return sensitivity[row * values.size() + parameter];
  }
};

/// Deterministic. A residual that is no finite number, a parameter without room between its bounds:
/// our own mistake (check).
FitOutcome solve(const RobustFit& fit);

}  // namespace trainyard::analysis
