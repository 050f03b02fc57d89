#include "sim/time.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sim/check.hpp"

namespace trainyard {
namespace {

using namespace literals;
using namespace std::chrono_literals;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Seconds, are_rounded_up_to_a_nanosecond) {
  EXPECT_EQ(seconds(0.0), 0ns);
  EXPECT_EQ(seconds(1.0), 1s);
  EXPECT_EQ(seconds(1e-9), 1ns);
  EXPECT_EQ(seconds(1.2e-9), 2ns);  // nothing finishes early
  EXPECT_EQ(seconds(1e-12), 1ns);
  EXPECT_EQ(seconds(2.5), 2500ms);
}

TEST(Seconds, decimal_fractions_do_not_gain_a_nanosecond_from_binary_rounding) {
  for (int ms = 1; ms <= 100'000; ++ms)
    ASSERT_EQ(seconds(double(ms) / 1000.0), std::chrono::milliseconds(ms)) << ms;
  for (int ms = 1; ms <= 100'000; ++ms)
    ASSERT_EQ(seconds(double(ms) * 0.001), std::chrono::milliseconds(ms)) << ms;
}

TEST(Seconds, saturate_at_forever) {
  EXPECT_EQ(seconds(1e300), forever);
  EXPECT_EQ(seconds(infinity), forever);
  EXPECT_EQ(seconds(9223372037.0), forever);  // 2^63 ns is 9223372036.85 s
  EXPECT_LT(seconds(9223372036.0), forever);
}

TEST(Seconds, negative_and_nan_are_our_mistake) {
  EXPECT_THROW(seconds(-1e-9), CheckFailed);
  EXPECT_THROW(seconds(std::nan("")), CheckFailed);
}

TEST(Add, is_exact_inside_and_saturates_at_both_ends) {
  EXPECT_EQ(add(start_of_run, 5ns), Time(5ns));
  EXPECT_EQ(add(Time::max() - 1ns, 1ns), Time::max());
  EXPECT_EQ(add(Time::max() - 1ns, 2ns), Time::max());
  EXPECT_EQ(add(start_of_run + 1ns, forever), Time::max());
  EXPECT_EQ(add(start_of_run - 5ns, Duration::min()), Time::min());
}

TEST(TransferTime, is_size_over_rate_rounded_up) {
  EXPECT_EQ(transfer_time(1_GB, 1_GBps), 1s);
  EXPECT_EQ(transfer_time(50_GB, 400_Gbps), 1s);  // 400 Gb/s are 50 GB/s
  EXPECT_EQ(transfer_time(1_B, 1_GBps), 1ns);
  EXPECT_EQ(transfer_time(1_B, 2_GBps), 1ns);  // half a nanosecond
  EXPECT_EQ(transfer_time(3_B, 2_GBps), 2ns);  // 1.5
  EXPECT_EQ(transfer_time(Bytes(1e9 + 1), 1_GBps), 1s + 1ns);
}

TEST(TransferTime, of_nothing_is_zero_even_without_a_rate) {
  EXPECT_EQ(transfer_time(0_B, 1_GBps), 0ns);
  EXPECT_EQ(transfer_time(0_B, 0_Bps), 0ns);
}

TEST(TransferTime, of_something_is_never_zero_and_forever_without_a_rate) {
  EXPECT_EQ(transfer_time(Bytes(1e-300), 1_TBps), 1ns);
  EXPECT_EQ(transfer_time(1_B, 0_Bps), forever);
  EXPECT_EQ(transfer_time(Bytes(1e30), 1_Bps), forever);
  EXPECT_EQ(transfer_time(Bytes(infinity), 1_Bps), forever);
}

TEST(TransferTime, an_infinite_rate_takes_no_time) {
  EXPECT_EQ(transfer_time(1_GB, BytesPerSecond(infinity)), 0ns);
}

TEST(TransferTime, sizes_and_rates_doubled_leave_it_unchanged) {
  for (double size = 1.0; size < 1e13; size *= 3.7)
    for (double rate = 1e3; rate < 1e13; rate *= 5.3)
      ASSERT_EQ(transfer_time(Bytes(size), BytesPerSecond(rate)),
                transfer_time(Bytes(2 * size), BytesPerSecond(2 * rate)))
          << size << " at " << rate;
}

TEST(TransferTime, nonsense_is_our_mistake) {
  EXPECT_THROW(transfer_time(Bytes(-1.0), 1_Bps), CheckFailed);
  EXPECT_THROW(transfer_time(1_B, BytesPerSecond(-1.0)), CheckFailed);
  EXPECT_THROW(transfer_time(1_B, BytesPerSecond(std::nan(""))), CheckFailed);
}

struct Case {
  Duration duration;
  const char* text;
};

class DurationText : public testing::TestWithParam<Case> {};

TEST_P(DurationText, reads) {
  EXPECT_EQ(to_text(GetParam().duration), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Table, DurationText,
    testing::Values(Case{0ns, "0 s"}, Case{1ns, "1 ns"}, Case{999ns, "999 ns"},
                    Case{1500ns, "1.5 us"}, Case{999'499ns, "999 us"},
                    Case{999'500ns, "1 ms"},  // rounding carries into the next unit
                    Case{820ms, "820 ms"}, Case{6'724ms, "6.72 s"}, Case{6'726ms, "6.73 s"},
                    Case{59'940ms, "59.9 s"}, Case{59'960ms, "1 min"}, Case{60s, "1 min"},
                    Case{750s, "12 min 30 s"}, Case{3599s, "59 min 59 s"},
                    Case{3599s + 500ms, "1 h"}, Case{90min, "1 h 30 min"}, Case{24h - 30s, "1 d"},
                    Case{74h, "3 d 2 h"}, Case{54 * 24h, "54 d"}, Case{-820ms, "-820 ms"},
                    Case{forever, "forever"}));

}  // namespace
}  // namespace trainyard
