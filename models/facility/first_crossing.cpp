#include "models/facility/first_crossing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainyard::models {
namespace {

constexpr Duration look_ahead = std::chrono::microseconds(1);

Duration plus(Duration a, Duration b) {
  return a > forever - b ? forever : a + b;
}

/// Whole nanoseconds of a step, rounded down: a safe step stays safe.
Duration floor_of(double s) {
  return s < 9.2e9 ? Duration(static_cast<Duration::rep>(s * 1e9)) : forever;
}

/// How long a value that moves towards the limit with `speed` and can gain at most `bend` more
/// K/s a second stays short of it.
double safe_step(double gap, double speed, double bend) {
  const double root = std::sqrt(speed * speed + 2.0 * bend * gap);
  if (speed >= 0.0) {
    const double sum = speed + root;
    return sum > 0.0 ? 2.0 * gap / sum : std::numeric_limits<double>::infinity();
  }
  return bend > 0.0 ? (root - speed) / bend : std::numeric_limits<double>::infinity();
}

std::optional<Duration> march(Course& course, double limit, Direction direction, Duration start,
                              Duration horizon) {
  const double sign = direction == Direction::rising ? 1.0 : -1.0;
  const auto gap_at = [&](Duration t) { return sign * (limit - course.value(t)); };
  // The first nanosecond with a gap of no more than `near`, given one before it and one that has
  // it.
  const auto bisect = [&](Duration before, Duration reached, double near) {
    while (reached - before > Duration(1)) {
      const Duration middle = before + (reached - before) / 2;
      (gap_at(middle) > near ? before : reached) = middle;
    }
    return reached <= horizon ? std::optional(reached) : std::nullopt;
  };

  Duration t = start, previous = start;
  while (t <= horizon && t < forever) {
    const Course::Sight sight = course.at(t);
    // Ran away to the other side.
    if (!std::isfinite(sight.value) || !std::isfinite(sight.slope)) return std::nullopt;
    const double gap = sign * (limit - sight.value);
    if (gap <= 0.0) return t == start ? std::optional(t) : bisect(previous, t, 0.0);
    const bool touches = gap <= touch_K;
    if (touches && t == start) return t;
    const double left = direction == Direction::rising ? sight.rise_left : sight.fall_left;
    if (!touches && gap - touch_K > left) return std::nullopt;

    const Duration step =
        std::min(floor_of(safe_step(gap, sign * sight.slope, sight.curvature)), sight.reach);
    if (!touches && step >= look_ahead) {
      previous = t;
      t = plus(t, step);
      continue;
    }
    const Duration next = plus(t, look_ahead);
    if (gap_at(next) <= 0.0) return bisect(t, next, 0.0);
    if (touches) return bisect(previous, t, touch_K);
    previous = t;
    t = next;
  }
  return std::nullopt;
}

}  // namespace

Course::Sight ExponentialCourse::at(Duration after) {
  // Every search begins here, and most end here: nothing rises far enough.
  if (after != Duration::zero()) return look(after);
  if (!start_) start_ = look(after);
  return *start_;
}

Course::Sight ExponentialCourse::look(Duration after) const {
  const double s = to_seconds(after);
  double fastest_growth = 0.0;
  for (double rate : sum_.rates) fastest_growth = std::max(fastest_growth, rate);
  const double reach_s = fastest_growth > 0.0 ? 1.0 / fastest_growth : 0.0;

  Sight sight{sum_.value, 0.0, 0.0, fastest_growth > 0.0 ? floor_of(reach_s) : forever, 0.0, 0.0};
  for (std::size_t i = 0; i < sum_.rates.size(); ++i) {
    const double rate = sum_.rates[i], slope = sum_.slopes[i];
    const double less_one = s == 0.0 ? 0.0 : std::expm1(rate * s);
    const double now = slope * (1.0 + less_one);
    sight.value += rate == 0.0 ? slope * s : slope * less_one / rate;
    sight.slope += now;
    sight.curvature += std::abs(now * rate) * (rate > 0.0 ? std::exp(rate * reach_s) : 1.0);
    if (now == 0.0) continue;
    const double left = rate < 0.0 ? std::abs(now / rate) : std::numeric_limits<double>::infinity();
    (now > 0.0 ? sight.rise_left : sight.fall_left) += left;
  }
  return sight;
}

double ExponentialCourse::value(Duration after) {
  const double s = to_seconds(after);
  double value = sum_.value;
  for (std::size_t i = 0; i < sum_.rates.size(); ++i) {
    const double rate = sum_.rates[i];
    value += rate == 0.0 ? sum_.slopes[i] * s : sum_.slopes[i] * std::expm1(rate * s) / rate;
  }
  return value;
}

std::optional<Duration> first_crossing(Course& course, double limit, Direction direction,
                                       Duration horizon) {
  return march(course, limit, direction, Duration::zero(), horizon);
}

std::optional<Duration> next_arrival(Course& course, double limit, Direction direction,
                                     Duration horizon) {
  const double sign = direction == Direction::rising ? 1.0 : -1.0;
  Duration start{};
  if (sign * (limit - course.value(start)) <= touch_K) {
    const Direction back = direction == Direction::rising ? Direction::falling : Direction::rising;
    const auto left = march(course, limit - sign * 2.0 * touch_K, back, start, horizon);
    if (!left) return std::nullopt;
    start = *left;
  }
  return march(course, limit, direction, start, horizon);
}

}  // namespace trainyard::models
