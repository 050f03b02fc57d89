#pragma once

#include "sim/engine.hpp"
#include "sim/process.hpp"

/// Waits that cost no event while nothing else happens.
///
/// A job that nobody disturbs trains, saves and trains again: what it does next follows from what
/// it did, and an event for each of these waits would only find that nobody else was there. So the
/// process that waits looks at the queue. If every pending event is later, the clock goes on at
/// once (Engine::glide_to); one event then carries the job from one disturbance to the next.
///
///     co_await pass(engine, 5s);        // as co_await engine.delay(5s)
///
/// Off unless a run allows it (Engine::allow_gliding): without, each wait is an event, which is the
/// slow obvious twin. What happens is the same to the nanosecond.
namespace trainyard::sim {

/// Lets those who are ready go first.
class [[nodiscard]] Yield final : public Waiter {
 public:
  bool await_ready() const { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> coroutine) {
    suspend(coroutine, *coroutine.promise().process);
    make_ready();
  }
  void await_resume() const noexcept {}
  std::string describe() const override { return "its turn"; }
};

/// Time passes; those who are ready now go first.
inline Process pass(Engine& engine, Duration d) {
  const Time until = add(engine.now(), d);
  if (engine.may_glide()) {
    if (engine.is_anybody_ready()) {
      Yield turn;
      co_await turn;
    }
    if (engine.glide_to(until)) co_return;
  }
  co_await engine.until(until);
}

}  // namespace trainyard::sim
