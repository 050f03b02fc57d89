#pragma once

#include <coroutine>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sim/wait.hpp"

/// Processes: coroutines for what a person would tell as a story – the life of a job, a step, a
/// repair.
///
///     Process train(World& world, Job& job) {
///       for (int step = 0; step < job.steps; ++step) {
///         co_await load_batch(world, job, step);             // a Process is awaited like anything
///         else Bytes sent = co_await reduce_gradients(world, job);  // Task<Bytes> co_await
///         world.engine.delay(job.compute_time);
///       }
///     }
///     ProcessHandle running = engine.spawn("job llm70b", train(world, job));
///     running.stop();      // destroys it: destructors cancel timers, withdraw waits, release
///     locks
///
/// A process starts when it is spawned or awaited, not when it is called. Five habits keep g++ 12.2
/// on our side: docs/guide/coroutines.md.
namespace trainyard::sim {

template <class T>
class Task;
using Process = Task<void>;

namespace detail {

struct PromiseBase {
  ProcessState* process = nullptr;
  std::coroutine_handle<> parent;  // who awaits this coroutine; none for the outermost
  std::exception_ptr error;

  struct FinalSuspend {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> coroutine) const noexcept;
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalSuspend final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;

  Task<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T result() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void result() const noexcept {}
};

}  // namespace detail

/// A coroutine that gives a T when it is awaited. It belongs to one owner: spawn it or await it,
/// once.
template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;

  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    Task taken(std::move(other));
    std::swap(coroutine_, taken.coroutine_);
    return *this;
  }
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  class Awaiter {
   public:
    explicit Awaiter(std::coroutine_handle<promise_type> child) : child_(child) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> parent) const;
    T await_resume() const {
      if (child_.promise().error) std::rethrow_exception(child_.promise().error);
      return child_.promise().result();
    }

   private:
    std::coroutine_handle<promise_type> child_;
  };
  Awaiter operator co_await() const {
    check(coroutine_ && coroutine_.promise().process == nullptr, "a task is awaited once");
    return Awaiter(coroutine_);
  }

 private:
  friend promise_type;
  friend class Engine;
  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> release() { return std::exchange(coroutine_, nullptr); }

  std::coroutine_handle<promise_type> coroutine_;
};

/// What the engine knows of a spawned process. Kept by the engine while it lives, and by handles.
struct ProcessState : Waiter {
  ProcessState(Engine& of, std::string called) : engine(&of), name(std::move(called)) {}
  std::string describe() const override { return "its start"; }

  Engine* engine;
  std::string name;
  std::coroutine_handle<> root;
  detail::PromiseBase* root_promise = nullptr;
  std::coroutine_handle<> next;  // a called child or the caller of a finished one: runs at once
  const Waiter* waiting_for = nullptr;  // null while it runs
  bool is_done = false;
  bool was_stopped = false;
  bool stop_requested = false;  // it stopped itself: destroyed at its next suspension
  WaitList joiners;
  std::list<std::shared_ptr<ProcessState>>::iterator place;
};

/// co_await handle.join(): until the process has ended, by itself or by stop().
class [[nodiscard]] Join final : public Wait {
 public:
  explicit Join(std::shared_ptr<ProcessState> process) : process_(std::move(process)) {}
  Join(Join&&) = default;
  void await_resume() const noexcept {}
  std::string describe() const override;

 protected:
  bool begin() override;

 private:
  friend class Engine;
  std::shared_ptr<ProcessState> process_;
};

/// Refers to a spawned process; dropping it does not stop the process. Copies refer to the same
/// one.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  explicit ProcessHandle(std::shared_ptr<ProcessState> process) : process_(std::move(process)) {}

  /// Destroys the process and all it awaits; nothing happens if it has ended. A process that stops
  /// itself ends when it next has to wait.
  void stop();
  /// Ended, by itself or by stop(). A handle of nothing is done.
  bool done() const;
  bool was_stopped() const { return process_ && process_->was_stopped; }
  Join join() const;
  const std::string& name() const;

 private:
  std::shared_ptr<ProcessState> process_;
};

namespace detail {

template <class Promise>
void PromiseBase::FinalSuspend::await_suspend(
    std::coroutine_handle<Promise> coroutine) const noexcept {
  PromiseBase& promise = coroutine.promise();
  promise.process->next = promise.parent;
}

template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

}  // namespace detail

// The child runs from the engine's loop and not from here: a chain of calls that complete at once
// must not deepen the stack (g++ 12.2 does not make symmetric transfer a jump in debug builds).
template <class T>
template <class Promise>
void Task<T>::Awaiter::await_suspend(std::coroutine_handle<Promise> parent) const {
  ProcessState& process = *parent.promise().process;
  child_.promise().process = &process;
  child_.promise().parent = parent;
  process.next = child_;
}

}  // namespace trainyard::sim
