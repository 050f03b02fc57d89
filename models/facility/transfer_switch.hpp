#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "models/facility/power_devices_spec.hpp"
#include "sim/random.hpp"
#include "sim/time.hpp"

/// A switch between sources by priority, source 0 first. When its source has been lost for the
/// confirmation time it calls the backup and moves to the best source that is live, at once or as
/// soon as one is; its output is dead while it moves (open transition). When a better source has
/// been good for the retransfer time it goes back. A move may fail: then it stays where it is until
/// it is restored.
///
///     TransferSwitch ats(spec, 2, engine.random("plant/ats"));
///     ats.set_live(now, 0, false);                          // utility lost
///     if (ats.calls_backup()) generators.start(now);        // after 2 s
///     std::optional<std::size_t> source = ats.source();     // none: it moves
///
/// Source: the sequence of operation that makers of automatic transfer switches publish; times are
/// typical figures (power_devices_spec.hpp).
namespace trainyard::models {

class TransferSwitch {
 public:
  /// Starts at source 0, which is live; so is no other.
  TransferSwitch(const TransferSpec& spec, std::size_t sources, sim::Stream stream);

  void advance(Time now);
  void set_live(Time now, std::size_t source, bool is_live);
  /// It does not use this source until it is released: a UPS behind it refuses the utility.
  void lock_out(Time now, std::size_t source, bool is_locked);
  /// It does not move any more.
  void fail(Time now);
  void restore(Time now);

  std::optional<Time> next_event() const { return next_; }
  /// Connected to its output; none while it moves.
  std::optional<std::size_t> source() const {
    return moving_to_ ? std::nullopt : std::optional(at_);
  }
  /// From the confirmed loss of a source until it is back at source 0.
  bool calls_backup() const { return calls_backup_; }
  bool has_failed() const { return has_failed_; }

 private:
  struct Source {
    bool is_live = false;
    bool is_locked = false;
    Time since{};  // of being usable, or not
    bool is_usable() const { return is_live && !is_locked; }
  };
  void update(Time now, std::size_t source, Source next);
  void settle(Time now);
  void move(Time now, std::size_t to);

  TransferSpec spec_;
  sim::Stream luck_;
  std::vector<Source> sources_;
  std::size_t at_ = 0;
  std::optional<std::size_t> moving_to_;
  Time arrives_{};
  bool has_failed_ = false;
  bool calls_backup_ = false;
  std::optional<Time> next_;
};

}  // namespace trainyard::models
