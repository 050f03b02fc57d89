#pragma once

#include <string>
#include <vector>

#include "models/facility/power_swing.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/stage.hpp"

/// The power of the training steps of a scenario, second by second, against facility.swing: every
/// job on the intact cluster where it would start, as its step profile says, servers included.
/// What idles beside them is not in it.
///
///     StepPowers p = step_powers(scenario, site);
///     p.together.range, p.violations;
///
/// What highs, ramps and amplitudes are: models/facility/power_swing.hpp.
namespace trainyard::scenarios {

struct JobStepPower {
  std::string job;
  Duration step{};
  models::PowerSwing swing = {};
};

struct StepPowers {
  std::vector<JobStepPower> jobs = {};                  // that have a path for their step
  models::PowerSwing together = {};                     // at the worst alignment of all jobs
  std::vector<models::SwingViolation> violations = {};  // of all together
};

StepPowers step_powers(const Scenario& scenario, Site& site);

/// "jobs together swing by 40 MW, facility.swing.range allows 10 MW"
std::string to_text(const models::SwingViolation& violation);

}  // namespace trainyard::scenarios
