#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "topologies/import.hpp"

/// What the three readers share: vertices by name, attributes of edges, and complaints.
namespace trainyard::topologies {

class GraphBuilder {
 public:
  GraphBuilder(const std::string& file, Problems& problems) : problems_(problems) {
    graph_.file = file;
  }

  /// At most 20 are listed, then counted.
  void complain(int line, const std::string& what, const std::string& right);
  bool has_failed() const { return complaints_ > 0; }

  /// The vertex of this name, new if there was none. Complains about names that cannot be used.
  std::uint32_t vertex(std::string_view name, int line);
  std::optional<std::uint32_t> find(std::string_view name) const;
  void set_kind(std::uint32_t v, std::string_view kind) { graph_.vertices[v].kind = kind; }

  /// capacity_gbps, capacity, latency_us, latency or count.
  static bool is_of_edges(std::string_view key);
  /// Sets one of them; ignores other keys.
  void set(GraphEdge&, std::string_view key, std::string_view value, int line);
  void add(const GraphEdge& e) { graph_.edges.push_back(e); }

  GraphFile finish();

 private:
  Problems& problems_;
  GraphFile graph_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::size_t complaints_ = 0;
};

void parse_graphml(std::string_view text, GraphBuilder&);
void parse_dot(std::string_view text, GraphBuilder&);
void parse_edge_list(std::string_view text, GraphBuilder&);

/// Text of a file as it may stand in a message: quoted, short, without control characters.
std::string in_quotes(std::string_view);
std::string_view trimmed(std::string_view);
/// A finite number and nothing else.
std::optional<double> number_of(std::string_view);
/// "400 Gb/s", "7 GB/s"; "350 ns", "0.35 us".
std::optional<BytesPerSecond> rate_of(std::string_view);
std::optional<Duration> time_of(std::string_view);

}  // namespace trainyard::topologies
