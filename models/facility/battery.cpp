#include "models/facility/battery.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {

Duration discharge_time(const BatterySpec& spec, Watts rating, Watts load) {
  if (load <= Watts(0)) return forever;
  return seconds(to_seconds(spec.autonomy) * std::pow(rating / load, spec.peukert));
}

Battery::Battery(const BatterySpec& spec, Watts default_rating)
    : spec_(spec),
      rating_(spec.rating.value_or(default_rating)),
      charge_(spec.charge),
      working_(spec.strings) {
  check(rating_ > Watts(0), "a battery has a rating", rating_.value());
  at_start_ = stored(since_);
}

double Battery::slope() const {
  if (working_ == 0 || power_ == Watts(0)) return 0.0;
  const double autonomy_s = to_seconds(spec_.autonomy);
  const double x = power_ / rating();
  if (x > 0) return -std::pow(x, spec_.peukert) / autonomy_s;
  return -x * spec_.recharge_efficiency / autonomy_s;
}

double Battery::charge(Time now) const {
  if (next_ && now >= *next_) return power_ > Watts(0) ? 0.0 : 1.0;
  return std::clamp(charge_ + slope() * to_seconds(now - since_), 0.0, 1.0);
}

Joules Battery::stored(Time now) const {
  return Joules(charge(now) * rating().value() * to_seconds(spec_.autonomy));
}

Joules Battery::given(Time now) const {
  return given_ + Joules(std::max(power_.value(), 0.0) * to_seconds(now - since_));
}

Joules Battery::taken(Time now) const {
  return taken_ + Joules(std::max(-power_.value(), 0.0) * to_seconds(now - since_));
}

Joules Battery::lost(Time now) const {
  return taken(now) - given(now) - (stored(now) - at_start_);
}

void Battery::rebase(Time now) {
  const Joules given_now = given(now);
  const Joules taken_now = taken(now);
  charge_ = charge(now);
  given_ = given_now;
  taken_ = taken_now;
  since_ = now;
}

void Battery::predict() {
  next_.reset();
  const double rate = slope();
  if (rate == 0.0) return;
  const double left = rate < 0 ? charge_ / -rate : (1.0 - charge_) / rate;
  const Duration d = seconds(left);
  if (d != forever) next_ = add(since_, d);
}

void Battery::advance(Time now) {
  check(now >= since_, "a battery does not go back in time");
  if (!next_ || now < *next_) return;
  rebase(*next_);
  power_ = Watts(0);
  next_.reset();
}

Watts Battery::recharge_power() const {
  if (working_ == 0 || charge_ >= 1.0) return Watts(0);
  return rating() * spec_.recharge_share;
}

void Battery::set_power(Time now, Watts power) {
  advance(now);
  if (power == power_) return;
  rebase(now);
  const bool is_possible =
      power > Watts(0) ? working_ > 0 && charge_ > 0.0 : working_ > 0 && charge_ < 1.0;
  power_ = is_possible ? power : Watts(0);
  predict();
}

void Battery::fail_strings(Time now, int count) {
  advance(now);
  rebase(now);
  working_ = std::max(working_ - count, 0);
  if (working_ == 0) power_ = Watts(0);
  predict();
}

void Battery::call(Time now, sim::Stream& stream) {
  int failed = 0;
  for (int i = 0; i < working_; ++i) failed += stream.uniform() < spec_.fail_on_demand ? 1 : 0;
  if (failed > 0) fail_strings(now, failed);
}

void Battery::repair(Time now) {
  advance(now);
  rebase(now);
  // New strings come empty: the energy in the others is spread over all of them.
  charge_ *= share();
  working_ = spec_.strings;
  predict();
}

}  // namespace trainyard::models
