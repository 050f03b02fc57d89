#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/action.hpp"
#include "sim/process.hpp"
#include "sim/random.hpp"
#include "sim/time.hpp"
#include "sim/wait.hpp"

/// The engine: a clock, a queue of events and a loop. One per run, nothing global.
///
/// Order, in one sentence: earlier first; at one instant in the order of Phase; within a phase as
/// scheduled. After each event the processes it made ready continue, first ready first, before the
/// next event. An event scheduled during an instant for that same instant and an earlier phase is
/// next.
///
/// The queue is a 4-ary heap of small keys; what an event does lies in a slab beside it, so nothing
/// is allocated for an event once both have grown to the size of the run. Cancelling marks the
/// slot; keys of cancelled events are swept out when they are the majority.
///
///     Engine engine(Seed{1});
///     engine.after(5us, Phase::arrival, [&] { server.accept(request); });
///     engine.spawn("job", train(world, job));
///     engine.run_until(start_of_run + 24h);
namespace trainyard::sim {

class Timer;

/// `shuffled` permutes events of the same instant *and the same phase* by a seeded hash of the
/// order in which they were scheduled; phases are respected. A model whose results change leans on
/// luck.
enum class TieOrder { as_scheduled, shuffled };

/// A hash of what happened, in order: equal fingerprints, equal runs.
struct Fingerprint {
  std::uint64_t value = 0;
  friend auto operator<=>(Fingerprint, Fingerprint) = default;
};
/// Sixteen hexadecimal digits.
std::string to_text(Fingerprint);

class Engine {
 public:
  explicit Engine(Seed seed, TieOrder ties = TieOrder::as_scheduled);
  /// Stops all processes, last spawned first.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Time now() const { return now_; }
  Seed seed() const { return seed_; }

  /// Fire and forget. Scheduling in the past is our mistake (CheckFailed); the end of time is
  /// never.
  void at(Time when, Phase phase, Action action);
  void after(Duration d, Phase phase, Action action);

  /// co_await engine.delay(5us); co_await engine.until(t). A delay of zero lets the rest of this
  /// instant up to `phase` happen first.
  Delay delay(Duration d, Phase phase = Phase::completion);
  Delay until(Time when, Phase phase = Phase::completion);

  /// Starts at the current instant, after those who are already ready.
  ProcessHandle spawn(std::string name, Process process);

  Stream random(std::string_view path) const { return Stream(seed_, path); }

  /// Does all events with time <= end; then now() == end, unless stop() was called. With
  /// Time::max(): until nothing is pending, and now() is the time of the last event.
  void run_until(Time end);
  /// Until nothing is pending or stop() was called.
  void run() { run_until(Time::max()); }
  /// One event and the processes it makes ready; false if nothing is pending.
  bool step();
  std::optional<Time> next_event() const;

  /// The run loop returns after the current event. May be called from a signal handler or another
  /// thread. Stays asked for until clear_stop(), so that no request is lost between two calls.
  void stop() { stop_requested_.store(true, std::memory_order_relaxed); }
  bool stop_requested() const { return stop_requested_.load(std::memory_order_relaxed); }
  void clear_stop() { stop_requested_.store(false, std::memory_order_relaxed); }

  /// From now on processes may glide through quiet time, not beyond `end`. `look` is called before
  /// the clock leaves an instant so, as a run loop looks after an event.
  void allow_gliding(Time end, std::function<void()> look);
  /// For the running process: if nothing else can happen before `when` (nobody is ready, and every
  /// pending event is later), it is `when` at once, and the process goes on within the present
  /// event. Else false: wait. What happens is the same, only the number of events is not. `holds`:
  /// asked after `look`, which may change what the process would hear of if it waited.
  bool glide_to(Time when, const std::function<bool()>& holds = {});
  bool may_glide() const { return glide_end_ > now_; }
  /// Times that a process did.
  std::uint64_t glides() const { return glides_; }
  bool is_anybody_ready() const { return !ready_.is_empty(); }

  /// Destroys every process (last spawned first) and forgets all fire-and-forget events: for the
  /// end of a run, before the objects they refer to are taken apart. Timers stay with their owners,
  /// unarmed.
  void clear();

  std::uint64_t events_processed() const { return events_processed_; }
  /// Events in the queue and processes ready to continue.
  std::size_t pending() const;
  /// Places in the queue, cancelled events not yet swept out included: what the queue costs in
  /// memory.
  std::size_t queue_length() const { return heap_.size(); }
  std::size_t live_processes() const { return processes_.size(); }

  Fingerprint fingerprint() const;
  /// Lets a model mix a fact of its own into the fingerprint.
  void note(std::uint64_t fact);

  /// One line a process, in the order they were spawned: who waits for what.
  std::string describe_waiting() const;

 private:
  friend class Timer;
  friend class Delay;
  friend class Waiter;
  friend class ProcessHandle;

  /// Sixteen bytes, so that four children fill one cache line. The low bits of `order` never
  /// decide: the sequence number above them is used once.
  struct Key {
    Time when;
    std::uint64_t order;  // phase: 3 bits, (permuted) sequence: 37, is a timer's: 1, slot: 23

    std::uint32_t slot() const { return std::uint32_t(order & ((1u << slot_bits) - 1)); }
    /// A timer's slot outlives its event.
    bool is_timer() const { return (order >> slot_bits & 1) != 0; }
  };
  static constexpr unsigned slot_bits = 23;      // 8 million pending events
  static constexpr unsigned sequence_bits = 37;  // 137 thousand million events in a run
  struct Slot {
    Action action;
    std::uint64_t order = 0;  // of the pending event; 0: none. A key with another order is stale.
  };
  static_assert(sizeof(void*) != 8 || sizeof(Slot) == 64,
                "an action and its bookkeeping share a cache line");

  static bool is_before(const Key& a, const Key& b);
  static constexpr unsigned slots_per_page_bits = 8;
  Slot& slot(std::uint32_t index) {
    return pages_[index >> slots_per_page_bits][index & ((1u << slots_per_page_bits) - 1)];
  }
  const Slot& slot(std::uint32_t index) const { return const_cast<Engine*>(this)->slot(index); }

  std::uint32_t take_slot(Action&& action);
  void free_slot(std::uint32_t index);
  void release_timer_slot(std::uint32_t index);
  EventId schedule(Time when, Phase phase, Action&& action);
  std::uint64_t enqueue(Time when, Phase phase, std::uint32_t index, bool is_timer);
  void cancel(EventId event) noexcept;
  void disarm(std::uint32_t index) noexcept;
  bool is_quiet_until(Time when) const;

  void push(const Key& key);
  void remove_top();
  void sift_down(std::size_t hole, const Key& key);
  void drop_stale_top();
  void sweep_stale();
  bool is_stale(const Key& key) const { return slot(key.slot()).order != key.order; }

  void run_event();
  void run_ready();
  void resume(Waiter& waiter);
  void stop_process(ProcessState& process) noexcept;
  void end_process(ProcessState& process) noexcept;
  void mix(std::uint64_t value);
  std::string describe_present() const;

  Seed seed_;
  TieOrder ties_;
  Time now_{};
  std::uint64_t next_sequence_ = 1;
  std::uint64_t events_processed_ = 0;
  std::uint64_t work_at_this_instant_ = 0;
  std::uint64_t fingerprint_;
  std::atomic<bool> stop_requested_ = false;

  std::vector<Key> heap_;
  std::size_t stale_ = 0;      // keys of cancelled or spent events still in the heap
  bool top_is_spent_ = false;  // the top is the running event
  std::vector<std::unique_ptr<Slot[]>> pages_;
  std::vector<std::uint32_t> free_slots_;
  static constexpr std::uint32_t no_slot = 0xffffffffu;
  std::uint32_t running_slot_ = no_slot;
  bool running_slot_released_ = false;
  bool is_running_ = false;

  WaitList ready_;
  std::list<std::shared_ptr<ProcessState>> processes_;
  ProcessState* current_ = nullptr;

  std::uint64_t glides_ = 0;
  Time glide_end_ = start_of_run;  // none beyond
  std::function<void()> look_;
};

}  // namespace trainyard::sim
