#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/diagnostic.hpp"

/// A table of published figures as text: CSV with a header line (RFC 4180: quoted fields may hold
/// commas, quotes and line breaks), columns found by name, order free, others ignored.
///
///     std::vector<Diagnostic> mistakes;
///     const PublishedTable table = read_published_table(file, "collectives.csv", mistakes);
///     for (const TableRow& row : table.rows) table.cell(row, "gpu")
///
/// Own code: Debian's CSV libraries for C++ give no line of a quoted field (fast-cpp-csv-parser) or
/// read leniently (libcsv), and errors must say file:line:column.
namespace trainyard::scenarios {

/// Why a row cannot be used, in a few words: rows are counted by it.
using SkipReason = std::string;

struct TableCell {
  std::string text;
  int line = 0;  // of its first character
  int column = 1;
};

struct TableRow {
  int line = 0;  // where it starts
  std::vector<TableCell> cells;
};

struct PublishedTable {
  std::string name;
  std::vector<std::string> columns;
  std::vector<TableRow> rows;

  bool has(std::string_view column) const { return index_of(column).has_value(); }
  std::optional<std::size_t> index_of(std::string_view column) const;
  /// Empty text if there is no such column.
  std::string_view text(const TableRow& row, std::string_view column) const;
  /// The number in a cell; nothing if the cell is empty (or nan, NA) or the column missing. What is
  /// no finite number above 0 becomes a mistake, and nothing is returned.
  std::optional<double> number(const TableRow& row, std::string_view column,
                               std::vector<Diagnostic>& mistakes) const;
};

/// Mistakes (a field too many, text after a closing quote, an open quote, no header, a column name
/// twice) are appended; the rows around them are kept.
PublishedTable read_published_table(std::istream& in, const std::string& name,
                                    std::vector<Diagnostic>& mistakes);

}  // namespace trainyard::scenarios
