#include "scenarios/overrides.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

namespace trainyard::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_chain = 16;

/// A text under an object means the part of that name.
void become_object(Node& node) {
  if (node.kind == Node::Kind::object) return;
  Node object = Node::of_object(node.place);
  if (node.kind == Node::Kind::text)
    object.members.push_back({"part", Node::of_text(node.text, node.place)});
  node = std::move(object);
}

Diagnostic bad_set(const std::string& text, std::string what, std::string right) {
  Diagnostic d;
  d.file = "--set " + text;
  d.what = std::move(what);
  d.right = std::move(right);
  d.code = "set";
  return d;
}

Node value_of(const std::shared_ptr<const Source>& source, const std::string& text) {
  auto alone = std::make_shared<Source>(*source);
  alone->text = text;
  std::vector<Diagnostic> unused;
  Node node = parse_json(alone, unused);
  if (unused.empty()) return node;
  return Node::of_text(text, Place{source, 1, 1, 1, 1, {}});
}

Node load(std::shared_ptr<const Source> source, std::vector<fs::path>& chain,
          std::vector<Diagnostic>& diagnostics) {
  const std::size_t before = diagnostics.size();
  Node node = parse_json(source, diagnostics);
  if (node.kind != Node::Kind::object) {
    if (diagnostics.size() == before)
      diagnostics.push_back(
          diagnose(node.place, At::value, "", "expected an object, found " + node.as_found(),
                   "a scenario is {\"cluster\": {…}, \"jobs\": {…}}", "bad-type"));
    return Node::of_object(Place{source, 1, 1, 1, 1, {}});
  }
  const Node* extends = node.find("extends");
  if (!extends) return node;
  const Node reference = *extends;
  std::erase_if(node.members, [](const Member& m) { return m.key == "extends"; });
  if (reference.kind == Node::Kind::null) return node;
  const auto wrong = [&](std::string what, std::string right) {
    diagnostics.push_back(diagnose(reference.place, At::value, "extends", std::move(what),
                                   std::move(right), "extends"));
  };
  if (reference.kind != Node::Kind::text || reference.text.empty()) {
    wrong("expected the name of a scenario file, found " + reference.as_found(),
          "\"extends\": \"base.json\", relative to this file");
    return node;
  }
  const fs::path base = fs::path(source->name).parent_path() / fs::path(reference.text);
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(base, error);
  if (std::find(chain.begin(), chain.end(), canonical) != chain.end()) {
    wrong(in_quotes(reference.text) + " extends this file in turn: a circle",
          "one of the files must not extend another");
    return node;
  }
  if (chain.size() >= longest_chain) {
    wrong("more than " + std::to_string(longest_chain) + " files extend each other",
          "merge some of them");
    return node;
  }
  std::vector<Diagnostic> of_base;
  const auto base_source = load_source(base.string(), of_base);
  if (!base_source) {
    wrong("cannot extend " + in_quotes(reference.text) + ": " + of_base.front().what,
          of_base.front().right.empty() ? "the name is relative to this file: " + base.string()
                                        : of_base.front().right);
    return node;
  }
  chain.push_back(canonical);
  Node merged = load(base_source, chain, diagnostics);
  merge(merged, node);
  merged.place = node.place;
  return merged;
}

}  // namespace

void merge(Node& target, const Node& patch) {
  if (patch.kind != Node::Kind::object) {
    target = patch;
    return;
  }
  become_object(target);
  target.place = patch.place;
  target.implied = target.implied && patch.implied;
  std::map<std::string, std::size_t, std::less<>> index;
  for (std::size_t i = 0; i < target.members.size(); ++i) index.emplace(target.members[i].key, i);
  for (const Member& m : patch.members) {
    const auto it = index.find(m.key);
    if (it != index.end()) {
      merge(target.members[it->second].value, m.value);
    } else {
      index.emplace(m.key, target.members.size());
      target.members.push_back(m);
    }
  }
}

std::optional<Problem> set_path(Node& root, const std::string& path, Node value,
                                const Place& place) {
  Node* node = &root;
  int depth = 0;
  for (std::size_t start = 0;;) {
    const std::size_t dot = path.find('.', start);
    const std::string key =
        path.substr(start, dot == std::string::npos ? std::string::npos : dot - start);
    if (key.empty() || ++depth > max_depth)
      return Problem{
          path,
          "the path " + in_quotes(path) + (key.empty() ? " has an empty part" : " is too long"),
          "names are joined by single dots: cluster.fabric.routing"};
    if (node->kind == Node::Kind::list)
      return Problem{path, "the path " + in_quotes(path) + " leads into a list",
                     "set the whole list"};
    if (node->kind == Node::Kind::number || node->kind == Node::Kind::boolean)
      return Problem{
          path,
          "the path " + in_quotes(path) + " leads on from the plain value " + node->as_found(),
          start > 0 ? "set " + path.substr(0, start - 1) + " itself" : ""};
    if (node->kind != Node::Kind::object) {
      const bool was_null = node->kind == Node::Kind::null;
      become_object(*node);
      node->place = place;
      node->implied = was_null;
    }
    Node* child = node->find(key);
    if (!child) {
      child = &node->members.emplace_back(Member{key, Node::of_object(place)}).value;
      child->implied = true;
    }
    node = child;
    if (dot == std::string::npos) break;
    start = dot + 1;
  }
  value.implied = false;
  if (value.kind == Node::Kind::object) node->implied = false;
  merge(*node, value);
  node->implied = false;
  return std::nullopt;
}

void apply_overrides(Node& root, const std::vector<std::string>& overrides,
                     std::vector<Diagnostic>& diagnostics) {
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics.push_back(bad_set(text, "expected path=value", "such as --set cluster.spares=4"));
      continue;
    }
    const auto source = std::make_shared<Source>(Source{Source::Kind::set, "--set " + text, text});
    if (const auto problem =
            set_path(root, text.substr(0, equals), value_of(source, text.substr(equals + 1)),
                     Place{source, 1, 1, 1, 1, {}}))
      diagnostics.push_back(bad_set(text, problem->what, problem->right));
  }
}

Node load_layers(const std::string& file, std::vector<Diagnostic>& diagnostics) {
  const auto source = load_source(file, diagnostics);
  if (!source) return Node::of_object({});
  std::error_code error;
  std::vector<fs::path> chain{fs::weakly_canonical(fs::path(file), error)};
  return load(source, chain, diagnostics);
}

Node load_layers_of_text(const std::string& name, const std::string& text,
                         std::vector<Diagnostic>& diagnostics) {
  const auto source = make_source(name, text, diagnostics);
  if (!source) return Node::of_object({});
  std::error_code error;
  std::vector<fs::path> chain{fs::weakly_canonical(fs::path(name), error)};
  return load(source, chain, diagnostics);
}

}  // namespace trainyard::scenarios
