#include "sim/check.hpp"

#include <gmock/gmock.h>

#include "sim/engine.hpp"

namespace trainyard {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const CheckFailed& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

TEST(Check, what_holds_passes) {
  EXPECT_NO_THROW(check(1 + 1 == 2, "sums are right"));
}

TEST(Check, what_fails_says_what_where_and_with_which_values) {
  const std::string message = message_of([] { check(false, "bytes are kept", 7, "in", 2.5); });
  EXPECT_THAT(message, HasSubstr("tests/sim/check_test.cpp:"));
  EXPECT_THAT(message, HasSubstr("does not hold: bytes are kept"));
  EXPECT_THAT(message, HasSubstr("[values: 7 in 2.5]"));
}

TEST(Check, a_sentence_may_be_made_at_run_time) {
  const std::string sentence = "link " + std::to_string(3) + " exists";
  EXPECT_THAT(message_of([&] { check(false, sentence); }), HasSubstr("link 3 exists"));
}

TEST(Check, the_engine_adds_time_and_seed) {
  sim::Engine engine(sim::Seed{42});
  engine.after(3us, sim::Phase::arrival, [] { check(false, "nothing breaks"); });
  const std::string message = message_of([&] { engine.run(); });
  EXPECT_THAT(message, HasSubstr("at simulated time 3 us (3000 ns), event 1, seed 42"));
}

sim::Process breaks(sim::Engine& engine) {
  co_await engine.delay(2us);
  check(false, "nothing breaks");
}

TEST(Check, the_engine_adds_the_process) {
  sim::Engine engine(sim::Seed{1});
  engine.spawn("repair of node 7", breaks(engine));
  const std::string message = message_of([&] { engine.run(); });
  EXPECT_THAT(message, HasSubstr("in process \"repair of node 7\""));
  EXPECT_THAT(message, HasSubstr("at simulated time 2 us"));
}

}  // namespace
}  // namespace trainyard
