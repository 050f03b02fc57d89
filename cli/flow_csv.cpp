#include "cli/flow_csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <istream>
#include <unordered_map>

namespace trainyard::cli {

namespace {

/// One table: its header, the current row, and where to complain.
class CsvReader {
 public:
  CsvReader(std::istream& in, std::string name, std::vector<std::string>& errors)
      : in_(in), name_(std::move(name)), errors_(errors) {
    if (!next_line()) {
      error(1, "the file is empty, expected a header line");
      return;
    }
    if (line_.compare(0, 3, "\xEF\xBB\xBF") == 0)
      line_.erase(0, 3);  // byte-order mark of spreadsheet programs
    header_ = split_csv(line_);
  }

  bool has(const std::string& column) const { return index_of(column) < header_.size(); }

  bool require(const std::vector<std::string>& columns) {
    if (header_.empty()) return false;
    bool complete = true;
    for (const std::string& column : columns) {
      if (has(column)) continue;
      std::string found;
      for (const Field& field : header_) found += (found.empty() ? "" : ",") + field.text;
      error(1, "there is no column '" + column + "'; the header is: " + found);
      complete = false;
    }
    return complete;
  }

  /// False at the end. Rows with the wrong number of fields are reported and skipped.
  bool next_row() {
    while (next_line()) {
      if (line_.empty()) continue;
      row_ = split_csv(line_);
      if (row_.size() == header_.size()) return true;
      error(1, "expected " + std::to_string(header_.size()) + " fields as in the header, found " +
                   std::to_string(row_.size()));
    }
    return false;
  }

  const Field& field(const std::string& column) const { return row_[index_of(column)]; }

  /// A finite number of at least 0; complains and returns nothing otherwise.
  std::optional<double> number(const std::string& column) {
    const Field& f = field(column);
    double value = 0;
    const char* end = f.text.data() + f.text.size();
    const auto [stop, problem] = std::from_chars(f.text.data(), end, value);
    if (problem == std::errc{} && stop == end && std::isfinite(value) && value >= 0) return value;
    error(f.column, column + ": expected a number of at least 0, found '" + f.text + "'");
    return std::nullopt;
  }

  void error(std::size_t column, const std::string& what) {
    errors_.push_back(name_ + ':' + std::to_string(line_number_) + ':' + std::to_string(column) +
                      ": error: " + what);
  }

 private:
  std::size_t index_of(const std::string& column) const {
    const auto at = std::find_if(header_.begin(), header_.end(),
                                 [&](const Field& f) { return f.text == column; });
    return std::size_t(at - header_.begin());
  }

  bool next_line() {
    ++line_number_;
    if (!std::getline(in_, line_)) return false;
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    return true;
  }

  std::istream& in_;
  std::string name_;
  std::vector<std::string>& errors_;
  std::vector<Field> header_;
  std::vector<Field> row_;
  std::string line_;
  std::size_t line_number_ = 0;
};

using Index = std::unordered_map<std::string, std::size_t>;  // looked up, never walked through

void add_id(CsvReader& csv, Index& index, std::size_t position) {
  const Field& id = csv.field("id");
  if (id.text.empty() || id.text.find(' ') != std::string::npos)
    csv.error(id.column, "id: expected a name without spaces, found '" + id.text + "'");
  else if (!index.emplace(id.text, position).second)
    csv.error(id.column, "id: '" + id.text + "' stands in an earlier row too");
}

std::vector<std::size_t> read_route(CsvReader& csv, const Index& links) {
  const Field& field = csv.field("route");
  std::vector<std::size_t> route;
  std::size_t at = 0;
  while (at < field.text.size()) {
    const std::size_t end = std::min(field.text.find(' ', at), field.text.size());
    if (const std::string id = field.text.substr(at, end - at); !id.empty()) {
      const auto found = links.find(id);
      if (found == links.end())
        csv.error(field.column + at, "route: there is no link '" + id + "'");
      else if (std::find(route.begin(), route.end(), found->second) != route.end())
        csv.error(field.column + at, "route: link '" + id + "' is on it twice");
      else
        route.push_back(found->second);
    }
    at = end + 1;
  }
  return route;
}

}  // namespace

std::vector<Field> split_csv(const std::string& line) {
  std::vector<Field> out;
  std::size_t i = 0;
  while (true) {
    Field field{.text = {}, .column = i + 1};
    if (i < line.size() && line[i] == '"') {
      for (++i; i < line.size(); ++i) {
        if (line[i] != '"') {
          field.text += line[i];
        } else if (i + 1 < line.size() && line[i + 1] == '"') {
          field.text += line[++i];
        } else {
          ++i;
          break;
        }
      }
    }
    const std::size_t end = std::min(line.find(',', i), line.size());
    field.text.append(line, i, end - i);
    out.push_back(std::move(field));
    if (end == line.size()) return out;
    i = end + 1;
  }
}

FlowTables read_flow_tables(std::istream& links, const std::string& links_name, std::istream& flows,
                            const std::string& flows_name, std::vector<std::string>& errors) {
  FlowTables out;
  Index link_index;
  CsvReader link_csv(links, links_name, errors);
  if (link_csv.require({"id", "bytes_per_s"})) {
    const bool has_latency = link_csv.has("latency_s");
    while (link_csv.next_row()) {
      add_id(link_csv, link_index, out.links.size());
      const auto rate = link_csv.number("bytes_per_s");
      const auto latency = has_latency ? link_csv.number("latency_s") : 0.0;
      out.links.push_back({link_csv.field("id").text, rate.value_or(0), latency.value_or(0)});
    }
  }

  Index flow_index;
  CsvReader flow_csv(flows, flows_name, errors);
  if (flow_csv.require({"id", "bytes", "route"})) {
    const bool has_start = flow_csv.has("start_s"), has_finish = flow_csv.has("finish_s");
    while (flow_csv.next_row()) {
      add_id(flow_csv, flow_index, out.flows.size());
      FlowRow row;
      row.id = flow_csv.field("id").text;
      row.bytes = flow_csv.number("bytes").value_or(0);
      row.start_s = has_start ? flow_csv.number("start_s").value_or(0) : 0.0;
      if (has_finish && !flow_csv.field("finish_s").text.empty())
        row.finish_s = flow_csv.number("finish_s");
      row.route = read_route(flow_csv, link_index);
      out.flows.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace trainyard::cli
