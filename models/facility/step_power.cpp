#include "models/facility/step_power.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

double sinc(double x) {
  return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

}  // namespace

std::vector<ActivityPhase> activities_of(std::span<const PowerPhase> phases, const GpuPower& gpu,
                                         const JobPowerParts& job) {
  check(job.gpus > 0, "a job has GPUs", job.gpus);
  std::vector<ActivityPhase> out;
  for (const PowerPhase& phase : phases)
    out.push_back({phase.duration, gpu.activity_at((phase.power - job.servers) / job.gpus)});
  return out;
}

std::vector<PowerPhase> powers_of(std::span<const ActivityPhase> phases, const GpuPower& gpu,
                                  const JobPowerParts& job, double phi, double temperature) {
  std::vector<PowerPhase> out;
  for (const ActivityPhase& phase : phases)
    out.push_back(
        {phase.duration, job.servers + gpu.power(phase.activity, phi, temperature) * job.gpus});
  return out;
}

GpuLoad load_of(std::span<const ActivityPhase> phases, GpuLoad surroundings) {
  double highest = 0, sum = 0, time = 0;
  for (const ActivityPhase& phase : phases) {
    highest = std::max(highest, phase.activity);
    sum += phase.activity * to_seconds(phase.duration);
    time += to_seconds(phase.duration);
  }
  surroundings.activity = highest;
  surroundings.weight = highest > 0 && time > 0 ? std::min(1.0, sum / time / highest) : 1;
  return surroundings;
}

StepPower::StepPower(std::span<const PowerPhase> phases, Duration edge)
    : edge_s_(to_seconds(edge)) {
  check(edge > Duration::zero(), "a change of power takes time", edge.count());
  for (const PowerPhase& phase : phases) {
    if (phase.duration <= Duration::zero()) continue;
    starts_s_.push_back(step_ns_ * 1e-9);
    energies_J_.push_back(energy_.value());
    powers_W_.push_back(phase.power.value());
    step_ns_ += phase.duration.count();
    energy_ += Joules(phase.power.value() * to_seconds(phase.duration));
  }
  check(step_ns_ > 0, "a step takes time", step_ns_);
  step_s_ = to_seconds(step());
  starts_s_.push_back(step_s_);
  energies_J_.push_back(energy_.value());

  std::vector<double> bends;
  for (std::size_t i = 0; i + 1 < starts_s_.size(); ++i)
    for (const double half : {-edge_s_ / 2, edge_s_ / 2}) {
      const double t = std::fmod(starts_s_[i] + half, step_s_);
      bends.push_back(t < 0 ? t + step_s_ : t);
    }
  std::sort(bends.begin(), bends.end());
  for (const double t : bends) points_.push_back({t, power_at(t)});

  peak_ = low_ = Watts(points_.front().power_W);
  const double mean_W = mean().value();
  double squares = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    peak_ = std::max(peak_, Watts(points_[i].power_W));
    low_ = std::min(low_, Watts(points_[i].power_W));
    const bool is_last = i + 1 == points_.size();
    const double until = is_last ? points_.front().t_s + step_s_ : points_[i + 1].t_s;
    const double a = points_[i].power_W - mean_W;
    const double b = points_[is_last ? 0 : i + 1].power_W - mean_W;
    squares += (a * a + a * b + b * b) / 3 * (until - points_[i].t_s);
  }
  deviation_ = Watts(std::sqrt(squares / step_s_));
}

double StepPower::frequency() const {
  return 1 / step_s_;
}

Watts StepPower::mean() const {
  return Watts(energy_.value() / step_s_);
}

double StepPower::energy_until(double t_s) const {
  const double steps = std::floor(t_s / step_s_);
  const double t = std::clamp(t_s - steps * step_s_, 0.0, step_s_);
  const auto after = std::upper_bound(starts_s_.begin(), starts_s_.end() - 1, t);
  const auto i = std::size_t(after - starts_s_.begin()) - 1;
  return steps * energy_.value() + energies_J_[i] + powers_W_[i] * (t - starts_s_[i]);
}

double StepPower::power_at(double t_s) const {
  return (energy_until(t_s + edge_s_ / 2) - energy_until(t_s - edge_s_ / 2)) / edge_s_;
}

Watts StepPower::at(Duration t) const {
  return Watts(power_at(to_seconds(t)));
}

double StepPower::steepest_ramp(Duration window) const {
  if (window > Duration::zero())
    return std::max(largest_rise(window), largest_fall(window)).value() / to_seconds(window);
  // Within an edge; edges that overlap add up between two bends.
  double steepest = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const double until =
        i + 1 < points_.size() ? points_[i + 1].t_s : points_.front().t_s + step_s_;
    const double middle = (points_[i].t_s + until) / 2;
    const auto phase_at = [&](double t) {
      t -= std::floor(t / step_s_) * step_s_;
      const auto after = std::upper_bound(starts_s_.begin(), starts_s_.end() - 1, t);
      return powers_W_[std::size_t(after - starts_s_.begin()) - 1];
    };
    if (until > points_[i].t_s)
      steepest = std::max(
          steepest,
          std::abs(phase_at(middle + edge_s_ / 2) - phase_at(middle - edge_s_ / 2)) / edge_s_);
  }
  return steepest;
}

// The largest difference of two points no further apart than the window lies where both are bends,
// or one is and the other is a whole window away: the waveform is linear between.
Watts StepPower::largest_change(Duration window, int sign) const {
  const double window_s = to_seconds(window);
  if (window_s >= step_s_) return swing();
  double largest = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const Point& from = points_[i];
    const auto change = [&](double earlier_W, double later_W) {
      largest = std::max(largest, sign * (later_W - earlier_W));
    };
    change(from.power_W, power_at(from.t_s + window_s));
    change(power_at(from.t_s - window_s), from.power_W);
    for (std::size_t k = 1; k < points_.size(); ++k) {
      const Point& to = points_[(i + k) % points_.size()];
      const double way = to.t_s - from.t_s + (i + k >= points_.size() ? step_s_ : 0);
      if (way > window_s) break;
      change(from.power_W, to.power_W);
    }
  }
  return Watts(largest);
}

Watts StepPower::amplitude(int n) const {
  check(n >= 1, "a line has a number from 1", n);
  const double turn = 2 * std::numbers::pi * n;
  double real = 0, imaginary = 0;
  for (std::size_t i = 0; i < powers_W_.size(); ++i) {
    const double jump = powers_W_[i] - powers_W_[i == 0 ? powers_W_.size() - 1 : i - 1];
    const double angle = turn * (starts_s_[i] / step_s_);
    real += jump * std::cos(angle);
    imaginary += jump * std::sin(angle);
  }
  return Watts(2 * std::hypot(real, imaginary) / turn * std::abs(sinc(n * edge_s_ / step_s_)));
}

PowerBand StepPower::band(double low_Hz, double high_Hz) const {
  PowerBand band;
  double squares = 0;
  const int first = std::max(1, int(std::ceil(low_Hz * step_s_ * (1 - 1e-12))));
  for (int n = first; n <= high_Hz * step_s_ * (1 + 1e-12); ++n) {
    const Watts line = amplitude(n);
    squares += line.value() * line.value() / 2;
    if (line > band.strongest) {
      band.strongest = line;
      band.frequency = n / step_s_;
    }
  }
  band.rms = Watts(std::sqrt(squares));
  return band;
}

}  // namespace trainyard::models
