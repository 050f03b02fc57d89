#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/describe.hpp"
#include "sim/time.hpp"

/// What the grid does: disturbances at given times, and random ones.
namespace trainyard::models {

/// One disturbance, or a series of equal ones.
struct UtilityEventSpec {
  Duration at{};
  double residual = 0.0;
  Duration duration{};
  int count = 1;
  Duration interval{};
};

template <class Visitor>
void describe(Visitor& v, UtilityEventSpec& s) {
  v.required("at", s.at, "when it begins, from the start of the run, s", at_least(0));
  v.optional("residual", s.residual, "voltage that is left, per unit; 0: an outage", between(0, 1));
  v.required("duration", s.duration, "of one disturbance, s", above(0));
  v.optional("count", s.count, "disturbances in the series", between(1, 10000));
  v.optional("interval", s.interval, "from the begin of one to the begin of the next, s",
             at_least(0));
  v.check(s.count == 1 || s.interval > s.duration, "interval",
          "longer than the duration: disturbances of a series do not overlap");
}

/// Poisson arrivals; log-normal durations.
struct RandomDisturbanceSpec {
  double per_year = 0.0;
  double residual = 0.0;
  Duration median{};
  double sigma = 1.0;  // of the logarithm of the duration
};

template <class Visitor>
void describe(Visitor& v, RandomDisturbanceSpec& s) {
  v.required("per_year", s.per_year, "mean number a year", at_least(0));
  v.optional("residual", s.residual, "voltage that is left, per unit; 0: an outage", between(0, 1));
  v.required("median", s.median, "median duration, s", above(0));
  v.optional("sigma", s.sigma, "standard deviation of the logarithm of the duration",
             between(0, 4));
}

struct UtilitySpec {
  std::map<std::string, UtilityEventSpec> script = {};
  /// Typical figures for a single feed: outages 2 a year of about an hour; sags that make a UPS
  /// transfer 5-20 a year, shorter than a second.
  std::map<std::string, RandomDisturbanceSpec> random = {};
};

template <class Visitor>
void describe(Visitor& v, UtilitySpec& s) {
  v.optional("script", s.script, "disturbances at given times, by name");
  v.optional("random", s.random, "random disturbances, by name");
}

}  // namespace trainyard::models
