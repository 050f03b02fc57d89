// The queue against its slow twin: a std::map of everything that is pending.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/engine.hpp"
#include "sim/timer.hpp"

namespace trainyard::sim {
namespace {

/// Timers armed, re-armed and cancelled at random, from outside and from their own actions, beside
/// fire-and-forget events. The twin keeps (time, phase, running number) in a map and must name each
/// event before it happens.
class Twins {
 public:
  explicit Twins(std::uint64_t seed) : engine_(Seed{seed}), choose_(Seed{seed}, "choices") {
    for (std::size_t i = 0; i < 12; ++i) {
      const auto phase = Phase(choose_.below(5));
      phases_.push_back(phase);
      timers_.push_back(std::make_unique<Timer>(engine_, phase, [this, i] { happened(int(i)); }));
      places_.emplace_back();
    }
  }

  void play(int moves) {
    for (int i = 0; i < moves; ++i) {
      change();
      if (choose_.below(3) == 0) step();
    }
    while (!twin_.empty()) step();
    EXPECT_FALSE(engine_.step());
    EXPECT_EQ(engine_.pending(), 0u);
  }

 private:
  using Place = std::tuple<Time, Phase, std::uint64_t>;

  void change() {
    const std::size_t i = choose_.below(timers_.size());
    const Duration d(std::int64_t(choose_.below(6)));  // small, so that many tie
    switch (choose_.below(5)) {
      case 0:
        timers_[i]->cancel();
        forget(i);
        break;
      case 1: {
        const auto phase = Phase(choose_.below(5));
        const int name = next_name_++;
        engine_.after(d, phase, [this, name] { happened(name); });
        twin_[Place{engine_.now() + d, phase, ++number_}] = name;
        break;
      }
      default:
        timers_[i]->arm(d);
        forget(i);
        places_[i] = Place{engine_.now() + d, phases_[i], ++number_};
        twin_[*places_[i]] = int(i);
    }
    ASSERT_EQ(engine_.pending(), twin_.size());
  }

  void forget(std::size_t i) {
    if (places_[i]) twin_.erase(*places_[i]);
    places_[i].reset();
  }

  void step() {
    const bool expected = !twin_.empty();
    ASSERT_EQ(engine_.step(), expected);
  }

  void happened(int name) {
    ASSERT_FALSE(twin_.empty());
    const auto [place, expected] = *twin_.begin();
    ASSERT_EQ(name, expected);
    ASSERT_EQ(engine_.now(), std::get<Time>(place));
    twin_.erase(twin_.begin());
    if (std::size_t(name) < places_.size()) places_[std::size_t(name)].reset();
    if (twin_.size() < 40)
      for (std::uint64_t n = choose_.below(3); n > 0; --n) change();
    if (++events_ > 3000) {  // let it end
      for (std::size_t i = 0; i < timers_.size(); ++i) {
        timers_[i]->cancel();
        forget(i);
      }
    }
  }

  Engine engine_;
  Stream choose_;
  std::vector<std::unique_ptr<Timer>> timers_;
  std::vector<Phase> phases_;
  std::vector<std::optional<Place>> places_;
  std::map<Place, int> twin_;
  std::uint64_t number_ = 0;
  int next_name_ = 1000;
  int events_ = 0;
};

TEST(Queue, agrees_with_a_sorted_map_over_many_seeds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Twins twins(seed);
    twins.play(300);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Queue, thousands_pending_come_out_sorted) {
  Engine engine(Seed{3});
  Stream stream = engine.random("times");
  Time last{};
  std::size_t count = 0;
  for (int i = 0; i < 20'000; ++i)
    engine.after(Duration(std::int64_t(stream.below(1'000'000))), Phase::arrival, [&] {
      ASSERT_GE(engine.now(), last);
      last = engine.now();
      ++count;
    });
  engine.run();
  EXPECT_EQ(count, 20'000u);
}

}  // namespace
}  // namespace trainyard::sim
