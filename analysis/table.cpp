#include "analysis/table.hpp"

#include <cstdio>
#include <type_traits>

#include "sim/check.hpp"

namespace trainyard::analysis {

namespace {

Column::Cells empty_cells(ColumnType type) {
  switch (type) {
    case ColumnType::int64:
      return std::vector<std::int64_t>{};
    case ColumnType::uint64:
      return std::vector<std::uint64_t>{};
    case ColumnType::real:
      return std::vector<double>{};
    case ColumnType::text:
      return std::vector<std::string>{};
  }
  return {};
}

}  // namespace

std::string text_of(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return v;
        } else if constexpr (std::is_same_v<T, double>) {
          char text[40];
          std::snprintf(text, sizeof text, "%.17g", v);
          return text;
        } else {
          return std::to_string(v);
        }
      },
      value);
}

Column::Column(std::string name_, std::string units_, std::string long_name_, ColumnType type)
    : name(std::move(name_)),
      units(std::move(units_)),
      long_name(std::move(long_name_)),
      cells(empty_cells(type)) {}

std::size_t Column::size() const {
  return std::visit([](const auto& v) { return v.size(); }, cells);
}

Value Column::operator[](std::size_t row) const {
  return std::visit([row](const auto& v) { return Value(v.at(row)); }, cells);
}

Table Table::with(std::string path, std::string description, std::vector<Column> columns) {
  Table table;
  table.path = std::move(path);
  table.description = std::move(description);
  table.columns = std::move(columns);
  return table;
}

void Table::add_row(const std::vector<Value>& row) {
  check(row.size() == columns.size(), "a row has one value a column", path, row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    std::visit(
        [&](auto& cells) {
          using Cell = typename std::decay_t<decltype(cells)>::value_type;
          if (const auto* same = std::get_if<Cell>(&row[i])) {
            cells.push_back(*same);
          } else if constexpr (std::is_same_v<Cell, double>) {
            const auto* whole = std::get_if<std::int64_t>(&row[i]);
            check(whole != nullptr, "a value has the type of its column", path, columns[i].name);
            cells.push_back(static_cast<double>(*whole));
          } else {
            check(false, "a value has the type of its column", path, columns[i].name);
          }
        },
        columns[i].cells);
  }
}

const Column* Table::find(std::string_view column) const {
  for (const Column& c : columns)
    if (c.name == column) return &c;
  return nullptr;
}

const Value* Table::attribute(std::string_view attribute) const {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a.value;
  return nullptr;
}

Table ledger_table(std::string path, std::string description,
                   std::span<const std::pair<std::string, GpuNanoseconds>> accounts,
                   std::vector<Attribute> attributes) {
  Table table = Table::with(
      std::move(path), std::move(description),
      {{"account", "", "where the GPU time went", ColumnType::text},
       {"gpu_ns_high", "2^64 ns", "GPU-nanoseconds, upper 64 bits, signed", ColumnType::int64},
       {"gpu_ns_low", "ns", "GPU-nanoseconds, lower 64 bits, unsigned", ColumnType::uint64},
       {"gpu_s", "s", "GPU-seconds, rounded", ColumnType::real}});
  table.attributes = std::move(attributes);
  for (const auto& [account, amount] : accounts)
    table.add_row({account, static_cast<std::int64_t>(amount >> 64),
                   static_cast<std::uint64_t>(amount), static_cast<double>(amount) * 1e-9});
  return table;
}

}  // namespace trainyard::analysis
