#pragma once

#include <optional>

#include "models/facility/power_devices_spec.hpp"
#include "sim/random.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// A battery with Peukert's law at constant power: full at the rating P_r it lasts t_r, and
///
///     ds/dt = -(1 / t_r) (P / P_r)^k       empty after  s t_r (P_r / P)^k
///
/// so the state of charge s is a straight line while the load stays. It recharges with constant
/// power (a share of its rating, less if its UPS has less to spare) until full.
///
/// Energy is counted from the rated discharge: stored = s P_r t_r. Above the rating the difference
/// to what was given is a loss; below it the battery gives *more* than it is rated for, and the
/// loss of Peukert's law is negative. Taken = given + stored - stored at the start + loss, always.
///
///     Battery battery(spec.battery, ups_rating);
///     battery.set_power(now, 40_kW);               // discharging; negative: recharging
///     std::optional<Time> empty = battery.next_event();
///
/// Strings in parallel may fail when they are called: with a share w of them left the rating and
/// the energy are w times what they were.
/// Source: W. Peukert, Elektrotechnische Zeitschrift 20 (1897), in the constant-power form.
namespace trainyard::models {

/// From full at a constant load.
Duration discharge_time(const BatterySpec& spec, Watts rating, Watts load);

class Battery {
 public:
  /// `default_rating` stands in for a rating that the spec does not give.
  Battery(const BatterySpec& spec, Watts default_rating);

  void advance(Time now);
  /// Given to the load from now on; negative: taken to recharge. At the ends of its range it stops
  /// by itself: empty gives nothing, full takes nothing.
  void set_power(Time now, Watts power);
  /// Most that it takes to recharge at present; zero when full.
  Watts recharge_power() const;
  /// It is called: each string that is left may fail. Draws one value a string.
  void call(Time now, sim::Stream& stream);
  void fail_strings(Time now, int count);
  void repair(Time now);

  /// When it is empty or full at the present power.
  std::optional<Time> next_event() const { return next_; }
  double charge(Time now) const;
  bool is_empty() const { return working_ == 0 || (charge_ <= 0.0 && power_ >= Watts(0)); }
  bool is_full() const { return working_ == spec_.strings && charge_ >= 1.0; }
  int working_strings() const { return working_; }
  Watts power() const { return power_; }
  Watts rating() const { return rating_ * share(); }

  Joules stored(Time now) const;
  Joules given(Time now) const;
  Joules taken(Time now) const;
  /// Of recharging, of Peukert's law (may be negative) and what went with failed strings.
  Joules lost(Time now) const;

 private:
  double share() const { return double(working_) / spec_.strings; }
  double slope() const;  // of the charge, per second
  void rebase(Time now);
  void predict();

  BatterySpec spec_;
  Watts rating_;  // of all strings
  Time since_{};
  double charge_;
  Watts power_{};
  int working_;
  Joules given_{};
  Joules taken_{};
  Joules at_start_{};
  std::optional<Time> next_;
};

}  // namespace trainyard::models
