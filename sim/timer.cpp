#include "sim/timer.hpp"

#include <utility>

namespace trainyard::sim {

Timer::Timer(Engine& engine, Phase phase, Action on_expiry)
    : engine_(&engine), slot_(engine.take_slot(std::move(on_expiry))), phase_(phase) {}

Timer::Timer(Timer&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)),
      slot_(other.slot_),
      phase_(other.phase_),
      expiry_(other.expiry_) {}

Timer& Timer::operator=(Timer&& other) noexcept {
  Timer taken(std::move(other));  // so that what this timer did before ends here
  std::swap(engine_, taken.engine_);
  std::swap(slot_, taken.slot_);
  std::swap(phase_, taken.phase_);
  std::swap(expiry_, taken.expiry_);
  return *this;
}

Timer::~Timer() {
  if (engine_ != nullptr) engine_->release_timer_slot(slot_);
}

void Timer::arm(Duration d) {
  check(d >= Duration::zero(), "a timer is armed for a time to come", d.count());
  arm_at(add(engine_->now(), d));
}

void Timer::arm_at(Time when) {
  engine_->disarm(slot_);
  if (when == Time::max()) return;
  engine_->slot(slot_).order = engine_->enqueue(when, phase_, slot_, true);
  expiry_ = when;
}

void Timer::cancel() {
  engine_->disarm(slot_);
}

bool Timer::is_armed() const {
  return engine_->slot(slot_).order != 0;
}

std::optional<Time> Timer::expiry() const {
  return is_armed() ? std::optional(expiry_) : std::nullopt;
}

}  // namespace trainyard::sim
