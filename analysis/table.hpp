#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// Plain tables: what a run file holds beside its event log and its series. A table knows where it
/// lives in the file, and each column knows its unit, so whoever shows or exports it needs no
/// model.
///
///     Table saves = Table::with("jobs/llm/checkpoints", "one row a save", {
///         {"start_ns", "ns", "instant the save began", ColumnType::int64},
///         {"level",    "",   "where it was kept",      ColumnType::text},
///         {"size",     "B",  "bytes of one copy",      ColumnType::real}});
///     saves.add_row({std::int64_t{1'800'000'000'000}, "parallel-store", 1.2e12});
namespace trainyard::analysis {

using Value = std::variant<std::int64_t, std::uint64_t, double, std::string>;

/// A named value on a file, a table or a series.
struct Attribute {
  std::string name;
  Value value;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

/// "42", "0.5" (17 digits, so that it reads back the same), or the text itself.
std::string text_of(const Value& value);

enum class ColumnType : std::uint8_t { int64, uint64, real, text };

struct Column {
  using Cells = std::variant<std::vector<std::int64_t>, std::vector<std::uint64_t>,
                             std::vector<double>, std::vector<std::string>>;

  std::string name;
  std::string units;  // UDUNITS spelling ("s", "W", "B"); empty for text, "1" for a pure number
  std::string long_name;
  Cells cells;

  Column() = default;
  Column(std::string name, std::string units, std::string long_name, ColumnType type);

  ColumnType type() const { return static_cast<ColumnType>(cells.index()); }
  std::size_t size() const;
  Value operator[](std::size_t row) const;
  friend bool operator==(const Column&, const Column&) = default;
};

struct Table {
  std::string path;  // "jobs/llm/segments"
  std::string description;
  std::vector<Attribute> attributes;
  std::vector<Column> columns;

  static Table with(std::string path, std::string description, std::vector<Column> columns);

  std::size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
  /// One value a column. A whole number may go into a column of reals; any other difference of type
  /// is our own mistake (CheckFailed).
  void add_row(const std::vector<Value>& row);
  /// Null if there is none of that name.
  const Column* find(std::string_view column) const;
  const Value* attribute(std::string_view attribute) const;
  friend bool operator==(const Table&, const Table&) = default;
};

/// GPU-nanoseconds: 16,384 GPUs for 54 days are 7.6e19, more than 64 bits hold.
using GpuNanoseconds = __int128;

/// A ledger as a table with the columns account, gpu_ns_high (signed), gpu_ns_low (unsigned) and,
/// for convenience, gpu_s. The exact amount is high * 2^64 + low. `attributes` should say what it
/// must sum to: gpus and duration_ns.
Table ledger_table(std::string path, std::string description,
                   std::span<const std::pair<std::string, GpuNanoseconds>> accounts,
                   std::vector<Attribute> attributes = {});

}  // namespace trainyard::analysis
