#include "models/facility/power_plant.hpp"
#include "sim/check.hpp"

/// The grid: disturbances by hand, by script and at random.
namespace trainyard::models {

namespace {
/// Below this voltage, per unit, supplies and rectifiers stop drawing from their input; the usual
/// tolerance is -10 to -15 %.
constexpr double least_voltage = 0.85;
constexpr double seconds_per_year = 365.25 * 86400.0;
}  // namespace

PowerPlant::Cause PowerPlant::disturb(Node utility, double residual, Duration duration,
                                      Cause cause) {
  check(paths_.node(utility).kind == PlantKind::utility, "only a utility is disturbed");
  const bool is_outage = residual <= 0.0;
  const Cause event = record(is_outage ? "utility lost" : "utility sag", utility,
                             sim::Phase::failure, cause, residual);
  if (residual >= least_voltage) return event;
  Device& device = devices_[utility];
  ++device.disturbances;
  has_switched_ = true;
  device.event = last_change_ = event;
  engine_.after(duration, sim::Phase::completion, [this, utility, event] {
    Device& d = devices_[utility];
    if (--d.disturbances == 0) {
      d.event = {};
      has_switched_ = true;
      record("utility back", utility, sim::Phase::completion, event);
    }
    update();
  });
  update();
  return event;
}

void PowerPlant::follow(Node utility, const UtilitySpec& spec) {
  for (const auto& [name, e] : spec.script)
    for (int i = 0; i < e.count; ++i)
      engine_.at(add(start_of_run, e.at + i * e.interval), sim::Phase::failure,
                 [this, utility, residual = e.residual, duration = e.duration] {
                   disturb(utility, residual, duration);
                 });
  for (const auto& [name, random] : spec.random) {
    if (random.per_year <= 0.0) continue;
    const std::string path = "plant/" + paths_.node(utility).name + "/" + name;
    random_.emplace(path, engine_.random(path));
    schedule_random(utility, random, path);
  }
}

void PowerPlant::schedule_random(Node utility, const RandomDisturbanceSpec& spec,
                                 const std::string& path) {
  sim::Stream& stream = random_.at(path);
  const Duration gap = seconds(stream.exponential(seconds_per_year / spec.per_year));
  const Duration length = seconds(stream.log_normal(to_seconds(spec.median), spec.sigma));
  engine_.after(gap, sim::Phase::failure, [this, utility, spec, path, length] {
    disturb(utility, spec.residual, length);
    schedule_random(utility, spec, path);
  });
}

}  // namespace trainyard::models
