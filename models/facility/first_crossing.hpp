#pragma once

#include <optional>
#include <vector>

#include "sim/time.hpp"

/// When a temperature first reaches a limit.
///
/// Between two events a temperature is a sum of exponentials,
///
///     T(t) = T(0) + sum of d_i (e^(r_i t) - 1) / r_i          (d_i t where r_i = 0),
///
/// which may rise, turn and fall before it crosses, or only touch the limit. One Newton step can
/// jump over such a crossing, a scan can miss it. Here the march is safe: with the slope T' and a
/// bound M on |T''| over the next stretch, the curve lies below the parabola T + T' s + M s^2 / 2,
/// so the step to where that parabola meets the limit cannot pass a crossing. Near a plain crossing
/// the steps shrink quadratically, near a touch geometrically; the last microsecond is bisected to
/// the nanosecond. A limit that the curve can never reach again is recognised from the sum of the
/// rises that are left.
///
///     ExponentialCourse course({.value = 34.0, .slopes = {1.9, -0.3}, .rates = {-0.04, -0.009}});
///     std::optional<Duration> t = first_crossing(course, 45.0, Direction::rising, hours);
///
/// Cost: one evaluation of all terms a step; 4 to 12 steps for a plain crossing, then about 10 of
/// one value.
/// What it does not resolve: an excursion beyond the limit of less than a microsecond. A curve that
/// comes within `touch_K` of the limit has reached it.
namespace trainyard::models {

enum class Direction { rising, falling };

/// Within this of the limit is at the limit: far above rounding (1e-13 K), far below any sensor.
inline constexpr double touch_K = 1e-9;

/// A temperature from a start on, as the march sees it.
class Course {
 public:
  struct Sight {
    double value;      // degrees Celsius
    double slope;      // K/s
    double curvature;  // K/s^2: |T''| stays at or below this for `reach`
    Duration reach;    // forever where nothing grows
    double rise_left;  // K: no later value is above value + rise_left; may be infinite
    double fall_left;  // K: no later value is below value - fall_left
  };

  virtual ~Course() = default;
  /// At `after` the start. Asked in any order, cheapest when `after` grows.
  virtual Sight at(Duration after) = 0;
  virtual double value(Duration after) = 0;
};

/// The sum above; rates in 1/s, slopes in K/s.
struct ExponentialSum {
  double value = 0.0;
  std::vector<double> slopes = {};
  std::vector<double> rates = {};
};

class ExponentialCourse : public Course {
 public:
  explicit ExponentialCourse(ExponentialSum sum) : sum_(std::move(sum)) {}
  Sight at(Duration after) override;
  double value(Duration after) override;

 private:
  Sight look(Duration after) const;

  ExponentialSum sum_;
  std::optional<Sight> start_;
};

/// The first moment, counted from the start of the course, at which the value is at or beyond the
/// limit in this direction; zero if it is there already, nothing if not before `horizon`.
std::optional<Duration> first_crossing(Course& course, double limit, Direction direction,
                                       Duration horizon = forever);

/// The next moment at which the value *arrives* at the limit: as first_crossing, but a course that
/// starts at or beyond it has to leave it first.
std::optional<Duration> next_arrival(Course& course, double limit, Direction direction,
                                     Duration horizon = forever);

}  // namespace trainyard::models
