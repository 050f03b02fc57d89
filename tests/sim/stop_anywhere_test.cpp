// A process destroyed at any event leaves nothing pending, holds nothing and loses nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/timer.hpp"
#include "sim/waiting.hpp"

namespace trainyard::sim {
namespace {

using namespace std::chrono_literals;

struct World {
  Signal failed{"failed"};
  Semaphore lanes{"lanes", 2};
  Channel<int> orders{"orders"};
  int orders_taken = 0;
  int finished = 0;
  Engine engine{Seed{1}};
};

Process transfer(World& world, Stream stream) {
  Permit lane = co_await world.lanes.acquire(1 + stream.below(2));
  co_await world.engine.delay(Duration(std::int64_t(stream.below(4))));
}

Task<int> take_order(World& world, Stream stream) {
  Pop<int> order = world.orders.pop();
  const Duration patience(std::int64_t(stream.below(5)));
  if (co_await any_of(world.engine, world.engine.delay(patience), order) == 1) {
    ++world.orders_taken;
    co_return order.await_resume();
  }
  co_return 0;
}

Process job(World& world, Stream stream, int depth) {
  Timer watchdog(world.engine, Phase::observation, [] {});
  for (int i = 0; i < 3; ++i) {
    watchdog.arm(Duration(std::int64_t(stream.below(6))));
    if (co_await take_order(world, stream.child(0)) > 0) co_await transfer(world, stream.child(1));
    std::vector<ProcessHandle> helpers;
    if (depth > 0) {
      co_await job(world, stream.child(2), depth - 1);
      helpers.push_back(world.engine.spawn("helper", transfer(world, stream.child(3))));
    }
    co_await all_of(world.engine, helpers);
    co_await any_of(world.engine, world.failed.wait(), world.engine.delay(2ns),
                    world.lanes.acquire(2));
  }
  ++world.finished;
}

/// Runs `events` steps, stops all jobs (in an order drawn from the seed), and lets the rest end.
/// Returns whether anything was left to stop.
bool stop_after(std::uint64_t seed, int events) {
  World world;
  Stream choose(Seed{seed}, "choose");
  std::vector<ProcessHandle> jobs;
  for (std::uint64_t i = 0; i < 4; ++i)
    jobs.push_back(world.engine.spawn("job", job(world, Stream(Seed{seed}, "job").child(i), 2)));
  int pushed = 0;
  for (int i = 0; i < events; ++i) {
    if (choose.below(4) == 0) world.orders.push(++pushed);
    if (choose.below(16) == 0) world.failed.notify_all();
    if (!world.engine.step()) break;
  }
  bool any_left = false;
  while (!jobs.empty()) {
    const std::size_t i = choose.below(jobs.size());
    any_left |= !jobs[i].done();
    jobs[i].stop();
    jobs.erase(jobs.begin() + std::ptrdiff_t(i));
  }
  world.engine.run();  // spawned helpers are nobody's children: they end by themselves
  EXPECT_EQ(world.engine.pending(), 0u);
  EXPECT_EQ(world.engine.live_processes(), 0u) << world.engine.describe_waiting();
  EXPECT_EQ(world.lanes.free(), 2u);
  EXPECT_EQ(world.lanes.waiting(), 0u);
  EXPECT_EQ(world.failed.waiting(), 0u);
  EXPECT_EQ(std::size_t(pushed), world.orders.size() + std::size_t(world.orders_taken));
  return any_left;
}

TEST(StopAnywhere, nothing_is_left_and_nothing_is_lost) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (int events = 0; events < 2'000; ++events) {
      const bool any_left = stop_after(seed, events);
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", after event " << events;
      if (!any_left) {
        EXPECT_GT(events, 100) << "the scene is too short to mean much";
        break;
      }
    }
}

TEST(StopAnywhere, clearing_or_destroying_the_engine_at_any_event_is_clean) {
  for (int events = 0; events < 300; ++events) {
    World world;
    for (std::uint64_t i = 0; i < 4; ++i)
      world.engine.spawn("job", job(world, Stream(Seed{9}, "job").child(i), 2));
    for (int i = 0; i < events; ++i) world.engine.step();
    if (events % 2 == 0) continue;  // the engine's destructor does it
    world.engine.clear();
    ASSERT_EQ(world.engine.pending(), 0u) << events;
    ASSERT_EQ(world.lanes.free(), 2u) << events;
  }
}

}  // namespace
}  // namespace trainyard::sim
