#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/validate_table.hpp"

namespace trainyard::scenarios {

/// One row of a published table by the names of its columns.
class PublishedRow {
 public:
  PublishedRow(const PublishedTable& table, const TableRow& row, std::vector<Diagnostic>& mistakes)
      : table_(table), row_(row), mistakes_(mistakes) {}

  /// Empty where a cell is empty, "nan" or "NA", or there is no such column.
  std::string_view text(std::string_view column) const;
  std::optional<double> number(std::string_view column) const {
    return table_.number(row_, column, mistakes_);
  }
  /// A whole number of at least 1; what else is found is a mistake.
  std::optional<int> count(std::string_view column) const;
  /// "1", "0", "true", "false", as spreadsheets and pandas write them.
  std::optional<bool> flag(std::string_view column) const;
  int line() const { return row_.line; }

 private:
  void mistake(std::string_view column, std::string right) const;

  const PublishedTable& table_;
  const TableRow& row_;
  std::vector<Diagnostic>& mistakes_;
};

/// A table of one row, made column by column: for rows whose inputs stand elsewhere.
class MadeRow {
 public:
  /// Mistakes in it are reported at this place.
  MadeRow(const std::string& table, int line);
  void add(std::string_view column, std::string_view text);
  void add(std::string_view column, int value) { add(column, std::to_string(value)); }
  const PublishedTable& table() const { return table_; }
  const TableRow& row() const { return table_.rows[0]; }

 private:
  PublishedTable table_;
};

}  // namespace trainyard::scenarios
