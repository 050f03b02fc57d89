#include "models/facility/gpu_power.hpp"

#include <algorithm>
#include <cmath>

#include "models/facility/gpu_lump.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

GpuPowerSpec gpu_power_of(const GpuSpec& gpu) {
  constexpr double leaking_share = 0.1, idle_temperature = 25;
  GpuPowerSpec spec;
  spec.name = gpu.name;
  spec.power_limit = gpu.power_max;
  spec.idle = gpu.power_idle;
  // No more than idle, so that a cold device does not draw less than nothing.
  spec.leakage = std::min(gpu.power_max * leaking_share, gpu.power_idle);
  spec.leakage_slope = spec.leakage.value() / (spec.reference - idle_temperature);
  spec.dynamic = std::max(Watts(0), gpu.power_max - spec.idle - spec.leakage);
  const Watts communicating =
      gpu.power_communicating > Watts(0) ? gpu.power_communicating : gpu.power_max * 0.36;
  spec.communicating = GpuPower(spec).activity_at(communicating);
  return spec;
}

Watts GpuPower::static_power(double temperature) const {
  return spec_.idle + spec_.leakage + Watts(spec_.leakage_slope * (temperature - spec_.reference));
}

Watts GpuPower::power(double activity, double phi, double temperature) const {
  return static_power(temperature) + spec_.dynamic * activity * std::pow(phi, spec_.exponent);
}

double GpuPower::phi_at(Watts power, double activity, double temperature) const {
  const Watts full = spec_.dynamic * activity;
  if (full <= Watts(0)) return 1;
  const double share = std::max(0.0, (power - static_power(temperature)) / full);
  return std::clamp(std::pow(share, 1 / spec_.exponent), spec_.lowest_clock, 1.0);
}

double GpuPower::activity_at(Watts power) const {
  if (spec_.dynamic <= Watts(0)) return 0;
  return std::clamp((power - spec_.idle - spec_.leakage) / spec_.dynamic, 0.0, 1.0);
}

LeakagePoint GpuPower::settled(double activity, double phi, double inlet, double resistance) const {
  check(resistance > 0, "a thermal resistance is above zero", resistance);
  LeakagePoint p;
  const double gain = resistance * spec_.leakage_slope;
  p.runs_away = gain >= 1 || std::isinf(resistance);
  if (p.runs_away) return p;
  p.temperature = (inlet + resistance * power(activity, phi, 0).value()) / (1 - gain);
  p.power = power(activity, phi, p.temperature);
  return p;
}

OperatingPoint GpuPower::operating_point(const GpuLoad& load) const {
  // At rest the capacity does not matter: both halves of a slow-down stretch with it.
  return GpuLump(spec_, 1, load).rest();
}

OperatingPoint GpuPower::operating_point(double activity, double inlet, double resistance,
                                         std::optional<Watts> cap) const {
  return operating_point(
      GpuLoad{.activity = activity, .inlet = inlet, .resistance = resistance, .cap = cap});
}

double resistance_at(const GpuCoolerSpec& cooler, double flow) {
  check(flow >= 0, "a flow is not negative", flow);
  if (flow == 0) return std::numeric_limits<double>::infinity();
  return cooler.resistance *
         (cooler.conduction + (1 - cooler.conduction) * std::pow(flow, -cooler.flow_exponent));
}

double time_factor(double phi, double compute_bound, double memory_speed) {
  const double compute = compute_bound > 0 ? compute_bound / phi : 0;
  const double rest = compute_bound < 1 ? (1 - compute_bound) / memory_speed : 0;
  return compute + rest;
}

double gpu_speed(const OperatingPoint& point, double compute_bound) {
  return group_speed(point, compute_bound, 1);
}

double group_speed(const OperatingPoint& point, double compute_bound, double members) {
  if (point.limit == GpuLimit::shutdown) return 0;
  const double fast = 1 / time_factor(point.fast_phi, compute_bound, point.memory_speed);
  const double slow = 1 / time_factor(point.slow_phi, compute_bound, point.memory_speed);
  const double all_fast = std::pow(point.duty, members);
  return all_fast * fast + (1 - all_fast) * slow;
}

}  // namespace trainyard::models
