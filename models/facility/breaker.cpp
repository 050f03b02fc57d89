#include "models/facility/breaker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::models {

double magnetic_limit(MagneticCurve curve) {
  switch (curve) {
    case MagneticCurve::b:
      return 5.0;
    case MagneticCurve::c:
      return 10.0;
    case MagneticCurve::d:
      return 20.0;
    case MagneticCurve::none:
      break;
  }
  return std::numeric_limits<double>::infinity();
}

std::optional<Duration> trip_time(const BreakerSpec& spec, double image, double ratio) {
  std::optional<Duration> thermal;
  const double heating = ratio * ratio;
  if (image >= spec.trip_level)
    thermal = Duration::zero();
  else if (heating > spec.trip_level)
    thermal = seconds(to_seconds(spec.time_constant) *
                      std::log((heating - image) / (heating - spec.trip_level)));
  if (ratio < magnetic_limit(spec.curve)) return thermal;
  return thermal ? std::min(*thermal, spec.magnetic_time) : spec.magnetic_time;
}

Breaker::Breaker(const BreakerSpec& spec) : spec_(spec) {
  check(spec.rating > Amperes(0), "a breaker has a rated current", spec.rating.value());
}

double Breaker::image(Time now) const {
  const double heating = ratio_ * ratio_;
  return heating +
         (image_ - heating) * std::exp(-to_seconds(now - since_) / to_seconds(spec_.time_constant));
}

void Breaker::rebase(Time now) {
  image_ = image(now);
  since_ = now;
}

void Breaker::predict() {
  next_.reset();
  if (!is_closed_) {
    if (has_tripped_ && spec_.reset == BreakerReset::automatic)
      next_ = add(since_, spec_.reset_delay);
    return;
  }
  BreakerSpec thermal = spec_;
  thermal.curve = MagneticCurve::none;
  if (const auto t = trip_time(thermal, image_, ratio_); t && *t != forever)
    next_ = add(since_, *t);
  if (over_magnetic_) {
    const Time magnetic = add(*over_magnetic_, spec_.magnetic_time);
    next_ = next_ ? std::min(*next_, magnetic) : magnetic;
  }
}

void Breaker::advance(Time now) {
  check(now >= since_, "a breaker does not go back in time");
  while (next_ && *next_ <= now) {
    rebase(*next_);
    is_closed_ = !is_closed_;
    has_tripped_ = !is_closed_;
    ratio_ = 0.0;
    over_magnetic_.reset();
    predict();
  }
}

void Breaker::set_current(Time now, Amperes current) {
  check(current >= Amperes(0), "a current through a breaker is not negative", current.value());
  advance(now);
  const double ratio = is_closed_ ? current / spec_.rating : 0.0;
  if (ratio == ratio_) return;
  rebase(now);
  ratio_ = ratio;
  if (ratio < magnetic_limit(spec_.curve))
    over_magnetic_.reset();
  else if (!over_magnetic_)
    over_magnetic_ = now;
  if (is_closed_) predict();
}

void Breaker::resume(Time now, double image, Amperes current) {
  check(is_closed_, "an open breaker carries nothing");
  advance(now);
  since_ = now;
  image_ = image;
  set_current(now, current);
  predict();
}

void Breaker::close(Time now) {
  advance(now);
  if (is_closed_) return;
  rebase(now);
  is_closed_ = true;
  has_tripped_ = false;
  predict();
}

void Breaker::open(Time now) {
  advance(now);
  if (!is_closed_) return;
  rebase(now);
  is_closed_ = false;
  ratio_ = 0.0;
  over_magnetic_.reset();
  predict();
}

}  // namespace trainyard::models
