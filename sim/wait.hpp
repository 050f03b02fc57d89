#pragma once

#include <coroutine>
#include <cstdint>
#include <string>

#include "sim/check.hpp"
#include "sim/time.hpp"

/// What all waits have in common. A wait lives in the frame of the waiting coroutine and stands in
/// at most one list at a time: first that of what it waits for, then the engine's list of those who
/// are ready to continue. Leaving a list takes no search, so destroying the frame withdraws the
/// wait.
namespace trainyard::sim {

class Engine;
class Group;
struct ProcessState;

/// Earlier first; at one instant in the order of Phase; within a phase as scheduled.
enum class Phase : std::uint8_t { failure, completion, arrival, decision, observation };

std::string to_text(Phase);
using trainyard::to_text;  // of Duration and quantities: std::chrono types are not found by their
                           // arguments

namespace detail {

/// A place in a circular doubly linked list; alone when not in one.
class Link {
 public:
  Link() = default;
  Link(Link&& other) { check(!other.is_linked(), "a wait is moved only before it is awaited"); }
  Link& operator=(Link&&) = delete;
  ~Link() { unlink(); }

  bool is_linked() const { return next_ != this; }
  Link* next() const { return next_; }

  void link_before(Link& other) {
    previous_ = other.previous_;
    next_ = &other;
    previous_->next_ = this;
    other.previous_ = this;
  }
  void unlink() noexcept {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = this;
  }

 private:
  Link* next_ = this;
  Link* previous_ = this;
};

}  // namespace detail

/// Somebody who will continue later: a suspended coroutine of a process.
class Waiter : public detail::Link {
 public:
  Waiter() = default;
  Waiter(Waiter&&) = default;
  virtual ~Waiter() = default;

  /// What it waits for, as Engine::describe_waiting prints it.
  virtual std::string describe() const = 0;

 protected:
  void suspend(std::coroutine_handle<> coroutine, ProcessState& process);
  /// Joins the end of the engine's ready list.
  void make_ready();

 private:
  friend class Engine;
  std::coroutine_handle<> coroutine_;
  ProcessState* process_ = nullptr;
};

/// First come, first served.
class WaitList {
 public:
  WaitList() = default;
  WaitList(WaitList&&) = default;
  /// Whoever still waits here waits for ever.
  ~WaitList() {
    while (!is_empty()) head_.next()->unlink();
  }

  bool is_empty() const { return !head_.is_linked(); }
  void push_back(Waiter& waiter) { waiter.link_before(head_); }
  Waiter& front() const { return static_cast<Waiter&>(*head_.next()); }
  std::size_t count() const;

 private:
  detail::Link head_;
};

/// One thing that can be awaited, alone (`co_await wait`) or in any_of and all_of. A derived class
/// says how to begin, how to withdraw, and what co_await returns (`await_resume`).
class Wait : public Waiter {
 public:
  Wait() = default;
  Wait(Wait&&) = default;

  bool await_ready() { return begin(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> coroutine) {
    suspend(coroutine, *coroutine.promise().process);
  }

 protected:
  /// True when there is nothing to wait for. Otherwise complete() follows later.
  virtual bool begin() = 0;
  /// Forget the wait; give back what was granted but not taken. Also when nothing was begun.
  virtual void withdraw() noexcept { unlink(); }

  /// The thing happened: continue the process, or tell the group this wait belongs to.
  void complete();

 private:
  friend class Group;
  Group* group_ = nullptr;
  std::size_t number_in_group_ = 0;
};

/// Names an event so that it can be cancelled. The order number is used once in a run, so a stale
/// name can never hit a younger event.
struct EventId {
  std::uint32_t slot = 0;
  std::uint64_t order = 0;
};

/// co_await engine.delay(5us): the clock starts when it is awaited.
class [[nodiscard]] Delay final : public Wait {
 public:
  Delay(Engine& engine, Duration d, Phase phase) : engine_(&engine), duration_(d), phase_(phase) {}
  Delay(Delay&&) = default;
  ~Delay() override { withdraw(); }

  void await_resume() const noexcept {}
  std::string describe() const override;

 protected:
  bool begin() override;
  void withdraw() noexcept override;

 private:
  Engine* engine_;
  Duration duration_;
  Phase phase_;
  Time when_{};
  EventId event_;
};

}  // namespace trainyard::sim
