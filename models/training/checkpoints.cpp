#include "models/training/checkpoints.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

Bytes checkpoint_size(const CheckpointSpec& spec, double parameters) {
  return spec.size ? *spec.size : Bytes(parameters * spec.bytes_per_parameter);
}

Duration checkpoint_stall(const CheckpointSpec& spec, Bytes size, std::int64_t gpus) {
  return spec.stall ? *spec.stall
                    : transfer_time(size, spec.host_copy_rate * static_cast<double>(gpus));
}

double young_interval_s(double save_s, double mtbi_s) {
  return std::sqrt(2 * save_s * mtbi_s);
}

double daly_first_order_interval_s(double save_s, double mtbi_s) {
  return young_interval_s(save_s, mtbi_s) - save_s;
}

double daly_interval_s(double save_s, double mtbi_s) {
  if (save_s >= 2 * mtbi_s) return mtbi_s;
  const double x = save_s / (2 * mtbi_s);
  return young_interval_s(save_s, mtbi_s) * (1 + std::sqrt(x) / 3 + x / 9) - save_s;
}

double expected_efficiency(double interval_s, double save_s, double restart_s, double mtbi_s) {
  return interval_s /
         (mtbi_s * std::exp(restart_s / mtbi_s) * std::expm1((interval_s + save_s) / mtbi_s));
}

double mean_time_to_finish_s(double solve_s, double interval_s, double save_s, double restart_s,
                             double mtbi_s) {
  return solve_s / expected_efficiency(interval_s, save_s, restart_s, mtbi_s);
}

double exact_interval_s(double save_s, double mtbi_s) {
  return mtbi_s * one_plus_lambert_w0(save_s / mtbi_s);
}

// With v = -W0, W e^W = -e^(-1 - c) reads v - ln v = 1 + c, v in (0, 1]; wanted is u = 1 - v.
// Near the branch point v = 1 both sides are flat and u is a series in s = sqrt(2 c), the inverse
// of -u - ln(1 - u) = s^2 / 2; its first three terms are Daly's higher order estimate.
double one_plus_lambert_w0(double c) {
  check(c >= 0, "the real branch begins at c = 0", c);
  const double s = std::sqrt(2 * c);
  const double series =
      s *
      (1 + s * (-1.0 / 3 +
                s * (1.0 / 36 + s * (1.0 / 270 + s * (1.0 / 4320 +
                                                      s * (-1.0 / 17010 - s * 139.0 / 5443200))))));
  if (s < 0.03) return series;
  // Newton from the left of the root, where the function is convex and falls.
  double v = s < 0.5 ? 0.99 * (1 - series) : std::exp(-1 - c);
  if (v == 0) return 1;
  for (int i = 0; i < 60; ++i) {
    const double next = v + v * (v - std::log(v) - 1 - c) / (1 - v);
    const bool is_done = std::abs(next - v) <= 1e-16 * v;
    v = next;
    if (is_done) break;
  }
  return 1 - v;
}

double mean_time_between_interruptions_s(double servers, double failures_per_server_day) {
  return 86400 / (servers * failures_per_server_day);
}

double kokolis_ettr(double interval_s, double stall_s, double restart_s, double mtbi_s) {
  return (1 - (restart_s + interval_s / 2) / mtbi_s) / (1 + stall_s / interval_s);
}

LevelTheory multi_level_first_order(std::span<const LevelCost> levels) {
  LevelTheory theory;
  for (const LevelCost& level : levels) {
    theory.interval_s.push_back(std::sqrt(2 * level.save_s / level.failures_per_s));
    theory.overhead += std::sqrt(2 * level.save_s * level.failures_per_s);
  }
  return theory;
}

namespace {

double log_choose(std::int64_t n, std::int64_t k) {
  const auto log_factorial = [](std::int64_t i) { return std::lgamma(double(i) + 1); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

}  // namespace

// Group by group: `open[j]` is the probability that no group so far is lost whole and j losses
// are left for the servers after it. Of j losses among n servers, i are in the next group with
// C(m, i) C(n - m, j - i) / C(n, j). All terms are positive, so nothing cancels.
double peer_memory_survival(std::int64_t servers, std::int64_t group, std::int64_t lost) {
  check(group >= 1 && servers >= group && servers % group == 0 && lost >= 0 && lost <= servers,
        "servers are a multiple of the group", servers, group, lost);
  if (lost < group) return 1;
  std::vector<double> open(static_cast<std::size_t>(lost) + 1, 0.0);
  open.back() = 1;
  for (std::int64_t n = servers; n > 0; n -= group) {
    std::vector<double> next(open.size(), 0.0);
    for (std::int64_t j = 0; j <= std::min(lost, n); ++j) {
      const double before = open[static_cast<std::size_t>(j)];
      if (before == 0) continue;
      for (std::int64_t i = 0; i < group && i <= j; ++i)
        if (j - i <= n - group)
          next[static_cast<std::size_t>(j - i)] +=
              before *
              std::exp(log_choose(group, i) + log_choose(n - group, j - i) - log_choose(n, j));
    }
    open = std::move(next);
  }
  return open.front();
}

std::int64_t binomial_quantile(std::int64_t n, double p, double quantile) {
  check(n >= 0 && p >= 0 && p <= 1 && quantile >= 0 && quantile < 1, "a binomial distribution", n,
        p, quantile);
  if (p == 0) return 0;
  if (p == 1) return n;
  double sum = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    sum += std::exp(log_choose(n, k) + double(k) * std::log(p) + double(n - k) * std::log1p(-p));
    if (sum >= quantile) return k;
  }
  return n;
}

}  // namespace trainyard::models
