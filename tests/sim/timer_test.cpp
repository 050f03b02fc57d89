#include "sim/timer.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <vector>

namespace trainyard::sim {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

struct TimerTest : testing::Test {
  Engine engine{Seed{1}};
  std::vector<Time> fired;
  Timer timer{engine, Phase::completion, [this] { fired.push_back(engine.now()); }};
};

TEST_F(TimerTest, one_nanosecond_early_not_yet_on_time_done) {
  timer.arm(10ns);
  EXPECT_TRUE(timer.is_armed());
  EXPECT_EQ(timer.expiry(), start_of_run + 10ns);
  engine.run_until(start_of_run + 9ns);
  EXPECT_THAT(fired, ElementsAre());
  engine.run_until(start_of_run + 10ns);
  EXPECT_THAT(fired, ElementsAre(start_of_run + 10ns));
  EXPECT_FALSE(timer.is_armed());
  EXPECT_EQ(timer.expiry(), std::nullopt);
}

TEST_F(TimerTest, arming_again_replaces_both_earlier_and_later) {
  timer.arm(10ns);
  timer.arm(20ns);
  EXPECT_EQ(engine.pending(), 1u);
  timer.arm(5ns);
  EXPECT_EQ(engine.next_event(), start_of_run + 5ns);
  engine.run();
  EXPECT_THAT(fired, ElementsAre(start_of_run + 5ns));
}

TEST_F(TimerTest, cancelled_it_does_not_fire) {
  timer.arm(10ns);
  timer.cancel();
  timer.cancel();
  EXPECT_FALSE(timer.is_armed());
  EXPECT_EQ(engine.pending(), 0u);
  EXPECT_EQ(engine.next_event(), std::nullopt);
  engine.run_until(start_of_run + 1us);
  EXPECT_THAT(fired, ElementsAre());
  timer.arm_at(start_of_run + 2us);
  engine.run();
  EXPECT_THAT(fired, ElementsAre(start_of_run + 2us));
}

TEST_F(TimerTest, forever_is_never) {
  timer.arm(10ns);
  timer.arm(forever);
  EXPECT_FALSE(timer.is_armed());
  engine.run();
  EXPECT_THAT(fired, ElementsAre());
}

TEST_F(TimerTest, the_past_is_refused) {
  engine.run_until(start_of_run + 1us);
  EXPECT_THROW(timer.arm(-1ns), CheckFailed);
  EXPECT_THROW(timer.arm_at(start_of_run), CheckFailed);
  timer.arm(0ns);
  engine.run();
  EXPECT_THAT(fired, ElementsAre(start_of_run + 1us));
}

TEST(Timer, destroyed_it_does_not_fire) {
  Engine engine(Seed{1});
  {
    Timer timer(engine, Phase::arrival, [] { FAIL(); });
    timer.arm(1us);
  }
  EXPECT_EQ(engine.pending(), 0u);
  engine.run_until(start_of_run + 2us);
  EXPECT_EQ(engine.events_processed(), 0u);
}

TEST(Timer, its_action_may_arm_it_again) {
  Engine engine(Seed{1});
  int count = 0;
  Timer* self = nullptr;
  Timer timer(engine, Phase::arrival, [&] {
    if (++count < 5) self->arm(1us);
  });
  self = &timer;
  timer.arm(1us);
  engine.run();
  EXPECT_EQ(count, 5);
  EXPECT_EQ(engine.now(), start_of_run + 5us);
}

TEST(Timer, its_action_may_destroy_it) {
  Engine engine(Seed{1});
  auto alive = std::make_shared<int>(0);
  std::unique_ptr<Timer> timer;
  timer = std::make_unique<Timer>(engine, Phase::arrival, [&timer, alive] {
    timer.reset();
    *alive = 7;  // what the action captured lives until it returns
  });
  timer->arm(1us);
  engine.run();
  EXPECT_EQ(*alive, 7);
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(engine.pending(), 0u);
}

TEST(Timer, moving_keeps_the_arming) {
  Engine engine(Seed{1});
  int count = 0;
  std::vector<Timer> timers;
  for (int i = 0; i < 20; ++i) {
    timers.emplace_back(engine, Phase::arrival, [&count] { ++count; });
    timers.back().arm(1us);
  }
  timers.erase(timers.begin(), timers.begin() + 5);
  engine.run();
  EXPECT_EQ(count, 15);
}

TEST(Timer, armed_a_million_times_leaves_no_million_keys_behind) {
  Engine engine(Seed{1});
  int count = 0;
  Timer timer(engine, Phase::arrival, [&count] { ++count; });
  for (int i = 0; i < 1'000'000; ++i) timer.arm(24h + Duration(i));
  EXPECT_EQ(engine.pending(), 1u);
  EXPECT_LT(engine.queue_length(), 1000u);  // cancelled keys are swept out
  engine.run();
  EXPECT_EQ(count, 1);
  EXPECT_EQ(engine.now(), start_of_run + 24h + 999'999ns);
}

TEST(Timer, clear_disarms_but_leaves_it_usable) {
  Engine engine(Seed{1});
  int count = 0;
  Timer timer(engine, Phase::arrival, [&count] { ++count; });
  timer.arm(1us);
  engine.clear();
  EXPECT_FALSE(timer.is_armed());
  timer.arm(1us);
  engine.run();
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace trainyard::sim
