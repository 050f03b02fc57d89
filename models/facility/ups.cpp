#include "models/facility/ups.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {

namespace {
constexpr double overload_begins = 1.02;
constexpr int walk_steps = 4;
}  // namespace

Duration overload_time(OverloadTable table, double ratio) {
  using namespace std::chrono_literals;
  if (ratio <= overload_begins) return forever;
  const bool is_long = table == OverloadTable::long_first_step;
  const std::array<Duration, 4> times = is_long ? std::array<Duration, 4>{30min, 30s, 10s, 500ms}
                                                : std::array<Duration, 4>{10min, 1min, 3s, 500ms};
  if (ratio < 1.10) return times[0];
  if (ratio < 1.30) return times[1];
  if (ratio <= 1.50) return times[2];
  return times[3];
}

Ups::Ups(const UpsSpec& spec, Watts rating, sim::Stream stream)
    : spec_(spec), rating_(rating), luck_(stream), battery_(spec.battery, rating) {
  check(rating > Watts(0), "a UPS has a rating", rating.value());
  predict(start_of_run);
}

bool Ups::accepts_input() const {
  return input_ == UpsInput::backup || (input_ == UpsInput::utility && !is_latched_);
}

bool Ups::carries_by_inverter() const {
  return state_ == UpsState::on_input || state_ == UpsState::on_battery ||
         state_ == UpsState::walking_in;
}

double Ups::input_share() const {
  switch (state_) {
    case UpsState::on_input:
    case UpsState::on_bypass:
      return 1.0;
    case UpsState::walking_in:
      return double(walk_step_ + 1) / (walk_steps + 1);
    default:
      return 0.0;
  }
}

Watts Ups::recharge_power() const {
  if (state_ != UpsState::on_input) return Watts(0);
  return std::clamp(rating_ - load_, Watts(0), battery_.recharge_power());
}

std::optional<Time> Ups::predicted_loss() const {
  std::optional<Time> loss;
  if (state_ == UpsState::on_battery) {
    loss = battery_.next_event();
    if (overload_end_ && (!loss || *overload_end_ < *loss)) loss = overload_end_;
    if (change_ && (!loss || *change_ < *loss)) loss.reset();  // it returns before
  } else if (!spec_.bypass) {
    loss = overload_end_;
  }
  return loss;
}

Duration Ups::autonomy(Time now) const {
  const Watts power = load_ + own_loss_;
  if (battery_.working_strings() == 0) return Duration::zero();
  if (power <= Watts(0)) return forever;
  return seconds(battery_.charge(now) *
                 to_seconds(discharge_time(spec_.battery, battery_.rating(), power)));
}

double Ups::overload_rate() const {
  const double first_s = to_seconds(overload_time(spec_.overload, 1.05));
  const Duration allowed = overload_time(spec_.overload, load_ / rating_);
  return carries_by_inverter() && allowed != forever ? 1.0 / to_seconds(allowed) : -1.0 / first_s;
}

void Ups::rebase_overload(Time now) {
  overload_used_ =
      std::clamp(overload_used_ + overload_rate() * to_seconds(now - overload_since_), 0.0, 1.0);
  overload_since_ = now;
}

bool Ups::has_recovered(Time now) const {
  const double rate = overload_rate();
  return rate < 0 && overload_used_ + rate * to_seconds(now - overload_since_) <= 0;
}

void Ups::predict(Time now) {
  // The battery gives what the input does not, or takes what recharges it.
  if (carries_by_inverter() && input_share() < 1.0)
    battery_.set_power(now, (load_ + own_loss_) * (1.0 - input_share()));
  else
    battery_.set_power(now, -recharge_power());
  overload_end_.reset();
  if (const double rate = overload_rate(); rate > 0)
    overload_end_ = add(overload_since_, seconds((1.0 - overload_used_) / rate));
  next_ = change_;
  for (const auto& t : {battery_.next_event(), overload_end_})
    if (t && (!next_ || *t < *next_)) next_ = t;
}

void Ups::enter(Time now, UpsState state) {
  rebase_overload(now);
  state_ = state;
  change_.reset();
  switch (state) {
    case UpsState::transferring:
      change_ = add(now, spec_.transfer_time);
      break;
    case UpsState::on_battery:
      battery_.call(now, luck_);
      if (battery_.is_empty() || battery_.charge(now) <= 0.0) {
        enter(now, UpsState::off);
        return;
      }
      if (accepts_input()) change_ = add(now, spec_.return_delay);
      break;
    case UpsState::walking_in:
      walk_step_ = 0;
      change_ = add(now, spec_.walk_in / walk_steps);
      break;
    case UpsState::on_bypass:
    case UpsState::off:
      if (accepts_input() && !has_failed_) change_ = add(now, spec_.return_delay);
      break;
    case UpsState::on_input:
      break;
  }
}

void Ups::lose_input(Time now) {
  switch (state_) {
    case UpsState::on_input:
      enter(now, spec_.mode == UpsMode::eco ? UpsState::transferring : UpsState::on_battery);
      break;
    case UpsState::walking_in:
      enter(now, UpsState::on_battery);
      break;
    case UpsState::on_bypass:
      enter(now, UpsState::off);
      break;
    case UpsState::on_battery:
    case UpsState::off:
      change_.reset();  // it waited to return
      break;
    case UpsState::transferring:
      break;
  }
}

void Ups::happen(Time now) {
  battery_.advance(now);
  if (overload_end_ && *overload_end_ <= now) {
    rebase_overload(now);
    overload_used_ = 1.0;
    const bool has_bypass = spec_.bypass && accepts_input() && state_ != UpsState::on_battery;
    if (!has_bypass) has_failed_ = true;  // it stays off until someone looks after it
    enter(now, has_bypass ? UpsState::on_bypass : UpsState::off);
  } else if (carries_by_inverter() && input_share() < 1.0 && battery_.charge(now) <= 0.0) {
    // Walking in, the input is good and takes the rest at once.
    enter(now, state_ == UpsState::walking_in ? UpsState::on_input : UpsState::off);
  } else if (change_ && *change_ <= now) {
    switch (state_) {
      case UpsState::transferring:
        enter(now, UpsState::on_battery);
        break;
      case UpsState::on_battery:
        enter(now, spec_.walk_in > Duration::zero() ? UpsState::walking_in : UpsState::on_input);
        break;
      case UpsState::walking_in:
        ++walk_step_;
        if (walk_step_ < walk_steps)
          change_ = add(now, spec_.walk_in / walk_steps);
        else
          enter(now, UpsState::on_input);
        break;
      case UpsState::on_bypass:
        if (load_ <= rating_)
          enter(now, UpsState::on_input);
        else
          change_ = add(now, spec_.return_delay);
        break;
      case UpsState::off:
        enter(now, UpsState::on_input);
        break;
      case UpsState::on_input:
        change_.reset();
        break;
    }
  }
  predict(now);
}

void Ups::advance(Time now) {
  while (next_ && *next_ <= now) happen(*next_);
}

void Ups::set_input(Time now, UpsInput input) {
  advance(now);
  if (input == input_) return;
  const bool was_good = accepts_input();
  if (input_ == UpsInput::utility && spec_.disturbances > 0 && !is_latched_) {
    std::erase_if(disturbances_, [&](Time t) { return now - t > spec_.window; });
    disturbances_.push_back(now);
    is_latched_ = int(disturbances_.size()) >= spec_.disturbances;
  }
  input_ = input;
  const bool is_good = accepts_input();
  if (was_good && !is_good) lose_input(now);
  if (!was_good && is_good &&
      (state_ == UpsState::on_battery || (state_ == UpsState::off && !has_failed_)))
    change_ = add(now, spec_.return_delay);
  predict(now);
}

void Ups::set_load(Time now, Watts output, Watts own_loss) {
  check(output >= Watts(0) && own_loss >= Watts(0), "a UPS feeds a load", output.value());
  advance(now);
  if (output == load_ && own_loss == own_loss_) return;
  rebase_overload(now);
  load_ = output;
  own_loss_ = own_loss;
  predict(now);
}

void Ups::return_by_hand(Time now) {
  advance(now);
  if (!is_latched_) return;
  const bool was_good = accepts_input();
  is_latched_ = false;
  disturbances_.clear();
  if (!was_good && accepts_input() &&
      (state_ == UpsState::on_battery || (state_ == UpsState::off && !has_failed_)))
    change_ = add(now, spec_.return_delay);
  predict(now);
}

void Ups::fail(Time now) {
  advance(now);
  has_failed_ = true;
  enter(now, spec_.bypass && accepts_input() ? UpsState::on_bypass : UpsState::off);
  predict(now);
}

void Ups::restore(Time now) {
  advance(now);
  has_failed_ = false;
  overload_used_ = 0.0;
  battery_.repair(now);
  if ((state_ == UpsState::off || state_ == UpsState::on_bypass) && accepts_input())
    change_ = add(now, spec_.return_delay);
  predict(now);
}

void Ups::fail_strings(Time now, int count) {
  advance(now);
  battery_.fail_strings(now, count);
  if (state_ == UpsState::on_battery && battery_.working_strings() == 0) enter(now, UpsState::off);
  predict(now);
}

}  // namespace trainyard::models
