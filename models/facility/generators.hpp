#pragma once

#include <optional>
#include <vector>

#include "models/facility/power_devices_spec.hpp"
#include "sim/random.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// A group of equal generator sets on one bus: who starts, when, with how much load, for how long.
///
///   start     a set fails to start with chance p; with the chance beta p all fail for one cause,
///             else each by itself with q = (1 - beta) p:
///             P(fewer than k of n) = beta p + (1 - beta p) sum_{j > n-k} C(n,j) q^j (1-q)^(n-j)
///   time      attempts that fail, then a log-normal start; the first takes the dead bus, each
///             further one synchronises after the one before it
///   load      accepted in blocks of a set's rating
///   running   exponential life; fuel by load, from idling to full consumption on a straight line
///
///     Generators sets(spec, engine.random("plant/generators-1"));
///     sets.start(now);
///     while (auto t = sets.next_event()) { sets.advance(*t); if (sets.capacity() >= load) break; }
///
/// Sources: NREL REopt's defaults for reliability; the beta factor of common-cause analysis
/// (Fleming, 1975).
namespace trainyard::models {

/// P(fewer than k of n sets start): `fail` is p of one set, `beta` the common-cause share.
double chance_fewer_start(int k, int n, double fail, double beta);
/// One set is there, starts, and runs for so long.
double chance_of_service(const GeneratorSpec& spec, Duration outage);

class Generators {
 public:
  enum class State { standby, cranking, running, failed, maintenance };

  Generators(const GeneratorSpec& spec, sim::Stream stream);

  void advance(Time now);
  /// Orders all sets that stand by to start; nothing if it was ordered already. A set that was
  /// repaired meanwhile starts with the next order: is_ordered() is false then.
  void start(Time now);
  /// Sets cool down and stand by again; sets in repair stay there.
  void stop(Time now);
  /// Active power drawn from the bus from now on. More than 110 % of what runs trips all sets after
  /// ten seconds (a usual rating for short overload, and governors that lose speed).
  void set_load(Time now, Watts load);
  void fail_set(Time now, int set);
  void fail_all(Time now);
  void repair_all(Time now);

  std::optional<Time> next_event() const { return next_; }
  bool is_ordered() const { return is_ordered_; }
  /// No further set will come onto the bus, and none accepts a further block.
  bool is_settled(Time now) const;
  /// Load that the bus accepts at present.
  Watts capacity() const { return capacity_; }
  int running() const;
  State state(int set) const { return sets_[std::size_t(set)].state; }
  int sets() const { return spec_.sets; }
  /// Share of a full tank.
  double fuel(Time now) const;
  const GeneratorSpec& spec() const { return spec_; }

 private:
  struct Set {
    State state = State::standby;
    std::optional<Time> change;  // onto the bus, failure while running, or end of repair
    Time closed{};               // onto the bus
    Time fails{};                // if it runs for so long
    int blocks = 0;
    std::optional<Time> next_block;
    sim::Stream luck;
  };
  void happen(Time now);
  void leave_bus(Set& set, Time now);
  void rebase(Time now);
  void predict(Time now);
  double consumption() const;  // tanks per second
  int blocks_to_full() const;

  GeneratorSpec spec_;
  sim::Stream common_luck_;
  std::vector<Set> sets_;
  bool is_ordered_ = false;
  Watts load_{};
  Watts capacity_{};
  Time since_{};
  double fuel_ = 1.0;
  std::optional<Time> refill_;
  std::optional<Time> overload_trip_;
  std::optional<Time> empty_;
  std::optional<Time> next_;
};

}  // namespace trainyard::models
