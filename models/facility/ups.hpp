#pragma once

#include <optional>
#include <vector>

#include "models/facility/battery.hpp"
#include "models/facility/power_devices_spec.hpp"
#include "sim/random.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// An uninterruptible power supply: where its load comes from, moment by moment.
///
///     on_input ──input lost──▶ on_battery ──input good for return_delay──▶ walking_in ─▶ on_input
///        │ (eco: transferring, no output, for some ms)  │ empty
///        └─overload too long, or it fails─▶ on_bypass   └────▶ off ──input good──▶ on_input
///
/// Walking in, the input takes 0.2, 0.4, 0.6, 0.8 of the load, a quarter of the time each, so that
/// a generator is not asked for everything at once. Overload uses up the time that the maker's
/// table gives for it: sum of dt / allowed(load) = 1 ends it.
/// Counting rule: the n-th disturbance of the utility within the window latches it: it then refuses
/// the utility, and runs from battery and generator until it is returned by hand.
///
///     Ups ups(spec, 500_kW, engine.random("plant/ups-a"));
///     ups.set_input(now, UpsInput::utility);
///     ups.set_load(now, 300_kW, 12_kW);                     // output, own losses
///     std::optional<Time> next = ups.next_event();
///
/// Sources: overload times from the user manuals of Riello and Huawei; the counting rule from
/// NERC's review of the load loss in Northern Virginia on 10 July 2024.
namespace trainyard::models {

enum class UpsState { on_input, transferring, on_battery, walking_in, on_bypass, off };
enum class UpsInput { none, utility, backup };

/// How long a load, as a ratio to the rating, is carried; `forever` up to 1.02.
Duration overload_time(OverloadTable table, double ratio);

class Ups {
 public:
  /// Starts on its input, which is taken to be the utility.
  Ups(const UpsSpec& spec, Watts rating, sim::Stream stream);

  void advance(Time now);
  void set_input(Time now, UpsInput input);
  /// What its output is asked for and what it loses itself: the battery gives both.
  void set_load(Time now, Watts output, Watts own_loss);
  /// Someone ends the latch of the counting rule.
  void return_by_hand(Time now);
  /// Its inverter fails: bypass if there is one with a good input, else off.
  void fail(Time now);
  void restore(Time now);
  void fail_strings(Time now, int count);

  std::optional<Time> next_event() const { return next_; }
  UpsState state() const { return state_; }
  /// Its output is live, whatever from.
  bool is_live() const { return state_ != UpsState::off && state_ != UpsState::transferring; }
  /// Part of load and losses that comes from the input.
  double input_share() const;
  /// Taken from the input on top, to recharge.
  Watts recharge_power() const;
  bool is_latched() const { return is_latched_; }
  bool has_failed() const { return has_failed_; }
  /// When its output will be lost if nothing else changes.
  std::optional<Time> predicted_loss() const;
  /// When the battery would be empty if it carried the present load alone from now on.
  Duration autonomy(Time now) const;
  /// No overload is left that would count.
  bool has_recovered(Time now) const;
  const Battery& battery() const { return battery_; }
  Watts rating() const { return rating_; }
  Watts load() const { return load_; }
  const UpsSpec& spec() const { return spec_; }

 private:
  bool accepts_input() const;
  bool carries_by_inverter() const;
  void lose_input(Time now);
  void enter(Time now, UpsState state);
  void happen(Time now);
  void rebase_overload(Time now);
  double overload_rate() const;  // of the time allowed, used per second; negative: it recovers
  void predict(Time now);

  UpsSpec spec_;
  Watts rating_;
  sim::Stream luck_;
  Battery battery_;
  UpsState state_ = UpsState::on_input;
  UpsInput input_ = UpsInput::utility;
  Watts load_{};
  Watts own_loss_{};
  bool is_latched_ = false;
  bool has_failed_ = false;
  std::vector<Time> disturbances_;
  int walk_step_ = 0;
  std::optional<Time> change_;  // of the state, by itself
  double overload_used_ = 0.0;
  Time overload_since_{};
  std::optional<Time> overload_end_;
  std::optional<Time> next_;
};

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::UpsState> {
  static constexpr auto all =
      names<models::UpsState>({{models::UpsState::on_input, "on input"},
                               {models::UpsState::transferring, "transferring"},
                               {models::UpsState::on_battery, "on battery"},
                               {models::UpsState::walking_in, "walking in"},
                               {models::UpsState::on_bypass, "on bypass"},
                               {models::UpsState::off, "off"}});
};
}  // namespace trainyard
