#include "scenarios/published_row.hpp"

#include <cmath>

namespace trainyard::scenarios {

namespace {
constexpr double most_count = 1e9;
}

std::string_view PublishedRow::text(std::string_view column) const {
  const std::string_view found = table_.text(row_, column);
  return found == "nan" || found == "NaN" || found == "NA" ? std::string_view() : found;
}

std::optional<int> PublishedRow::count(std::string_view column) const {
  const auto found = number(column);
  if (!found) return std::nullopt;
  if (*found >= 1 && *found <= most_count && *found == std::floor(*found)) return int(*found);
  mistake(column, "a whole number of at least 1, or nothing if it is not known");
  return std::nullopt;
}

std::optional<bool> PublishedRow::flag(std::string_view column) const {
  const std::string_view found = text(column);
  if (found.empty()) return std::nullopt;
  for (const std::string_view yes : {"1", "1.0", "true", "True", "yes"})
    if (found == yes) return true;
  for (const std::string_view no : {"0", "0.0", "false", "False", "no"})
    if (found == no) return false;
  mistake(column, "0 or 1, or nothing if it is not known");
  return std::nullopt;
}

void PublishedRow::mistake(std::string_view column, std::string right) const {
  const TableCell& cell = row_.cells[*table_.index_of(column)];
  mistakes_.push_back({table_.name,
                       cell.line,
                       cell.column,
                       {},
                       std::string(column) + ": found " + in_quotes(cell.text),
                       std::move(right),
                       "bad-number",
                       {}});
}

MadeRow::MadeRow(const std::string& table, int line) {
  table_.name = table;
  table_.rows.push_back({line, {}});
}

void MadeRow::add(std::string_view column, std::string_view text) {
  table_.columns.emplace_back(column);
  table_.rows[0].cells.push_back({std::string(text), table_.rows[0].line, 1});
}

}  // namespace trainyard::scenarios
