#pragma once

#include <optional>
#include <vector>

#include "models/facility/weather_spec.hpp"
#include "sim/time.hpp"

/// The air outside, hour by hour: dry bulb, wet bulb, dew point.
///
/// Every hour has one value, so plants see steps and all sums over time are exact. Of the sinusoid
/// it is the value in the middle of the hour,
///
///     T = mean + day_swing cos(2 pi (clock - 15 h) / 24 h) + year_swing cos(2 pi (day - 182) /
///     365)
///
/// plus the amplitude of each heat wave of that day. The dew point stays the same all day: the mean
/// of the day less the depression, and never above the dry bulb. Of a series taken as `linear` it
/// is the mean of the straight line over the hour; as `steps`, the figure itself.
///
///     Weather weather(WeatherSpec{.mean = 24, .day_swing = 8, .year_swing = 0});
///     weather.at(start_of_run + 14h + 5min).dry;      // 31.93: the hour from 14:00
///     weather.mean_dry(start_of_run, start_of_run + 24h);   // 24
///
/// Sources: R. Stull, "Wet-bulb temperature from relative humidity and air temperature", J. Appl.
/// Meteor. Climatol. 50 (2011); O. Alduchov, R. Eskridge, "Improved Magnus form approximation of
/// saturation vapor pressure", J. Appl. Meteor. 35 (1996).
namespace trainyard::models {

/// Degrees Celsius at sea level. Stull: 5-99 % and -20 to 50 degrees, error -1 to +0.65 K; outside
/// it is held at the edge of the range of humidity, and never above the dry bulb.
double wet_bulb(double dry_C, double relative_humidity_percent);
/// Degrees Celsius over water; -40 to 50 degrees within 0.4 % of the vapour pressure.
double dew_point(double dry_C, double relative_humidity_percent);
double relative_humidity(double dry_C, double dew_point_C);  // percent

struct Outdoors {
  double dry = 15;  // degrees Celsius, all three
  double wet = 12;
  double dew = 10;
};

enum class SeriesReading { steps, linear };

/// One value an hour from the start of the run; both of one length. Starts again at its end.
struct WeatherSeries {
  std::vector<double> dry = {};
  std::vector<double> wet = {};
  SeriesReading reading = SeriesReading::steps;
};

class Weather {
 public:
  explicit Weather(const WeatherSpec& spec, std::optional<WeatherSeries> series = {});

  Outdoors at(Time now) const;
  /// The next full hour.
  static Time next_change(Time now);
  /// Exact means of the steps.
  double mean_dry(Time from, Time to) const;
  double mean_wet(Time from, Time to) const;
  /// The hottest hour in [from, to): its begin.
  Time hottest(Time from, Time to) const;

 private:
  Outdoors hour(std::int64_t index) const;
  double mean(Time from, Time to, double Outdoors::*what) const;

  WeatherSpec spec_;
  std::optional<WeatherSeries> series_;
};

}  // namespace trainyard::models
