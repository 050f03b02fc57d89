#include "sim/engine.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/glide.hpp"

namespace trainyard::sim {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

TEST(Engine, earlier_comes_first_whatever_the_order_of_scheduling) {
  Engine engine(Seed{1});
  std::vector<int> order;
  for (int i : {3, 1, 2})
    engine.at(start_of_run + i * 1us, Phase::arrival, [&order, i] { order.push_back(i); });
  engine.run();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
  EXPECT_EQ(engine.now(), start_of_run + 3us);
}

TEST(Engine, one_instant_is_in_the_order_of_phases_and_then_as_scheduled) {
  Engine engine(Seed{1});
  std::vector<std::string> order;
  auto add = [&](Phase phase, std::string name) {
    engine.after(5us, phase, [&order, name] { order.push_back(name); });
  };
  add(Phase::observation, "o1");
  add(Phase::decision, "d1");
  add(Phase::arrival, "a1");
  add(Phase::failure, "f1");
  add(Phase::completion, "c1");
  add(Phase::arrival, "a2");
  add(Phase::failure, "f2");
  engine.run();
  EXPECT_THAT(order, ElementsAre("f1", "f2", "c1", "a1", "a2", "d1", "o1"));
}

TEST(Engine, an_event_for_this_instant_and_an_earlier_phase_is_next) {
  Engine engine(Seed{1});
  std::vector<std::string> order;
  engine.after(1us, Phase::decision, [&] {
    order.push_back("decision");
    engine.after(0us, Phase::decision, [&] { order.push_back("late decision"); });
    engine.after(0us, Phase::failure, [&] { order.push_back("late failure"); });
  });
  engine.after(1us, Phase::decision, [&] { order.push_back("other decision"); });
  engine.run();
  EXPECT_THAT(order, ElementsAre("decision", "late failure", "other decision", "late decision"));
}

TEST(Engine, run_until_one_nanosecond_early_not_yet_on_time_done) {
  Engine engine(Seed{1});
  bool happened = false;
  engine.at(start_of_run + 100ns, Phase::completion, [&] { happened = true; });
  engine.run_until(start_of_run + 99ns);
  EXPECT_FALSE(happened);
  EXPECT_EQ(engine.now(), start_of_run + 99ns);
  EXPECT_EQ(engine.next_event(), start_of_run + 100ns);
  engine.run_until(start_of_run + 100ns);
  EXPECT_TRUE(happened);
  EXPECT_EQ(engine.next_event(), std::nullopt);
  engine.run_until(start_of_run + 1s);
  EXPECT_EQ(engine.now(), start_of_run + 1s);
}

TEST(Engine, what_an_event_schedules_before_the_end_also_happens) {
  Engine engine(Seed{1});
  int count = 0;
  engine.after(1us, Phase::completion, [&] {
    ++count;
    engine.after(0us, Phase::completion, [&] { ++count; });
    engine.after(1us, Phase::completion, [&] { ++count; });
    engine.after(1us + 1ns, Phase::completion, [&] { count += 100; });
  });
  engine.run_until(start_of_run + 2us);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(engine.pending(), 1u);
}

TEST(Engine, the_past_is_refused_and_the_present_is_not) {
  Engine engine(Seed{1});
  engine.run_until(start_of_run + 1us);
  EXPECT_THROW(engine.at(start_of_run + 1us - 1ns, Phase::arrival, [] {}), CheckFailed);
  EXPECT_THROW(engine.after(-1ns, Phase::arrival, [] {}), CheckFailed);
  EXPECT_THROW(engine.run_until(start_of_run), CheckFailed);
  EXPECT_NO_THROW(engine.at(start_of_run + 1us, Phase::arrival, [] {}));
  EXPECT_EQ(engine.pending(), 1u);
}

TEST(Engine, the_end_of_time_is_never) {
  Engine engine(Seed{1});
  engine.after(forever, Phase::arrival, [] { FAIL(); });
  engine.run_until(start_of_run + 1us);
  engine.after(forever, Phase::arrival, [] { FAIL(); });  // saturates instead of overflowing
  EXPECT_EQ(engine.pending(), 0u);
  engine.run();
  EXPECT_EQ(engine.now(), start_of_run + 1us);
}

TEST(Engine, step_does_one_event) {
  Engine engine(Seed{1});
  int count = 0;
  for (int i = 0; i < 3; ++i) engine.after(1us, Phase::arrival, [&] { ++count; });
  EXPECT_TRUE(engine.step());
  EXPECT_EQ(count, 1);
  EXPECT_EQ(engine.events_processed(), 1u);
  EXPECT_TRUE(engine.step());
  EXPECT_TRUE(engine.step());
  EXPECT_FALSE(engine.step());
  EXPECT_EQ(count, 3);
}

TEST(Engine, stop_returns_after_the_current_event_and_lasts_until_cleared) {
  Engine engine(Seed{1});
  int count = 0;
  for (int i = 1; i <= 3; ++i)
    engine.after(i * 1us, Phase::arrival, [&] {
      ++count;
      engine.stop();
    });
  engine.run_until(start_of_run + 10us);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(engine.now(), start_of_run + 1us);  // and not the end
  engine.run_until(start_of_run + 10us);
  EXPECT_EQ(count, 1);
  engine.clear_stop();
  engine.run_until(start_of_run + 10us);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(engine.pending(), 1u);
}

TEST(Engine, an_exception_leaves_the_loop_and_the_engine_whole) {
  Engine engine(Seed{1});
  int count = 0;
  engine.after(1us, Phase::arrival, [] { throw std::runtime_error("scenario"); });
  engine.after(2us, Phase::arrival, [&] { ++count; });
  EXPECT_THROW(engine.run(), std::runtime_error);
  EXPECT_EQ(engine.pending(), 1u);
  engine.run();
  EXPECT_EQ(count, 1);
}

TEST(Engine, the_loop_is_not_entered_from_an_event) {
  Engine engine(Seed{1});
  engine.after(1us, Phase::arrival, [&] { engine.step(); });
  EXPECT_THROW(engine.run(), CheckFailed);
}

TEST(Engine, next_event_and_pending_are_right_from_within_an_event) {
  Engine engine(Seed{1});
  engine.after(1us, Phase::arrival, [&] {
    EXPECT_EQ(engine.pending(), 1u);
    EXPECT_EQ(engine.next_event(), start_of_run + 7us);
    engine.after(2us, Phase::arrival, [] {});
    EXPECT_EQ(engine.pending(), 2u);
    EXPECT_EQ(engine.next_event(), start_of_run + 3us);
  });
  engine.after(7us, Phase::arrival, [] {});
  engine.step();
  EXPECT_EQ(engine.pending(), 2u);
}

TEST(Action, small_and_large_captures_run_and_are_destroyed_once) {
  auto token = std::make_shared<int>(0);
  {
    Engine engine(Seed{1});
    std::array<double, 20> large{};
    large[19] = 4.0;
    engine.after(1us, Phase::arrival, [token] { *token += 1; });
    engine.after(2us, Phase::arrival, [token, large] { *token += int(large[19]); });
    engine.after(3us, Phase::arrival, [token] { *token += 1000; });  // never run
    EXPECT_EQ(token.use_count(), 4);
    engine.run_until(start_of_run + 2us);
    EXPECT_EQ(*token, 5);
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Action, moves_what_cannot_be_copied) {
  Action a = [p = std::make_unique<int>(7)] { ++*p; };
  Action b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): empty is the promise
  ASSERT_TRUE(b);
  b();
  a = std::move(b);
  a();
}

// ---- ties and fingerprints

/// Sixty events at one instant, twenty in each of three phases; the order in which they came.
std::vector<int> order_of_ties(Seed seed, TieOrder ties, Fingerprint* fingerprint = nullptr) {
  Engine engine(seed, ties);
  std::vector<int> order;
  for (int i = 0; i < 60; ++i) {
    const Phase phase = std::array{Phase::failure, Phase::arrival, Phase::observation}[i % 3];
    engine.after(1us, phase, [&order, i] { order.push_back(i); });
  }
  engine.run();
  if (fingerprint != nullptr) *fingerprint = engine.fingerprint();
  return order;
}

TEST(TieOrder, shuffled_permutes_within_a_phase_and_respects_phases) {
  const auto plain = order_of_ties(Seed{1}, TieOrder::as_scheduled);
  const auto shuffled = order_of_ties(Seed{1}, TieOrder::shuffled);
  EXPECT_NE(plain, shuffled);
  EXPECT_TRUE(std::is_permutation(plain.begin(), plain.end(), shuffled.begin(), shuffled.end()));
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(shuffled[i] % 3, int(i / 20)) << i;
}

TEST(TieOrder, shuffled_is_the_same_for_the_same_seed_only) {
  EXPECT_EQ(order_of_ties(Seed{1}, TieOrder::shuffled), order_of_ties(Seed{1}, TieOrder::shuffled));
  EXPECT_NE(order_of_ties(Seed{1}, TieOrder::shuffled), order_of_ties(Seed{2}, TieOrder::shuffled));
}

TEST(TieOrder, every_tie_is_shuffled_about_evenly) {
  // Two events tie; the second comes first in about half of 400 seeds. Five standard deviations of
  // a fair coin are 5 * sqrt(400)/2 = 50.
  int swapped = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Engine engine(Seed{seed}, TieOrder::shuffled);
    std::vector<int> order;
    engine.after(1us, Phase::arrival, [&] { order.push_back(1); });
    engine.after(1us, Phase::arrival, [&] { order.push_back(2); });
    engine.run();
    swapped += order.front() == 2;
  }
  EXPECT_NEAR(swapped, 200, 50);
}

TEST(Fingerprint, is_equal_for_equal_runs_and_sees_order_seed_and_facts) {
  Fingerprint a, b, c, d;
  order_of_ties(Seed{1}, TieOrder::as_scheduled, &a);
  order_of_ties(Seed{1}, TieOrder::as_scheduled, &b);
  order_of_ties(Seed{1}, TieOrder::shuffled, &c);
  order_of_ties(Seed{2}, TieOrder::as_scheduled, &d);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_NE(a, d);

  Engine engine(Seed{1});
  const Fingerprint before = engine.fingerprint();
  engine.note(17);
  EXPECT_NE(engine.fingerprint(), before);
}

TEST(Fingerprint, sees_one_nanosecond) {
  auto of = [](Duration d) {
    Engine engine(Seed{1});
    engine.after(d, Phase::arrival, [] {});
    engine.run();
    return engine.fingerprint();
  };
  EXPECT_EQ(of(5ns), of(5ns));
  EXPECT_NE(of(5ns), of(6ns));
  EXPECT_EQ(to_text(of(5ns)).size(), 16u);
}

TEST(Engine, clear_forgets_events_and_disposes_of_their_captures) {
  auto token = std::make_shared<int>(0);
  Engine engine(Seed{1});
  for (int i = 0; i < 10; ++i) engine.after(1us, Phase::arrival, [token] { ++*token; });
  engine.clear();
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(engine.pending(), 0u);
  engine.after(1us, Phase::arrival, [token] { ++*token; });
  engine.run();
  EXPECT_EQ(*token, 1);
}

Process ticks(Engine& engine, Duration each, std::vector<Time>& at) {
  for (;;) {
    co_await pass(engine, each);
    at.push_back(engine.now());
  }
}

// Alone it glides to the end; a second one at the same instants is an event each time it is due.
TEST(Gliding, costs_no_event_while_nothing_else_is_pending) {
  std::vector<Time> alone, slow;
  Engine engine(Seed{1}), twin(Seed{1});
  std::vector<Time> looks;
  engine.allow_gliding(start_of_run + 100s, [&] { looks.push_back(engine.now()); });
  engine.spawn("ticks", ticks(engine, 7s, alone));
  twin.spawn("ticks", ticks(twin, 7s, slow));
  engine.run_until(start_of_run + 100s);
  twin.run_until(start_of_run + 100s);
  EXPECT_EQ(alone, slow);
  EXPECT_EQ(alone.size(), 14u);
  EXPECT_EQ(engine.events_processed(), 0u);
  EXPECT_EQ(engine.glides(), 14u);
  EXPECT_EQ(twin.events_processed(), 14u);
  ASSERT_EQ(looks.size(), 14u);  // before it leaves 0 s, 7 s, ... 91 s
  EXPECT_EQ(looks.back(), start_of_run + 91s);
}

TEST(Gliding, stops_before_an_event_of_the_same_instant_and_not_one_later) {
  for (const Duration other : {7s - 1ns, Duration(7s), 7s + 1ns}) {
    Engine engine(Seed{1});
    std::vector<Time> at;
    bool was_first = false;
    engine.allow_gliding(start_of_run + 10s, {});
    engine.at(start_of_run + other, Phase::failure, [&] { was_first = at.empty(); });
    engine.spawn("ticks", ticks(engine, 7s, at));
    engine.run_until(start_of_run + 10s);
    EXPECT_EQ(at, std::vector<Time>{start_of_run + 7s});
    EXPECT_EQ(was_first, other <= 7s);
    EXPECT_EQ(engine.events_processed(), other <= 7s ? 2u : 1u);
  }
}

TEST(Gliding, whoever_looks_may_schedule_something) {
  Engine engine(Seed{1});
  std::vector<Time> at;
  bool is_first = true, was_empty = false;
  engine.allow_gliding(start_of_run + 10s, [&] {
    if (std::exchange(is_first, false))
      engine.at(start_of_run + 6s, Phase::failure, [&] { was_empty = at.empty(); });
  });
  engine.spawn("ticks", ticks(engine, 7s, at));
  engine.run_until(start_of_run + 10s);
  EXPECT_TRUE(was_empty);
  EXPECT_EQ(at, std::vector<Time>{start_of_run + 7s});
}

}  // namespace
}  // namespace trainyard::sim
