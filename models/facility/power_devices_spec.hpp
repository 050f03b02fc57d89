#pragma once

#include <chrono>
#include <optional>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// Power devices that have a state: breakers, batteries, UPS, groups of generators, transfer
/// switches. What a device is rated for in kW and kVA and what it loses is said at its node of the
/// power graph (power_spec.hpp); here is what it does over time.
namespace trainyard::models {

/// Instantaneous magnetic trip of a miniature breaker, IEC 60898: B 3-5, C 5-10, D 10-20 times the
/// rated current. The model trips at the upper end, where tripping is certain.
enum class MagneticCurve { b, c, d, none };
enum class BreakerReset { by_hand, automatic };

/// Inverse-time breaker. The two defaults of the thermal image meet the fixed points of two
/// standards at once: IEC 60898 (holds 1.13, trips 1.45 within an hour, 2.55 within 1-60 s) and
/// UL 489 (holds 1.00, trips 1.35 within an hour, 2.00 within two minutes).
struct BreakerSpec {
  Amperes rating{};
  MagneticCurve curve = MagneticCurve::c;
  double trip_level = 1.64;                                         // (1.28)^2
  Duration time_constant = std::chrono::microseconds(103'222'607);  // trips 2.55 I_n in 30 s
  Duration magnetic_time = std::chrono::milliseconds(20);           // typical figure
  bool full_rated = false;  // most breakers may carry 80 % for three hours or longer (NEC 210.20)
  BreakerReset reset = BreakerReset::by_hand;
  Duration reset_delay = std::chrono::minutes(10);  // typical figure: someone walks there
  /// Share of the rating that may be planned as a continuous load.
  double continuous_share() const { return full_rated ? 1.0 : 0.8; }
};

template <class Visitor>
void describe(Visitor& v, BreakerSpec& s) {
  v.required("rating", s.rating, "rated current I_n, A", above(0));
  v.optional("curve", s.curve, "magnetic trip at 5 (b), 10 (c) or 20 (d) times I_n, or none");
  v.optional("trip_level", s.trip_level, "thermal image that trips, in squares of I_n",
             between(1, 10));
  v.optional("time_constant", s.time_constant, "of the thermal image, s", above(0));
  v.optional("magnetic_time", s.magnetic_time, "from short circuit to open contacts, ms",
             at_least(0));
  v.optional("full_rated", s.full_rated,
             "may carry its full rating continuously; false: plan at 80 %");
  v.optional("reset", s.reset, "by-hand: stays open until it is closed; automatic: recloses");
  v.optional("reset_delay", s.reset_delay, "from the trip to an automatic reset, s", at_least(0));
}

/// Battery of a UPS or of a shelf: `autonomy` at `rating`, and less than in proportion at more.
struct BatterySpec {
  std::optional<Watts> rating = {};             // default: that of its UPS
  Duration autonomy = std::chrono::minutes(5);  // typical figure, VRLA and Li-ion; 2-15 min
  double peukert = 1.03;                        // Li-ion, constant power; VRLA 1.15: typical
  double recharge_share = 0.10;                 // of the rating, from the input: typical limit
  double recharge_efficiency = 0.9;             // with 0.10: 90 % full in 10 times the autonomy
  int strings = 1;                              // in parallel, each with its own luck
  double fail_on_demand = 0.001;                // a string; Li-ion 0.1 %, VRLA 0.5-2 %: typical
  double charge = 1.0;                          // at the start
};

template <class Visitor>
void describe(Visitor& v, BatterySpec& s) {
  v.optional("rating", s.rating, "power that it gives for the autonomy, W; default: of its UPS",
             above(0));
  v.optional("autonomy", s.autonomy, "from full to empty at the rating, s", above(0));
  v.optional("peukert", s.peukert, "Peukert exponent at constant power: 1.03 Li-ion, 1.15 lead",
             between(1, 2));
  v.optional("recharge_share", s.recharge_share, "most power taken to recharge, part of the rating",
             between(0, 1));
  v.optional("recharge_efficiency", s.recharge_efficiency, "energy stored of energy taken",
             between(0.1, 1));
  v.optional("strings", s.strings, "strings in parallel", between(1, 100));
  v.optional("fail_on_demand", s.fail_on_demand,
             "chance that a string gives nothing when it is called", between(0, 1));
  v.optional("charge", s.charge, "state of charge at the start, 1: full", between(0, 1));
}

enum class UpsMode { double_conversion, eco };
/// How long a UPS carries an overload before it goes to bypass; user manuals of two makers (Riello:
/// 30 min / 30 s / 10 s / 0.5 s; Huawei: 10 min / 1 min / 3 s / 0.5 s).
enum class OverloadTable { long_first_step, short_first_step };

struct UpsSpec {
  UpsMode mode = UpsMode::double_conversion;
  BatterySpec battery;
  OverloadTable overload = OverloadTable::short_first_step;
  bool bypass = true;
  Duration transfer_time = std::chrono::milliseconds(4);  // eco to inverter: typical 2-10 ms
  Duration return_delay = std::chrono::seconds(10);       // input good for so long: typical figure
  Duration walk_in = std::chrono::seconds(15);            // typical 10-20 s
  int disturbances = 3;  // as many within the window: stays on battery and generator. 0: no rule.
                         // The setting found after the Northern Virginia load loss of July 2024
                         // (NERC incident review, January 2025)
  Duration window = std::chrono::seconds(60);
};

template <class Visitor>
void describe(Visitor& v, UpsSpec& s) {
  v.optional("mode", s.mode,
             "double-conversion, or eco: through the bypass while the input is good");
  v.optional("battery", s.battery, "its battery");
  v.optional("overload", s.overload,
             "time carried at 102-110 / 110-130 / 130-150 / over 150 % of the rating: "
             "long-first-step 30 min / 30 s / 10 s / 0.5 s, short-first-step 10 min / 1 min / 3 s "
             "/ 0.5 s");
  v.optional("bypass", s.bypass, "has a static bypass, taken on overload and on failure");
  v.optional("transfer_time", s.transfer_time, "from eco to the inverter, ms", at_least(0));
  v.optional("return_delay", s.return_delay, "input must be good for so long before return, s",
             at_least(0));
  v.optional("walk_in", s.walk_in, "the load moves back to the input over this time, s",
             at_least(0));
  v.optional("disturbances", s.disturbances,
             "disturbances within the window after which it stays off the utility until it is "
             "returned by hand; 0: never",
             between(0, 1000));
  v.optional("window", s.window, "in which disturbances are counted, s", above(0));
}

/// A group of equal generator sets on one bus.
struct GeneratorSpec {
  int sets = 1;
  Watts rating{};                                   // of one set
  Duration start_median = std::chrono::seconds(8);  // typical; NFPA 110 type 10 asks for 10 s
  double start_sigma = 0.25;                        // of the logarithm: typical
  int tries = 3;                                    // typical crank cycles
  Duration try_pause = std::chrono::seconds(15);    // cranking that fails, and rest: typical
  double try_fails = 0.02;                   // of a set that starts in the end: typical figure
  double fail_to_start = 0.0094;             // after all tries; NREL REopt, typical set
  double common_cause = 0.05;                // beta: typical 0.02-0.10
  double unavailable = 0.005;                // in maintenance; NREL REopt, typical set
  Duration mttf = std::chrono::hours(1100);  // running; NREL REopt, typical set
  Duration repair = std::chrono::hours(48);  // typical figure
  Duration synchronise = std::chrono::seconds(5);     // each set after the first: typical
  double block = 0.5;                                 // of a set's rating in one step: typical
  Duration block_interval = std::chrono::seconds(5);  // typical figure
  Duration fuel = std::chrono::hours(24);             // at full load; 8-96 h, typical 24-48 h
  double idle_consumption = 0.15;                     // of full-load consumption: typical diesel
  std::optional<Duration> refill = std::chrono::hours(12);  // after the start; typical contract
};

template <class Visitor>
void describe(Visitor& v, GeneratorSpec& s) {
  v.optional("sets", s.sets, "equal sets on the bus", between(1, 1000));
  v.required("rating", s.rating, "active power of one set, W", above(0));
  v.optional("start_median", s.start_median, "from the order to rated voltage, s", above(0));
  v.optional("start_sigma", s.start_sigma, "standard deviation of its logarithm", between(0, 3));
  v.optional("tries", s.tries, "attempts to start before a set is given up", between(1, 20));
  v.optional("try_pause", s.try_pause, "time that a failed attempt takes, s", at_least(0));
  v.optional("try_fails", s.try_fails, "chance that one attempt of a sound set fails",
             between(0, 0.99));
  v.optional("fail_to_start", s.fail_to_start, "chance that no attempt of a set succeeds",
             between(0, 1));
  v.optional("common_cause", s.common_cause,
             "beta: share of failures to start that strike all sets at once", between(0, 1));
  v.optional("unavailable", s.unavailable, "share of the time that a set is in maintenance",
             between(0, 1));
  v.optional("mttf", s.mttf, "mean time to failure of a running set, s", above(0));
  v.optional("repair", s.repair, "repair of a failed set, s", at_least(0));
  v.optional("synchronise", s.synchronise, "to bring a further set onto the bus, s", at_least(0));
  v.optional("block", s.block, "part of its rating that a set accepts in one step",
             between(0.01, 1));
  v.optional("block_interval", s.block_interval, "between two steps, s", at_least(0));
  v.optional("fuel", s.fuel, "fuel on site, as time of all sets at full load, s", above(0));
  v.optional("idle_consumption", s.idle_consumption, "fuel of an idling set, part of full load",
             between(0, 1));
  v.optional("refill", s.refill, "from the start of the sets to a full tank, again and again, s",
             above(0));
}

enum class TransferKind { open_transition, static_switch };

/// A switch between sources by priority. The default is an automatic switch with open transition;
/// a static switch has `transfer_time` 6 ms (typical 4-10 ms) and no confirmation.
struct TransferSpec {
  TransferKind kind = TransferKind::open_transition;
  std::optional<Duration> transfer_time = {};      // default 0.3 s or 6 ms: typical
  std::optional<Duration> confirm = {};            // default 2 s (typical 1-3 s) or none
  Duration retransfer = std::chrono::minutes(10);  // stable utility; typical 5-30 min
  double fail_to_transfer = 0.007;                 // typical 0.5-1 %
  Duration transfer() const {
    if (transfer_time) return *transfer_time;
    return kind == TransferKind::static_switch ? std::chrono::milliseconds(6)
                                               : std::chrono::milliseconds(300);
  }
  Duration confirmation() const {
    if (confirm) return *confirm;
    return kind == TransferKind::static_switch ? Duration::zero() : std::chrono::seconds(2);
  }
};

template <class Visitor>
void describe(Visitor& v, TransferSpec& s) {
  v.optional("kind", s.kind, "open-transition or static-switch");
  v.optional("transfer_time", s.transfer_time,
             "without a source while it moves, s; default 0.3 s, static 6 ms", at_least(0));
  v.optional("confirm", s.confirm,
             "the source must be lost for so long before it acts, s; default 2 s, static none",
             at_least(0));
  v.optional("retransfer", s.retransfer,
             "the preferred source must be good for so long before it goes back, s", at_least(0));
  v.optional("fail_to_transfer", s.fail_to_transfer, "chance that it does not move when it should",
             between(0, 1));
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::MagneticCurve> {
  static constexpr auto all = names<models::MagneticCurve>({{models::MagneticCurve::b, "b"},
                                                            {models::MagneticCurve::c, "c"},
                                                            {models::MagneticCurve::d, "d"},
                                                            {models::MagneticCurve::none, "none"}});
};
template <>
struct Names<models::BreakerReset> {
  static constexpr auto all = names<models::BreakerReset>(
      {{models::BreakerReset::by_hand, "by-hand"}, {models::BreakerReset::automatic, "automatic"}});
};
template <>
struct Names<models::UpsMode> {
  static constexpr auto all = names<models::UpsMode>(
      {{models::UpsMode::double_conversion, "double-conversion"}, {models::UpsMode::eco, "eco"}});
};
template <>
struct Names<models::OverloadTable> {
  static constexpr auto all =
      names<models::OverloadTable>({{models::OverloadTable::long_first_step, "long-first-step"},
                                    {models::OverloadTable::short_first_step, "short-first-step"}});
};
template <>
struct Names<models::TransferKind> {
  static constexpr auto all =
      names<models::TransferKind>({{models::TransferKind::open_transition, "open-transition"},
                                   {models::TransferKind::static_switch, "static-switch"}});
};
}  // namespace trainyard
