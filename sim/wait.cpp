#include "sim/wait.hpp"

#include <utility>

#include "sim/engine.hpp"
#include "sim/waiting.hpp"

namespace trainyard::sim {

std::string to_text(Phase phase) {
  switch (phase) {
    case Phase::failure:
      return "failure";
    case Phase::completion:
      return "completion";
    case Phase::arrival:
      return "arrival";
    case Phase::decision:
      return "decision";
    case Phase::observation:
      return "observation";
  }
  return "?";
}

void Waiter::suspend(std::coroutine_handle<> coroutine, ProcessState& process) {
  coroutine_ = coroutine;
  process_ = &process;
  process.waiting_for = this;
}

void Waiter::make_ready() {
  process_->engine->ready_.push_back(*this);
}

std::size_t WaitList::count() const {
  std::size_t n = 0;
  for (const detail::Link* at = head_.next(); at != &head_; at = at->next()) ++n;
  return n;
}

void Wait::complete() {
  unlink();
  if (Group* group = std::exchange(group_, nullptr))
    group->completed(number_in_group_);
  else
    make_ready();
}

bool Delay::begin() {
  check(duration_ >= Duration::zero(), "a delay is not negative", duration_.count());
  when_ = add(engine_->now(), duration_);
  if (when_ == Time::max()) return false;  // never: nothing to schedule
  event_ = engine_->schedule(when_, phase_, [this] {
    event_ = {};
    complete();
  });
  return false;
}

void Delay::withdraw() noexcept {
  unlink();
  if (event_.order != 0) engine_->cancel(std::exchange(event_, {}));
}

std::string Delay::describe() const {
  if (when_ == Time::max()) return "nothing, for ever";
  return to_text(when_.time_since_epoch()) + " (" + to_text(phase_) + ')';
}

}  // namespace trainyard::sim
