#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "topologies/dot_tokens.hpp"
#include "topologies/import_builder.hpp"

namespace trainyard::topologies {

namespace {

constexpr int deepest = 100;  // subgraphs within one another; each is a call of ours

/// The DOT language (graphviz.org/doc/info/lang.html): attributes of edges by default and of each,
/// chains a -> b -> c, sets { a b } -> c. Ports of nodes are ignored.
class DotParser {
 public:
  DotParser(std::string_view text, GraphBuilder& builder) : tokens_(text), builder_(builder) {}

  void parse() {
    is_strict_ = take_keyword("strict");
    if (take_keyword("digraph"))
      is_directed_ = true;
    else if (!take_keyword("graph"))
      return (void)unexpected("graph or digraph");
    if (tokens_.now().kind == Kind::id) tokens_.take();
    Scope whole;
    if (expect("{") && statements(whole) && tokens_.now().kind != Kind::end)
      unexpected("one graph in the file");
  }

 private:
  using Kind = DotTokens::Kind;
  using Attributes = std::vector<std::pair<std::string, std::string>>;
  struct Scope {
    Attributes of_edges;
    std::string kind_of_nodes{};
    std::vector<std::uint32_t> vertices{};  // named in it, without doubles
  };

  bool take_keyword(const char* word) {
    if (!tokens_.is_keyword(word)) return false;
    tokens_.take();
    return true;
  }

  bool unexpected(const std::string& right) {
    const auto& t = tokens_.now();
    builder_.complain(
        t.line, t.kind == Kind::error || t.kind == Kind::end ? t.text : in_quotes(t.text), right);
    return false;
  }

  bool expect(const char* symbol) {
    return tokens_.take_if(symbol) || unexpected(in_quotes(symbol));
  }

  /// An ID; pieces joined by + are one.
  bool id(std::string& out) {
    if (tokens_.now().kind != Kind::id) return unexpected("a name or a value");
    out = tokens_.take().text;
    while (tokens_.take_if("+")) {
      if (tokens_.now().kind != Kind::id) return unexpected("a quoted text after +");
      out += tokens_.take().text;
    }
    return true;
  }

  bool statements(Scope& scope) {
    while (!tokens_.take_if("}")) {
      if (tokens_.take_if(";")) continue;
      if (!statement(scope)) return false;
    }
    return true;
  }

  bool statement(Scope& scope) {
    if (tokens_.is_keyword("graph") || tokens_.is_keyword("node") || tokens_.is_keyword("edge")) {
      const bool is_edge = tokens_.is_keyword("edge"), is_node = tokens_.is_keyword("node");
      tokens_.take();
      Attributes given;
      if (!attributes(given)) return false;
      for (const auto& [key, value] : given) {
        if (is_edge) set_default(scope.of_edges, key, value);
        if (is_node && key == "kind") scope.kind_of_nodes = value;
      }
      return true;
    }
    return chain(scope);
  }

  static void set_default(Attributes& all, const std::string& key, const std::string& value) {
    if (!GraphBuilder::is_of_edges(key)) return;
    for (auto& [old, old_value] : all)
      if (old == key) return (void)(old_value = value);
    all.emplace_back(key, value);
  }

  /// A node, a set, an edge, or ID = ID.
  bool chain(Scope& scope) {
    const int line = tokens_.now().line;
    std::vector<std::vector<std::uint32_t>> ends(1);
    bool is_set = false;
    if (!operand(scope, ends[0], is_set)) return false;
    if (is_assignment_) {
      is_assignment_ = false;
      return true;
    }
    while (tokens_.is("->") || tokens_.is("--")) {
      if (tokens_.is("->") != is_directed_)
        return unexpected(is_directed_ ? "\"->\" in a digraph" : "\"--\" in a graph");
      tokens_.take();
      ends.emplace_back();
      bool unused = false;
      if (!operand(scope, ends.back(), unused) || is_assignment_)
        return is_assignment_ ? unexpected("a node") : false;
    }
    Attributes given;
    if (tokens_.is("[") && !attributes(given)) return false;
    if (ends.size() == 1) {
      for (const auto& [key, value] : given)
        if (key == "kind" && !is_set) builder_.set_kind(ends[0][0], value);
      return true;
    }
    add_edges(scope, ends, given, line);
    return true;
  }

  void add_edges(const Scope& scope, const std::vector<std::vector<std::uint32_t>>& ends,
                 const Attributes& given, int line) {
    GraphEdge e{.is_directed = is_directed_, .line = line};
    for (const Attributes* some : {&scope.of_edges, &given})
      for (const auto& [key, value] : *some) builder_.set(e, key, value, line);
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      edges_ += ends[i].size() * ends[i + 1].size();
      if (edges_ > most_edges || ends[i].size() * ends[i + 1].size() > most_of_sets)
        return builder_.complain(line, "two sets with too many edges between them",
                                 "at most a million edges, 20 million in all");
      for (const std::uint32_t from : ends[i])
        for (const std::uint32_t to : ends[i + 1]) {
          e.from = from;
          e.to = to;
          const bool is_turned = !is_directed_ && to < from;
          if (!is_strict_ || seen_.emplace(is_turned ? to : from, is_turned ? from : to).second)
            builder_.add(e);
        }
    }
  }

  bool operand(Scope& scope, std::vector<std::uint32_t>& out, bool& is_set) {
    if (tokens_.is("{") || tokens_.is_keyword("subgraph")) {
      is_set = true;
      if (take_keyword("subgraph") && tokens_.now().kind == Kind::id) tokens_.take();
      return set(scope, out);
    }
    const int line = tokens_.now().line;
    std::string name;
    if (!id(name)) return false;
    if (tokens_.take_if("=")) {
      is_assignment_ = true;
      return id(name);
    }
    for (int i = 0; i < 2 && tokens_.take_if(":"); ++i) {
      std::string port;
      if (!id(port)) return false;
    }
    const bool is_new = !builder_.find(name);
    out = {builder_.vertex(name, line)};
    if (is_new && !scope.kind_of_nodes.empty()) builder_.set_kind(out[0], scope.kind_of_nodes);
    scope.vertices.push_back(out[0]);
    return true;
  }

  bool set(Scope& scope, std::vector<std::uint32_t>& out) {
    if (++depth_ > deepest) return unexpected("at most 100 subgraphs within one another");
    Scope inner{scope.of_edges, scope.kind_of_nodes, {}};
    if (!expect("{") || !statements(inner)) return false;
    --depth_;
    for (const std::uint32_t v : inner.vertices)
      if (marked_.insert(v).second) out.push_back(v);
    for (const std::uint32_t v : out) marked_.erase(v);
    scope.vertices.insert(scope.vertices.end(), out.begin(), out.end());
    return true;
  }

  bool attributes(Attributes& out) {
    if (!tokens_.is("[")) return unexpected("\"[\"");
    while (tokens_.take_if("[")) {
      while (!tokens_.take_if("]")) {
        if (tokens_.take_if(";") || tokens_.take_if(",")) continue;
        std::string key, value = "true";
        if (!id(key)) return false;
        if (tokens_.take_if("=") && !id(value)) return false;
        out.emplace_back(std::move(key), std::move(value));
      }
    }
    return true;
  }

  static constexpr std::size_t most_of_sets = 1'000'000;  // sets multiply
  static constexpr std::size_t most_edges = 20'000'000;

  DotTokens tokens_;
  GraphBuilder& builder_;
  bool is_strict_ = false;
  bool is_directed_ = false;
  bool is_assignment_ = false;
  int depth_ = 0;
  std::size_t edges_ = 0;
  std::set<std::uint32_t> marked_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen_;  // of a strict graph
};

}  // namespace

void parse_dot(std::string_view text, GraphBuilder& builder) {
  DotParser(text, builder).parse();
}

}  // namespace trainyard::topologies
