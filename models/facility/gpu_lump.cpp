#include "models/facility/gpu_lump.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int most_legs = 1000;  // far above what a chain of laws can have

}  // namespace

double GpuLump::Leg::temperature_after(double t) const {
  if (rate == 0) return from;
  return from + (pace == 0 ? rate * t : rate * std::expm1(pace * t) / pace);
}

double GpuLump::Leg::kelvin_s(double t) const {
  if (rate == 0) return from * t;
  const double x = pace * t;
  // (e^x - 1 - x) / x^2; the series where the difference would cancel.
  const double second =
      std::abs(x) < 1e-2
          ? 0.5 + x * (1.0 / 6 + x * (1.0 / 24 + x * (1.0 / 120 + x * (1.0 / 720 + x / 5040))))
          : (std::expm1(x) - x) / (x * x);
  return from * t + rate * t * t * second;
}

GpuLump::GpuLump(const GpuPowerSpec& spec, double capacity, const GpuLoad& load)
    : spec_(spec), load_(load), capacity_(capacity), bends_{} {
  check(capacity > 0 && load.resistance > 0, "a device has heat capacity and thermal resistance",
        capacity, load.resistance);
  check(load.activity >= 0 && load.activity <= 1 && load.weight >= 0 && load.weight <= 1 &&
            load.ceiling > 0 && load.ceiling <= 1,
        "activity, weight and ceiling are shares", load.activity, load.weight, load.ceiling);
  limit_W_ = std::min(spec.power_limit, load.cap.value_or(spec.power_limit)).value();
  static_W_ = (spec.idle + spec.leakage).value();
  lowest_phi_ = std::min(spec.lowest_clock, load.ceiling);
  const double full_W = spec.dynamic.value() * load.activity;
  free_W_ = full_W * std::pow(load.ceiling, spec.exponent);
  lowest_W_ = full_W * std::pow(lowest_phi_, spec.exponent);
  slow_factor_ = std::pow(spec.slowdown_clock, spec.exponent);
  const double held = spec.regulator ? spec.regulator_temperature : infinity;
  if (spec.leakage_slope > 0 && free_W_ > lowest_W_)
    for (const double dynamic_W : {free_W_, lowest_W_}) {
      const double bend = spec.reference + (limit_W_ - static_W_ - dynamic_W) / spec.leakage_slope;
      if (bend < held) bends_[bend_count_++] = bend;
    }
  if (spec.regulator) bends_[bend_count_++] = held;
}

GpuLump::Leg GpuLump::law_at(double temperature, bool above, bool is_slowed) const {
  const auto is_past = [&](double bend) {
    return temperature > bend || (above && temperature == bend);
  };
  const double slope = spec_.leakage_slope;
  const double at_zero_W = static_W_ - slope * spec_.reference;
  const double factor = load_.weight * (is_slowed ? slow_factor_ : 1.0);
  Leg leg;
  leg.from = temperature;
  if (spec_.regulator && is_past(spec_.regulator_temperature)) {
    leg.law = Law::lowest;
  } else if (slope > 0) {
    leg.law = !is_past(spec_.reference + (limit_W_ - static_W_ - free_W_) / slope)    ? Law::free
              : is_past(spec_.reference + (limit_W_ - static_W_ - lowest_W_) / slope) ? Law::lowest
                                                                                      : Law::capped;
  } else {
    leg.law = limit_W_ - static_W_ >= free_W_     ? Law::free
              : limit_W_ - static_W_ <= lowest_W_ ? Law::lowest
                                                  : Law::capped;
  }
  leg.base_W = at_zero_W;
  leg.slope_W_per_K = slope;
  if (leg.law == Law::capped) {  // dynamic = limit - static, and its share if not always busy
    leg.base_W += factor * (limit_W_ - at_zero_W);
    leg.slope_W_per_K -= factor * slope;
  } else {
    leg.base_W += factor * (leg.law == Law::free ? free_W_ : lowest_W_);
  }
  return leg;
}

void GpuLump::end_at(Leg& leg, double temperature, Crossing crossing) const {
  const double way = (temperature - leg.from) / leg.rate;
  if (!(way > 0)) return;  // behind
  const double x = leg.pace * way;
  if (x <= -1) return;
  const double t = leg.pace == 0 ? way : std::log1p(x) / leg.pace;
  if (t > leg.end_s || (t == leg.end_s && crossing < leg.crossing)) return;
  leg.end_s = t;
  leg.end = temperature;
  leg.crossing = crossing;
}

void GpuLump::end_at_drift(Leg& leg, const State& state, double tolerance) const {
  const double power_W = leg.power_W(state.mark);
  for (const double factor : {1 - tolerance, 1 + tolerance}) {
    if (leg.slope_W_per_K != 0)
      end_at(leg, (power_W * factor - leg.base_W) / leg.slope_W_per_K, Crossing::drift);
    if (leg.law == Law::capped && spec_.leakage_slope > 0)
      end_at(
          leg,
          spec_.reference + (limit_W_ - static_W_ -
                             (limit_W_ - static_W(state.mark)) * std::pow(factor, spec_.exponent)) /
                                spec_.leakage_slope,
          Crossing::drift);
  }
}

GpuLump::Leg GpuLump::leg(const State& state, double tolerance) const {
  const double now = state.temperature;
  const auto net_W = [&](const Leg& leg) {
    return leg.power_W(now) - (now - load_.inlet) / load_.resistance;
  };
  Leg leg;
  if (state.is_off) {
    leg.law = Law::off;
    leg.from = now;
    leg.rate = net_W(leg) / capacity_;
  } else {
    leg = law_at(now, true, state.is_slowed);
    if (net_W(leg) <= 0) leg = law_at(now, false, state.is_slowed);
    leg.rate = net_W(leg) / capacity_;
    // The flow below leads up, the flow above down: it stays.
    if (leg.rate >= 0 && net_W(law_at(now, true, state.is_slowed)) <= 0) {
      leg.law = leg.rate > 0 ? Law::plateau : leg.law;
      leg.base_W = (now - load_.inlet) / load_.resistance;
      leg.slope_W_per_K = leg.rate = 0;
    }
  }
  leg.pace = (leg.slope_W_per_K - 1 / load_.resistance) / capacity_;

  const auto at_once = [&](Crossing crossing) {
    leg.end_s = 0;
    leg.end = now;
    leg.crossing = crossing;
    return leg;
  };
  const double release = spec_.slowdown_temperature - spec_.hysteresis;
  const double memory = memory_temperature(leg, now);
  const double memory_release = spec_.memory_temperature - spec_.hysteresis;
  if (!state.is_off) {
    if (now >= spec_.off_temperature) return at_once(Crossing::off);
    if (!state.is_slowed && now >= spec_.slowdown_temperature) return at_once(Crossing::slow_on);
    if (state.is_slowed && now <= release) return at_once(Crossing::slow_off);
    if (state.is_memory_slowed ? memory <= memory_release : memory >= spec_.memory_temperature)
      return at_once(Crossing::memory);
  }
  if (leg.rate == 0 || state.is_off) return leg;

  for (std::size_t i = 0; i < bend_count_; ++i) end_at(leg, bends_[i], Crossing::law);
  end_at(leg, spec_.off_temperature, Crossing::off);
  if (state.is_slowed)
    end_at(leg, release, Crossing::slow_off);
  else
    end_at(leg, spec_.slowdown_temperature, Crossing::slow_on);
  // The memory is at T + r P(T) with P linear. It passes its release only on the way down.
  if (state.is_memory_slowed == (leg.rate < 0))
    end_at(leg,
           ((state.is_memory_slowed ? memory_release : spec_.memory_temperature) -
            spec_.memory_resistance * leg.base_W) /
               (1 + spec_.memory_resistance * leg.slope_W_per_K),
           Crossing::memory);
  if (tolerance > 0) end_at_drift(leg, state, tolerance);
  return leg;
}

void GpuLump::cross(State& state, const Leg& leg) const {
  state.temperature = state.mark = leg.end;
  switch (leg.crossing) {
    case Crossing::slow_on:
      state.is_slowed = true;
      break;
    case Crossing::slow_off:
      state.is_slowed = false;
      break;
    case Crossing::memory:
      state.is_memory_slowed = !state.is_memory_slowed;
      break;
    case Crossing::off:
      state.is_off = true;
      state.is_slowed = state.is_memory_slowed = false;
      break;
    default:
      break;
  }
}

double GpuLump::heat_J(const Leg& leg, double t) const {
  return (leg.kelvin_s(t) - load_.inlet * t) / load_.resistance;
}

double GpuLump::phi(const State& state, const Leg& leg, double temperature) const {
  const double factor = state.is_slowed ? spec_.slowdown_clock : 1.0;
  switch (leg.law) {
    case Law::off:
      return 0;
    case Law::free:
      return load_.ceiling * factor;
    case Law::lowest:
      return lowest_phi_ * factor;
    default:
      break;
  }
  const double full_W = spec_.dynamic.value() * load_.activity * load_.weight;
  if (full_W <= 0) return load_.ceiling * factor;
  const double dynamic_W = std::max(0.0, leg.power_W(temperature) - static_W(temperature));
  return std::min(load_.ceiling * factor, std::pow(dynamic_W / full_W, 1 / spec_.exponent));
}

GpuLimit GpuLump::limit(const State& state, const Leg& leg) const {
  if (state.is_off) return GpuLimit::shutdown;
  if (state.is_slowed) return GpuLimit::slowdown;
  if (state.is_memory_slowed) return GpuLimit::memory;
  if (leg.law == Law::plateau ||
      (leg.law == Law::lowest && spec_.regulator && leg.from >= spec_.regulator_temperature))
    return GpuLimit::regulator;
  if (leg.law == Law::capped || (leg.law == Law::lowest && free_W_ > lowest_W_))
    return limit_W_ < spec_.power_limit.value() ? GpuLimit::cap : GpuLimit::board;
  return load_.ceiling < 1 ? GpuLimit::brake : GpuLimit::none;
}

bool GpuLump::cap_is_met(const State& state, const Leg& leg) const {
  if (state.is_off || leg.law != Law::lowest) return true;
  const double dynamic_W = lowest_W_ * (state.is_slowed ? slow_factor_ : 1.0);
  return static_W(leg.from) + dynamic_W <= limit_W_ * (1 + 1e-12);
}

std::optional<GpuCycle> GpuLump::cycle() const {
  State state{.temperature = spec_.slowdown_temperature, .is_slowed = true};
  const double middle = spec_.slowdown_temperature - spec_.hysteresis / 2;
  GpuCycle cycle;
  // The first round finds the state of the memory at which the others begin.
  for (int legs = 0, round = 0; legs < most_legs; ++legs) {
    const Leg now = leg(state, 0);
    if (now.end_s == infinity || now.crossing == Crossing::off) return std::nullopt;
    const double t = now.end_s;
    (state.is_slowed ? cycle.slow_s : cycle.fast_s) += t;
    if (state.is_memory_slowed) cycle.memory_slow_s += t;
    cycle.energy_J += now.energy_J(t);
    cycle.heat_J += heat_J(now, t);
    cycle.kelvin_s += now.kelvin_s(t);
    cross(state, now);
    if (now.crossing != Crossing::slow_on) continue;
    if (round++ == 0) {
      cycle = {};
      continue;
    }
    for (const bool is_slowed : {false, true}) {
      state.is_slowed = is_slowed;
      (is_slowed ? cycle.slow_phi : cycle.fast_phi) =
          phi(state, law_at(middle, false, is_slowed), middle);
    }
    return cycle;
  }
  check(false, "a slow-down comes to rest or comes round");
  return std::nullopt;
}

OperatingPoint GpuLump::point(const State& state, const Leg& leg, double temperature) const {
  OperatingPoint p;
  p.phi = p.fast_phi = p.slow_phi = phi(state, leg, temperature);
  p.power = Watts(leg.power_W(temperature));
  p.temperature = temperature;
  p.limit = limit(state, leg);
  p.duty = state.is_off || state.is_slowed ? 0 : 1;
  p.memory_speed = state.is_off ? 0 : state.is_memory_slowed ? spec_.memory_clock : 1;
  p.cap_is_met = cap_is_met(state, leg);
  p.can_run_away = spec_.leakage_slope * load_.resistance >= 1;
  return p;
}

OperatingPoint GpuLump::point(const GpuCycle& cycle) const {
  OperatingPoint p;
  p.duty = cycle.duty();
  p.fast_phi = cycle.fast_phi;
  p.slow_phi = cycle.slow_phi;
  p.phi = p.duty * p.fast_phi + (1 - p.duty) * p.slow_phi;
  p.power = Watts(cycle.energy_J / cycle.period_s());
  p.temperature = cycle.kelvin_s / cycle.period_s();
  p.limit = GpuLimit::slowdown;
  p.memory_speed = 1 - (1 - spec_.memory_clock) * cycle.memory_slow_s / cycle.period_s();
  p.can_run_away = spec_.leakage_slope * load_.resistance >= 1;
  return p;
}

GpuLump::State GpuLump::rest_state() const {
  State state{.temperature = load_.inlet};
  for (int legs = 0; legs < most_legs; ++legs) {
    const Leg now = leg(state, 0);
    if (now.end_s == infinity) {
      state.temperature = state.mark = state.is_off ? load_.inlet : now.settled();
      return state;
    }
    cross(state, now);
    if (now.crossing == Crossing::slow_on && cycle()) return state;
  }
  check(false, "a device comes to rest, goes round or turns itself off");
  return state;
}

OperatingPoint GpuLump::rest() const {
  const State state = rest_state();
  if (state.is_slowed && state.temperature == spec_.slowdown_temperature)
    if (const auto around = cycle()) return point(*around);
  const Leg now = leg(state, 0);
  return point(state, now, state.temperature);
}

}  // namespace trainyard::models
