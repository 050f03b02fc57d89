#pragma once

#include <cmath>
#include <optional>
#include <ostream>

#include "tests/models/training/life_rig.hpp"

/// Means over seeds with their 99 % interval, and servers that fail, for tests against closed
/// forms.
namespace trainyard::models {

inline constexpr double normal_99 = 2.5758;  // two-sided 99 %
inline constexpr double day_s = 86'400;

struct Sample {
  double sum = 0, squares = 0, n = 0;
  void add(double x) {
    sum += x;
    squares += x * x;
    ++n;
  }
  double mean() const { return sum / n; }
  double half_width() const {
    return normal_99 * std::sqrt((squares / n - mean() * mean()) / (n - 1));
  }
};

inline std::ostream& operator<<(std::ostream& out, const Sample& s) {
  return out << s.mean() << " ± " << s.half_width();
}

inline LifeSetup one_server(std::uint64_t seed) {
  LifeSetup setup;
  setup.seed = seed;
  setup.pool = {.servers = 1, .gpus_per_server = 8, .nics_per_server = 8, .spares = 0};
  return setup;
}

inline FailureClassSpec of_servers(double mean_s, bool replace = false) {
  FailureClassSpec failure;
  failure.component = Component::server;
  failure.lifetime.mean = seconds(mean_s);
  failure.replace = replace;
  failure.repair = {Law::fixed, 1s, 1.0};
  return failure;
}

}  // namespace trainyard::models
