#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/paired_statistics.hpp"
#include "analysis/study.hpp"

/// What the runs of a study say about its points and axes. Replications that one of the points
/// compared lacks, or whose run failed there, are left out of a comparison, so that every
/// difference is one on equal luck.
namespace trainyard::analysis {

/// Complete runs with a value of this metric, replication by replication; not a number elsewhere.
std::vector<double> values_of(const Study& study, std::size_t point, std::size_t metric);
/// Without those that are not a number.
std::vector<double> finite(std::vector<double> values);

/// Of points that have runs and are alike in all axes that are given: which is best, and which
/// cannot be told from it. `behind` is above zero for a point that is worse, whatever the metric's
/// direction.
struct PointRanking {
  std::vector<std::size_t> points;  // those ranked; ranking.systems[i] is of points[i]
  std::size_t replications = 0;     // that all of them have
  Ranking ranking;
  /// How much wider than the paired interval an unpaired one of the difference to the best would
  /// be; the median over the points. 1 without common random numbers, and with fewer than two
  /// replications.
  double pairing_gain = 1;
};
/// One for each combination of given values that has at least two points with runs; none if the
/// metric has no direction.
std::vector<PointRanking> rank_points(const Study& study, std::size_t metric);

/// One value of an axis against the first one, all other axes equal.
struct AxisEffect {
  std::size_t axis = 0;
  std::string label, against;
  std::size_t points = 0;   // pairs of points
  MeanInterval difference;  // over replications, of the mean over pairs of points
  double mean_against = 0;  // of the metric at the first value, over the same runs
  /// How much wider the interval would be on different luck; 1 with fewer than two replications.
  double pairing_gain = 1;
};
std::vector<AxisEffect> axis_effects(const Study& study, std::size_t metric);

/// An axis whose values give the same, everything else equal.
struct NoEffectAxis {
  std::size_t axis = 0;
  bool is_same_run = false;  // every event is the same; else only the metrics are
  std::size_t pairs = 0;     // of runs that were compared
};
std::vector<NoEffectAxis> axes_without_effect(const Study& study);

/// The top (or bottom) of a curve over one axis of numbers, the others fixed: of a parabola through
/// the points near the best one.
struct StudyOptimum {
  std::size_t axis = 0;
  std::vector<std::size_t> points;  // that the parabola goes through, ascending
  bool is_log = false;              // fitted in the logarithm of the axis
  bool is_at_end = false;           // the best point is the first or last: the top may lie beyond
  std::optional<Optimum> top;       // none: at an end, or too flat to place
};
/// Curves with at least five points. Points within a factor of three of the best (in a linear fit:
/// a third of the range) are near it, and the five nearest.
std::vector<StudyOptimum> optima(const Study& study, std::size_t metric);

/// Mean with a bias-corrected and accelerated bootstrap interval (Efron, JASA 82(397), 1987): for
/// values that are far from normal. The same values give the same interval. At least two values.
struct BootstrapInterval {
  double mean = 0, low = 0, high = 0;
  std::size_t n = 0;
};
BootstrapInterval bootstrap_mean(const std::vector<double>& x, double confidence);

/// The share p of the values lies below: between order statistics, which hold whatever the
/// distribution is. Infinite where there are too few values for the confidence.
struct QuantileInterval {
  double value = 0, low = 0, high = 0;
  std::size_t n = 0;
};
QuantileInterval quantile(std::vector<double> x, double p, double confidence);

}  // namespace trainyard::analysis
