#include <algorithm>

#include "models/failures/class_clock.hpp"
#include "sim/check.hpp"

/// A heap of units by the time of their next action. An entry may be too early: lives of units of a
/// server that was down moved on by the time it was down, and the heap learns of it when the entry
/// comes up. Never too late, so the top, once it is right, is what happens next. O(log units) a
/// failure; training and the hour cost nothing.
namespace trainyard::models {

FailureClocks::SteadyClock::SteadyClock(FailureClocks& all, const FailureClass& cls)
    : Clock(all, cls), timer_(all.engine_, sim::Phase::failure, [this] { act(); }) {
  units_.resize(unit_count());
  heap_.reserve(units_.size());
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    begin_life(u);
    units_[u].place = Place::heap;
    heap_.push_back({next_action(units_[u]), u, 0});
  }
  std::make_heap(heap_.begin(), heap_.end(), is_later);
  arm();
}

bool FailureClocks::SteadyClock::is_later(const Entry& a, const Entry& b) {
  return a.due != b.due ? a.due > b.due : a.unit > b.unit;
}

void FailureClocks::SteadyClock::begin_life(std::uint32_t u) {
  // While the server is down: resume() will add the whole time that it was.
  const Time begin = is_down(u) ? all_.down_since_[u / per_server_] : now();
  units_[u].due = add(begin, life_of(u, units_[u].life));
  units_[u].is_announced = false;
}

/// May lie in the past, if the announcement is overdue from the start.
Time FailureClocks::SteadyClock::next_action(const Unit& unit) const {
  const bool announces = warning() > Duration::zero() && !unit.is_announced;
  return announces && unit.due != Time::max() ? unit.due - warning() : unit.due;
}

void FailureClocks::SteadyClock::renew(std::uint32_t u) {
  Unit& unit = units_[u];
  check(unit.place == Place::failed || unit.is_announced,
        "a new life begins after a failure, or after its announcement", class_.name, u);
  ++unit.life;  // an entry of the old life is now void
  begin_life(u);
  push(u);
  arm();
}

void FailureClocks::SteadyClock::pause(std::uint32_t server) {
  if (has_server() && !heap_.empty() && heap_.front().unit / per_server_ == server) arm();
}

void FailureClocks::SteadyClock::resume(std::uint32_t server, Duration was_down) {
  if (!has_server()) return;
  for (std::uint32_t u = server * per_server_; u < (server + 1) * per_server_; ++u) {
    if (units_[u].place == Place::failed) continue;
    units_[u].due = add(units_[u].due, was_down);
    if (units_[u].place == Place::parked) push(u);
  }
  arm();
}

void FailureClocks::SteadyClock::push(std::uint32_t u) {
  units_[u].place = Place::heap;
  heap_.push_back({next_action(units_[u]), u, units_[u].life});
  std::push_heap(heap_.begin(), heap_.end(), is_later);
}

void FailureClocks::SteadyClock::pop() {
  std::pop_heap(heap_.begin(), heap_.end(), is_later);
  heap_.pop_back();
}

/// Makes the top an action that will really happen, and sets the timer for it.
void FailureClocks::SteadyClock::arm() {
  while (!heap_.empty()) {
    const Entry top = heap_.front();
    Unit& unit = units_[top.unit];
    if (top.life != unit.life) {
      pop();
    } else if (is_down(top.unit)) {
      pop();
      unit.place = Place::parked;
    } else if (next_action(unit) != top.due) {
      pop();
      push(top.unit);
    } else {
      break;
    }
  }
  if (heap_.empty() || heap_.front().due == Time::max()) return timer_.cancel();
  const Time when = std::max(now(), heap_.front().due);
  if (timer_.expiry() != when) timer_.arm_at(when);
}

void FailureClocks::SteadyClock::act() {
  const std::uint32_t u = heap_.front().unit;
  const std::uint32_t life = units_[u].life;
  const Time due = units_[u].due;
  pop();
  if (next_action(units_[u]) != due) {
    units_[u].is_announced = true;
    push(u);
    announce(u, life, due);
  } else {
    units_[u].place = Place::failed;
    if (!class_.spec.replace) renew(u);
    strike(u, life);
  }
  arm();
}

}  // namespace trainyard::models
