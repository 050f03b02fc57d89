#include "models/facility/gpu_cooling.hpp"

#include <cmath>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double tolerance = 0.01;     // of power and clock between two events
constexpr double time_constants = 10;  // e^-10: less than a hundredth of a degree of 100 K
constexpr int most_legs = 100000;

}  // namespace

GpuCooling::GpuCooling(const GpuPowerSpec& spec, double capacity, double count, const GpuLoad& load,
                       Time now)
    : spec_(spec),
      capacity_(capacity),
      count_(count),
      load_(load),
      lump_(spec, capacity, load),
      state_(lump_.rest_state()),
      now_(now),
      changed_(now),
      start_temperature_(state_.temperature) {
  check(count >= 0, "a cohort does not have less than no devices", count);
  if (state_.is_slowed) cycle_ = lump_.cycle();
}

void GpuCooling::advance(Time now) {
  check(now >= now_, "time does not go back", to_seconds(now), to_seconds(now_));
  double left_s = to_seconds(now - now_);
  now_ = now;
  for (int legs = 0; left_s > 0; ++legs) {
    check(legs < most_legs, "a device crosses few limits between two events", legs);
    const GpuLump::Leg leg = lump_.leg(state_, cycle_ ? 0 : tolerance);
    const bool ends = leg.end_s <= left_s;
    const double t = ends ? leg.end_s : left_s;
    energy_J_ += leg.energy_J(t);
    heat_J_ += lump_.heat_J(leg, t);
    left_s -= t;
    if (!ends) {
      state_.temperature = leg.temperature_after(t);
      break;
    }
    lump_.cross(state_, leg);
    if (leg.crossing != GpuLump::Crossing::slow_on) continue;
    if (!cycle_) cycle_ = lump_.cycle();
    if (!cycle_) continue;
    const double periods = std::floor(left_s / cycle_->period_s());
    energy_J_ += periods * cycle_->energy_J;
    heat_J_ += periods * cycle_->heat_J;
    left_s = std::max(0.0, left_s - periods * cycle_->period_s());
  }
}

void GpuCooling::set(const GpuLoad& load) {
  if (load == load_) return;
  load_ = load;
  lump_ = GpuLump(spec_, capacity_, load);
  cycle_.reset();
  changed_ = now_;
  state_.mark = state_.temperature;
}

void GpuCooling::restart() {
  state_.is_off = false;
  state_.mark = state_.temperature;
  changed_ = now_;
}

void GpuCooling::set_temperature(double temperature) {
  start_temperature_ += temperature - state_.temperature;
  state_.temperature = state_.mark = temperature;
  cycle_.reset();
  changed_ = now_;
}

GpuCooling GpuCooling::split(double count) {
  check(count >= 0 && count <= count_, "a part is not more than the whole", count, count_);
  GpuCooling part = *this;
  part.count_ = count;
  count_ -= count;
  return part;
}

std::optional<Time> GpuCooling::next_event() const {
  if (cycle_) return std::nullopt;
  const double t = lump_.leg(state_, tolerance).end_s;
  if (t == infinity) return std::nullopt;
  // After it, not at it: what a double cannot tell must have happened.
  const Time when = add(now_, add(Time(seconds(t)), Duration(1)).time_since_epoch());
  return when == Time::max() ? std::nullopt : std::optional(when);
}

Time GpuCooling::settled_at() const {
  const double rate_per_s = -lump_.leg(state_, 0).pace;
  return rate_per_s > 0 ? add(changed_, seconds(time_constants / rate_per_s)) : Time::max();
}

double GpuCooling::memory_temperature() const {
  return lump_.memory_temperature(lump_.leg(state_, 0), state_.temperature);
}

OperatingPoint GpuCooling::point() const {
  return cycle_ ? lump_.point(*cycle_)
                : lump_.point(state_, lump_.leg(state_, 0), state_.temperature);
}

}  // namespace trainyard::models
