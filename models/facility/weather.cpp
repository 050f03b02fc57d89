#include "models/facility/weather.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr Duration one_hour = std::chrono::hours(1);
constexpr double magnus_a = 17.625;
constexpr double magnus_b = 243.04;  // degrees Celsius

std::int64_t hour_of(Time now) {
  return now.time_since_epoch() / one_hour;
}

/// Dew point of air with these two temperatures, from the psychrometer equation at sea level.
double dew_of(double dry, double wet) {
  const auto pressure = [](double t) {
    return 610.94 * std::exp(magnus_a * t / (magnus_b + t));  // Pa
  };
  const double vapour = pressure(wet) - 66.2 * (dry - wet);  // 6.53e-4 /K of 101.325 kPa
  const double ratio = std::log(std::max(vapour, 1.0) / 610.94);
  return std::min(dry, magnus_b * ratio / (magnus_a - ratio));
}

}  // namespace

double wet_bulb(double dry_C, double relative_humidity_percent) {
  const double rh = std::clamp(relative_humidity_percent, 5.0, 99.0);
  const double wet = dry_C * std::atan(0.151977 * std::sqrt(rh + 8.313659)) +
                     std::atan(dry_C + rh) - std::atan(rh - 1.676331) +
                     0.00391838 * std::pow(rh, 1.5) * std::atan(0.023101 * rh) - 4.686035;
  return std::min(wet, dry_C);
}

double dew_point(double dry_C, double relative_humidity_percent) {
  const double ratio = std::log(std::max(relative_humidity_percent, 0.1) / 100.0) +
                       magnus_a * dry_C / (magnus_b + dry_C);
  return magnus_b * ratio / (magnus_a - ratio);
}

double relative_humidity(double dry_C, double dew_point_C) {
  return 100.0 * std::exp(magnus_a * dew_point_C / (magnus_b + dew_point_C) -
                          magnus_a * dry_C / (magnus_b + dry_C));
}

Weather::Weather(const WeatherSpec& spec, std::optional<WeatherSeries> series)
    : spec_(spec), series_(std::move(series)) {
  if (!series_) return;
  check(!series_->dry.empty() && series_->dry.size() == series_->wet.size(),
        "a weather series has as many wet bulbs as dry bulbs, and at least one",
        series_->dry.size(), series_->wet.size());
}

Outdoors Weather::hour(std::int64_t index) const {
  Outdoors out;
  if (series_) {
    const std::size_t n = series_->dry.size();
    const std::size_t i = std::size_t(index) % n;
    const std::size_t next = series_->reading == SeriesReading::linear ? (i + 1) % n : i;
    out.dry = 0.5 * (series_->dry[i] + series_->dry[next]);
    out.wet = std::min(out.dry, 0.5 * (series_->wet[i] + series_->wet[next]));
    out.dew = dew_of(out.dry, out.wet);
    return out;
  }
  constexpr double turn = 2.0 * std::numbers::pi;
  const double clock_h = double(index % 24) + 0.5;
  const double day = spec_.start_day + (double(index) + 0.5) / 24.0 - 0.5;
  double season = spec_.mean + spec_.year_swing * std::cos(turn * (day - 182.0) / 365.0);
  out.dew = season - spec_.dew_point_depression;
  for (const auto& [name, wave] : spec_.heat_waves) {
    const std::int64_t day_of_run = index / 24 + 1;
    if (day_of_run < wave.first_day || day_of_run >= wave.first_day + wave.days) continue;
    season += wave.amplitude;
    out.dew += wave.amplitude * wave.moist_share;
  }
  out.dry = season + spec_.day_swing * std::cos(turn * (clock_h - 15.0) / 24.0);
  out.dew = std::min(out.dew, out.dry);
  out.wet = wet_bulb(out.dry, relative_humidity(out.dry, out.dew));
  return out;
}

Outdoors Weather::at(Time now) const {
  return hour(hour_of(now));
}

Time Weather::next_change(Time now) {
  return start_of_run + (hour_of(now) + 1) * one_hour;
}

double Weather::mean(Time from, Time to, double Outdoors::*what) const {
  check(from <= to, "a mean is taken forwards");
  if (from == to) return at(from).*what;
  double sum = 0.0;
  for (Time t = from; t < to;) {
    const Time end = std::min(to, next_change(t));
    sum += at(t).*what * to_seconds(end - t);
    t = end;
  }
  return sum / to_seconds(to - from);
}

double Weather::mean_dry(Time from, Time to) const {
  return mean(from, to, &Outdoors::dry);
}

double Weather::mean_wet(Time from, Time to) const {
  return mean(from, to, &Outdoors::wet);
}

Time Weather::hottest(Time from, Time to) const {
  Time best = from;
  for (Time t = from; t < to; t = next_change(t))
    if (at(t).dry > at(best).dry) best = t;
  return best;
}

}  // namespace trainyard::models
