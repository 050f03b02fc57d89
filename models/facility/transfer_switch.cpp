#include "models/facility/transfer_switch.hpp"

#include "sim/check.hpp"

namespace trainyard::models {

TransferSwitch::TransferSwitch(const TransferSpec& spec, std::size_t sources, sim::Stream stream)
    : spec_(spec), luck_(stream), sources_(sources) {
  check(sources >= 1, "a transfer switch has a source", sources);
  sources_[0].is_live = true;
}

void TransferSwitch::move(Time now, std::size_t to) {
  if (luck_.uniform() < spec_.fail_to_transfer) {
    has_failed_ = true;
    next_.reset();
    return;
  }
  moving_to_ = to;
  arrives_ = add(now, spec_.transfer());
  next_ = arrives_;
}

void TransferSwitch::settle(Time now) {
  next_.reset();
  if (moving_to_) {
    next_ = arrives_;
    return;
  }
  const Source& mine = sources_[at_];
  if (mine.is_usable()) {
    if (at_ == 0) calls_backup_ = false;
    if (has_failed_) return;
    for (std::size_t i = 0; i < at_; ++i) {
      if (!sources_[i].is_usable()) continue;
      const Time back = add(sources_[i].since, spec_.retransfer);
      if (back <= now) return move(now, i);
      if (!next_ || back < *next_) next_ = back;
    }
    return;
  }
  // A source that is locked out is known to be so: there is nothing to confirm.
  const Time confirmed = mine.is_locked ? mine.since : add(mine.since, spec_.confirmation());
  if (now < confirmed) {
    next_ = confirmed;
    return;
  }
  calls_backup_ = true;
  if (has_failed_) return;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (sources_[i].is_usable()) return move(now, i);
}

void TransferSwitch::advance(Time now) {
  while (next_ && *next_ <= now) {
    const Time then = *next_;
    if (moving_to_ && arrives_ <= then) {
      at_ = *moving_to_;
      moving_to_.reset();
    }
    settle(then);
  }
}

void TransferSwitch::update(Time now, std::size_t source, Source next) {
  check(source < sources_.size(), "a source of the switch", source);
  Source& s = sources_[source];
  if (s.is_usable() != next.is_usable()) next.since = now;
  s = next;
  settle(now);
}

void TransferSwitch::set_live(Time now, std::size_t source, bool is_live) {
  advance(now);
  Source next = sources_.at(source);
  next.is_live = is_live;
  update(now, source, next);
}

void TransferSwitch::lock_out(Time now, std::size_t source, bool is_locked) {
  advance(now);
  Source next = sources_.at(source);
  next.is_locked = is_locked;
  update(now, source, next);
}

void TransferSwitch::fail(Time now) {
  advance(now);
  has_failed_ = true;
  settle(now);
}

void TransferSwitch::restore(Time now) {
  advance(now);
  has_failed_ = false;
  settle(now);
}

}  // namespace trainyard::models
