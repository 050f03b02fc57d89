#include "sim/waiting.hpp"

namespace trainyard::sim {

void Signal::notify_all() {
  while (!waiting_.is_empty()) static_cast<Waiting&>(waiting_.front()).complete();
}

void Permit::release() noexcept {
  if (Semaphore* semaphore = std::exchange(semaphore_, nullptr)) semaphore->give_back(units_);
}

Semaphore::Acquire Semaphore::acquire(std::uint64_t units) {
  check(units <= capacity_, "nobody asks for more units than there are", name_, units, capacity_);
  return Acquire(*this, units);
}

std::optional<Permit> Semaphore::try_acquire(std::uint64_t units) {
  if (!waiting_.is_empty() || free_ < units) return std::nullopt;
  free_ -= units;
  return Permit(*this, units);
}

void Semaphore::give_back(std::uint64_t units) noexcept {
  free_ += units;
  grant();
}

void Semaphore::grant() noexcept {
  while (!waiting_.is_empty()) {
    auto& next = static_cast<Acquire&>(waiting_.front());
    if (next.units_ > free_) return;
    free_ -= next.units_;
    next.is_granted_ = true;
    next.complete();
  }
}

bool Semaphore::Acquire::begin() {
  if (is_granted_) return true;
  if (semaphore_->waiting_.is_empty() && units_ <= semaphore_->free_) {
    semaphore_->free_ -= units_;
    is_granted_ = true;
    return true;
  }
  semaphore_->waiting_.push_back(*this);
  return false;
}

void Semaphore::Acquire::withdraw() noexcept {
  if (std::exchange(is_granted_, false)) {
    unlink();  // from the ready list
    semaphore_->give_back(units_);
  } else if (is_linked()) {
    unlink();
    semaphore_->grant();  // a smaller request may have stood behind this one
  }
}

Permit Semaphore::Acquire::await_resume() {
  check(is_granted_, "a permit is taken once, after it was granted", semaphore_->name_);
  is_granted_ = false;
  return Permit(*semaphore_, units_);
}

std::string Semaphore::Acquire::describe() const {
  return std::to_string(units_) + " of semaphore \"" + semaphore_->name_ + "\" (" +
         std::to_string(semaphore_->free_) + " of " + std::to_string(semaphore_->capacity_) +
         " free)";
}

bool Group::begin() {
  left_ = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    Wait& wait = member(i);
    check(wait.group_ == nullptr && !wait.is_linked(), "a wait is awaited by one at a time");
    wait.group_ = this;
    wait.number_in_group_ = i;
    if (!wait.begin()) {
      ++left_;
      continue;
    }
    wait.group_ = nullptr;
    if (first_is_enough_) {
      first_ = i;
      withdraw_all();
      return true;
    }
  }
  return !first_is_enough_ && left_ == 0;
}

void Group::completed(std::size_t number) {
  if (first_is_enough_) {
    first_ = number;
    withdraw_all();
    make_ready();
  } else if (--left_ == 0) {
    make_ready();
  }
}

// Those who have completed no longer name this group: they keep what they brought.
void Group::withdraw_all() noexcept {
  for (std::size_t i = 0; i < size(); ++i) {
    Wait& wait = member(i);
    if (wait.group_ != this) continue;
    wait.group_ = nullptr;
    wait.withdraw();
  }
}

std::string Group::describe() const {
  std::string text = first_is_enough_ ? "the first of: " : "all of: ";
  for (std::size_t i = 0; i < size(); ++i) text += (i == 0 ? "" : ", ") + member(i).describe();
  return text;
}

AllJoined::AllJoined(const std::vector<ProcessHandle>& processes) : Group(false) {
  joins_.reserve(processes.size());
  for (const ProcessHandle& process : processes) joins_.push_back(process.join());
}

}  // namespace trainyard::sim
