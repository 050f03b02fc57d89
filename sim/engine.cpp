#include "sim/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::sim {
namespace {

constexpr std::size_t children = 4;
// Below this many stale keys, sweeping costs more than it frees.
constexpr std::size_t stale_worth_sweeping = 64;
// Two processes that wake each other without time passing would run for ever. No sound model does a
// hundred million things at one instant.
constexpr std::uint64_t most_work_at_one_instant = 100'000'000;

/// One-to-one on `bits` bits, and never 0 for a number that is not 0: each step can be undone.
std::uint64_t permuted(std::uint64_t sequence, unsigned bits, std::uint64_t seed) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  const std::uint64_t odd = (seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u) | 1;
  for (int round = 0; round < 2; ++round) {
    sequence ^= sequence >> (bits / 2);
    sequence = (sequence * odd) & mask;
    sequence ^= sequence >> (bits / 2 - 1);
    sequence = (sequence * 0xbf58476d1ce4e5b9u) & mask;
  }
  return sequence ^ (sequence >> (bits / 2));
}

}  // namespace

std::string to_text(Fingerprint fingerprint) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(fingerprint.value));
  return text;
}

Engine::Engine(Seed seed, TieOrder ties) : seed_(seed), ties_(ties), fingerprint_(seed.value) {}

Engine::~Engine() {
  clear();
}

// ---- scheduling

void Engine::at(Time when, Phase phase, Action action) {
  schedule(when, phase, std::move(action));
}

void Engine::after(Duration d, Phase phase, Action action) {
  check(d >= Duration::zero(), "nothing is scheduled in the past", d.count());
  schedule(add(now_, d), phase, std::move(action));
}

Delay Engine::delay(Duration d, Phase phase) {
  return Delay(*this, d, phase);
}

Delay Engine::until(Time when, Phase phase) {
  check(when >= now_, "nobody waits for the past", when.time_since_epoch().count());
  return Delay(*this, when == Time::max() ? forever : when - now_, phase);
}

EventId Engine::schedule(Time when, Phase phase, Action&& action) {
  if (when == Time::max()) return {};
  const std::uint32_t index = take_slot(std::move(action));
  const std::uint64_t order = enqueue(when, phase, index, false);
  slot(index).order = order;
  return {index, order};
}

std::uint64_t Engine::enqueue(Time when, Phase phase, std::uint32_t index, bool is_timer) {
  check(when >= now_, "nothing is scheduled in the past", when.time_since_epoch().count(),
        now_.time_since_epoch().count());
  std::uint64_t sequence = next_sequence_++;
  check(sequence >> sequence_bits == 0, "a run has at most 137 thousand million events");
  if (ties_ == TieOrder::shuffled) sequence = permuted(sequence, sequence_bits, seed_.value);
  const std::uint64_t order =
      ((static_cast<std::uint64_t>(phase) << sequence_bits | sequence) << 1 | is_timer)
          << slot_bits |
      index;
  push({when, order});
  return order;
}

void Engine::cancel(EventId event) noexcept {
  if (slot(event.slot).order != event.order) return;
  slot(event.slot).order = 0;
  free_slot(event.slot);
  ++stale_;
  drop_stale_top();
}

void Engine::disarm(std::uint32_t index) noexcept {
  if (slot(index).order == 0) return;
  slot(index).order = 0;
  ++stale_;
  drop_stale_top();
}

// ---- the slab

std::uint32_t Engine::take_slot(Action&& action) {
  check(static_cast<bool>(action), "an event does something");
  if (free_slots_.empty()) {
    constexpr std::uint32_t slots_per_page = 1u << slots_per_page_bits;
    const auto first = static_cast<std::uint32_t>(pages_.size()) * slots_per_page;
    check(first + slots_per_page <= 1u << slot_bits, "at most 8 million events are pending");
    pages_.push_back(std::make_unique<Slot[]>(slots_per_page));
    free_slots_.reserve(pages_.size() * slots_per_page);  // freeing a slot never allocates
    for (std::uint32_t i = slots_per_page; i-- > 0;) free_slots_.push_back(first + i);
  }
  const std::uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  slot(index).action = std::move(action);
  return index;
}

void Engine::free_slot(std::uint32_t index) {
  slot(index).action.reset();
  free_slots_.push_back(index);
}

void Engine::release_timer_slot(std::uint32_t index) {
  disarm(index);
  if (index == running_slot_)
    running_slot_released_ = true;  // its action is running: the slot is freed when it returns
  else
    free_slot(index);
}

// ---- the heap

inline bool Engine::is_before(const Key& a, const Key& b) {
  // Time and order as one number of 128 bits, compared without a branch. Time is never negative.
  __extension__ using Wide = unsigned __int128;
  const auto wide = [](const Key& k) {
    return Wide{static_cast<std::uint64_t>(k.when.time_since_epoch().count())} << 64 | k.order;
  };
  return wide(a) < wide(b);
}

void Engine::push(const Key& key) {
  if (top_is_spent_) {
    top_is_spent_ = false;
    --stale_;
    sift_down(0, key);
    return;
  }
  std::size_t at = heap_.size();
  heap_.push_back(key);
  Key* const heap = heap_.data();
  while (at > 0) {
    const std::size_t parent = (at - 1) / children;
    if (!is_before(key, heap[parent])) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = key;
}

void Engine::remove_top() {
  const Key last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0, last);
}

/// Puts `key` at `hole` or below it. The hole goes all the way down first and the key climbs back:
/// it came from the bottom, so it seldom climbs far, and each level saves one comparison.
void Engine::sift_down(std::size_t hole, const Key& key) {
  Key* const heap = heap_.data();
  const std::size_t size = heap_.size();
  const std::size_t top = hole;
  for (;;) {
    const std::size_t first = children * hole + 1;
    if (first + children <= size) {
      // Masked rather than asked: which child is least is a coin toss for the processor.
      const std::size_t left = first + is_before(heap[first + 1], heap[first]);
      const std::size_t right = first + 2 + is_before(heap[first + 3], heap[first + 2]);
      const std::size_t least =
          left + ((right - left) & -std::size_t{is_before(heap[right], heap[left])});
      heap[hole] = heap[least];
      hole = least;
      continue;
    }
    if (first < size) {
      std::size_t least = first;
      for (std::size_t child = first + 1; child < size; ++child)
        if (is_before(heap[child], heap[least])) least = child;
      heap[hole] = heap[least];
      hole = least;
    }
    break;
  }
  while (hole > top) {
    const std::size_t parent = (hole - 1) / children;
    if (!is_before(key, heap[parent])) break;
    heap[hole] = heap[parent];
    hole = parent;
  }
  heap[hole] = key;
}

/// Makes the top of the heap a live event.
void Engine::drop_stale_top() {
  if (stale_ > stale_worth_sweeping && stale_ > heap_.size() / 2) sweep_stale();
  while (stale_ > 0 && is_stale(heap_.front())) {
    remove_top();
    --stale_;
    top_is_spent_ = false;
  }
}

void Engine::sweep_stale() {
  std::erase_if(heap_, [this](const Key& key) { return is_stale(key); });
  stale_ = 0;
  top_is_spent_ = false;
  if (heap_.size() < 2) return;
  for (std::size_t i = (heap_.size() - 2) / children + 1; i-- > 0;) {
    const Key key = heap_[i];
    sift_down(i, key);
  }
}

std::size_t Engine::pending() const {
  return heap_.size() - stale_ + ready_.count();
}

std::optional<Time> Engine::next_event() const {
  if (!ready_.is_empty()) return now_;
  if (top_is_spent_) const_cast<Engine*>(this)->drop_stale_top();  // asked from within an event
  if (heap_.empty()) return std::nullopt;
  return heap_.front().when;
}

// ---- quiet time

void Engine::allow_gliding(Time end, std::function<void()> look) {
  glide_end_ = end;
  look_ = std::move(look);
}

bool Engine::is_quiet_until(Time when) const {
  return ready_.is_empty() && !stop_requested() && when <= glide_end_ &&
         (heap_.empty() || heap_.front().when > when);
}

bool Engine::glide_to(Time when, const std::function<bool()>& holds) {
  check(when >= now_, "nobody glides into the past", when.time_since_epoch().count(),
        now_.time_since_epoch().count());
  if (current_ == nullptr || current_->stop_requested || !is_quiet_until(when)) return false;
  if (when == now_) return true;
  if (look_) look_();
  if (!is_quiet_until(when) || (holds && !holds())) return false;  // whoever looked has answered
  now_ = when;
  work_at_this_instant_ = 0;
  ++glides_;
  mix(static_cast<std::uint64_t>(when.time_since_epoch().count()));
  return true;
}

// ---- the loop

void Engine::run_until(Time end) {
  check(end >= now_, "time does not run backwards", end.time_since_epoch().count());
  check(!is_running_, "the run loop is not entered from an event");
  if (stop_requested()) return;
  is_running_ = true;
  try {
    run_ready();
    while (!stop_requested() && !heap_.empty() && heap_.front().when <= end) {
      run_event();
      if (!ready_.is_empty()) run_ready();
    }
  } catch (CheckFailed& failure) {
    is_running_ = false;
    failure.add_context(describe_present());
    throw;
  } catch (...) {
    is_running_ = false;
    throw;
  }
  is_running_ = false;
  if (!stop_requested() && end != Time::max() && end != now_) {
    now_ = end;
    work_at_this_instant_ = 0;
  }
}

bool Engine::step() {
  check(!is_running_, "the run loop is not entered from an event");
  if (ready_.is_empty() && heap_.empty()) return false;
  is_running_ = true;
  try {
    if (ready_.is_empty()) run_event();
    run_ready();
  } catch (CheckFailed& failure) {
    is_running_ = false;
    failure.add_context(describe_present());
    throw;
  } catch (...) {
    is_running_ = false;
    throw;
  }
  is_running_ = false;
  return true;
}

void Engine::run_event() {
  const Key key = heap_.front();
  Slot& event = slot(key.slot());
  event.order = 0;
  // The key stays on top, spent. Most events schedule another, which then takes its place in one
  // walk down the heap instead of two.
  ++stale_;
  top_is_spent_ = true;

  if (key.when != now_) {
    now_ = key.when;
    work_at_this_instant_ = 0;
  }
  check(++work_at_this_instant_ < most_work_at_one_instant, "simulated time advances");
  ++events_processed_;
  mix(static_cast<std::uint64_t>(key.when.time_since_epoch().count()));
  mix(key.order);

  struct Running {  // frees the slot also when the action throws
    Engine& engine;
    const Key& key;
    Running(Engine& e, const Key& k) : engine(e), key(k) {
      engine.running_slot_ = key.slot();
      engine.running_slot_released_ = false;
    }
    ~Running() {
      engine.running_slot_ = no_slot;
      if (!key.is_timer() || engine.running_slot_released_) engine.free_slot(key.slot());
      if (engine.stale_ != 0) engine.drop_stale_top();
    }
  } running(*this, key);
  event.action();
}

void Engine::run_ready() {
  while (!ready_.is_empty()) resume(ready_.front());
}

/// Continues one process until all its coroutines wait or it has ended. Calls into sub-processes
/// and returns from them come back here (`next`), so the stack stays flat.
void Engine::resume(Waiter& waiter) {
  check(++work_at_this_instant_ < most_work_at_one_instant, "simulated time advances");
  ProcessState& process = *waiter.process_;
  std::coroutine_handle<> coroutine = waiter.coroutine_;
  waiter.unlink();
  process.waiting_for = nullptr;
  current_ = &process;
  while (coroutine && !process.stop_requested) {
    coroutine.resume();
    coroutine = std::exchange(process.next, nullptr);
  }
  current_ = nullptr;

  if (process.root.done()) {
    const std::exception_ptr error = process.root_promise->error;
    const std::string name = error ? process.name : std::string();
    end_process(process);
    if (!error) return;
    try {
      std::rethrow_exception(error);
    } catch (CheckFailed& failure) {
      failure.add_context("in process \"" + name + '"');
      throw;
    }
  } else if (process.stop_requested) {
    process.stop_requested = false;
    stop_process(process);
  }
}

// ---- processes

ProcessHandle Engine::spawn(std::string name, Process process) {
  check(static_cast<bool>(process.coroutine_) && process.coroutine_.promise().process == nullptr,
        "a process is spawned once", name);
  auto state = std::make_shared<ProcessState>(*this, std::move(name));
  const auto root = process.release();
  state->root = root;
  state->root_promise = &root.promise();
  root.promise().process = state.get();
  state->place = processes_.insert(processes_.end(), state);
  state->suspend(root, *state);
  state->make_ready();
  return ProcessHandle(std::move(state));
}

void Engine::stop_process(ProcessState& process) noexcept {
  if (process.is_done) return;
  if (current_ == &process) {
    process.stop_requested = true;
    return;
  }
  process.was_stopped = true;
  end_process(process);
}

void Engine::end_process(ProcessState& process) noexcept {
  const std::shared_ptr<ProcessState> kept = *process.place;
  process.is_done = true;  // first: destructors in the frame may ask, or stop it again
  processes_.erase(process.place);
  process.unlink();
  process.waiting_for = nullptr;
  process.root.destroy();
  while (!process.joiners.is_empty()) static_cast<Join&>(process.joiners.front()).complete();
}

void Engine::clear() {
  check(!is_running_, "a run is not cleared from within");
  while (!processes_.empty()) stop_process(*processes_.back());
  std::vector<Key> keys;
  keys.swap(heap_);
  const std::size_t had_stale = std::exchange(stale_, 0);
  top_is_spent_ = false;
  for (const Key& key : keys) {
    if (had_stale != 0 && is_stale(key)) continue;
    slot(key.slot()).order = 0;
    if (!key.is_timer()) free_slot(key.slot());
  }
}

// ---- what happened, and who waits

inline void Engine::mix(std::uint64_t value) {
  fingerprint_ = (fingerprint_ ^ value) * 0x9fb21c651e98df25u;
  fingerprint_ ^= fingerprint_ >> 32;
}

void Engine::note(std::uint64_t fact) {
  mix(fact);
}

Fingerprint Engine::fingerprint() const {
  const std::uint64_t x = fingerprint_ * 0xd6e8feb86659fd93u;
  return {x ^ (x >> 32)};
}

std::string Engine::describe_waiting() const {
  std::string text;
  for (const auto& process : processes_) {
    text += process->name;
    text += process->waiting_for == nullptr ? " is running"
                                            : " waits for " + process->waiting_for->describe();
    text += '\n';
  }
  return text;
}

std::string Engine::describe_present() const {
  std::string text = "at simulated time " + to_text(now_.time_since_epoch()) + " (" +
                     std::to_string(now_.time_since_epoch().count()) + " ns), event " +
                     std::to_string(events_processed_) + ", seed " + std::to_string(seed_.value);
  if (current_ != nullptr) text += ", in process \"" + current_->name + '"';
  return text;
}

}  // namespace trainyard::sim
