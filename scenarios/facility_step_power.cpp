#include "scenarios/facility_step_power.hpp"

#include <cstdio>

#include "models/training/step_model.hpp"

namespace trainyard::scenarios {

StepPowers step_powers(const Scenario& scenario, Site& site) {
  const models::SwingLimitsSpec limits =
      scenario.facility ? scenario.facility->swing : models::SwingLimitsSpec{};
  StepPowers out;
  std::vector<models::StepPower> waves;
  for (const auto& [name, job] : scenario.jobs) {
    models::StepModel model(job, scenario.cluster.server, site.router);
    const models::StepProfile& profile = model.profile(first_placement(scenario, job));
    if (!profile.cut_off.empty() || profile.power.empty()) continue;
    waves.emplace_back(profile.power);
    const models::StepPower& wave = waves.back();
    out.jobs.push_back({name, wave.step(), models::swing_of({&wave, 1}, limits)});
  }
  if (waves.empty()) return out;
  out.together = models::swing_of(waves, limits);
  out.violations = models::violations(out.together, limits);
  return out;
}

std::string to_text(const models::SwingViolation& violation) {
  const auto amount = [&](double value) {
    if (violation.unit == "W") return trainyard::to_text(Watts(value));
    char text[32];
    std::snprintf(text, sizeof text, "%.3g %s", value, violation.unit.c_str());
    return std::string(text);
  };
  const std::string what = violation.what == "breaker"          ? "reaches"
                           : violation.what == "generator_step" ? "rises at once by"
                           : violation.what == "ramp"           ? "ramps by"
                           : violation.what == "range"          ? "swings by"
                                                                : "oscillates with";
  return "facility.swing." + violation.what + ": power of training " + what + " " +
         amount(violation.value) + ", allowed are " + amount(violation.limit);
}

}  // namespace trainyard::scenarios
