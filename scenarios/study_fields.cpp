#include "scenarios/study_fields.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace trainyard::scenarios {

Fields::Fields(const Node& object, std::string path, const std::vector<std::string>& known,
               std::vector<Diagnostic>& diagnostics)
    : object_(object), path_(std::move(path)), diagnostics_(diagnostics) {
  if (object.kind != Node::Kind::object) {
    wrong(object, path_, "expected an object, found " + object.as_found());
    return;
  }
  for (const Member& member : object.members) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    std::string all;
    for (const std::string& key : known) all += (all.empty() ? "" : ", ") + key;
    const std::string near = nearest(member.key, known);
    diagnostics_.push_back(diagnose(
        member.value.place, At::key, path_of(member.key), "unknown key " + in_quotes(member.key),
        near.empty() ? "known here: " + all : "did you mean \"" + near + "\"?", "unknown-key"));
  }
}

const Node* Fields::find(const std::string& key) const {
  const Node* node = object_.find(key);
  return node == nullptr || node->kind == Node::Kind::null ? nullptr : node;
}

void Fields::wrong(const Node& node, const std::string& path, std::string what,
                   std::string right) const {
  diagnostics_.push_back(
      diagnose(node.place, At::value, path, std::move(what), std::move(right), "study"));
}

void Fields::wrong(const std::string& key, std::string what, std::string right) const {
  const Node* node = find(key);
  wrong(node != nullptr ? *node : object_, path_of(key), std::move(what), std::move(right));
}

std::optional<std::string> Fields::text(const std::string& key) const {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Node::Kind::text && !node->text.empty()) return node->text;
  wrong(key, "expected text in quotes, found " + node->as_found());
  return std::nullopt;
}

std::optional<bool> Fields::flag(const std::string& key) const {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Node::Kind::boolean) return node->boolean;
  wrong(key, "expected true or false, found " + node->as_found());
  return std::nullopt;
}

std::optional<double> Fields::number(const std::string& key, double above, double below) const {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Node::Kind::number && node->number > above && node->number < below)
    return node->number;
  const std::string bound =
      std::isfinite(below) ? "between " + std::to_string(above) + " and " + std::to_string(below)
                           : "above " + std::to_string(above);
  wrong(key, "expected a number " + bound + ", found " + node->as_found());
  return std::nullopt;
}

std::optional<std::int64_t> Fields::whole(const std::string& key, std::int64_t least,
                                          std::int64_t most) const {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  std::int64_t value = 0;
  const char* end = node->text.data() + node->text.size();
  const auto [stop, error] = std::from_chars(node->text.data(), end, value);
  if (node->kind == Node::Kind::number && error == std::errc{} && stop == end && value >= least &&
      value <= most)
    return value;
  wrong(key, "expected a whole number from " + std::to_string(least) + " to " +
                 std::to_string(most) + ", found " + node->as_found());
  return std::nullopt;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 60 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

}  // namespace trainyard::scenarios
