#include "sim/process.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/timer.hpp"
#include "sim/waiting.hpp"

namespace trainyard::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

using Log = std::vector<std::string>;

/// Says when it is destroyed.
struct Witness {
  Witness(Log& l, std::string n) : log(l), name(std::move(n)) {}
  Witness(const Witness&) = delete;
  ~Witness() { log.push_back("end of " + name); }
  Log& log;
  std::string name;
};

Process ticks(Engine& engine, Log& log, std::string name, int n) {
  for (int i = 1; i <= n; ++i) {
    co_await engine.delay(1us);
    log.push_back(name + std::to_string(i));
  }
}

TEST(Process, starts_when_the_engine_runs_and_not_when_it_is_called) {
  Engine engine(Seed{1});
  Log log;
  Process unused = ticks(engine, log, "unused", 1);
  ProcessHandle handle = engine.spawn("a", ticks(engine, log, "a", 2));
  EXPECT_FALSE(handle.done());
  EXPECT_EQ(engine.pending(), 1u);
  EXPECT_EQ(engine.next_event(), start_of_run);
  engine.run();
  EXPECT_THAT(log, ElementsAre("a1", "a2"));
  EXPECT_TRUE(handle.done());
  EXPECT_FALSE(handle.was_stopped());
  EXPECT_EQ(engine.now(), start_of_run + 2us);
}

TEST(Process, dropping_the_handle_does_not_stop_it) {
  Engine engine(Seed{1});
  Log log;
  engine.spawn("a", ticks(engine, log, "a", 2));
  engine.run();
  EXPECT_THAT(log, ElementsAre("a1", "a2"));
  EXPECT_EQ(engine.live_processes(), 0u);
}

TEST(Process, several_take_turns_in_the_order_they_were_spawned) {
  Engine engine(Seed{1});
  Log log;
  engine.spawn("a", ticks(engine, log, "a", 2));
  engine.spawn("b", ticks(engine, log, "b", 2));
  engine.run();
  EXPECT_THAT(log, ElementsAre("a1", "b1", "a2", "b2"));
}

Task<int> doubled(Engine& engine, int x) {
  co_await engine.delay(1us);
  co_return 2 * x;
}

Task<std::unique_ptr<int>> boxed(Engine& engine, int x) {
  const int value = co_await doubled(engine, x);
  co_return std::make_unique<int>(value);
}

Process asks(Engine& engine, int& answer) {
  std::unique_ptr<int> box = co_await boxed(engine, 21);
  answer = *box;
}

TEST(Task, gives_values_through_several_levels) {
  Engine engine(Seed{1});
  int answer = 0;
  engine.spawn("asks", asks(engine, answer));
  engine.run();
  EXPECT_EQ(answer, 42);
  EXPECT_EQ(engine.now(), start_of_run + 1us);
}

Process calls_in_between(Engine& engine, Log& log) {
  co_await engine.delay(1us);
  log.push_back("before");
  Process child = ticks(engine, log, "none", 0);  // ends without waiting
  co_await child;
  log.push_back("after");
}

TEST(Process, a_call_that_does_not_wait_lets_nobody_in_between) {
  Engine engine(Seed{1});
  Log log;
  engine.spawn("a", calls_in_between(engine, log));
  engine.spawn("b", ticks(engine, log, "b", 1));
  engine.run();
  EXPECT_THAT(log, ElementsAre("before", "after", "b1"));
}

Process inner(Engine& engine, Log& log) {
  Witness w(log, "inner");
  Timer timer(engine, Phase::arrival, [] { FAIL(); });
  timer.arm(50us);
  co_await engine.delay(100us);
  log.push_back("never");
}

Process outer(Engine& engine, Log& log) {
  Witness w(log, "outer");
  co_await inner(engine, log);
  log.push_back("never");
}

TEST(Process, stopping_destroys_the_frames_inside_out_and_leaves_nothing_pending) {
  Engine engine(Seed{1});
  Log log;
  ProcessHandle handle = engine.spawn("outer", outer(engine, log));
  engine.run_until(start_of_run + 10us);
  EXPECT_EQ(engine.pending(), 2u);
  handle.stop();
  // The local of `outer` outlives the call it made, as in any function that is left.
  EXPECT_THAT(log, ElementsAre("end of inner", "end of outer"));
  EXPECT_TRUE(handle.done());
  EXPECT_TRUE(handle.was_stopped());
  EXPECT_EQ(engine.pending(), 0u);
  handle.stop();  // a second time: nothing
  engine.run();
  EXPECT_EQ(log.size(), 2u);
}

TEST(Process, stopped_before_it_started_it_never_runs) {
  Engine engine(Seed{1});
  Log log;
  ProcessHandle handle = engine.spawn("a", ticks(engine, log, "a", 1));
  handle.stop();
  engine.run();
  EXPECT_THAT(log, ElementsAre());
  EXPECT_EQ(engine.pending(), 0u);
}

Process stops_itself(Engine& engine, Log& log, ProcessHandle& self) {
  Witness w(log, "it");
  co_await engine.delay(1us);
  self.stop();
  log.push_back("still here");
  co_await engine.delay(1us);
  log.push_back("never");
}

TEST(Process, that_stops_itself_ends_when_it_next_has_to_wait) {
  Engine engine(Seed{1});
  Log log;
  ProcessHandle self;
  self = engine.spawn("it", stops_itself(engine, log, self));
  engine.run();
  EXPECT_THAT(log, ElementsAre("still here", "end of it"));
  EXPECT_TRUE(self.was_stopped());
  EXPECT_EQ(engine.now(), start_of_run + 1us);
}

Process stops_itself_in_a_call(Engine& engine, Log& log, ProcessHandle& self) {
  Witness w(log, "caller");
  co_await engine.delay(1us);
  self.stop();
  co_await ticks(engine, log, "never", 1);
}

TEST(Process, that_stops_itself_does_not_enter_another_call) {
  Engine engine(Seed{1});
  Log log;
  ProcessHandle self;
  self = engine.spawn("it", stops_itself_in_a_call(engine, log, self));
  engine.run();
  EXPECT_THAT(log, ElementsAre("end of caller"));
}

Process stops_another(Engine& engine, ProcessHandle& other) {
  co_await engine.delay(1us);
  other.stop();
}

TEST(Process, may_be_stopped_by_another_at_the_instant_it_was_to_continue) {
  Engine engine(Seed{1});
  Log log;
  ProcessHandle victim;
  engine.spawn("killer", stops_another(engine, victim));
  victim = engine.spawn("victim", ticks(engine, log, "v", 1));
  engine.run();
  EXPECT_THAT(log, ElementsAre());  // the killer was spawned first, so its microsecond ends first
  EXPECT_EQ(engine.pending(), 0u);
}

Process waits_for_end(Log& log, ProcessHandle other) {
  co_await other.join();
  log.push_back("seen");
}

TEST(Join, continues_when_the_other_ends_and_when_it_is_stopped_and_when_it_had_ended) {
  Engine engine(Seed{1});
  Log log;
  ProcessHandle ends = engine.spawn("a", ticks(engine, log, "a", 1));
  engine.spawn("w1", waits_for_end(log, ends));
  engine.run();
  EXPECT_THAT(log, ElementsAre("a1", "seen"));
  engine.spawn("w2", waits_for_end(log, ends));
  engine.run();
  EXPECT_EQ(log.size(), 3u);
  ProcessHandle stopped = engine.spawn("b", ticks(engine, log, "b", 1));
  engine.spawn("w3", waits_for_end(log, stopped));
  engine.step();
  stopped.stop();
  engine.run();
  EXPECT_THAT(log, ElementsAre("a1", "seen", "seen", "seen"));
}

Task<int> breaks(Engine& engine) {
  co_await engine.delay(1us);
  check(false, "nothing breaks");
  co_return 1;
}

Process passes_on(Engine& engine, Log& log) {
  Witness w(log, "caller");
  const int x = co_await breaks(engine);
  log.push_back(std::to_string(x));
}

TEST(Process, an_exception_leaves_through_the_caller_and_the_run_loop) {
  Engine engine(Seed{1});
  Log log;
  ProcessHandle handle = engine.spawn("p", passes_on(engine, log));
  EXPECT_THROW(engine.run(), CheckFailed);
  EXPECT_THAT(log, ElementsAre("end of caller"));
  EXPECT_TRUE(handle.done());
  EXPECT_EQ(engine.pending(), 0u);
}

Process catches(Engine& engine, Log& log) {
  try {
    co_await breaks(engine);
  } catch (const CheckFailed&) {
    log.push_back("caught");
  }
  co_await engine.delay(1us);
  log.push_back("went on");
}

TEST(Process, an_exception_may_be_caught_by_the_caller) {
  Engine engine(Seed{1});
  Log log;
  engine.spawn("p", catches(engine, log));
  engine.run();
  EXPECT_THAT(log, ElementsAre("caught", "went on"));
}

TEST(Process, is_spawned_or_awaited_once) {
  Engine engine(Seed{1});
  Log log;
  Process p = ticks(engine, log, "a", 1);
  engine.spawn("a", std::move(p));
  EXPECT_THROW(engine.spawn("again", std::move(p)), CheckFailed);
}

TEST(Engine, destroyed_it_stops_all_processes_last_spawned_first) {
  Log log;
  ProcessHandle handle;
  {
    Engine engine(Seed{1});
    auto holds = [](Engine& e, Log& l, std::string name) -> Process {  // captures nothing
      Witness w(l, name);
      co_await e.delay(1h);
    };
    handle = engine.spawn("a", holds(engine, log, "a"));
    engine.spawn("b", holds(engine, log, "b"));
    engine.run_until(start_of_run + 1us);
  }
  EXPECT_THAT(log, ElementsAre("end of b", "end of a"));
  EXPECT_TRUE(handle.done());
  handle.stop();  // harmless after the engine has gone
}

TEST(Engine, describes_who_waits_for_what) {
  Engine engine(Seed{1});
  Log log;
  Signal failed("gpu failed");
  Semaphore crew("repair crew", 2);
  Channel<int> inbox("inbox");
  ProcessHandle a = engine.spawn("sleeper", ticks(engine, log, "a", 1));
  engine.spawn("joiner", waits_for_end(log, a));
  auto race = [](Engine& e, Signal& s) -> Process {
    co_await any_of(e, e.delay(2us, Phase::decision), s);
  };
  engine.spawn("racer", race(engine, failed));
  auto two = [](Semaphore& s) -> Process {
    Permit first = co_await s.acquire(2);
    Permit second = co_await s.acquire(1);
  };
  engine.spawn("greedy", two(crew));
  auto reads = [](Channel<int>& c) -> Process { co_await c.pop(); };
  engine.spawn("reader", reads(inbox));
  engine.run_until(start_of_run);
  engine.spawn("late", ticks(engine, log, "l", 1));
  EXPECT_EQ(engine.describe_waiting(),
            "sleeper waits for 1 us (completion)\n"
            "joiner waits for the end of \"sleeper\"\n"
            "racer waits for the first of: 2 us (decision), signal \"gpu failed\"\n"
            "greedy waits for 1 of semaphore \"repair crew\" (0 of 2 free)\n"
            "reader waits for channel \"inbox\"\n"
            "late waits for its start\n");
  engine.clear();
  EXPECT_EQ(engine.describe_waiting(), "");
}

}  // namespace
}  // namespace trainyard::sim
