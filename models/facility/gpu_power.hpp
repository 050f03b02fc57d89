#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "models/facility/gpu_power_spec.hpp"

/// Power, clock and temperature of one accelerator at rest: what it draws, and how fast it may run.
///
///     P = idle + leakage + slope (T - T0) + dynamic u w phi^a
///
/// with activity u of the busy phases (1: compute), their weight w (mean activity over u, 1 if
/// there are no others), clock ratio phi and die temperature T. The clock is the highest that all
/// of these allow: the power limit of the board or a lower cap, which act on busy phases; the
/// regulator, which holds the die at its temperature; the slow-down of the hardware. All are
/// functions of T in which P is piecewise linear, so the temperature of one lump of heat is a chain
/// of exponentials (gpu_lump.hpp).
///
///     GpuPower gpu(GpuPowerSpec{});
///     GpuLoad load{.inlet = 35, .cap = Watts(600)};
///     OperatingPoint p = gpu.operating_point(load);   // p.phi, p.power, p.temperature, p.limit
///     double speed = group_speed(p, 0.85, 8);         // of a synchronous group of 8
///
/// Page: docs/models/gpu-power.md.
namespace trainyard::models {

/// What holds a device back, the gravest last; of several at once the gravest is named.
enum class GpuLimit {
  none,
  board,      // power limit of the board
  brake,      // GpuLoad::ceiling
  cap,        // GpuLoad::cap
  regulator,  // temperature of the die
  memory,     // temperature of the memory: bandwidth, not clock
  slowdown,   // hardware slow-down
  shutdown
};

/// What stands around one device, constant between two events.
struct GpuLoad {
  double activity = 1;         // of the busy phases of a step, 0..1
  double weight = 1;           // mean activity of the step over `activity`, 0..1
  double inlet = 25;           // degrees Celsius, at least 0
  double resistance = 0.065;   // inlet to die, K/W; infinite: no flow
  std::optional<Watts> cap{};  // beside the limit of the board
  double ceiling = 1;          // clock at most; a hardware brake sets about 0.5
  friend bool operator==(const GpuLoad&, const GpuLoad&) = default;
};

struct OperatingPoint {
  double phi = 1;          // mean clock over the highest
  Watts power{};           // mean
  double temperature = 0;  // of the die, degrees Celsius, mean
  GpuLimit limit = GpuLimit::none;
  double duty = 1;          // share of the time outside the hardware slow-down
  double fast_phi = 1;      // clock outside and
  double slow_phi = 1;      // inside the slow-down; both `phi` if it does not alternate
  double memory_speed = 1;  // mean bandwidth over nominal
  bool cap_is_met = true;   // false: even the lowest clock draws more than the cap
  bool can_run_away =
      false;  // resistance * leakage slope >= 1: only the limits hold the temperature
};

/// Without any limit: P(T) = (T - inlet) / R.
struct LeakagePoint {
  double temperature = std::numeric_limits<double>::infinity();
  Watts power{std::numeric_limits<double>::infinity()};
  bool runs_away = false;
};

class GpuPower {
 public:
  explicit GpuPower(const GpuPowerSpec& spec) : spec_(spec) {}

  const GpuPowerSpec& spec() const { return spec_; }
  /// Idle and leakage power at a die temperature.
  Watts static_power(double temperature) const;
  Watts power(double activity, double phi, double temperature) const;
  /// The clock at which a busy device draws `power`, between the lowest and 1.
  double phi_at(Watts power, double activity, double temperature) const;
  /// The activity at which a device draws `power` at the reference temperature, 0..1: phases of a
  /// step that were computed with the watts of a data sheet.
  double activity_at(Watts power) const;
  LeakagePoint settled(double activity, double phi, double inlet, double resistance) const;
  /// Where a device that was cold comes to rest.
  OperatingPoint operating_point(const GpuLoad& load) const;
  OperatingPoint operating_point(double activity, double inlet, double resistance,
                                 std::optional<Watts> cap = {}) const;

 private:
  GpuPowerSpec spec_;
};

/// K/W at a share of the design flow; infinite without flow.
double resistance_at(const GpuCoolerSpec& cooler, double flow);

/// Time of a phase over its time at full clock and bandwidth: c / phi + (1 - c) / m.
double time_factor(double phi, double compute_bound, double memory_speed = 1);

/// Speed of one device, its time in and out of the slow-down weighted; 0 if it is off. It is what
/// SlowGpu::speed and StepModel::scale_compute mean: kernels take 1 / speed as long, communication
/// as long as before; so `compute_bound` is a share of kernel time, not of the step.
double gpu_speed(const OperatingPoint& point, double compute_bound);
/// Speed of `members` that wait for each other and go in and out of the slow-down each in its own
/// time: all are fast duty^members of the time.
double group_speed(const OperatingPoint& point, double compute_bound, double members);

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::GpuLimit> {
  static constexpr auto all = names<models::GpuLimit>({{models::GpuLimit::none, "none"},
                                                       {models::GpuLimit::board, "board"},
                                                       {models::GpuLimit::brake, "brake"},
                                                       {models::GpuLimit::cap, "cap"},
                                                       {models::GpuLimit::regulator, "regulator"},
                                                       {models::GpuLimit::memory, "memory"},
                                                       {models::GpuLimit::slowdown, "slowdown"},
                                                       {models::GpuLimit::shutdown, "shutdown"}});
};
}  // namespace trainyard
