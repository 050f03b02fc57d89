#include "models/facility/weather.hpp"

#include <gtest/gtest.h>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;

TEST(WetBulb, is_the_published_example) {
  // Stull (2011): 20 degrees and 50 % give 13.7 degrees.
  EXPECT_NEAR(wet_bulb(20, 50), 13.7, 0.05);
}

TEST(WetBulb, is_never_above_the_dry_bulb_nor_below_the_dew_point) {
  for (double t = -15; t <= 45; t += 2.5)
    for (double rh = 10; rh <= 99; rh += 5) {
      EXPECT_LE(wet_bulb(t, rh), t);
      // The fit errs by up to 1 K.
      EXPECT_GE(wet_bulb(t, rh), dew_point(t, rh) - 1.0) << t << ' ' << rh;
    }
}

TEST(DewPoint, of_saturated_air_is_its_temperature_and_comes_back) {
  EXPECT_NEAR(dew_point(17, 100), 17, 1e-12);
  EXPECT_NEAR(dew_point(25, 50), 13.9, 0.05);  // psychrometric chart
  EXPECT_NEAR(relative_humidity(25, dew_point(25, 37)), 37, 1e-9);
}

TEST(Weather, sinusoid_is_constant_within_the_hour) {
  const Weather weather(WeatherSpec{.mean = 24, .day_swing = 8, .year_swing = 0});
  // 8 cos(2 pi (14.5 - 15) / 24) = 7.9316
  EXPECT_NEAR(weather.at(start_of_run + 14h).dry, 31.9316, 1e-4);
  EXPECT_EQ(weather.at(start_of_run + 14h).dry, weather.at(start_of_run + 15h - 1ns).dry);
  EXPECT_NE(weather.at(start_of_run + 14h).dry, weather.at(start_of_run + 16h).dry);
  EXPECT_EQ(Weather::next_change(start_of_run + 14h), start_of_run + 15h);
  EXPECT_EQ(Weather::next_change(start_of_run + 15h - 1ns), start_of_run + 15h);
  EXPECT_NEAR(weather.mean_dry(start_of_run, start_of_run + 24h), 24, 1e-12);
}

TEST(Weather, integrals_are_those_of_the_steps) {
  const Weather weather(WeatherSpec{}, WeatherSeries{.dry = {10, 20, 40}, .wet = {9, 18, 20}});
  // half an hour of 10, an hour of 20, a quarter of 40: (5 + 20 + 10) / 1.75
  EXPECT_NEAR(weather.mean_dry(start_of_run + 30min, start_of_run + 135min), 20, 1e-12);
  EXPECT_NEAR(weather.mean_wet(start_of_run, start_of_run + 2h), 13.5, 1e-12);
  EXPECT_EQ(weather.at(start_of_run + 3h).dry, 10);  // again from its begin
  EXPECT_EQ(weather.hottest(start_of_run, start_of_run + 5h), start_of_run + 2h);
}

TEST(Weather, a_linear_series_is_the_mean_of_its_line) {
  const Weather weather(
      WeatherSpec{},
      WeatherSeries{.dry = {10, 20}, .wet = {8, 16}, .reading = SeriesReading::linear});
  EXPECT_EQ(weather.at(start_of_run).dry, 15);
  EXPECT_EQ(weather.at(start_of_run + 1h).wet, 12);
}

TEST(Weather, a_heat_wave_lasts_its_days) {
  WeatherSpec spec{.mean = 20, .day_swing = 0, .year_swing = 0};
  spec.heat_waves["july"] = {.first_day = 2, .days = 3, .amplitude = 12};
  const Weather weather(spec);
  EXPECT_EQ(weather.at(start_of_run + 24h - 1ns).dry, 20);
  EXPECT_EQ(weather.at(start_of_run + 24h).dry, 32);
  EXPECT_EQ(weather.at(start_of_run + 96h - 1ns).dry, 32);
  EXPECT_EQ(weather.at(start_of_run + 96h).dry, 20);
  EXPECT_NEAR(weather.at(start_of_run + 30h).dew, 15 + 0.3 * 12, 1e-12);
}

}  // namespace
}  // namespace trainyard::models
