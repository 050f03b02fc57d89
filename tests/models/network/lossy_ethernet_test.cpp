#include "models/network/lossy_ethernet.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// ---- The slow twin: packets one by one

struct Path {
  double p, tau, rtt, timeout;
};
using Draw = std::mt19937_64;
bool is_lost(const Path& path, Draw& random) {
  return std::uniform_real_distribution<double>(0, 1)(random) < path.p;
}

/// The sender goes on until a gap is reported, then goes back; a retransmission is watched by the
/// timeout only, as is a packet after which none arrives.
double go_back_n(const Path& path, std::size_t packets, Draw& random) {
  double now = 0;
  for (std::size_t i = 0; i < packets; ++i) {
    now += path.tau;
    if (!is_lost(path, random)) continue;
    std::size_t later = i + 1;
    double seen = now;
    bool is_seen = false;
    while (later < packets && !is_seen) {
      seen += path.tau;
      is_seen = !is_lost(path, random);
      ++later;
    }
    now = is_seen ? seen + path.rtt : now + path.timeout;
    for (now += path.tau; is_lost(path, random); now += path.tau) now += path.timeout;
  }
  return now;
}

/// Fresh packets one after another; a lost one is sent again, between them, a round trip after a
/// later fresh one arrived; or a timeout after it was sent, if none did or if it was sent again.
double selective_repeat(const Path& path, std::size_t packets, Draw& random) {
  std::vector<double> again;  // when retransmissions become due; a heap would be faster
  double now = 0, done = 0;
  std::vector<double> unseen;  // ends of lost fresh packets after which none arrived yet
  std::size_t sent = 0;
  while (sent < packets || !again.empty() || !unseen.empty()) {
    const auto due = std::min_element(again.begin(), again.end());
    if (due != again.end() && *due <= now) {
      again.erase(due);
      now += path.tau;
      is_lost(path, random) ? again.push_back(now + path.timeout)
                            : void(done = std::max(done, now));
    } else if (sent < packets) {
      now += path.tau;
      ++sent;
      if (is_lost(path, random)) {
        unseen.push_back(now);
      } else {
        done = now;
        for (std::size_t i = 0; i < unseen.size(); ++i) again.push_back(now + path.rtt);
        unseen.clear();
      }
    } else {
      for (const double end : unseen) again.push_back(end + path.timeout);
      unseen.clear();
      if (!again.empty()) now = std::max(now, *std::min_element(again.begin(), again.end()));
    }
  }
  return done;
}

// ---- By hand

/// Ten packets of 1 s: 10 bytes at 1 B/s, one byte a packet; round trip 2 s, timeout 100 s.
LossSpec spec(double p, LossRecovery recovery) {
  return {p, recovery, std::chrono::seconds(100)};
}

TEST(LossyEthernet, without_loss_nothing_is_stretched) {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    const LossyStretch s = lossy_stretch(spec(0, recovery), 50e9, 1e-5, 1e6, 4096);
    EXPECT_EQ(s.stretch, 1);
    EXPECT_EQ(s.time_s, 1e6 / 50e9);
    EXPECT_THAT(s.notes, IsEmpty());
  }
  EXPECT_EQ(lossy_stretch(spec(0.1, LossRecovery::go_back_n), 1, 1, 0, 1).time_s, 0);
}

TEST(LossyEthernet, go_back_n_by_hand) {
  const LossyStretch s = lossy_stretch(spec(0.1, LossRecovery::go_back_n), 1, 2, 10, 1);
  EXPECT_DOUBLE_EQ(s.waiting_s, 0.1 * 9 * 2);                          // nine that show a gap
  EXPECT_DOUBLE_EQ(s.retransmissions_s, (0.9 + 1.0) / 0.9);            // in vain; sent again
  EXPECT_DOUBLE_EQ(s.timeouts_s, 100 * (0.1 + 0.1 * 10 * 0.1 / 0.9));  // the last; lost again
  EXPECT_DOUBLE_EQ(s.stretch, (10 + s.waiting_s + s.retransmissions_s + s.timeouts_s) / 10);
}

TEST(LossyEthernet, one_packet_knows_only_the_timeout) {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    const LossyStretch s = lossy_stretch(spec(0.1, recovery), 1, 2, 1, 1);
    EXPECT_EQ(s.waiting_s, 0);
    EXPECT_NEAR(s.time_s, (1 + 0.1 * 100) / 0.9, 1e-12);  // 1/0.9 sendings, 0.1/0.9 timeouts
  }
}

TEST(LossyEthernet, selective_repeat_waits_for_the_last_round_trip_only) {
  const LossyStretch s = lossy_stretch(spec(0.1, LossRecovery::selective_repeat), 1, 2, 10, 1);
  // last lost packet 1 or 2 before the end: 2 s and 1 s more; from 3 on nothing
  EXPECT_DOUBLE_EQ(s.waiting_s, 0.1 * 0.9 * 2 + 0.1 * 0.81 * 1);
  EXPECT_DOUBLE_EQ(s.retransmissions_s, 10 * 0.1 / 0.9);
}

TEST(LossyEthernet, long_messages_reach_the_textbook_efficiency) {
  // Bertsekas and Gallager: (1-p)/(1-p+p·w), w = packets a round trip, when no retransmission is
  // lost (p² T left out) and one more packet passes until the gap shows.
  const double p = 1e-4, w = 146;
  LossSpec loss{p, LossRecovery::go_back_n, std::chrono::nanoseconds(1)};
  const LossyStretch s = lossy_stretch(loss, 1, w, 1e9, 1);
  EXPECT_NEAR(s.stretch, 1 + p * (w + 2), 2e-5);
  EXPECT_NEAR(1 / s.stretch, (1 - p) / (1 - p + p * w), 3e-4);
  loss.recovery = LossRecovery::selective_repeat;
  EXPECT_NEAR(lossy_stretch(loss, 1, w, 1e9, 1).stretch, 1 / (1 - p), 1e-5);
}

TEST(LossyEthernet, a_megabyte_on_400_gigabit) {
  // 256 packets of 82 ns, 12 us round trip, loss 1e-4: timeouts of 67 ms decide everything.
  const LossyStretch s = lossy_stretch({.loss_rate = 1e-4}, 50e9, 12e-6, 1048576, 4096);
  EXPECT_NEAR(s.timeouts_s, 67.108864e-3 * (1e-4 + 256e-8), 1e-9);
  EXPECT_NEAR(s.waiting_s, 255e-4 * 12e-6, 1e-12);
  EXPECT_GT(s.stretch, 1.3);
}

// ---- Against the twin

TEST(LossyEthernet, means_are_those_of_packets_one_by_one) {
  struct Case {
    double p, rtt, timeout_s;
    std::size_t packets;
  };
  const Case cases[] = {{0.01, 20, 200, 100},
                        {0.002, 50, 2000, 300},
                        {0.01, 5, 50, 1000},
                        {0.001, 100, 400, 64},
                        {0.005, 150, 1000, 400}};
  for (const Case& c : cases) {
    for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
      Draw random(12345);
      const Path path{c.p, 1, c.rtt, c.timeout_s};
      double sum = 0, squares = 0;
      const int trials = 20'000;
      for (int t = 0; t < trials; ++t) {
        const double time = recovery == LossRecovery::go_back_n
                                ? go_back_n(path, c.packets, random)
                                : selective_repeat(path, c.packets, random);
        sum += time;
        squares += time * time;
      }
      const double mean = sum / trials;
      const double error = std::sqrt((squares / trials - mean * mean) / trials);
      const LossSpec loss{c.p, recovery, seconds(c.timeout_s)};
      const double got = lossy_stretch(loss, 1, c.rtt, static_cast<double>(c.packets), 1).time_s;
      // Three standard errors of the twin, and what the form leaves out: 1 % of the time.
      EXPECT_NEAR(got, mean, 3 * error + 0.01 * mean)
          << trainyard::name_of(recovery) << " p " << c.p << " packets " << c.packets;
    }
  }
}

TEST(LossyEthernet, a_step_of_many_edges_meets_timeouts_more_often) {
  // Ten packets at p = 0.001 on 32 edges; the twin takes the slowest of 32.
  const Path path{0.001, 1, 2, 1000};
  Draw random(99);
  double sum = 0;
  const int trials = 4000;
  for (int t = 0; t < trials; ++t) {
    double slowest = 0;
    for (int e = 0; e < 32; ++e) slowest = std::max(slowest, go_back_n(path, 10, random));
    sum += slowest;
  }
  const LossSpec loss{0.001, LossRecovery::go_back_n, std::chrono::seconds(1000)};
  const double one = lossy_stretch(loss, 1, 2, 10, 1).time_s;
  const double of_32 = lossy_stretch(loss, 1, 2, 10, 1, 32).time_s;
  EXPECT_NEAR(of_32 / (sum / trials), 1, 0.1);
  EXPECT_GT(of_32, 3 * one);
}

// ---- Properties

TEST(LossyEthernet, more_loss_or_more_bytes_never_take_less) {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (const std::size_t edges : {std::size_t{1}, std::size_t{64}}) {
      for (double bytes = 1000; bytes < 1e10; bytes *= 7) {
        double before = 0;
        for (double p = 1e-9; p < 0.5; p *= 3) {
          const LossSpec loss{.loss_rate = p, .recovery = recovery};
          const double now = lossy_stretch(loss, 50e9, 12e-6, bytes, 4096, edges).stretch;
          ASSERT_GE(now, before) << p << ' ' << bytes;
          ASSERT_GE(now, 1);
          before = now;
        }
      }
      for (double p = 1e-8; p < 0.2; p *= 10) {
        double before = 0;
        for (double bytes = 1; bytes < 1e9; bytes *= 1.37) {
          const LossSpec loss{.loss_rate = p, .recovery = recovery};
          const double now = lossy_stretch(loss, 50e9, 12e-6, bytes, 4096, edges).time_s;
          ASSERT_GE(now, before * (1 - 1e-12)) << p << ' ' << bytes;
          before = now;
        }
      }
    }
  }
}

TEST(LossyEthernet, selective_repeat_is_never_worse_on_long_messages) {
  for (double p = 1e-6; p <= 0.01; p *= 10) {
    const LossSpec back{.loss_rate = p}, select{p, LossRecovery::selective_repeat, back.timeout};
    EXPECT_LE(lossy_stretch(select, 50e9, 12e-6, 1e9, 4096).stretch,
              lossy_stretch(back, 50e9, 12e-6, 1e9, 4096).stretch);
  }
}

TEST(LossyEthernet, says_where_it_is_not_valid) {
  EXPECT_THAT(lossy_stretch({.loss_rate = 0.01}, 50e9, 12e-6, 1e6, 4096).notes, IsEmpty());
  EXPECT_THAT(lossy_stretch({.loss_rate = 0.011}, 50e9, 12e-6, 1e6, 4096).notes,
              testing::ElementsAre(HasSubstr("one packet in a hundred")));
  const LossSpec hasty{1e-3, LossRecovery::go_back_n, std::chrono::microseconds(5)};
  EXPECT_THAT(lossy_stretch(hasty, 50e9, 12e-6, 1e6, 4096).notes,
              testing::ElementsAre(HasSubstr("shorter than a round trip")));
  EXPECT_THAT(lossy_stretch({.loss_rate = 0.001}, 50e9, 12e-6, 1e6, 4096, 8).notes,
              testing::ElementsAre(HasSubstr("several messages lose")));
  EXPECT_THROW(lossy_stretch({.loss_rate = 1}, 50e9, 12e-6, 1e6, 4096), CheckFailed);
}

}  // namespace
}  // namespace trainyard::models
