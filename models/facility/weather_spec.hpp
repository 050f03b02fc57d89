#pragma once

#include <map>
#include <string>

#include "sim/describe.hpp"

/// The air outside: a series of hours, or a sinusoid with hot days put on it.
namespace trainyard::models {

/// Days that are hotter than the season, day and night alike.
struct HeatWaveSpec {
  int first_day = 1;         // of the run, from 1
  int days = 3;              // ASHRAE and WMO speak of three days and more
  double amplitude = 10;     // K above the season
  double moist_share = 0.3;  // of the amplitude, by which the dew point rises: typical figure
};

template <class Visitor>
void describe(Visitor& v, HeatWaveSpec& s) {
  v.required("first_day", s.first_day, "first hot day of the run, from 1", between(1, 100000));
  v.optional("days", s.days, "how many days", between(1, 1000));
  v.required("amplitude", s.amplitude, "above the season, K; below 0: a cold spell",
             between(-60, 40));
  v.optional("moist_share", s.moist_share, "rise of the dew point, part of the amplitude",
             between(0, 1));
}

/// Dry bulb warmest at 15:00 and in the middle of the year, as the inlet of the failure model. The
/// defaults are those of a temperate site (Frankfurt, northern Virginia are near): typical figures.
struct WeatherSpec {
  double mean = 12;
  double day_swing = 5;
  double year_swing = 10;
  int start_day = 1;
  double dew_point_depression = 5;  // typical: 60-75 % relative humidity in the mean of a day
  std::map<std::string, HeatWaveSpec> heat_waves = {};
  std::string file = {};
};

template <class Visitor>
void describe(Visitor& v, WeatherSpec& s) {
  v.optional("mean", s.mean, "dry bulb, mean of the year, degrees Celsius", between(-40, 50));
  v.optional("day_swing", s.day_swing, "half of the daily range, K", between(0, 25));
  v.optional("year_swing", s.year_swing, "half of the yearly range, K", between(0, 40));
  v.optional("start_day", s.start_day, "day of the year at the start of the run", between(1, 366));
  v.optional("dew_point_depression", s.dew_point_depression,
             "dew point below the mean dry bulb of the day, K", between(0, 40));
  v.optional("heat_waves", s.heat_waves, "hot days by name");
  v.optional("file", s.file,
             "CSV file, one line an hour from the start of the run: dry bulb, wet bulb, degrees "
             "Celsius; replaces the sinusoid and starts again at its end");
}

}  // namespace trainyard::models
