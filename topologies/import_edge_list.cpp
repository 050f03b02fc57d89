#include <algorithm>
#include <string>
#include <vector>

#include "topologies/import_builder.hpp"

namespace trainyard::topologies {

namespace {

/// The fields of one line (RFC 4180: quotes around a field, two for one inside). False if a quote
/// is not closed.
bool split(std::string_view line, char separator, std::vector<std::string>& out) {
  out.assign(1, {});
  bool is_in_quotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (is_in_quotes) {
      if (c != '"')
        out.back() += c;
      else if (i + 1 < line.size() && line[i + 1] == '"')
        out.back() += line[++i];
      else
        is_in_quotes = false;
    } else if (c == '"' && trimmed(out.back()).empty()) {
      out.back().clear();
      is_in_quotes = true;
    } else if (c == separator) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return !is_in_quotes;
}

/// A column's meaning, and the unit of its head: "capacity [Gb/s]" or "capacity (Gb/s)".
struct Column {
  std::string key;
  std::string unit;
};

Column column_of(std::string_view head) {
  const std::size_t open = head.find_first_of("[(");
  Column c{std::string(trimmed(head.substr(0, open))), {}};
  if (open != head.npos) {
    const std::size_t close = head.find_first_of("])", open);
    c.unit = trimmed(head.substr(open + 1, close == head.npos ? close : close - open - 1));
  }
  std::transform(c.key.begin(), c.key.end(), c.key.begin(),
                 [](char l) { return l >= 'A' && l <= 'Z' ? char(l - 'A' + 'a') : l; });
  if (c.key == "source") c.key = "from";
  if (c.key == "target") c.key = "to";
  return c;
}

constexpr const char* known =
    "from, to, capacity, latency, count, type (directed or undirected), capacity_gbps, latency_us";

bool are_sound(const std::vector<Column>& columns, int line, GraphBuilder& builder) {
  const auto times = [&](std::string_view key) {
    return std::count_if(columns.begin(), columns.end(),
                         [&](const Column& c) { return c.key == key; });
  };
  bool sound = true;
  const auto wrong = [&](const std::string& what, const std::string& right) {
    builder.complain(line, what, right);
    sound = false;
  };
  for (const Column& c : columns) {
    GraphEdge nowhere;
    if (c.key != "from" && c.key != "to" && c.key != "type" && c.key != "capacity" &&
        c.key != "capacity_gbps" && c.key != "latency" && c.key != "latency_us" && c.key != "count")
      wrong("column " + in_quotes(c.key) + " is unknown", std::string("the columns ") + known);
    else if (times(c.key) > 1)
      wrong("column " + in_quotes(c.key) + " comes twice", "one of them");
    else if (!c.unit.empty() && !(c.key == "capacity" && rate_of("1 " + c.unit)) &&
             !(c.key == "latency" && time_of("1 " + c.unit)))
      wrong("column " + in_quotes(c.key) + " is in " + in_quotes(c.unit),
            "a unit such as capacity [Gb/s] or latency [us]");
  }
  if (sound && (times("from") == 0 || times("to") == 0))
    wrong("the columns from and to are not both there", "a head such as from,to,capacity,latency");
  return sound;
}

/// What a row without a head means.
std::vector<Column> usual_columns(std::size_t n) {
  std::vector<Column> all{
      {"from", {}}, {"to", {}}, {"capacity", {}}, {"latency", {}}, {"count", {}}};
  all.resize(std::min(n, all.size()));
  return all;
}

void read_row(const std::vector<std::string>& fields, const std::vector<Column>& columns, int line,
              GraphBuilder& builder) {
  GraphEdge e{.line = line};
  bool has_from = false, has_to = false;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto& [key, unit] = columns[i];
    const std::string_view value = trimmed(fields[i]);
    if (value.empty()) continue;
    if (key == "from") {
      e.from = builder.vertex(value, line);
      has_from = true;
    } else if (key == "to") {
      e.to = builder.vertex(value, line);
      has_to = true;
    } else if (key == "type") {
      e.is_directed = value == "directed" || value == "Directed";
      if (!e.is_directed && value != "undirected" && value != "Undirected")
        builder.complain(line, "type is " + in_quotes(value), "directed or undirected");
    } else if (unit.empty()) {
      builder.set(e, key, value, line);
    } else if (number_of(value)) {
      builder.set(e, key, std::string(value) + ' ' + unit, line);
    } else {
      builder.complain(line, key + " is " + in_quotes(value), "a number of " + unit);
    }
  }
  if (has_from && has_to)
    builder.add(e);
  else
    builder.complain(line, "a cable has only one end or none", "names in the columns from and to");
}

}  // namespace

void parse_edge_list(std::string_view text, GraphBuilder& builder) {
  std::vector<Column> columns;
  std::vector<std::string> fields;
  char separator = ',';
  int line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = text.substr(at, end - at);
    at = end + 1;
    ++line;
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (trimmed(row).empty() || trimmed(row).front() == '#') continue;
    if (columns.empty())
      for (const char c : {'\t', ';', ','})
        if (row.find(c) != row.npos) separator = c;
    if (!split(row, separator, fields)) {
      builder.complain(line, "a quoted field does not end", "a closing quotation mark");
      continue;
    }
    if (columns.empty()) {
      for (const std::string& f : fields) columns.push_back(column_of(f));
      const bool is_head = std::any_of(columns.begin(), columns.end(), [](const Column& c) {
        return c.key == "from" || c.key == "to";
      });
      if (is_head) {
        if (!are_sound(columns, line, builder)) return;
        continue;
      }
      columns = usual_columns(fields.size());
      if (fields.size() < 2 || fields.size() > 5) {
        builder.complain(line, "the first row has " + std::to_string(fields.size()) + " fields",
                         "from,to,capacity,latency,count, or a head that names the columns");
        return;
      }
    }
    if (fields.size() != columns.size()) {
      builder.complain(line, std::to_string(fields.size()) + " fields",
                       std::to_string(columns.size()) + " as in the first row");
      continue;
    }
    read_row(fields, columns, line, builder);
  }
}

}  // namespace trainyard::topologies
