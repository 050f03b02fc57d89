#pragma once

#include <optional>

#include "sim/engine.hpp"

namespace trainyard::sim {

/// One object with at most one pending event: a member of whoever waits. It is how machines with
/// states are written – a link, a disk queue, a scheduler tick.
///
///     Timer next_completion{engine, Phase::completion, [this] { complete_earliest(); }};
///     next_completion.arm(transfer_time(left, rate));      // replaces an earlier arming
///
/// Destroying a timer cancels it: nothing fires on a dead object. The action may re-arm or even
/// destroy its own timer. Arming for `forever` means never, which is the same as cancelling.
class Timer {
 public:
  Timer(Engine& engine, Phase phase, Action on_expiry);
  Timer(Timer&& other) noexcept;
  Timer& operator=(Timer&& other) noexcept;
  ~Timer();

  void arm(Duration d);
  void arm_at(Time when);
  void cancel();

  bool is_armed() const;
  std::optional<Time> expiry() const;

 private:
  Engine* engine_;
  std::uint32_t slot_;  // the engine keeps the action there for the timer's whole life
  Phase phase_;
  Time expiry_{};
};

}  // namespace trainyard::sim
