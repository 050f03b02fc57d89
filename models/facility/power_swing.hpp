#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/facility/step_power.hpp"
#include "models/facility/step_power_spec.hpp"

/// The power of several jobs on one feed. Each is synchronous in itself; they are not aligned with
/// each other, and their steps drift through all alignments.
///
///     worst     all meet: highs, swings, ramps and amplitudes add
///     typical   independent phases: squares add, deviation = sqrt(sum deviation_i^2)
///
///     PowerSwing swing = swing_of(jobs, limits, constant);
///     for (const SwingViolation& v : violations(swing, limits)) …   // v.what, v.value, v.limit
///
/// Both are bounds of the same sum; for one job they are its own figures, exactly. Page:
/// docs/models/step-power.md.
namespace trainyard::models {

struct PowerSwing {
  Watts mean{};
  Watts peak{};  // worst
  Watts low{};
  Watts range{};
  Watts deviation{};        // root mean square
  Watts rise{};             // worst, within generator_window
  double ramp_W_per_s = 0;  // worst, over ramp_window
  Watts amplitude{};        // worst, strongest lines of all jobs
  double frequency = 0;     // of the strongest of them, Hz
  Watts amplitude_rms{};    // of all lines in the band, independent phases
};

/// `constant`: what else the feed carries.
PowerSwing swing_of(std::span<const StepPower> jobs, const SwingLimitsSpec& limits,
                    Watts constant = {});

struct SwingViolation {
  std::string what;  // key of the limit
  double value = 0;
  double limit = 0;
  std::string unit;  // "W", "MW/s"
};

/// What is above its limit; at it is allowed.
std::vector<SwingViolation> violations(const PowerSwing& swing, const SwingLimitsSpec& limits);

}  // namespace trainyard::models
