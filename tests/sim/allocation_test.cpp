// No allocation per event: every operator new of this program is counted. (noinline: otherwise g++
// sees free() meet its own new, and warns.)
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "sim/engine.hpp"
#include "sim/timer.hpp"
#include "sim/waiting.hpp"

namespace {
std::size_t allocations = 0;
}

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t size) {
  return operator new(size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete[](void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}

namespace trainyard::sim {
namespace {

using namespace std::chrono_literals;

/// Allocations during 100,000 events, after as many to warm up.
std::size_t allocations_of(Engine& engine) {
  for (int i = 0; i < 100'000; ++i) engine.step();
  const std::size_t before = allocations;
  for (int i = 0; i < 100'000; ++i) engine.step();
  EXPECT_GE(engine.events_processed(), 199'000u);  // the first steps start the processes
  return allocations - before;
}

TEST(Allocations, are_counted) {
  const std::size_t before = allocations;
  auto made = std::make_unique<int>(1);
  EXPECT_EQ(allocations - before, 1u);
}

TEST(Allocations, none_for_callbacks_with_48_bytes_of_captures) {
  Engine engine(Seed{1});
  struct Again {
    Engine& engine;
    Stream stream;
    char rest[8];
    void operator()() {
      engine.after(Duration(1 + std::int64_t(stream.below(1000))), Phase::arrival, *this);
    }
  };
  static_assert(sizeof(Again) == Action::inline_bytes);
  for (std::uint64_t i = 0; i < 500; ++i) Again{engine, Stream(Seed{i}, "x"), {}}();
  EXPECT_EQ(allocations_of(engine), 0u);
}

TEST(Allocations, none_for_timers_that_are_armed_and_armed_again) {
  Engine engine(Seed{1});
  Stream stream = engine.random("x");
  std::vector<Timer> timers;
  for (std::size_t i = 0; i < 500; ++i) {
    timers.emplace_back(engine, Phase::arrival, [&, i] {
      timers[i].arm(Duration(1 + std::int64_t(stream.below(1000))));
      timers[(i + 7) % 500].arm(Duration(1 + std::int64_t(stream.below(1000))));
    });
    timers.back().arm(1ns);
  }
  EXPECT_EQ(allocations_of(engine), 0u);
}

Process waits(Engine& engine, Stream stream, Signal& signal, Semaphore& semaphore) {
  for (;;) {
    co_await engine.delay(Duration(1 + std::int64_t(stream.below(1000))));
    const Permit permit = co_await semaphore.acquire();
    co_await any_of(engine, engine.delay(Duration(std::int64_t(stream.below(9)))), signal.wait());
  }
}

TEST(Allocations, none_for_processes_that_wait) {
  Signal signal("s");
  Semaphore semaphore("m", 5);
  Engine engine(Seed{1});
  for (std::uint64_t i = 0; i < 500; ++i)
    engine.spawn("p", waits(engine, Stream(Seed{i}, "x"), signal, semaphore));
  EXPECT_EQ(allocations_of(engine), 0u);
  engine.clear();
}

TEST(Allocations, none_for_making_streams_and_drawing) {
  const Stream root(Seed{1}, "failures");
  const std::size_t before = allocations;
  double sum = 0.0;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    Stream stream = root.child(i).child(3);
    sum += stream.exponential(1.0);
  }
  EXPECT_EQ(allocations - before, 0u);
  EXPECT_GT(sum, 0.0);
}

}  // namespace
}  // namespace trainyard::sim
