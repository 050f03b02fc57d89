#include "models/facility/restart_machine.hpp"

#include <algorithm>

namespace trainyard::models {

void RestartMachine::advance(Time now) {
  while (next_ && *next_ <= now) {
    const Time t = *next_;
    next_.reset();
    if (state_ == State::booting) {
      wait(t);
    } else if (state_ == State::waiting) {
      try_start(t);
    } else if (state_ == State::ramping) {
      ++step_;
      if (step_ >= spec_.ramp_steps) {
        state_ = State::running;
        failed_starts_ = 0;
      } else {
        next_ = add(t, spec_.ramp / spec_.ramp_steps);
      }
    }
  }
}

void RestartMachine::stop(Time now, State state) {
  if (share() > 0 || state_ == State::ramping) stopped_ = now;
  state_ = state;
  step_ = 0;
  next_.reset();
}

void RestartMachine::set_fed(Time now, bool is_fed) {
  advance(now);
  if (is_fed == is_fed_) return;
  is_fed_ = is_fed;
  if (state_ == State::failed || state_ == State::locked) return;
  if (!is_fed) {
    stop(now, State::off);
  } else {
    state_ = State::booting;
    next_ = add(now, spec_.boot);
    advance(now);
  }
}

void RestartMachine::set_ready(Time now, bool is_ready) {
  advance(now);
  if (is_ready == is_ready_) return;
  is_ready_ = is_ready;
  if (state_ == State::waiting) wait(now);
  if (!is_ready && (state_ == State::ramping || state_ == State::running)) {
    stop(now, State::waiting);
  }
}

void RestartMachine::wait(Time now) {
  state_ = State::waiting;
  next_.reset();
  if (!is_ready_) return;
  Time start = add(now, spec_.prove_flow);
  if (stopped_) start = std::max(start, add(*stopped_, spec_.anti_recycle));
  next_ = start;
  advance(now);
}

void RestartMachine::try_start(Time now) {
  if (luck_.uniform() < spec_.start_failure) {
    stopped_ = now;
    if (++failed_starts_ >= spec_.attempts) {
      stop(now, State::locked);
    } else {
      wait(now);
    }
    return;
  }
  state_ = State::ramping;
  step_ = 0;
  next_ = add(now, spec_.ramp / spec_.ramp_steps);
}

void RestartMachine::trip(Time now) {
  advance(now);
  if (share() <= 0 && state_ != State::ramping) return;
  stop(now, State::waiting);
  if (++failed_starts_ >= spec_.attempts) {
    state_ = State::locked;
  } else {
    wait(now);
  }
}

void RestartMachine::fail(Time now) {
  advance(now);
  stop(now, State::failed);
}

void RestartMachine::restore(Time now) {
  advance(now);
  if (state_ != State::failed) return;
  failed_starts_ = 0;
  state_ = State::off;
  if (!is_fed_) return;
  state_ = State::booting;
  next_ = add(now, spec_.boot);
  advance(now);
}

void RestartMachine::lock(Time now) {
  advance(now);
  if (state_ != State::failed) stop(now, State::locked);
}

void RestartMachine::reset(Time now) {
  advance(now);
  if (state_ != State::locked) return;
  failed_starts_ = 0;
  stopped_.reset();
  state_ = State::off;
  if (is_fed_) wait(now);
}

double RestartMachine::share() const {
  if (state_ == State::running) return 1.0;
  if (state_ == State::ramping) return double(step_) / spec_.ramp_steps;
  return 0.0;
}

}  // namespace trainyard::models
