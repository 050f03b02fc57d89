#include "sim/waiting.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

namespace trainyard::sim {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

using Log = std::vector<std::string>;

struct World {
  Engine engine{Seed{1}};
  Log log;
  void say(const std::string& what) {
    log.push_back(std::to_string(engine.now().time_since_epoch() / 1us) + " " + what);
  }
};

struct Waiting : testing::Test {
  // Before the engine: waits in frames may name them until the engine is gone.
  Signal signal{"signal"};
  Semaphore semaphore{"semaphore", 3};
  Channel<std::unique_ptr<int>> channel{"channel"};
  World world;
  Engine& engine = world.engine;
};

// ---- Signal

Process on_signal(World& world, Signal& signal, std::string name) {
  co_await signal.wait();
  world.say(name);
}

Process notifies(World& world, Signal& signal, Duration after) {
  co_await world.engine.delay(after);
  signal.notify_all();
  world.say("notified");
}

TEST_F(Waiting, signal_continues_all_who_wait_in_order_and_nobody_later) {
  for (const char* name : {"a", "b"}) engine.spawn(name, on_signal(world, signal, name));
  engine.spawn("n", notifies(world, signal, 1us));
  engine.run();
  engine.spawn("late", on_signal(world, signal, "late"));
  engine.run();
  EXPECT_THAT(world.log, ElementsAre("1 notified", "1 a", "1 b"));
  EXPECT_EQ(signal.waiting(), 1u);
}

TEST_F(Waiting, a_stopped_waiter_is_withdrawn_also_between_signal_and_continuing) {
  ProcessHandle a = engine.spawn("a", on_signal(world, signal, "a"));
  ProcessHandle b = engine.spawn("b", on_signal(world, signal, "b"));
  engine.run();
  a.stop();
  EXPECT_EQ(signal.waiting(), 1u);
  signal.notify_all();
  EXPECT_EQ(engine.pending(), 1u);
  b.stop();
  EXPECT_EQ(engine.pending(), 0u);
  engine.run();
  EXPECT_THAT(world.log, ElementsAre());
}

TEST(Signal, destroyed_before_its_waiters_leaves_them_waiting_for_ever) {
  World world;
  auto signal = std::make_unique<Signal>("short");
  ProcessHandle a = world.engine.spawn("a", on_signal(world, *signal, "a"));
  world.engine.run();
  signal.reset();
  world.engine.run();
  EXPECT_FALSE(a.done());
}

// ---- Semaphore

Process holds(World& world, Semaphore& semaphore, std::string name, std::uint64_t units,
              Duration time) {
  Permit permit = co_await semaphore.acquire(units);
  world.say(name + " in");
  co_await world.engine.delay(time);
  world.say(name + " out");
}

TEST_F(Waiting, semaphore_is_first_come_first_served_and_large_requests_are_not_overtaken) {
  engine.spawn("a", holds(world, semaphore, "a", 2, 4us));
  engine.spawn("b", holds(world, semaphore, "b", 3, 1us));  // must wait for a
  engine.spawn("c", holds(world, semaphore, "c", 1, 1us));  // would fit, but b came first
  engine.run();
  EXPECT_THAT(world.log,
              ElementsAre("0 a in", "4 a out", "4 b in", "5 b out", "5 c in", "6 c out"));
  EXPECT_EQ(semaphore.free(), 3u);
}

TEST_F(Waiting, stopping_a_holder_gives_back_and_stopping_the_first_in_line_lets_the_next_in) {
  ProcessHandle a = engine.spawn("a", holds(world, semaphore, "a", 2, 1h));
  ProcessHandle b = engine.spawn("b", holds(world, semaphore, "b", 3, 1h));
  engine.spawn("c", holds(world, semaphore, "c", 1, 1us));
  engine.run_until(start_of_run + 1us);
  EXPECT_EQ(semaphore.waiting(), 2u);
  b.stop();
  engine.run_until(start_of_run + 5us);
  EXPECT_THAT(world.log, ElementsAre("0 a in", "1 c in", "2 c out"));
  EXPECT_EQ(semaphore.free(), 1u);
  a.stop();
  EXPECT_EQ(semaphore.free(), 3u);
  EXPECT_EQ(engine.pending(), 0u);
}

TEST_F(Waiting, a_permit_granted_but_not_taken_comes_back) {
  ProcessHandle a = engine.spawn("a", holds(world, semaphore, "a", 3, 1h));
  ProcessHandle b = engine.spawn("b", holds(world, semaphore, "b", 2, 1h));
  engine.run_until(start_of_run + 1us);
  a.stop();  // grants to b, who has not run yet
  EXPECT_EQ(semaphore.free(), 1u);
  b.stop();
  EXPECT_EQ(semaphore.free(), 3u);
}

TEST_F(Waiting, try_acquire_never_overtakes_and_asking_for_too_much_is_our_mistake) {
  std::optional<Permit> two = semaphore.try_acquire(2);
  ASSERT_TRUE(two);
  EXPECT_FALSE(semaphore.try_acquire(2));
  engine.spawn("b", holds(world, semaphore, "b", 2, 1us));
  engine.run();
  EXPECT_FALSE(semaphore.try_acquire(1));  // one is free, but b waits
  two.reset();
  engine.run();
  EXPECT_TRUE(semaphore.try_acquire(3));
  EXPECT_THROW(semaphore.acquire(4), CheckFailed);
}

TEST_F(Waiting, a_permit_that_is_assigned_gives_back_what_it_held) {
  Permit a = *semaphore.try_acquire(1);
  Permit b = *semaphore.try_acquire(2);
  a = std::move(b);
  EXPECT_EQ(semaphore.free(), 1u);
  EXPECT_EQ(a.units(), 2u);
  a.release();
  EXPECT_EQ(semaphore.free(), 3u);
}

// ---- Channel

Process receives(World& world, Channel<std::unique_ptr<int>>& channel, std::string name, int n) {
  for (int i = 0; i < n; ++i) {
    std::unique_ptr<int> message = co_await channel.pop();
    world.say(name + std::to_string(*message));
  }
}

TEST_F(Waiting, channel_keeps_order_and_serves_who_waited_longest) {
  for (int i : {1, 2}) channel.push(std::make_unique<int>(i));
  engine.spawn("a", receives(world, channel, "a", 3));
  engine.spawn("b", receives(world, channel, "b", 1));
  engine.run();
  EXPECT_THAT(world.log, ElementsAre("0 a1", "0 a2"));
  for (int i : {3, 4, 5}) channel.push(std::make_unique<int>(i));
  engine.run();
  EXPECT_THAT(world.log, ElementsAre("0 a1", "0 a2", "0 a3", "0 b4"));
  EXPECT_EQ(channel.size(), 1u);
  EXPECT_EQ(**channel.try_pop(), 5);
  EXPECT_EQ(channel.try_pop(), std::nullopt);
}

TEST_F(Waiting, a_message_handed_over_but_not_taken_goes_back_to_the_front) {
  ProcessHandle a = engine.spawn("a", receives(world, channel, "a", 1));
  engine.run();
  channel.push(std::make_unique<int>(1));
  channel.push(std::make_unique<int>(2));
  EXPECT_EQ(channel.size(), 1u);
  a.stop();
  EXPECT_EQ(channel.size(), 2u);
  EXPECT_EQ(**channel.try_pop(), 1);
}

TEST_F(Waiting, a_message_of_a_stopped_receiver_reaches_the_next_one) {
  ProcessHandle a = engine.spawn("a", receives(world, channel, "a", 1));
  engine.spawn("b", receives(world, channel, "b", 1));
  engine.run();
  channel.push(std::make_unique<int>(1));
  a.stop();
  engine.run();
  EXPECT_THAT(world.log, ElementsAre("0 b1"));
}

// ---- any_of, all_of

Process races(World& world, Signal& signal, Duration d) {
  const std::size_t first = co_await any_of(world.engine, world.engine.delay(d), signal);
  world.say("first: " + std::to_string(first));
}

TEST_F(Waiting, any_of_gives_the_number_of_the_first_and_withdraws_the_others) {
  engine.spawn("timer wins", races(world, signal, 1us));
  engine.spawn("signal wins", races(world, signal, 9us));
  engine.spawn("n", notifies(world, signal, 2us));
  engine.run();
  EXPECT_THAT(world.log, ElementsAre("1 first: 0", "2 notified", "2 first: 1"));
  EXPECT_EQ(engine.pending(), 0u);
  EXPECT_EQ(signal.waiting(), 0u);
  EXPECT_EQ(engine.now(), start_of_run + 2us);  // the loser's 9 us were withdrawn, not sat out
}

TEST_F(Waiting, any_of_both_at_one_instant_goes_by_phase) {
  // The signal comes from a failure at 1 us; the delay ends in the completion phase of the same.
  engine.after(1us, Phase::failure, [&] { signal.notify_all(); });
  engine.spawn("p", races(world, signal, 1us));
  engine.run();
  EXPECT_THAT(world.log, ElementsAre("1 first: 1"));
}

TEST_F(Waiting, any_of_one_nanosecond_decides) {
  for (auto [delay, expected] :
       {std::pair{1us - 1ns, "0 first: 0"}, std::pair{1us + 1ns, "1 first: 1"}}) {
    World w;
    Signal s("s");
    w.engine.after(1us, Phase::failure, [&] { s.notify_all(); });
    w.engine.spawn("p", races(w, s, delay));
    w.engine.run();
    EXPECT_THAT(w.log, ElementsAre(expected));
  }
}

Process takes_or_gives_up(World& world, Semaphore& semaphore, Duration patience) {
  Semaphore::Acquire wanted = semaphore.acquire(2);
  if (co_await any_of(world.engine, wanted, world.engine.delay(patience)) == 0) {
    Permit permit = wanted.await_resume();
    world.say("got " + std::to_string(permit.units()));
    co_await world.engine.delay(1us);
  } else {
    world.say("gave up");
  }
}

TEST_F(Waiting, any_of_with_a_named_wait_keeps_what_it_brought) {
  engine.spawn("holder", holds(world, semaphore, "h", 2, 5us));
  engine.spawn("impatient", takes_or_gives_up(world, semaphore, 3us));
  engine.spawn("patient", takes_or_gives_up(world, semaphore, 7us));
  engine.run();
  EXPECT_THAT(world.log, ElementsAre("0 h in", "3 gave up", "5 h out", "5 got 2"));
  EXPECT_EQ(semaphore.free(), 3u);
}

Process moves_what_it_won(World& world, Semaphore& semaphore,
                          Channel<std::unique_ptr<int>>& channel) {
  Semaphore::Acquire wanted = semaphore.acquire(2);
  Pop<std::unique_ptr<int>> next = channel.pop();
  co_await all_of(world.engine, wanted, next);
  Semaphore::Acquire moved_permit = std::move(wanted);
  Pop<std::unique_ptr<int>> moved_message = std::move(next);
  co_await world.engine.delay(1us);
}

TEST_F(Waiting, what_a_named_wait_brought_moves_with_it_and_comes_back_once) {
  channel.push(std::make_unique<int>(7));
  engine.spawn("p", moves_what_it_won(world, semaphore, channel));
  engine.run();
  EXPECT_EQ(semaphore.free(), 3u);
  ASSERT_EQ(channel.size(), 1u);
  EXPECT_EQ(**channel.try_pop(), 7);
}

TEST_F(Waiting, any_of_with_something_true_at_once_does_not_wait) {
  engine.spawn("p", takes_or_gives_up(world, semaphore, 7us));
  engine.run();
  EXPECT_THAT(world.log, ElementsAre("0 got 2"));
  EXPECT_EQ(engine.now(), start_of_run + 1us);
}

TEST_F(Waiting, a_winner_stopped_before_it_continues_gives_back) {
  ProcessHandle h = engine.spawn("h", holds(world, semaphore, "h", 3, 1h));
  ProcessHandle p = engine.spawn("p", takes_or_gives_up(world, semaphore, 1h));
  engine.run_until(start_of_run + 1us);
  h.stop();
  EXPECT_EQ(semaphore.free(), 1u);
  p.stop();
  EXPECT_EQ(semaphore.free(), 3u);
  EXPECT_EQ(engine.pending(), 0u);
}

Process waits_for_all(World& world, Signal& signal, ProcessHandle process) {
  co_await all_of(world.engine, world.engine.delay(3us), signal, process);
  world.say("all");
}

TEST_F(Waiting, all_of_continues_at_the_last) {
  ProcessHandle h = engine.spawn("h", holds(world, semaphore, "h", 1, 2us));
  ProcessHandle all = engine.spawn("all", waits_for_all(world, signal, h));
  engine.spawn("n", notifies(world, signal, 5us));
  engine.run_until(start_of_run + 5us - 1ns);
  EXPECT_FALSE(all.done());
  engine.run();
  EXPECT_TRUE(all.done());
  EXPECT_THAT(world.log, ElementsAre("0 h in", "2 h out", "5 notified", "5 all"));
}

Process waits_for_many(World& world, std::vector<ProcessHandle> processes) {
  co_await all_of(world.engine, processes);
  world.say("all");
}

TEST_F(Waiting, all_of_a_list_of_processes_ended_running_and_empty) {
  std::vector<ProcessHandle> list;
  for (int i = 1; i <= 3; ++i)
    list.push_back(engine.spawn("h", holds(world, semaphore, "h", 1, i * 1us)));
  engine.run_until(start_of_run + 1us);  // the first has ended
  ProcessHandle all = engine.spawn("all", waits_for_many(world, list));
  engine.run_until(start_of_run + 3us - 1ns);
  EXPECT_FALSE(all.done());
  list[2].stop();
  engine.run();
  EXPECT_TRUE(all.done());
  ProcessHandle none = engine.spawn("none", waits_for_many(world, {}));
  engine.run();
  EXPECT_TRUE(none.done());
}

Process waits_again(World& world) {
  Delay tick = world.engine.delay(2us);
  for (int i = 0; i < 3; ++i) co_await tick;
  co_await world.engine.until(start_of_run + 10us);
  world.say("done");
}

TEST_F(Waiting, a_named_delay_may_be_awaited_again_and_until_is_absolute) {
  engine.spawn("p", waits_again(world));
  engine.run_until(start_of_run + 6us);
  EXPECT_EQ(engine.next_event(), start_of_run + 10us);
  engine.run();
  EXPECT_THAT(world.log, ElementsAre("10 done"));
  EXPECT_THROW(engine.until(start_of_run), CheckFailed);
}

}  // namespace
}  // namespace trainyard::sim
