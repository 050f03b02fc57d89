#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

/// The tables of `trainyard flows`: CSV with a header line, columns by name in any order, others
/// ignored.
///
///     links   id,bytes_per_s,latency_s    each row one direction; rate 0: broken; latency_s may be
///     left out (0) flows   id,bytes,start_s,route      route: link ids with spaces between;
///     start_s may be left out (0)
///                                         finish_s: the finish that somebody else found, to
///                                         compare with
namespace trainyard::cli {

struct LinkRow {
  std::string id;
  double bytes_per_s = 0;
  double latency_s = 0;
};

struct FlowRow {
  std::string id;
  double bytes = 0;
  double start_s = 0;
  std::optional<double> finish_s;
  std::vector<std::size_t> route;  // indices into the links
};

struct FlowTables {
  std::vector<LinkRow> links;
  std::vector<FlowRow> flows;
};

/// Reads both; mistakes are appended to `errors` as "file:line:column: error: what is wrong, what
/// would be right". The names are for the messages.
FlowTables read_flow_tables(std::istream& links, const std::string& links_name, std::istream& flows,
                            const std::string& flows_name, std::vector<std::string>& errors);

/// The fields of one CSV line with the column (from 1) at which each starts. Fields may be quoted
/// (RFC 4180).
struct Field {
  std::string text;
  std::size_t column = 1;
};
std::vector<Field> split_csv(const std::string& line);

}  // namespace trainyard::cli
