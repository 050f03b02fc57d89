#include "analysis/study_statistics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "sim/check.hpp"
#include "sim/random.hpp"

namespace trainyard::analysis {
namespace {

constexpr double not_defined = std::numeric_limits<double>::quiet_NaN();
constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr std::size_t fewest_on_curve = 5;
constexpr double log_from_ratio = 4;  // an axis that spans more is fitted in its logarithm
constexpr std::size_t resamples = 2000;

std::vector<const StudyRun*> complete_runs(const Study& study, std::size_t point) {
  std::vector<const StudyRun*> out;
  for (const StudyRun& run : study.runs) {
    if (run.point != point || !run.is_complete()) continue;
    out.resize(std::max(out.size(), run.replication + 1));
    out[run.replication] = &run;
  }
  return out;
}

/// Points that differ in nothing but one axis, by the labels of the others; in the order in which
/// the first of each appears.
std::vector<std::vector<std::size_t>> lines_along(const Study& study, std::size_t axis) {
  std::map<std::vector<std::string>, std::size_t> known;
  std::vector<std::vector<std::size_t>> out;
  for (std::size_t p = 0; p < study.points.size(); ++p) {
    std::vector<std::string> rest = study.points[p].labels;
    rest.erase(rest.begin() + std::ptrdiff_t(axis));
    const auto [at, is_new] = known.emplace(std::move(rest), out.size());
    if (is_new) out.emplace_back();
    out[at->second].push_back(p);
  }
  return out;
}

/// Replications that all these have, of each.
std::vector<std::vector<double>> common(std::vector<std::vector<double>> x) {
  std::size_t n = x.empty() ? 0 : x.front().size();
  for (const auto& values : x) n = std::min(n, values.size());
  std::vector<std::vector<double>> out(x.size());
  for (std::size_t r = 0; r < n; ++r) {
    if (std::any_of(x.begin(), x.end(), [&](const auto& values) { return std::isnan(values[r]); }))
      continue;
    for (std::size_t i = 0; i < x.size(); ++i) out[i].push_back(x[i][r]);
  }
  return out;
}

double variance_of_mean(const std::vector<double>& x) {
  const double n = double(x.size());
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double sum = 0;
  for (const double v : x) sum += (v - mean) * (v - mean);
  return sum / (n - 1) / n;
}

double gain_of_pairing(const std::vector<std::vector<double>>& x, std::size_t best) {
  std::vector<double> gains;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i == best || x[i].size() < 2) continue;
    std::vector<double> difference;
    for (std::size_t r = 0; r < x[i].size(); ++r) difference.push_back(x[best][r] - x[i][r]);
    const double paired = variance_of_mean(difference);
    const double apart = variance_of_mean(x[best]) + variance_of_mean(x[i]);
    if (paired > 0) gains.push_back(std::sqrt(apart / paired));
  }
  if (gains.empty()) return 1;
  std::nth_element(gains.begin(), gains.begin() + std::ptrdiff_t(gains.size() / 2), gains.end());
  return gains[gains.size() / 2];
}

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

double normal_quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = 0.5 * (low + high);
    (normal_cdf(middle) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

/// The smallest k with P(Binomial(n, p) <= k) >= at.
std::size_t binomial_quantile(std::size_t n, double p, double at) {
  double log_term = double(n) * std::log1p(-p), sum = std::exp(log_term);
  std::size_t k = 0;
  while (sum < at && k < n) {
    ++k;
    log_term += std::log(double(n - k + 1) / double(k)) + std::log(p) - std::log1p(-p);
    sum += std::exp(log_term);
  }
  return k;
}

}  // namespace

std::vector<double> values_of(const Study& study, std::size_t point, std::size_t metric) {
  std::vector<double> out;
  for (const StudyRun* run : complete_runs(study, point))
    out.push_back(run == nullptr ? not_defined : run->values[metric]);
  return out;
}

std::vector<double> finite(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  return values;
}

std::vector<PointRanking> rank_points(const Study& study, std::size_t metric) {
  const Better better = study.metrics[metric].better;
  if (better == Better::neither) return {};
  std::vector<std::vector<std::size_t>> groups;
  std::map<std::string, std::size_t> known;
  for (std::size_t p = 0; p < study.points.size(); ++p) {
    if (finite(values_of(study, p, metric)).empty()) continue;
    const auto [at, is_new] = known.emplace(study.name_of_part(p, true), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(p);
  }
  std::vector<PointRanking> all;
  for (std::vector<std::size_t>& points : groups) {
    std::vector<std::vector<double>> x;
    for (const std::size_t p : points) x.push_back(values_of(study, p, metric));
    x = common(std::move(x));
    if (x.size() < 2 || x.front().empty()) continue;
    PointRanking& out = all.emplace_back();
    out.points = std::move(points);
    out.replications = x.front().size();
    if (better == Better::lower)
      for (auto& values : x)
        for (double& v : values) v = -v;
    out.ranking = rank_systems(x, study.confidence);
    if (study.common_random_numbers && out.replications > 1)
      out.pairing_gain = gain_of_pairing(x, out.ranking.best);
    if (better == Better::lower)
      for (Ranked& r : out.ranking.systems) r.value.mean = -r.value.mean;
  }
  return all;
}

std::vector<AxisEffect> axis_effects(const Study& study, std::size_t metric) {
  std::vector<AxisEffect> out;
  for (std::size_t axis = 0; axis < study.axes.size(); ++axis) {
    const auto lines = lines_along(study, axis);
    std::vector<std::string> labels;
    for (const StudyPoint& point : study.points)
      if (std::find(labels.begin(), labels.end(), point.labels[axis]) == labels.end())
        labels.push_back(point.labels[axis]);
    for (std::size_t l = 1; l < labels.size(); ++l) {
      std::vector<std::vector<double>> with, without;
      for (const auto& line : lines) {
        const auto at = [&](const std::string& label) {
          return std::find_if(line.begin(), line.end(),
                              [&](std::size_t p) { return study.points[p].labels[axis] == label; });
        };
        const auto a = at(labels[l]), b = at(labels.front());
        if (a == line.end() || b == line.end()) continue;
        auto both = common({values_of(study, *a, metric), values_of(study, *b, metric)});
        if (both[0].empty()) continue;
        with.push_back(std::move(both[0]));
        without.push_back(std::move(both[1]));
      }
      if (with.empty()) continue;
      // Replication r of all pairs had the same luck: the mean over pairs is one observation.
      std::size_t n = with.front().size();
      for (const auto& values : with) n = std::min(n, values.size());
      std::vector<double> a(n, 0.0), b(n, 0.0);
      for (std::size_t i = 0; i < with.size(); ++i)
        for (std::size_t r = 0; r < n; ++r) {
          a[r] += with[i][r] / double(with.size());
          b[r] += without[i][r] / double(with.size());
        }
      AxisEffect& effect = out.emplace_back();
      effect.axis = axis;
      effect.label = labels[l];
      effect.against = labels.front();
      effect.points = with.size();
      effect.difference = paired_difference(a, b, study.confidence);
      effect.mean_against = std::accumulate(b.begin(), b.end(), 0.0) / double(n);
      if (study.common_random_numbers && n > 1) effect.pairing_gain = gain_of_pairing({a, b}, 0);
    }
  }
  return out;
}

std::vector<NoEffectAxis> axes_without_effect(const Study& study) {
  std::vector<NoEffectAxis> out;
  for (std::size_t axis = 0; axis < study.axes.size(); ++axis) {
    NoEffectAxis found{axis, true, 0};
    bool is_same = true;
    for (const auto& line : lines_along(study, axis)) {
      std::vector<std::vector<const StudyRun*>> runs;
      for (const std::size_t p : line) runs.push_back(complete_runs(study, p));
      for (std::size_t i = 1; i < runs.size() && is_same; ++i)
        for (std::size_t r = 0; r < std::min(runs[0].size(), runs[i].size()); ++r) {
          const StudyRun *a = runs[0][r], *b = runs[i][r];
          if (a == nullptr || b == nullptr || a->seed != b->seed) continue;
          ++found.pairs;
          found.is_same_run &= a->fingerprint == b->fingerprint;
          for (std::size_t m = 0; m < study.metrics.size(); ++m)
            is_same &= std::bit_cast<std::uint64_t>(a->values[m]) ==
                       std::bit_cast<std::uint64_t>(b->values[m]);
        }
    }
    found.is_same_run &= is_same;
    if (is_same && found.pairs > 0) out.push_back(found);
  }
  return out;
}

std::vector<StudyOptimum> optima(const Study& study, std::size_t metric) {
  std::vector<StudyOptimum> out;
  const Better better = study.metrics[metric].better;
  if (better == Better::neither) return out;
  for (std::size_t axis = 0; axis < study.axes.size(); ++axis) {
    if (study.axes[axis].units.empty()) continue;
    for (auto line : lines_along(study, axis)) {
      std::erase_if(line,
                    [&](std::size_t p) { return finite(values_of(study, p, metric)).empty(); });
      if (line.size() < fewest_on_curve) continue;
      const auto number = [&](std::size_t p) { return study.points[p].numbers[axis]; };
      std::sort(line.begin(), line.end(),
                [&](std::size_t a, std::size_t b) { return number(a) < number(b); });
      StudyOptimum& optimum = out.emplace_back();
      optimum.axis = axis;
      optimum.points = line;
      optimum.is_log =
          number(line.front()) > 0 && number(line.back()) / number(line.front()) > log_from_ratio;
      const auto place = [&](std::size_t p) {
        return optimum.is_log ? std::log(number(p)) : number(p);
      };
      const auto mean = [&](std::size_t p) {
        const double m = mean_interval(finite(values_of(study, p, metric)), 0.95).mean;
        return better == Better::lower ? -m : m;
      };
      const std::size_t best =
          *std::max_element(line.begin(), line.end(),
                            [&](std::size_t a, std::size_t b) { return mean(a) < mean(b); });
      optimum.is_at_end = best == line.front() || best == line.back();
      if (optimum.is_at_end) continue;
      const double reach =
          optimum.is_log ? std::log(3.0) : (place(line.back()) - place(line.front())) / 3;
      const auto distance = [&](std::size_t p) { return std::abs(place(p) - place(best)); };
      std::stable_sort(line.begin(), line.end(),
                       [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
      std::size_t near = fewest_on_curve;
      while (near < line.size() && distance(line[near]) <= reach) ++near;
      line.resize(near);
      std::sort(line.begin(), line.end(),
                [&](std::size_t a, std::size_t b) { return number(a) < number(b); });
      optimum.points = line;
      std::vector<double> at;
      std::vector<std::vector<double>> y;
      for (const std::size_t p : line) {
        at.push_back(place(p));
        y.push_back(values_of(study, p, metric));
      }
      y = common(std::move(y));
      if (y.front().size() < 2) continue;
      if (better == Better::lower)
        for (auto& values : y)
          for (double& v : values) v = -v;
      optimum.top = parabola_top(at, y, study.confidence);
      if (!optimum.top) continue;
      if (better == Better::lower) optimum.top->value = -optimum.top->value;
      if (optimum.is_log)
        for (double* x : {&optimum.top->at, &optimum.top->low, &optimum.top->high})
          *x = std::exp(*x);
    }
  }
  return out;
}

BootstrapInterval bootstrap_mean(const std::vector<double>& x, double confidence) {
  check(x.size() >= 2, "a bootstrap has at least two values", x.size());
  const double n = double(x.size());
  BootstrapInterval out;
  out.n = x.size();
  const double sum = std::accumulate(x.begin(), x.end(), 0.0);
  out.mean = out.low = out.high = sum / n;
  sim::Stream luck(sim::Seed{1}, "bootstrap");
  std::vector<double> means(resamples);
  for (double& mean : means) {
    double total = 0;
    for (std::size_t i = 0; i < x.size(); ++i) total += x[luck.below(x.size())];
    mean = total / n;
  }
  std::sort(means.begin(), means.end());
  if (means.front() == means.back()) return out;
  // Half of those that are equal counts as below.
  const auto [low, high] = std::equal_range(means.begin(), means.end(), out.mean);
  const double below = (double(low - means.begin()) + double(high - means.begin())) / 2;
  const double bias = normal_quantile(
      std::clamp(below / double(resamples), 0.5 / double(resamples), 1 - 0.5 / double(resamples)));
  double squares = 0, cubes = 0;
  for (const double v : x) {
    const double d = (v - out.mean) / (n - 1);  // of the mean without v, with its sign
    squares += d * d;
    cubes += d * d * d;
  }
  const double acceleration = cubes / (6 * std::pow(squares, 1.5));
  const auto end = [&](double share) {
    const double z = bias + normal_quantile(share);
    const double at = normal_cdf(bias + z / (1 - acceleration * z));
    const auto i = std::size_t(std::clamp(at * double(resamples), 0.0, double(resamples - 1)));
    return means[i];
  };
  out.low = end((1 - confidence) / 2);
  out.high = end((1 + confidence) / 2);
  return out;
}

QuantileInterval quantile(std::vector<double> x, double p, double confidence) {
  check(!x.empty() && p > 0 && p < 1, "a quantile of some values", x.size(), p);
  std::sort(x.begin(), x.end());
  QuantileInterval out;
  out.n = x.size();
  const double at = p * double(x.size() - 1);
  const std::size_t i = std::size_t(at);
  out.value = i + 1 < x.size() ? x[i] + (at - double(i)) * (x[i + 1] - x[i]) : x[i];
  // x[k] covers the quantile from below if at most k of n values lie under it.
  const double tail = (1 - confidence) / 2;
  const std::size_t low = binomial_quantile(x.size(), p, tail);
  const std::size_t high = binomial_quantile(x.size(), p, 1 - tail);
  // P(fewer than `low` below) < tail: x[low - 1] is a lower end, x[high] an upper one.
  out.low = low == 0 ? -unbounded : x[low - 1];
  out.high = high >= x.size() ? unbounded : x[high];
  return out;
}

}  // namespace trainyard::analysis
