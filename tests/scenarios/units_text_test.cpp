#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "scenarios/units_text.hpp"

namespace trainyard::scenarios {
namespace {

using testing::HasSubstr;

struct Reading {
  const char* text;
  Dimension dimension;
  double value;
};

class Reads : public testing::TestWithParam<Reading> {};

TEST_P(Reads, in_base_units) {
  UnitError error;
  const auto value = parse_quantity(GetParam().text, GetParam().dimension, error);
  ASSERT_TRUE(value) << error.what;
  EXPECT_EQ(*value, GetParam().value) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Quantities, Reads,
    testing::Values(
        Reading{"80 GiB", Dimension::bytes, 85899345920.0},  // 80 * 2^30
        Reading{"80 GB", Dimension::bytes, 80e9}, Reading{"8 Gb", Dimension::bytes, 1e9},  // bits
        Reading{"400 Gb/s", Dimension::rate, 50e9},  // 400 / 8
        Reading{"400Gb/s", Dimension::rate, 50e9},   // no space
        Reading{" 7 GB/s ", Dimension::rate, 7e9}, Reading{"2 TB/s", Dimension::rate, 2e12},
        Reading{"1 KiB/s", Dimension::rate, 1024.0},
        Reading{"989 TFLOP/s", Dimension::flop_rate, 989e12},
        Reading{"4.2 ZFLOP", Dimension::flops, 4.2e21},
        Reading{"1 EB", Dimension::bytes, 1e18},  // a prefix, not an exponent
        Reading{"1e3 B", Dimension::bytes, 1000.0}, Reading{"1.5e-3 kB", Dimension::bytes, 1.5},
        Reading{"0.3 GB", Dimension::bytes, 3e8}, Reading{"2.039 TB/s", Dimension::rate, 2.039e12},
        Reading{"700 W", Dimension::power, 700.0}, Reading{"1.2 MW", Dimension::power, 1.2e6},
        Reading{"2500 kVA", Dimension::apparent, 2.5e6},
        Reading{"400 V", Dimension::voltage, 400.0}, Reading{"1.6 kA", Dimension::current, 1600.0},
        Reading{"2 kWh", Dimension::energy, 7.2e6},  // 2000 * 3600 J
        Reading{"36000 USD", Dimension::money, 36000.0},
        Reading{"36 kUSD", Dimension::money, 36000.0},
        Reading{"3600 /h", Dimension::frequency, 1.0}, Reading{"0.5 /s", Dimension::frequency, 0.5},
        Reading{"-3 W", Dimension::power, -3.0}));  // ranges are the reader's business

struct TimeReading {
  const char* text;
  std::int64_t ns;
};

class ReadsTime : public testing::TestWithParam<TimeReading> {};

TEST_P(ReadsTime, in_whole_nanoseconds) {
  UnitError error;
  const auto value = parse_duration(GetParam().text, error);
  ASSERT_TRUE(value) << error.what;
  EXPECT_EQ(value->count(), GetParam().ns) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Durations, ReadsTime,
    testing::Values(
        TimeReading{"30 min", 1'800'000'000'000},
        TimeReading{"54 d", 4'665'600'000'000'000},  // 54 * 86400 s
        TimeReading{"1.5 ms", 1'500'000}, TimeReading{"4100 ns", 4100},
        TimeReading{"0.1 s", 100'000'000},  // exact: no 100000001 from rounding up a double
        TimeReading{"0.1 min", 6'000'000'000}, TimeReading{"1.5 ns", 2},  // up
        TimeReading{"1 ns", 1}, TimeReading{"0 s", 0},
        TimeReading{"3 d 2 h", 266'400'000'000'000},  // 72 + 2 hours
        TimeReading{"12 min 30 s", 750'000'000'000}, TimeReading{"1e3 s", 1'000'000'000'000},
        TimeReading{"-5 min", -300'000'000'000},
        TimeReading{"9223372036854775807 ns", std::numeric_limits<std::int64_t>::max()}));

struct Refusal {
  const char* text;
  Dimension dimension;
  const char* what;
  const char* right;
};

class Refuses : public testing::TestWithParam<Refusal> {};

TEST_P(Refuses, with_what_was_found_and_what_would_be_right) {
  UnitError error;
  const Refusal& r = GetParam();
  if (r.dimension == Dimension::time)
    EXPECT_FALSE(parse_duration(r.text, error));
  else
    EXPECT_FALSE(parse_quantity(r.text, r.dimension, error));
  EXPECT_EQ(error.what, r.what);
  EXPECT_THAT(error.right, HasSubstr(r.right));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, Refuses,
    testing::Values(
        Refusal{"7000", Dimension::rate,
                "expected a rate such as \"7 GB/s\", found \"7000\", which has no unit", ""},
        Refusal{"400 Gb/s", Dimension::time,
                "expected a time such as \"30 min\", found \"400 Gb/s\", which is a rate", ""},
        Refusal{"80 GB", Dimension::rate,
                "expected a rate such as \"7 GB/s\", found \"80 GB\", which is a size", ""},
        Refusal{"3 /h", Dimension::time,
                "expected a time such as \"30 min\", found \"3 /h\", which is a frequency", ""},
        Refusal{"400 Gbps", Dimension::rate,
                "expected a rate such as \"7 GB/s\", found \"400 Gbps\", whose unit \"Gbps\" is "
                "unknown",
                "\"400 Gb/s\""},
        Refusal{
            "7 GBps", Dimension::rate,
            "expected a rate such as \"7 GB/s\", found \"7 GBps\", whose unit \"GBps\" is unknown",
            "\"7 GB/s\""},
        Refusal{"64 KB", Dimension::bytes,
                "expected a size such as \"80 GiB\", found \"64 KB\", whose unit \"KB\" is unknown",
                "\"64 kB\""},
        Refusal{"989 TFLOPS", Dimension::flop_rate,
                "expected a compute rate such as \"989 TFLOP/s\", found \"989 TFLOPS\", whose unit "
                "\"TFLOPS\" is unknown",
                "\"989 TFLOP/s\""},
        Refusal{
            "5 sec", Dimension::time,
            "expected a time such as \"30 min\", found \"5 sec\", whose unit \"sec\" is unknown",
            "\"5 s\""},
        Refusal{"5 \xC2\xB5s", Dimension::time,
                "expected a time such as \"30 min\", found \"5 \xC2\xB5s\", whose unit "
                "\"\xC2\xB5s\" is unknown",
                "\"5 us\""},
        Refusal{"2 y", Dimension::time,
                "expected a time such as \"30 min\", found \"2 y\", whose unit \"y\" is unknown",
                "\"365 d\""},
        Refusal{"fast", Dimension::rate, "expected a rate such as \"7 GB/s\", found \"fast\"",
                "number"},
        Refusal{"", Dimension::rate, "expected a rate such as \"7 GB/s\", found \"\"", ""},
        Refusal{"NaN W", Dimension::power, "expected a power such as \"700 W\", found \"NaN W\"",
                ""},
        Refusal{"inf s", Dimension::time, "expected a time such as \"30 min\", found \"inf s\"",
                ""},
        Refusal{"1e400 B", Dimension::bytes, "the number in \"1e400 B\" is out of range", ""},
        Refusal{"1e99999999999 B", Dimension::bytes,
                "the number in \"1e99999999999 B\" is out of range", ""},
        Refusal{"1,000 W", Dimension::power,
                "expected a power such as \"700 W\", found \"1,000 W\", whose unit \",000 W\" is "
                "unknown",
                ""},
        Refusal{"0.2 ns", Dimension::time, "the time \"0.2 ns\" is below one nanosecond", "1 ns"},
        Refusal{"0.0000003 ms", Dimension::time,
                "the time \"0.0000003 ms\" is below one nanosecond", ""},
        Refusal{"1e-99999 s", Dimension::time, "the time \"1e-99999 s\" is below one nanosecond",
                ""},
        Refusal{"106752 d", Dimension::time, "the time \"106752 d\" is too long", "106751 d"},
        Refusal{"1e99999 d", Dimension::time, "the time \"1e99999 d\" is too long", ""},
        Refusal{"9223372036854775808 ns", Dimension::time,
                "the number in \"9223372036854775808 ns\" has too many digits or is too large", ""},
        Refusal{"2 h 3 d", Dimension::time, "expected a time such as \"30 min\", found \"2 h 3 d\"",
                "largest to the smallest"},
        Refusal{"2 h -3 min", Dimension::time,
                "expected a time such as \"30 min\", found \"2 h -3 min\"", "no sign"},
        Refusal{"2 h 3", Dimension::time,
                "expected a time such as \"30 min\", found \"2 h 3\", which has no unit", ""}));

TEST(ExactText, takes_the_unit_that_reads_best) {
  EXPECT_EQ(to_exact_text(Bytes(80.0 * 1073741824.0)), "80 GiB");
  EXPECT_EQ(to_exact_text(Bytes(80e9)), "80 GB");
  EXPECT_EQ(to_exact_text(BytesPerSecond(50e9)), "50 GB/s");
  EXPECT_EQ(to_exact_text(BytesPerSecond(3.35e12)), "3.35 TB/s");
  EXPECT_EQ(to_exact_text(BytesPerSecond(1e9 / 3)), "333333333.3333333 B/s");
  EXPECT_EQ(to_exact_text(FlopsPerSecond(1979e12)), "1979 TFLOP/s");
  EXPECT_EQ(to_exact_text(Watts(700)), "700 W");
  EXPECT_EQ(to_exact_text(Dollars(36000)), "36000 USD");
  EXPECT_EQ(to_exact_text(Watts(0)), "0 W");
  EXPECT_EQ(to_exact_text(std::chrono::minutes(90)), "1.5 h");
  EXPECT_EQ(to_exact_text(std::chrono::hours(24)), "1 d");
  EXPECT_EQ(to_exact_text(std::chrono::seconds(100)), "100 s");
  EXPECT_EQ(to_exact_text(Duration(4100)), "4.1 us");
  EXPECT_EQ(to_exact_text(Duration(1'000'050)), "1000.05 us");
  EXPECT_EQ(to_exact_text(Duration(0)), "0 s");
}

TEST(ExactText, reads_back_as_the_very_same_value) {
  const unsigned seed = 20261130;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  constexpr Dimension all[] = {Dimension::bytes,     Dimension::rate,      Dimension::flops,
                               Dimension::flop_rate, Dimension::power,     Dimension::energy,
                               Dimension::money,     Dimension::frequency, Dimension::apparent,
                               Dimension::voltage,   Dimension::current};
  const auto again = [](double value, Dimension d) {
    UnitError error;
    const std::string text = to_exact_text(value, d);
    const auto read = parse_quantity(text, d, error);
    ASSERT_TRUE(read) << text << ": " << error.what;
    ASSERT_EQ(*read, value) << text;
  };
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    double any = 0;
    std::memcpy(&any, &bits, sizeof any);
    if (std::isfinite(any)) again(any, all[random() % 8]);
    again(std::ldexp(static_cast<double>(random() % 100000), static_cast<int>(random() % 60)),
          all[random() % 8]);
    again(
        static_cast<double>(random() % 100000) * std::pow(10.0, static_cast<double>(random() % 20)),
        all[random() % 8]);
  }
  for (int i = 0; i < 20000; ++i) {
    UnitError error;
    const Duration d(static_cast<std::int64_t>(random() >> (1 + random() % 62)));
    const auto read = parse_duration(to_exact_text(d), error);
    ASSERT_TRUE(read) << d.count() << " " << to_exact_text(d) << ": " << error.what;
    ASSERT_EQ(*read, d) << to_exact_text(d);
  }
}

TEST(ExactText, also_reads_the_text_for_people_of_sim_time) {
  UnitError error;
  EXPECT_EQ(
      parse_duration(to_text(Duration(std::chrono::minutes(12) + std::chrono::seconds(30))), error),
      Duration(std::chrono::minutes(12) + std::chrono::seconds(30)));
}

}  // namespace
}  // namespace trainyard::scenarios
