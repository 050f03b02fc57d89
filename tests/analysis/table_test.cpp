#include "analysis/table.hpp"

#include <gmock/gmock.h>

#include "analysis/breakdown.hpp"
#include "sim/check.hpp"

namespace trainyard::analysis {
namespace {

Table two_columns() {
  return Table::with("t", "",
                     {{"n", "1", "", ColumnType::int64}, {"x", "s", "", ColumnType::real}});
}

TEST(Table, KeepsRowsByColumn) {
  Table t = two_columns();
  EXPECT_EQ(t.rows(), 0u);
  t.add_row({std::int64_t{3}, 0.5});
  t.add_row({std::int64_t{4}, std::int64_t{2}});  // a whole number in a column of reals
  EXPECT_EQ(t.rows(), 2u);
  EXPECT_EQ(t.find("n")->operator[](1), Value(std::int64_t{4}));
  EXPECT_EQ(t.find("x")->operator[](1), Value(2.0));
  EXPECT_EQ(t.find("y"), nullptr);
}

TEST(Table, RefusesARowOfAnotherShape) {
  Table t = two_columns();
  EXPECT_THROW(t.add_row({std::int64_t{3}}), CheckFailed);
  EXPECT_THROW(t.add_row({0.5, 0.5}), CheckFailed);
  EXPECT_THROW(t.add_row({std::int64_t{3}, "text"}), CheckFailed);
}

TEST(Value, PrintsSoThatItReadsBack) {
  EXPECT_EQ(text_of(Value(std::int64_t{-5})), "-5");
  EXPECT_EQ(text_of(Value(0.1)), "0.10000000000000001");
  EXPECT_EQ(std::stod(text_of(Value(1.0 / 3))), 1.0 / 3);
  EXPECT_EQ(text_of(Value(std::uint64_t{18446744073709551615u})), "18446744073709551615");
}

// 2^64 + 5 is (1, 5); -1 is (-1, 2^64 - 1) in two's complement.
TEST(LedgerTable, SplitsAnAmountInTwoWords) {
  const std::pair<std::string, GpuNanoseconds> accounts[] = {
      {"large", (GpuNanoseconds{1} << 64) + 5}, {"negative", -1}, {"small", 7}};
  const Table t = ledger_table("ledger", "", accounts);
  EXPECT_EQ((*t.find("gpu_ns_high"))[0], Value(std::int64_t{1}));
  EXPECT_EQ((*t.find("gpu_ns_low"))[0], Value(std::uint64_t{5}));
  EXPECT_EQ((*t.find("gpu_ns_high"))[1], Value(std::int64_t{-1}));
  EXPECT_EQ((*t.find("gpu_ns_low"))[1], Value(~std::uint64_t{0}));
  EXPECT_DOUBLE_EQ(std::get<double>((*t.find("gpu_s"))[2]), 7e-9);
}

}  // namespace
}  // namespace trainyard::analysis
