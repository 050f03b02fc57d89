#include "models/network/fluid_network.hpp"

#include <functional>
#include <map>
#include <random>
#include <string>

#include <gmock/gmock.h>

#include "sim/check.hpp"
#include "sim/waiting.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Loads = std::vector<Load>;

/// The letters of what ended, in order, each with its time.
struct Log {
  sim::Engine& engine;
  std::vector<std::pair<std::string, std::int64_t>> ends;
  sim::Action note(std::string name) {
    return [this, name] { ends.emplace_back(name, engine.now().time_since_epoch().count()); };
  }
};

class Network : public testing::Test {
 protected:
  sim::Engine engine{sim::Seed{1}};
  FluidNetwork net{engine, "store"};
  LinkIndex link = net.add_link(1_GBps, "front end");
  Loads on_link{{link, 1.0}};
  Log log{engine, {}};
};

TEST_F(Network, a_flow_ends_at_the_nanosecond_its_bytes_are_through) {
  net.start(1000_B, on_link, log.note("a"));  // 1 byte a nanosecond
  engine.run_until(start_of_run + 999ns);
  EXPECT_EQ(net.running(), 1u);
  EXPECT_DOUBLE_EQ(net.bytes_moved(link).value(), 999);
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"a", 1000}));
  EXPECT_DOUBLE_EQ(net.bytes_moved(link).value(), 1000);
}

TEST_F(Network, flows_started_at_one_instant_are_solved_once_and_share) {
  const FlowHandle a = net.start(1_GB, on_link, log.note("a"));
  net.start(3_GB, on_link, log.note("b"));
  net.start(0_B, on_link, log.note("nothing"));
  EXPECT_TRUE(net.is_running(a));
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"nothing", 0}, std::pair{"a", 2'000'000'000},
                                    std::pair{"b", 4'000'000'000}));
  EXPECT_LE(net.solves(), 3u);
  EXPECT_FALSE(net.is_running(a));
  net.withdraw(a);  // ended: nothing happens
}

TEST_F(Network, one_event_is_pending_however_many_flows_run) {
  for (int i = 1; i <= 50; ++i) net.start(Bytes(1e9 * i), on_link, log.note("f"));
  engine.run_until(start_of_run + 1us);
  EXPECT_EQ(engine.pending(), 1u);
}

TEST_F(Network, a_capped_flow_leaves_the_rest) {
  const FlowHandle slow = net.start(1_GB, on_link, log.note("slow"), BytesPerSecond(2e8));
  const FlowHandle fast = net.start(1_GB, on_link, log.note("fast"));
  EXPECT_DOUBLE_EQ(net.rate(slow).value(), 2e8);
  EXPECT_DOUBLE_EQ(net.rate(fast).value(), 8e8);
  EXPECT_TRUE(net.is_running(slow));
}

TEST_F(Network, a_broken_link_holds_its_flow_until_it_returns) {
  net.start(10_GB, on_link, log.note("a"));
  engine.at(start_of_run + 4s, sim::Phase::failure,
            [&] { net.set_capacity(link, BytesPerSecond(0)); });
  engine.at(start_of_run + 10s, sim::Phase::failure, [&] { net.set_capacity(link, 2_GBps); });
  engine.run_until(start_of_run + 9s);
  EXPECT_DOUBLE_EQ(net.bytes_moved(link).value(), 4e9);
  EXPECT_EQ(engine.pending(), 1u);  // the repair; no completion is in sight
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"a", 13'000'000'000}));  // 6 GB left at 2 GB/s
}

TEST_F(Network, a_withdrawn_flow_is_silent_but_what_moved_is_counted) {
  const FlowHandle a = net.start(10_GB, on_link, log.note("a"));
  net.start(10_GB, on_link, log.note("b"));
  engine.at(start_of_run + 2s, sim::Phase::decision, [&] { net.withdraw(a); });
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"b", 11'000'000'000}));
  EXPECT_NEAR(net.bytes_moved(link).value(), 11e9, 1);
}

TEST_F(Network, a_completion_may_withdraw_another_of_the_same_instant) {
  FlowHandle second{};
  net.start(1_GB, on_link, [&] { net.withdraw(second); });
  second = net.start(1_GB, on_link, log.note("second"));
  engine.run();
  EXPECT_TRUE(log.ends.empty());
  EXPECT_NEAR(net.bytes_moved(link).value(), 2e9,
              1e-3);  // it had all moved: withdrawn at its last instant
}

TEST_F(Network, a_flow_restarted_at_its_end_goes_on_at_its_rate_without_a_solve) {
  net.start(100_GB, on_link, [] {});
  FlowHandle flow{};
  int rounds = 0;
  std::function<void()> again = [&] {
    log.note("round")();
    if (++rounds < 4) flow = net.restart(flow, 1_GB, [&] { again(); });
  };
  flow = net.start(1_GB, on_link, [&] { again(); });
  engine.run_until(start_of_run + 7s);
  EXPECT_TRUE(net.is_running(flow));
  EXPECT_EQ(net.solves(), 1u);
  engine.run_until(start_of_run + 8s);  // 1 GB at half the link, four times
  EXPECT_THAT(log.ends,
              ElementsAre(std::pair{"round", 2'000'000'000}, std::pair{"round", 4'000'000'000},
                          std::pair{"round", 6'000'000'000}, std::pair{"round", 8'000'000'000}));
  EXPECT_FALSE(net.is_running(flow));
  EXPECT_DOUBLE_EQ(net.bytes_moved(link).value(), 8e9);
  engine.run_until(start_of_run + 9s);
  EXPECT_THROW(net.restart(flow, 1_GB, [] {}), CheckFailed);  // its instant is over
  EXPECT_DOUBLE_EQ(net.bytes_moved(link).value(), 9e9);       // the other has the link to itself
}

TEST_F(Network, weights_count_in_the_bytes_of_a_link) {
  net.start(1_GB, Loads{{link, 4.0}}, log.note("ring"));
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"ring", 4'000'000'000}));
  EXPECT_DOUBLE_EQ(net.bytes_moved(link).value(), 4e9);
}

// 1 GB/s shared: 0.5 each. At 2 s the endless one wants 0.25: the other has 4 GB left at 0.75.
TEST_F(Network, a_flow_without_end_asks_for_more_or_less) {
  const FlowHandle endless = net.run(on_link);
  const FlowHandle a = net.start(4_GB, on_link, log.note("a"));
  engine.run_until(start_of_run + 2s);
  EXPECT_DOUBLE_EQ(net.bytes_moved(endless).value(), 1e9);
  EXPECT_DOUBLE_EQ(net.bytes_moved(a).value(), 1e9);
  net.set_cap(endless, BytesPerSecond(2.5e8));
  EXPECT_DOUBLE_EQ(net.rate(a).value(), 7.5e8);
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"a", 6'000'000'000}));
  EXPECT_EQ(engine.pending(), 0u);  // nothing more will happen by itself
  EXPECT_TRUE(net.is_running(endless));
  EXPECT_EQ(net.bytes_moved(a), 0_B);  // over
  engine.run_until(start_of_run + 10s);
  EXPECT_DOUBLE_EQ(net.bytes_moved(endless).value(), 3e9);
  net.set_cap(endless, BytesPerSecond(0));
  engine.run_until(start_of_run + 20s);
  EXPECT_DOUBLE_EQ(net.bytes_moved(endless).value(), 3e9);
  net.withdraw(endless);
  EXPECT_EQ(net.running(), 0u);
  EXPECT_DOUBLE_EQ(net.bytes_moved(link).value(), 7e9);
  net.set_cap(endless, 1_GBps);  // over: nothing happens
}

TEST_F(Network, a_cap_may_change_before_the_first_solve_and_at_the_last_instant) {
  const FlowHandle a = net.start(1_GB, on_link, log.note("a"), BytesPerSecond(1e8));
  net.set_cap(a, BytesPerSecond(5e8));
  EXPECT_DOUBLE_EQ(net.rate(a).value(), 5e8);
  engine.at(start_of_run + 2s, sim::Phase::failure, [&] { net.set_cap(a, BytesPerSecond(1)); });
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"a", 2'000'000'000}));
}

TEST_F(Network, who_is_held_by_what) {
  const FlowHandle slow = net.start(1_GB, on_link, log.note("slow"), BytesPerSecond(2e8));
  EXPECT_EQ(net.bottleneck(slow), std::nullopt);  // its cap
  const FlowHandle fast = net.start(1_GB, on_link, log.note("fast"));
  EXPECT_EQ(net.bottleneck(fast), link);
  EXPECT_EQ(net.bottleneck(slow), std::nullopt);
  net.withdraw(fast);
  EXPECT_EQ(net.bottleneck(fast), std::nullopt);
}

TEST_F(Network, a_watched_link_tells_that_rates_changed) {
  const LinkIndex other = net.add_link(1_GBps, "other");
  std::vector<std::int64_t> told;
  net.watch(link, [&] { told.push_back(engine.now().time_since_epoch().count()); });
  net.start(1_GB, on_link, log.note("a"), BytesPerSecond(5e8));
  engine.at(start_of_run + 1ns, sim::Phase::arrival,  // both get what they want: one new rate
            [&] { net.start(4_GB, on_link, log.note("b"), BytesPerSecond(5e8)); });
  engine.at(start_of_run + 2ns, sim::Phase::arrival,  // not on the link
            [&] {
              net.start(1_GB, Loads{{other, 1.0}}, log.note("c"));
            });
  engine.at(start_of_run + 3ns, sim::Phase::arrival, [&] {
    net.start(4_GB, on_link, log.note("d"));
    net.start(4_GB, on_link, log.note("e"));
  });
  engine.run_until(start_of_run + 4ns);
  EXPECT_THAT(told, ElementsAre(0, 1, 3));
  net.watch(link, {});
  engine.run();
  EXPECT_EQ(told.size(), 3u);
}

sim::Process save(FluidNetwork& net, LinkIndex link, Log& log, std::string name, Bytes bytes) {
  const Loads path{{link, 1.0}};
  co_await net.transfer(bytes, path);
  log.note(name)();
}

TEST_F(Network, processes_wait_for_their_transfers) {
  engine.spawn("a", save(net, link, log, "a", 1_GB));
  engine.spawn("b", save(net, link, log, "b", 2_GB));
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"a", 2'000'000'000}, std::pair{"b", 3'000'000'000}));
}

TEST_F(Network, stopping_a_process_withdraws_its_flow) {
  sim::ProcessHandle a = engine.spawn("a", save(net, link, log, "a", 10_GB));
  engine.spawn("b", save(net, link, log, "b", 10_GB));
  engine.at(start_of_run + 2s, sim::Phase::failure, [&] { a.stop(); });
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"b", 11'000'000'000}));
  EXPECT_EQ(net.running(), 0u);
}

TEST_F(Network, stopping_it_at_the_instant_of_completion_is_safe) {
  sim::ProcessHandle a;
  net.start(1_GB, on_link, [&] { a.stop(); });
  a = engine.spawn("a", save(net, link, log, "a", 1_GB));
  engine.run();
  EXPECT_TRUE(log.ends.empty());
  EXPECT_EQ(engine.live_processes(), 0u);
}

sim::Process save_with_deadline(sim::Engine& engine, FluidNetwork& net, LinkIndex link, Log& log) {
  const Loads path{{link, 1.0}};
  const std::size_t first =
      co_await sim::any_of(engine, engine.delay(5s), net.transfer(10_GB, path));
  log.note(first == 0 ? "deadline" : "saved")();
}

TEST_F(Network, a_transfer_that_loses_against_a_deadline_is_withdrawn) {
  engine.spawn("save", save_with_deadline(engine, net, link, log));
  engine.run();
  EXPECT_THAT(log.ends, ElementsAre(std::pair{"deadline", 5'000'000'000}));
  EXPECT_EQ(net.running(), 0u);
  EXPECT_DOUBLE_EQ(net.bytes_moved(link).value(), 5e9);
}

TEST_F(Network, who_waits_for_a_broken_link_says_so) {
  net.set_capacity(link, BytesPerSecond(0));
  engine.spawn("save", save(net, link, log, "a", 10_GB));
  engine.run();
  EXPECT_THAT(engine.describe_waiting(), HasSubstr("stopped at \"front end\""));
}

TEST(FluidNetwork, a_network_may_go_before_its_waiters) {
  sim::Engine engine{sim::Seed{1}};
  Log log{engine, {}};
  {
    FluidNetwork net{engine, "gone"};
    const LinkIndex link = net.add_link(1_GBps, "l");
    engine.spawn("a", save(net, link, log, "a", 10_GB));
    engine.run_until(start_of_run + 1s);
  }
  engine.run();
  EXPECT_THAT(engine.describe_waiting(), HasSubstr("gone"));
}

TEST(FluidNetwork, bytes_in_are_bytes_out_whatever_happens) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    sim::Engine engine{sim::Seed{seed}};
    FluidNetwork net{engine, "n"};
    std::vector<LinkIndex> links;
    for (int i = 0; i < 5; ++i)
      links.push_back(
          net.add_link(BytesPerSecond(1e9 * static_cast<double>(1 + random() % 3)), "l"));
    std::vector<double> expected(5, 0.0);
    int ended = 0, started = 0;
    for (int i = 0; i < 80; ++i) {
      const Time at =
          start_of_run + Duration(static_cast<std::int64_t>(random() % 4) * 500'000'000);
      const std::size_t a = random() % 5, b = (a + 1 + random() % 4) % 5;
      const Bytes bytes(static_cast<double>(random() % 1000) * 1e6);
      const std::size_t broken = random() % 5;
      engine.at(at, sim::Phase::arrival, [&, a, b, bytes] {
        ++started;
        net.start(bytes, Loads{{links[a], 1.0}, {links[b], 2.0}}, [&, a, b, bytes] {
          ++ended;
          expected[a] += bytes.value();
          expected[b] += 2 * bytes.value();
        });
      });
      if (i % 8 == 0) {
        engine.at(at, sim::Phase::failure,
                  [&, broken] { net.set_capacity(links[broken], BytesPerSecond(0)); });
        engine.at(at + 300ms, sim::Phase::failure,
                  [&, broken] { net.set_capacity(links[broken], 1_GBps); });
      }
    }
    engine.run();
    EXPECT_EQ(started, 80);
    EXPECT_EQ(ended, 80);
    EXPECT_EQ(net.running(), 0u);
    for (std::size_t l = 0; l < 5; ++l)
      EXPECT_NEAR(net.bytes_moved(links[l]).value(), expected[l], 1e-12 * expected[l]);
  }
}

}  // namespace
}  // namespace trainyard::models
