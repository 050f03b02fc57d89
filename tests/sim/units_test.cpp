#include "sim/units.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace trainyard {
namespace {

using namespace literals;

TEST(Quantity, bits_and_bytes_decimal_and_binary) {
  EXPECT_EQ((400_Gbps).value(), 50e9);
  EXPECT_EQ((80_GiB).value(), 85'899'345'920.0);
  EXPECT_EQ((80_GB).value(), 80e9);
  EXPECT_LT(80_GB, 80_GiB);
}

TEST(Quantity, arithmetic_within_a_dimension) {
  EXPECT_EQ(1_GB + 500_MB, 1.5_GB);
  EXPECT_EQ(2.0 * 1_GB - 1_GB, 1_GB);
  EXPECT_EQ(1_GB / 250_MB, 4.0);  // a ratio is a plain number
  EXPECT_EQ(-(1_W), Watts(-1.0));
}

template <class A, class B>
concept addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept comparable = requires(A a, B b) {
  a < b;
};
static_assert(addable<Bytes, Bytes>);
static_assert(!addable<Bytes, BytesPerSecond>, "dimensions do not mix");
static_assert(!comparable<Watts, Joules>, "dimensions do not mix");
static_assert(!std::is_convertible_v<double, Bytes>, "a plain number has no unit");

struct Case {
  std::string text;
  std::string expected;
};

class QuantityText : public testing::TestWithParam<Case> {};
TEST_P(QuantityText, reads) {
  EXPECT_EQ(GetParam().text, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Table, QuantityText,
    testing::Values(
        Case{to_text(0_B), "0 B"}, Case{to_text(1_B), "1 B"}, Case{to_text(999_B), "999 B"},
        Case{to_text(1000_B), "1 kB"}, Case{to_text(1.5_GB), "1.5 GB"},
        Case{to_text(80_GiB), "85.9 GB"}, Case{to_text(Bytes(999'499.0)), "999 kB"},
        Case{to_text(Bytes(999'500.0)), "1 MB"},  // rounding carries
        Case{to_text(400_Gbps), "50 GB/s"}, Case{to_text(3.35_TBps), "3.35 TB/s"},
        Case{to_text(Flops(1e21)), "1 ZFLOP"}, Case{to_text(989_TFLOPps), "989 TFLOP/s"},
        Case{to_text(700_W), "700 W"}, Case{to_text(12.34_kW), "12.3 kW"},
        Case{to_text(Watts(-1500.0)), "-1.5 kW"}, Case{to_text(Joules(3.6e9)), "3.6 GJ"},
        Case{to_text(VoltAmperes(2.5e6)), "2.5 MVA"}, Case{to_text(Volts(400)), "400 V"},
        Case{to_text(Amperes(12.6)), "12.6 A"}, Case{to_text(Dollars(950.0)), "$950"},
        Case{to_text(Dollars(1.25e6)), "$1.25 M"}, Case{to_text(Dollars(-2e3)), "-$2 k"},
        Case{to_text(PerSecond(1.5e6)), "1.5 M/s"},
        Case{to_text(PerSecond(2.31e-7)), "2.31e-07 /s"},
        Case{to_text(Bytes(std::numeric_limits<double>::infinity())), "inf B"}));

}  // namespace
}  // namespace trainyard
