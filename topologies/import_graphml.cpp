#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "topologies/import_builder.hpp"
#include "topologies/xml_reader.hpp"

namespace trainyard::topologies {

namespace {

/// GraphML (Brandes et al. 2002): <key> says what the <data> of nodes and edges mean; edges name
/// the ids of nodes, which may come later. A node is called by its data "name", else by its id.
class GraphMlParser {
 public:
  GraphMlParser(std::string_view text, GraphBuilder& builder) : xml_(text), builder_(builder) {}

  void parse() {
    using Event = XmlReader::Event;
    for (;;) {
      switch (xml_.next()) {
        case Event::open:
          open();
          break;
        case Event::close:
          close();
          break;
        case Event::text:
          if (data_depth_ == xml_.depth()) value_ += xml_.text();
          break;
        case Event::end:
          finish();
          return;
        case Event::error:
          builder_.complain(xml_.line(), xml_.what(), xml_.right());
          return;
      }
    }
  }

 private:
  struct Key {
    std::string name;  // attr.name
    std::string preset;
    bool is_for_edges = true, is_for_nodes = true;
  };
  struct Node {
    std::string id, name, kind;
    int line;
  };
  struct Edge {
    GraphEdge edge;
    std::string from, to;
  };
  enum class In { nothing, key, node, edge };

  std::string attribute(const char* name) const {
    const std::string* found = xml_.attribute(name);
    return found ? *found : std::string{};
  }

  void open() {
    if (data_depth_ > 0) return;  // what other programs nest in <data> is theirs
    const std::string_view name = xml_.name();
    if (!has_root_ && name != "graphml") {
      builder_.complain(xml_.line(),
                        "the file begins with <" + std::string(name.substr(0, 60)) + '>',
                        "<graphml>");
      has_root_ = true;
    } else if (name == "graphml") {
      has_root_ = true;
    } else if (name == "key") {
      begin(In::key);
      key_ = {attribute("attr.name"), {}, true, true};
      key_id_ = attribute("id");
      if (key_.name.empty()) key_.name = key_id_;
      const std::string scope = attribute("for");
      key_.is_for_nodes = scope != "edge";
      key_.is_for_edges = scope != "node";
    } else if (name == "graph") {
      if (in_ == In::node) add_node();  // a graph within a node
      begin(In::nothing);
      is_directed_ = attribute("edgedefault") != "undirected";
    } else if (name == "node") {
      begin(In::node);
      node_ = {attribute("id"), {}, {}, xml_.line()};
    } else if (name == "edge") {
      begin_edge();
    } else if (name == "hyperedge") {
      builder_.complain(xml_.line(), "a hyperedge", "edges with two ends");
    } else if (name == "data" || (name == "default" && in_ == In::key)) {
      data_depth_ = xml_.depth();
      data_key_ = attribute("key");
      value_.clear();
    }
  }

  void begin(In what) { in_ = what; }

  void begin_edge() {
    begin(In::edge);
    edge_ = {{.is_directed = is_directed_, .line = xml_.line()},
             attribute("source"),
             attribute("target")};
    const std::string direction = attribute("directed");
    if (direction == "true" || direction == "false") edge_.edge.is_directed = direction == "true";
    for (const auto& [name, value] : edge_presets_)
      builder_.set(edge_.edge, name, value, edge_.edge.line);
  }

  void close() {
    const std::string_view name = xml_.name();
    if (data_depth_ > 0) {
      if (xml_.depth() >= data_depth_) return;
      data_depth_ = 0;
      take_data();
    } else if (name == "key" && in_ == In::key) {
      if (key_.is_for_edges && !key_.preset.empty())
        edge_presets_.emplace_back(key_.name, key_.preset);
      keys_[key_id_] = key_;
      begin(In::nothing);
    } else if (name == "node" && in_ == In::node) {
      add_node();
      begin(In::nothing);
    } else if (name == "edge" && in_ == In::edge) {
      edges_.push_back(std::move(edge_));
      begin(In::nothing);
    }
  }

  void take_data() {
    if (in_ == In::key) {
      key_.preset = value_;
      return;
    }
    const auto found = keys_.find(data_key_);
    const std::string& name = found == keys_.end() ? data_key_ : found->second.name;
    if (in_ == In::node && name == "name") node_.name = trimmed(value_);
    if (in_ == In::node && name == "kind") node_.kind = trimmed(value_);
    if (in_ == In::edge) builder_.set(edge_.edge, name, value_, xml_.line());
  }

  void add_node() {
    const std::string& name = node_.name.empty() ? node_.id : node_.name;
    if (node_.id.empty())
      builder_.complain(node_.line, "a node has no id", "an attribute id");
    else if (by_id_.contains(node_.id))
      builder_.complain(node_.line, "the id " + in_quotes(node_.id) + " was given before",
                        "another id for each node");
    else if (builder_.find(name))
      builder_.complain(node_.line, "the name " + in_quotes(name) + " was given before",
                        "another name for each node");
    else {
      const std::uint32_t v = builder_.vertex(name, node_.line);
      builder_.set_kind(v, node_.kind);
      by_id_[node_.id] = v;
    }
  }

  void finish() {
    if (!has_root_) builder_.complain(1, "there is no <graphml> in the file", "GraphML");
    for (Edge& e : edges_) {
      const auto end = [&](const std::string& id, std::uint32_t& out) {
        const auto found = by_id_.find(id);
        if (found != by_id_.end())
          out = found->second;
        else
          builder_.complain(e.edge.line, "an edge ends at " + in_quotes(id) + ", which is no node",
                            "the id of a node");
        return found != by_id_.end();
      };
      const bool has_from = end(e.from, e.edge.from);
      if (end(e.to, e.edge.to) && has_from) builder_.add(e.edge);
    }
  }

  XmlReader xml_;
  GraphBuilder& builder_;
  bool has_root_ = false;
  bool is_directed_ = true;
  In in_ = In::nothing;
  std::size_t data_depth_ = 0;  // of the <data> that is open, 0: none
  std::string data_key_, value_, key_id_;
  Key key_;
  Node node_{};
  Edge edge_;
  std::unordered_map<std::string, Key> keys_;
  std::vector<std::pair<std::string, std::string>> edge_presets_;
  std::unordered_map<std::string, std::uint32_t> by_id_;
  std::vector<Edge> edges_;
};

}  // namespace

void parse_graphml(std::string_view text, GraphBuilder& builder) {
  GraphMlParser(text, builder).parse();
}

}  // namespace trainyard::topologies
