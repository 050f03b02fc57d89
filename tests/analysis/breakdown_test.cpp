#include "analysis/breakdown.hpp"

#include <gmock/gmock.h>

#include "analysis/run_file.hpp"

namespace trainyard::analysis {
namespace {

TEST(Breakdown, SortsTheLargestFirstAndKeepsTheOrderOfEqualOnes) {
  const std::pair<std::string, GpuNanoseconds> accounts[] = {
      {"a", 10}, {"b", 60}, {"c", 10}, {"d", 20}, {"e", 0}};
  const Breakdown b = breakdown(ledger_table("ledger", "", accounts));
  std::vector<std::string> order;
  for (const Share& s : b.shares) order.push_back(s.account);
  EXPECT_THAT(order, testing::ElementsAre("b", "d", "a", "c", "e"));
  EXPECT_EQ(text_of(b.total), "100");
  EXPECT_EQ(b.shares[0].share, 0.6);
  EXPECT_EQ(b.shares[4].share, 0.0);
}

// 16,384 GPUs x 54 days = 16384 x 54 x 86400e9 ns = 76,441,190,400,000,000,000 > 2^64.
TEST(Breakdown, IsExactAbove64Bits) {
  const GpuNanoseconds total = GpuNanoseconds{16384} * 54 * 86'400'000'000'000;
  const std::pair<std::string, GpuNanoseconds> accounts[] = {{"useful", total - 1}, {"lost", 1}};
  const Breakdown b = breakdown(ledger_table("ledger", "", accounts));
  EXPECT_EQ(text_of(b.total), "76441190400000000000");
  EXPECT_EQ(text_of(b.shares[0].gpu_ns), "76441190399999999999");
  EXPECT_DOUBLE_EQ(b.shares[0].gpu_s, 76441190400.0);
}

TEST(Breakdown, OfNothingHasNoShares) {
  const std::pair<std::string, GpuNanoseconds> accounts[] = {{"useful", 0}};
  const Breakdown b = breakdown(ledger_table("ledger", "", accounts));
  EXPECT_EQ(b.shares[0].share, 0.0);
}

TEST(Breakdown, RefusesAnotherTable) {
  const Table other = Table::with("jobs/llm/segments", "", {{"account", "", "", ColumnType::text}});
  EXPECT_THROW(breakdown(other), RunFileError);
}

TEST(Amount, IsWrittenWithAllDigits) {
  EXPECT_EQ(text_of(GpuNanoseconds{0}), "0");
  EXPECT_EQ(text_of(GpuNanoseconds{-42}), "-42");
  EXPECT_EQ(text_of(static_cast<GpuNanoseconds>(static_cast<unsigned __int128>(1) << 127)),
            "-170141183460469231731687303715884105728");
}

}  // namespace
}  // namespace trainyard::analysis
