#pragma once

#include <span>
#include <vector>

#include "models/facility/gpu_power.hpp"
#include "models/facility/power_phase.hpp"

/// The power of one synchronous job over one step, which repeats: highs, lows, ramps, frequencies.
///
/// The phases of a step are constant; a change from one to the next takes the edge time e of a GPU.
/// The waveform is their mean over a window e, so every edge is a straight ramp about its moment,
/// phases shorter than e do not reach their power, and energy is exactly sum(power * duration).
///
///     c_n = sinc(n f e) / (2 pi i n) * sum over jumps(dP_k e^(-2 pi i n f t_k)),   f = 1 / step
///     amplitude of line n = 2 |c_n|
///
///     StepPower wave(profile.power);
///     wave.swing();  wave.steepest_ramp(seconds(1));  wave.band(0.1, 20).strongest;
///
/// Page: docs/models/step-power.md.
namespace trainyard::models {

/// What the GPUs of a job do for a while, as a mean over them.
struct ActivityPhase {
  Duration duration{};
  double activity = 0;
};

/// The GPUs of a job and the servers around them.
struct JobPowerParts {
  double gpus = 0;
  Watts servers{};  // of all, without GPUs: constant over the step
};

/// The activities that draw the powers of a profile, which was computed at full clock; and the
/// powers of activities at another clock and temperature. A slower clock makes compute longer:
/// durations are those of the profile handed in.
std::vector<ActivityPhase> activities_of(std::span<const PowerPhase> phases, const GpuPower& gpu,
                                         const JobPowerParts& job);
std::vector<PowerPhase> powers_of(std::span<const ActivityPhase> phases, const GpuPower& gpu,
                                  const JobPowerParts& job, double phi, double temperature);
/// The highest activity and the mean over it: `activity` and `weight` of a GpuLoad.
GpuLoad load_of(std::span<const ActivityPhase> phases, GpuLoad surroundings = {});

/// Lines of the spectrum within a band.
struct PowerBand {
  Watts strongest{};     // amplitude of the strongest line
  double frequency = 0;  // its frequency, Hz; 0: none in the band
  Watts rms{};           // of all lines together
};

class StepPower {
 public:
  /// Typical: GPUs change their power within milliseconds.
  static constexpr Duration default_edge{3'000'000};

  explicit StepPower(std::span<const PowerPhase> phases, Duration edge = default_edge);

  Duration step() const { return Duration(step_ns_); }
  double frequency() const;                  // 1 / step, Hz
  Joules energy() const { return energy_; }  // of one step
  Watts mean() const;
  Watts peak() const { return peak_; }
  Watts low() const { return low_; }
  Watts swing() const { return peak_ - low_; }
  /// Root mean square of the deviation from the mean.
  Watts deviation() const { return deviation_; }
  /// Largest rise and fall of power within a window.
  Watts largest_rise(Duration window) const { return largest_change(window, 1); }
  Watts largest_fall(Duration window) const { return largest_change(window, -1); }
  /// W/s: the larger of both over the window; zero: of the steepest edge.
  double steepest_ramp(Duration window = Duration::zero()) const;
  /// At any time after the start of a step.
  Watts at(Duration t) const;
  /// Amplitude of the line at n / step.
  Watts amplitude(int n) const;
  PowerBand band(double low_Hz, double high_Hz) const;

 private:
  struct Point {
    double t_s;
    double power_W;
  };
  double energy_until(double t_s) const;
  double power_at(double t_s) const;
  Watts largest_change(Duration window, int sign) const;

  std::int64_t step_ns_ = 0;
  double step_s_ = 0;
  double edge_s_ = 0;
  std::vector<double> starts_s_;  // of the phases, and the end of the last
  std::vector<double> powers_W_;
  std::vector<double> energies_J_;  // until the start of each phase, and of all
  std::vector<Point> points_;       // bends of the waveform in one step, ascending
  Joules energy_{};
  Watts peak_{}, low_{}, deviation_{};
};

}  // namespace trainyard::models
