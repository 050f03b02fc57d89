#include <algorithm>
#include <cmath>

#include "models/facility/thermal_network.hpp"
#include "sim/check.hpp"

/// Limits of a thermal network and when they are reached.
namespace trainyard::models {

std::optional<Time> ThermalNetwork::first_crossing(ThermalNode node, double limit_C,
                                                   Direction direction) const {
  enter_mode();
  const auto course = mode_->course(at(node).row, coordinates_, sources_);
  const auto after = models::first_crossing(*course, limit_C, direction, Time::max() - now_);
  return after ? std::optional(add(now_, *after)) : std::nullopt;
}

bool ThermalNetwork::is_beyond(ThermalNode node, double limit_C, Direction direction) const {
  const double past = temperature(node) - limit_C;
  return (direction == Direction::rising ? past : -past) >= -touch_K;
}

ThermalWatch ThermalNetwork::watch(ThermalNode node, double limit_C, Direction direction) {
  at(node);
  std::size_t slot = watches_.size();
  if (free_watches_.empty()) {
    watches_.emplace_back();
  } else {
    slot = free_watches_.back();
    free_watches_.pop_back();
  }
  watches_[slot] = Watch{.node = node, .direction = direction};
  move_watch(ThermalWatch(slot), limit_C);
  return ThermalWatch(slot);
}

void ThermalNetwork::move_watch(ThermalWatch watch, double limit_C) {
  check(watch.index() < watches_.size() && watches_[watch.index()].alive,
        "a thermal watch is one of this network", watch.index());
  Watch& moved = watches_[watch.index()];
  moved.limit = limit_C;
  moved.due = std::nullopt;
  moved.searched = now_;
  moved.armed = !is_beyond(moved.node, limit_C, moved.direction);
  predicted_ = false;
}

void ThermalNetwork::remove_watch(ThermalWatch watch) {
  check(watch.index() < watches_.size() && watches_[watch.index()].alive,
        "a thermal watch is one of this network", watch.index());
  watches_[watch.index()].alive = false;
  watches_[watch.index()].due = std::nullopt;
  free_watches_.push_back(watch.index());
}

void ThermalNetwork::inputs_changed() {
  if (voided_) return;
  // What was reached by now stays reached, whatever the new inputs are.
  for (Watch& watch : watches_) {
    if (watch.due && *watch.due > now_) watch.due = std::nullopt;
    watch.searched = now_;
  }
  voided_ = true;
  predicted_ = false;
}

void ThermalNetwork::predict() {
  if (predicted_) return;
  predicted_ = true;
  voided_ = false;
  Time best = Time::max();
  for (const Watch& watch : watches_)
    if (watch.alive && watch.due) best = std::min(best, *watch.due);
  // A watch that reaches its limit later than another one need not know when. Watches of a node
  // follow one another as a rule: they share its course.
  std::unique_ptr<Course> course;
  ThermalNode drawn{};
  for (Watch& watch : watches_) {
    if (!watch.alive || watch.due || watch.searched >= best) continue;
    watch.searched = best;
    if (std::isinf(watch.limit)) continue;
    enter_mode();
    if (!course || drawn != watch.node)
      course = mode_->course(at(watch.node).row, coordinates_, sources_);
    drawn = watch.node;
    predict(watch, *course, best);
    if (watch.due) best = std::min(best, *watch.due);
  }
}

void ThermalNetwork::predict(Watch& watch, Course& course, Time horizon) {
  if (!watch.armed && !is_beyond(watch.node, watch.limit, watch.direction)) watch.armed = true;
  const Duration ahead = horizon - now_;
  const auto after = watch.armed
                         ? models::first_crossing(course, watch.limit, watch.direction, ahead)
                         : models::next_arrival(course, watch.limit, watch.direction, ahead);
  if (after) watch.due = add(now_, *after);
}

std::optional<Time> ThermalNetwork::next_event() {
  predict();
  std::optional<Time> first;
  for (const Watch& watch : watches_)
    if (watch.alive && watch.due && (!first || *watch.due < *first)) first = watch.due;
  return first;
}

std::vector<ThermalWatch> ThermalNetwork::take_arrivals() {
  std::vector<ThermalWatch> arrived;
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    if (!watch.alive || !watch.due || *watch.due > now_) continue;
    arrived.emplace_back(i);
    watch.due = std::nullopt;
    watch.searched = now_;
    watch.armed = false;
    predicted_ = false;
  }
  return arrived;
}

}  // namespace trainyard::models
