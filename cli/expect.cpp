#include "cli/expect.hpp"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/diagnostic.hpp"
#include "scenarios/json_path.hpp"

namespace trainyard::cli {

using Json = nlohmann::json;
using scenarios::find_figure;

namespace {

std::optional<double> number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

bool holds(double a, const std::string& relation, double b) {
  if (relation == ">=") return a >= b;
  if (relation == "<=") return a <= b;
  if (relation == ">") return a > b;
  if (relation == "<") return a < b;
  if (relation == "==") return a == b;
  return a != b;
}

/// Text and truth values compare as text: state==complete.
std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool holds(const Json& found, const Bound& bound) {
  if (found.is_null()) return false;
  if (found.is_number()) return holds(found.get<double>(), bound.relation, *number(bound.value));
  return (plain(found) == bound.value) == (bound.relation == "==");
}

}  // namespace

std::vector<Bound> parse_bounds(const std::vector<std::string>& texts) {
  std::vector<Bound> out;
  for (const std::string& text : texts) {
    const std::size_t at = text.find_first_of("<>=!");
    Bound bound{.text = text, .path = {}, .relation = {}, .value = {}};
    if (at != std::string::npos) {
      const std::size_t length = at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1;
      bound.path = trimmed(text.substr(0, at));
      bound.relation = text.substr(at, length);
      bound.value = trimmed(text.substr(at + length));
    }
    const bool equality = bound.relation == "==" || bound.relation == "!=";
    const bool order = bound.relation == ">=" || bound.relation == "<=" || bound.relation == ">" ||
                       bound.relation == "<";
    if (bound.path.empty() || bound.value.empty() || !(equality || order))
      throw UsageError(
          "--expect: expected PATH>=NUMBER (or <=, >, <, ==, !=), such as jobs.llama.goodput>=0.9; "
          "found '" +
          text + "'");
    if (order && !number(bound.value))
      throw UsageError("--expect: '" + bound.value + "' in '" + text + "' is not a number");
    out.push_back(std::move(bound));
  }
  return out;
}

void require_paths(const std::vector<Bound>& bounds, const std::string& json) {
  if (bounds.empty()) return;
  const Json object = Json::parse(json);
  for (const Bound& bound : bounds) {
    std::vector<std::string> known;
    const Json* found = find_figure(object, bound.path, known);
    if (!found) {
      std::string list;
      for (const std::string& key : known) list += (list.empty() ? "" : ", ") + key;
      const std::string last = bound.path.substr(bound.path.rfind('.') + 1);
      const std::string near = scenarios::nearest(last, known);
      throw UsageError("--expect: the result has no '" + bound.path + "'" +
                       (!near.empty()  ? "; did you mean '" + near + "'?"
                        : list.empty() ? ""
                                       : "; there is: " + list));
    }
    if (found->is_structured())
      throw UsageError("--expect: '" + bound.path + "' is not one figure; name a member of it");
    if (found->is_number() && !number(bound.value))
      throw UsageError("--expect: '" + bound.path + "' is a number, '" + bound.value + "' is not");
    if ((found->is_string() || found->is_boolean()) && bound.relation != "==" &&
        bound.relation != "!=")
      throw UsageError("--expect: '" + bound.path +
                       "' is no number and can only be compared with == and !=");
  }
}

std::vector<std::string> missed(const std::vector<Bound>& bounds, const std::string& json) {
  std::vector<std::string> out;
  if (bounds.empty()) return out;
  require_paths(bounds, json);
  const Json object = Json::parse(json);
  for (const Bound& bound : bounds) {
    std::vector<std::string> known;
    const Json& found = *find_figure(object, bound.path, known);
    if (!holds(found, bound))
      out.push_back("expected " + bound.text + ", but it is " +
                    (found.is_null() ? "not defined" : plain(found)));
  }
  return out;
}

}  // namespace trainyard::cli
