// g++ 12.2 breaks some coroutine code (docs/guide/coroutines.md). These are the good forms, kept
// alive: each test is worth most in the asan preset, where a double free or a stack overflow ends
// it.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/waiting.hpp"

namespace trainyard::sim {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

const std::string long_text = "long enough not to fit into the small buffer of a string";

// ---- habit 1: name it, then await it

struct Request {  // an aggregate with members that own memory
  std::string path;
  std::vector<int> blocks;
};

Task<std::size_t> handle(Engine& engine, Request request) {
  co_await engine.delay(1us);
  co_return request.path.size() + request.blocks.size();
}

Task<std::size_t> call(Engine& engine, std::function<std::size_t()> callback) {
  co_await engine.delay(1us);
  co_return callback();
}

struct PlainNumbers {
  int lanes = 0;
  double rate = 0.0;
};

Task<double> multiply(Engine& engine, PlainNumbers numbers) {
  co_await engine.delay(1us);
  co_return numbers.lanes* numbers.rate;
}

Process named_then_awaited(Engine& engine, std::vector<double>& out) {
  Request request{.path = long_text, .blocks = {1, 2, 3}};
  out.push_back(double(co_await handle(engine, request)));
  Request moved{.path = long_text, .blocks = {1}};
  out.push_back(double(co_await handle(engine, std::move(moved))));
  std::function<std::size_t()> callback = [text = long_text] { return text.size(); };
  out.push_back(double(co_await call(engine, callback)));
  // Aggregates of plain numbers are fine where they stand.
  out.push_back(co_await multiply(engine, PlainNumbers{.lanes = 4, .rate = 2.5}));
}

TEST(CompilerHazards, named_then_awaited) {
  Engine engine(Seed{1});
  std::vector<double> out;
  engine.spawn("p", named_then_awaited(engine, out));
  engine.run();
  const auto n = double(long_text.size());
  EXPECT_THAT(out, ElementsAre(n + 3, n + 1, n, 10.0));
}

Process waits_made_in_place(Engine& engine, Signal& signal, Semaphore& semaphore, int& rounds) {
  for (; rounds < 100; ++rounds) {
    co_await any_of(engine, engine.delay(1us), signal.wait(), semaphore.acquire(2));
    co_await all_of(engine, engine.delay(1us), engine.delay(2us));
  }
}

TEST(CompilerHazards, our_waits_are_classes_with_constructors_and_may_be_made_in_place) {
  Engine engine(Seed{1});
  Signal signal("s");
  Semaphore semaphore("m", 2);
  Permit all = *semaphore.try_acquire(2);
  int rounds = 0;
  ProcessHandle p = engine.spawn("p", waits_made_in_place(engine, signal, semaphore, rounds));
  engine.run_until(start_of_run + 20us);
  EXPECT_EQ(signal.waiting() + semaphore.waiting(), 0u);
  engine.run();
  EXPECT_EQ(rounds, 100);
  EXPECT_EQ(engine.now(), start_of_run + 300us);
}

// ---- habit 2: through the ready list, not by symmetric transfer

Task<int> one_at_once() {
  co_return 1;
}

Process two_million_calls(int& sum) {
  for (int i = 0; i < 2'000'000; ++i) sum += co_await one_at_once();
}

TEST(CompilerHazards, calls_that_complete_at_once_do_not_deepen_the_stack) {
  Engine engine(Seed{1});
  int sum = 0;
  engine.spawn("p", two_million_calls(sum));
  engine.run();
  EXPECT_EQ(sum, 2'000'000);
}

Process takes_free_permits(Semaphore& semaphore, int& count) {
  for (; count < 300'000; ++count) Permit permit = co_await semaphore.acquire();
}

TEST(CompilerHazards, waits_that_are_over_at_once_do_not_deepen_the_stack) {
  Engine engine(Seed{1});
  Semaphore semaphore("m", 1);
  int count = 0;
  engine.spawn("p", takes_free_permits(semaphore, count));
  engine.run();
  EXPECT_EQ(count, 300'000);
}

// ---- habit 3: a coroutine is a function, or a lambda that captures nothing

TEST(CompilerHazards, a_lambda_without_captures_takes_what_it_needs_as_parameters) {
  Engine engine(Seed{1});
  std::string out;
  {
    auto coroutine = [](Engine& e, std::string text, std::string& to) -> Process {
      co_await e.delay(1us);
      to = text;
    };
    engine.spawn("p", coroutine(engine, long_text, out));
  }  // the lambda is gone before the process continues
  engine.run();
  EXPECT_EQ(out, long_text);
}

// ---- habit 4: what does not outlive the process is passed by value

Process by_value(Engine& engine, std::string name, std::shared_ptr<int> shared, std::string& out) {
  co_await engine.delay(1us);
  out = name + std::to_string(*shared);
}

TEST(CompilerHazards, arguments_by_value_live_in_the_frame) {
  Engine engine(Seed{1});
  std::string out;
  std::weak_ptr<int> watched;
  {
    std::string name = long_text;
    auto shared = std::make_shared<int>(7);
    watched = shared;
    engine.spawn("p", by_value(engine, name, shared, out));
  }
  EXPECT_FALSE(watched.expired());
  engine.run();
  EXPECT_EQ(out, long_text + "7");
  EXPECT_TRUE(watched.expired());  // and are destroyed with it, once
}

class Machine {
 public:
  explicit Machine(Engine& engine) : engine_(engine) {}
  Process work(std::string name) {
    for (int i = 0; i < 3; ++i) {
      co_await engine_.delay(1us);
      done += name;
    }
  }
  std::string done;

 private:
  Engine& engine_;
};

TEST(CompilerHazards, member_functions_are_coroutines_of_an_object_that_outlives_them) {
  Machine* machine = nullptr;
  Engine engine(Seed{1});
  Machine lives(engine);
  machine = &lives;
  engine.spawn("m", machine->work("x"));
  engine.run();
  EXPECT_EQ(lives.done, "xxx");
}

// ---- also fine, and used

Process conditional_and_loops(Engine& engine, bool choose, std::string& out) {
  // A number from ?: is fine. A string from it would be freed where it does not lie: use if.
  const int number = choose ? co_await one_at_once() : 7;
  if (number == 1)
    out += std::to_string(co_await one_at_once());
  else
    out += "none";
  for (const std::string& part : std::vector<std::string>{long_text, long_text}) {
    co_await engine.delay(1us);
    out += part.substr(0, 4);
  }
}

TEST(CompilerHazards, conditionals_and_loops_over_temporaries) {
  Engine engine(Seed{1});
  std::string a, b;
  engine.spawn("a", conditional_and_loops(engine, true, a));
  engine.spawn("b", conditional_and_loops(engine, false, b));
  engine.run();
  EXPECT_EQ(a, "1longlong");
  EXPECT_EQ(b, "nonelonglong");
}

Process nested(Engine& engine, int depth, int& deepest) {
  if (depth == 0) {
    deepest = 1;
    co_await engine.delay(1h);
  } else {
    std::vector<std::string> own(3, long_text);
    co_await nested(engine, depth - 1, deepest);
  }
}

TEST(CompilerHazards, early_destruction_of_a_deep_chain_frees_each_frame_once) {
  Engine engine(Seed{1});
  int deepest = 0;
  ProcessHandle p = engine.spawn("p", nested(engine, 200, deepest));
  engine.run_until(start_of_run + 1us);
  EXPECT_EQ(deepest, 1);
  p.stop();
  EXPECT_EQ(engine.pending(), 0u);
}

}  // namespace
}  // namespace trainyard::sim
