#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/weather.hpp"
#include "scenarios/diagnostic.hpp"

/// The weather of a site as CSV with a header line: one line an hour from the start of the run,
/// lines that begin with '#' are comments.
///
///     # Frankfurt, July
///     dry_C,wet_C
///     21.4,17.9
///     20.8,17.6
///
///     dry_C               dry bulb, degrees Celsius
///     wet_C               wet bulb, degrees Celsius; at most half a degree above the dry bulb,
///     which
///                         two rounded readings of saturated air may differ by; then taken as equal
///     relative_humidity   percent: for hours without a wet bulb, by models::wet_bulb
///
/// Without both, the dew point of a day (24 lines) is its mean dry bulb less
/// WeatherSpec::dew_point_depression, as in the sinusoid. A series has no gaps: one mistake, and
/// there is none.
///
///     const WeatherFile file = read_weather_csv("summer-week.csv", spec.weather);
///     if (file.series) CoolingPlant plant(engine, recorder, spec, racks, {}, file.series);
namespace trainyard::scenarios {

struct WeatherFile {
  std::optional<models::WeatherSeries> series;  // as `steps`; none if there are mistakes
  std::vector<Diagnostic> diagnostics;          // at most about a hundred
};

WeatherFile read_weather_csv(const std::filesystem::path& file, const models::WeatherSpec& spec);
WeatherFile read_weather_csv(std::istream& in, const std::string& name,
                             const models::WeatherSpec& spec);

}  // namespace trainyard::scenarios
