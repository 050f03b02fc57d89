#include "models/facility/power_swing.hpp"

#include <cmath>

namespace trainyard::models {
namespace {

constexpr double rounding = 1e-9;  // a power at its limit is a sum of many

}  // namespace

PowerSwing swing_of(std::span<const StepPower> jobs, const SwingLimitsSpec& limits,
                    Watts constant) {
  PowerSwing sum;
  sum.mean = sum.peak = sum.low = constant;
  double squares = 0, band_squares = 0;
  Watts strongest;
  for (const StepPower& job : jobs) {
    const PowerBand band = job.band(limits.band_low, limits.band_high);
    sum.mean += job.mean();
    sum.peak += job.peak();
    sum.low += job.low();
    sum.rise += job.largest_rise(limits.generator_window);
    sum.ramp_W_per_s += job.steepest_ramp(limits.ramp_window);
    sum.amplitude += band.strongest;
    squares += job.deviation().value() * job.deviation().value();
    band_squares += band.rms.value() * band.rms.value();
    if (band.strongest > strongest) {
      strongest = band.strongest;
      sum.frequency = band.frequency;
    }
  }
  sum.range = sum.peak - sum.low;
  sum.deviation = Watts(std::sqrt(squares));
  sum.amplitude_rms = Watts(std::sqrt(band_squares));
  return sum;
}

std::vector<SwingViolation> violations(const PowerSwing& swing, const SwingLimitsSpec& limits) {
  std::vector<SwingViolation> found;
  const auto compare = [&](const char* what, Watts value, const std::optional<Watts>& limit) {
    if (limit && value > *limit * (1 + rounding))
      found.push_back({what, value.value(), limit->value(), "W"});
  };
  compare("breaker", swing.peak, limits.breaker);
  compare("generator_step", swing.rise, limits.generator_step);
  if (const double ramp = swing.ramp_W_per_s / 1e6;
      limits.ramp && ramp > *limits.ramp * (1 + rounding))
    found.push_back({"ramp", ramp, *limits.ramp, "MW/s"});
  compare("range", swing.range, limits.range);
  compare("amplitude", swing.amplitude, limits.amplitude);
  return found;
}

}  // namespace trainyard::models
