#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/engine.hpp"

/// What processes wait for, besides time: a signal, a unit of something scarce, a message, another
/// process; and the first, or all, of several of them.
///
///     switch (co_await any_of(engine, engine.delay(next_checkpoint), job.failed,
///     reconfigured.wait())) {
///       case 0: ...  // the delay passed
///       case 1: ...  // job.failed.notify_all() was called
///     }
///
/// The losers of any_of are withdrawn at the moment one wins: a permit or a message is never taken
/// and dropped. To keep what a wait brings, name it first:
///
///     Pop<Request> next = inbox.pop();
///     if (co_await any_of(engine, engine.delay(5ms), next) == 1) serve(next.await_resume());
namespace trainyard::sim {

/// An occurrence without memory: notify_all() continues those who wait *now*.
class Signal {
 public:
  explicit Signal(std::string name) : name_(std::move(name)) {}

  class [[nodiscard]] Waiting final : public Wait {
   public:
    explicit Waiting(Signal& signal) : signal_(&signal) {}
    void await_resume() const noexcept {}
    std::string describe() const override { return "signal \"" + signal_->name_ + '"'; }

   protected:
    bool begin() override {
      signal_->waiting_.push_back(*this);
      return false;
    }

   private:
    friend class Signal;
    Signal* signal_;
  };

  Waiting wait() { return Waiting(*this); }
  void notify_all();
  std::size_t waiting() const { return waiting_.count(); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  WaitList waiting_;
};

class Semaphore;

/// Units held of a semaphore; the destructor gives them back.
class [[nodiscard]] Permit {
 public:
  Permit() = default;
  Permit(Semaphore& semaphore, std::uint64_t units) : semaphore_(&semaphore), units_(units) {}
  Permit(Permit&& other) noexcept
      : semaphore_(std::exchange(other.semaphore_, nullptr)), units_(other.units_) {}
  Permit& operator=(Permit&& other) noexcept {
    if (this == &other) return *this;
    release();
    semaphore_ = std::exchange(other.semaphore_, nullptr);
    units_ = other.units_;
    return *this;
  }
  ~Permit() { release(); }

  void release() noexcept;
  std::uint64_t units() const { return semaphore_ == nullptr ? 0 : units_; }

 private:
  Semaphore* semaphore_ = nullptr;
  std::uint64_t units_ = 0;
};

/// Units of something scarce, first come, first served: a large request is not overtaken by small
/// ones.
///     Permit lane = co_await repair_crews.acquire();
class Semaphore {
 public:
  Semaphore(std::string name, std::uint64_t units)
      : name_(std::move(name)), capacity_(units), free_(units) {}

  class [[nodiscard]] Acquire final : public Wait {
   public:
    Acquire(Semaphore& semaphore, std::uint64_t units) : semaphore_(&semaphore), units_(units) {}
    Acquire(Acquire&& other)
        : Wait(std::move(other)),
          semaphore_(other.semaphore_),
          units_(other.units_),
          is_granted_(std::exchange(other.is_granted_, false)) {}
    ~Acquire() override { withdraw(); }
    Permit await_resume();
    std::string describe() const override;

   protected:
    bool begin() override;
    void withdraw() noexcept override;

   private:
    friend class Semaphore;
    Semaphore* semaphore_;
    std::uint64_t units_;
    bool is_granted_ = false;
  };

  Acquire acquire(std::uint64_t units = 1);
  /// Takes nothing and waits for nothing when others wait or too few are free.
  std::optional<Permit> try_acquire(std::uint64_t units = 1);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t free() const { return free_; }
  std::size_t waiting() const { return waiting_.count(); }
  const std::string& name() const { return name_; }

 private:
  friend class Permit;
  void give_back(std::uint64_t units) noexcept;
  void grant() noexcept;

  std::string name_;
  std::uint64_t capacity_;
  std::uint64_t free_;
  WaitList waiting_;
};

template <class T>
class Channel;

template <class T>
class [[nodiscard]] Pop final : public Wait {
 public:
  explicit Pop(Channel<T>& channel) : channel_(&channel) {}
  Pop(Pop&& other)
      : Wait(std::move(other)),
        channel_(other.channel_),
        value_(std::exchange(other.value_, std::nullopt)) {}
  ~Pop() override { withdraw(); }
  T await_resume() {
    check(value_.has_value(), "a message is taken once, after it came");
    T value = std::move(*value_);
    value_.reset();
    return value;
  }
  std::string describe() const override { return "channel \"" + channel_->name() + '"'; }

 protected:
  bool begin() override {
    if (!value_ && !channel_->messages_.empty()) {
      value_ = std::move(channel_->messages_.front());
      channel_->messages_.pop_front();
    }
    if (value_) return true;
    channel_->waiting_.push_back(*this);
    return false;
  }
  void withdraw() noexcept override {
    unlink();
    if (value_) channel_->put_back(std::move(*value_));
    value_.reset();
  }

 private:
  friend class Channel<T>;
  Channel<T>* channel_;
  std::optional<T> value_;
};

/// Messages in order, as many as come; each goes to one receiver, the one who waited longest.
template <class T>
class Channel {
 public:
  explicit Channel(std::string name) : name_(std::move(name)) {}

  void push(T message) {
    messages_.push_back(std::move(message));
    hand_over();
  }
  Pop<T> pop() { return Pop<T>(*this); }
  std::optional<T> try_pop() {
    if (messages_.empty()) return std::nullopt;
    std::optional<T> message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

  /// Messages nobody took yet.
  std::size_t size() const { return messages_.size(); }
  bool is_empty() const { return messages_.empty(); }
  const std::string& name() const { return name_; }

 private:
  friend class Pop<T>;
  void hand_over() {
    while (!messages_.empty() && !waiting_.is_empty()) {
      auto& receiver = static_cast<Pop<T>&>(waiting_.front());
      receiver.value_ = std::move(messages_.front());
      messages_.pop_front();
      receiver.complete();
    }
  }
  void put_back(T message) noexcept {
    messages_.push_front(std::move(message));
    hand_over();
  }

  std::string name_;
  std::deque<T> messages_;
  WaitList waiting_;
};

/// Several waits awaited as one.
class Group : public Waiter {
 public:
  explicit Group(bool first_is_enough) : first_is_enough_(first_is_enough) {}
  Group(Group&&) = default;

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> coroutine) {
    suspend(coroutine, *coroutine.promise().process);
  }
  std::string describe() const override;

 protected:
  bool begin();
  void withdraw_all() noexcept;
  virtual std::size_t size() const = 0;
  virtual Wait& member(std::size_t number) const = 0;
  std::size_t first() const { return first_; }

 private:
  friend class Wait;
  void completed(std::size_t number);

  bool first_is_enough_;
  std::size_t left_ = 0;
  std::size_t first_ = 0;
};

/// The members are named ones (kept by reference) or temporaries (moved in).
template <class... Waits>
class [[nodiscard]] GroupOf : public Group {
 public:
  template <class... Given>
  explicit GroupOf(bool first_is_enough, Given&&... waits)
      : Group(first_is_enough), waits_(std::forward<Given>(waits)...) {}
  GroupOf(GroupOf&&) = default;
  ~GroupOf() override { withdraw_all(); }
  bool await_ready() { return begin(); }

 protected:
  std::size_t size() const override { return sizeof...(Waits); }
  Wait& member(std::size_t number) const override {
    Wait* found = nullptr;
    std::apply(
        [&](auto&... wait) {
          std::size_t at = 0;
          ((at++ == number ? void(found = &wait) : void()), ...);
        },
        const_cast<std::tuple<Waits...>&>(waits_));
    return *found;
  }

 private:
  std::tuple<Waits...> waits_;
};

template <class... Waits>
class [[nodiscard]] AnyOf final : public GroupOf<Waits...> {
 public:
  template <class... Given>
  explicit AnyOf(std::in_place_t, Given&&... waits)
      : GroupOf<Waits...>(true, std::forward<Given>(waits)...) {}
  /// The number of the wait that came first, counted from 0.
  std::size_t await_resume() const noexcept { return this->first(); }
};

template <class... Waits>
class [[nodiscard]] AllOf final : public GroupOf<Waits...> {
 public:
  template <class... Given>
  explicit AllOf(std::in_place_t, Given&&... waits)
      : GroupOf<Waits...>(false, std::forward<Given>(waits)...) {}
  void await_resume() const noexcept {}
};

/// The end of each of a list of processes.
class [[nodiscard]] AllJoined final : public Group {
 public:
  explicit AllJoined(const std::vector<ProcessHandle>& processes);
  AllJoined(AllJoined&&) = default;
  ~AllJoined() override { withdraw_all(); }
  bool await_ready() { return begin(); }
  void await_resume() const noexcept {}

 protected:
  std::size_t size() const override { return joins_.size(); }
  Wait& member(std::size_t number) const override { return const_cast<Join&>(joins_[number]); }

 private:
  std::vector<Join> joins_;
};

namespace detail {

inline Signal::Waiting as_wait(Signal& signal) {
  return signal.wait();
}
inline Join as_wait(const ProcessHandle& process) {
  return process.join();
}
template <class W>
requires std::derived_from<std::remove_cvref_t<W>, Wait> W && as_wait(W&& wait) {
  return std::forward<W>(wait);
}

/// Named waits stay where they are; everything else is moved into the group.
template <class Given>
using Member =
    std::conditional_t<std::is_lvalue_reference_v<decltype(as_wait(std::declval<Given>()))>,
                       decltype(as_wait(std::declval<Given>())),
                       std::remove_cvref_t<decltype(as_wait(std::declval<Given>()))>>;

}  // namespace detail

/// co_await any_of(engine, a, b, ...): continues at the first and returns its number; at one
/// instant the one whose event comes first, or among those true at once the one named first.
/// Members: waits, signals, process handles.
template <class... Given>
AnyOf<detail::Member<Given>...> any_of(Engine&, Given&&... waits) {
  return AnyOf<detail::Member<Given>...>(std::in_place,
                                         detail::as_wait(std::forward<Given>(waits))...);
}

/// co_await all_of(engine, a, b, ...): continues when each has happened.
template <class... Given>
AllOf<detail::Member<Given>...> all_of(Engine&, Given&&... waits) {
  return AllOf<detail::Member<Given>...>(std::in_place,
                                         detail::as_wait(std::forward<Given>(waits))...);
}
inline AllJoined all_of(Engine&, const std::vector<ProcessHandle>& processes) {
  return AllJoined(processes);
}

}  // namespace trainyard::sim
