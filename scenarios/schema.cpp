#include "scenarios/schema.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "scenarios/part_kinds.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/units_text.hpp"
#include "scenarios/visit.hpp"

namespace trainyard::scenarios {
namespace {

using Json = nlohmann::ordered_json;

/// Every struct appears twice: in full, and as fields laid over something else (a part, a file that
/// is extended), where nothing is required.
enum class Form { full, laid_over };

struct Context {
  const Catalog& catalog;
  Json& definitions;
};

Json reference(const std::string& name, Form form) {
  return {{"$ref", "#/definitions/" + name + (form == Form::full ? "" : ".over")}};
}

template <visit::Described T>
void define(Context& context, const std::string& name, Form form, bool may_name_part);

Json quantity(Dimension dimension) {
  return {{"type", "string"},
          {"pattern", "^\\s*[-+]?[0-9.]+([eE][-+]?[0-9]+)?\\s*[A-Za-z/]"},
          {"description", expected(dimension)}};
}

/// A part: a name of the catalog, one with other fields, or all fields.
template <class T>
Json part_schema(Context& context, std::string_view kind, Form form) {
  const std::string name = "part." + std::string(kind);  // "failures" alone is a key of scenarios
  define<T>(context, name, Form::full, true);
  define<T>(context, name, Form::laid_over, true);
  Json names = Json::array();
  for (const std::string& n : context.catalog.names(kind)) names.push_back(n);
  Json out = Json::object();
  Json by_name = Json::array();
  by_name.push_back({{"type", "string"}, {"enum", names}});
  Json over = Json::object();
  over["allOf"] = Json::array({reference(name, Form::laid_over)});
  if (form == Form::full) over["required"] = Json::array({"part"});
  by_name.push_back(over);
  by_name.push_back(reference(name, Form::full));
  out["anyOf"] = by_name;
  return out;
}

template <class T>
Json value_schema(Context& context, const std::string& name, Form form, Range range) {
  if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (visit::Whole<T> || std::is_same_v<T, double>) {
    Json out = {{"type", std::is_same_v<T, double> ? "number" : "integer"}};
    if (std::isfinite(range.low))
      out[range.low_open ? "exclusiveMinimum" : "minimum"] = range.low;
    else if constexpr (std::is_unsigned_v<T>)
      out["minimum"] = 0;
    if (std::isfinite(range.high)) out["maximum"] = range.high;
    return out;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (visit::is_quantity<T>) {
    return quantity(dimension_of<T>);
  } else if constexpr (std::is_same_v<T, Duration>) {
    return quantity(Dimension::time);
  } else if constexpr (std::is_enum_v<T>) {
    Json all = Json::array();
    for (const auto& [value, text] : Names<T>::all) all.push_back(std::string(text));
    return {{"enum", all}};
  } else if constexpr (visit::is_optional<T>) {
    return value_schema<typename T::value_type>(context, name, form, range);
  } else if constexpr (visit::is_list<T>) {
    return {{"type", "array"},
            {"items", value_schema<typename T::value_type>(context, name + ".item", form, range)}};
  } else if constexpr (visit::is_map<T>) {
    return {{"type", "object"},
            {"propertyNames", {{"pattern", "^[A-Za-z0-9_-]{1,64}$"}}},
            {"additionalProperties",
             value_schema<typename T::mapped_type>(context, name + ".entry", form, range)}};
  } else if constexpr (is_part_in_map<T>) {
    return part_schema<T>(context, part_kind<T>, form);
  } else {
    define<T>(context, name, form, false);
    return reference(name, form);
  }
}

template <class T>
std::string default_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (visit::Whole<T>)
    return std::to_string(value);
  else if constexpr (std::is_same_v<T, double>)
    return Json(value).dump();
  else if constexpr (visit::is_quantity<T> || std::is_same_v<T, Duration>)
    return to_exact_text(value);
  else if constexpr (std::is_enum_v<T>)
    return "\"" + std::string(name_of(value)) + "\"";
  else
    return {};
}

class SchemaVisitor {
 public:
  SchemaVisitor(Context& context, std::string name, Form form)
      : context_(context), name_(std::move(name)), form_(form) {}

  template <class T>
  void required(std::string_view key, T& member, std::string_view doc, Range range = {}) {
    add<T>(key, std::string(doc), range);
    required_.push_back(std::string(key));
    visit::keep_checks_safe(member, range);
  }

  template <class T>
  void optional(std::string_view key, T& member, std::string_view doc, Range range = {}) {
    const std::string otherwise = default_text(member);
    add<T>(key, std::string(doc) + (otherwise.empty() ? "" : "; default " + otherwise), range);
    visit::keep_checks_safe(member, range);
  }

  template <class T>
  void part(std::string_view key, T& member, std::string_view kind, std::string_view doc) {
    if (visit::has_required<T>()) required_.push_back(std::string(key));
    optional_part(key, member, kind, doc);
    visit::RequiredFinder safe;
    describe(safe, member);
  }

  template <class T>
  void optional_part(std::string_view key, T&, std::string_view kind, std::string_view doc) {
    Json out = part_schema<T>(context_, kind, form_);
    out["description"] =
        std::string(doc) + ": a name of the catalog, a part with other fields, or all fields";
    properties_[std::string(key)] = out;
  }

  void check(bool, std::string_view, std::string_view) {}

  Json finish(bool may_name_part) {
    if (may_name_part)
      properties_["part"] = {{"type", "string"},
                             {"description", "a name of the catalog; fields beside it differ"}};
    Json out = {{"type", "object"}, {"properties", properties_}, {"additionalProperties", false}};
    if (form_ == Form::full && !required_.empty()) out["required"] = required_;
    return out;
  }

 private:
  template <class T>
  void add(std::string_view key, const std::string& doc, Range range) {
    const std::string name =
        name_ == "scenario" ? std::string(key) : name_ + "." + std::string(key);
    Json schema = value_schema<T>(context_, name, form_, range);
    if (schema.contains("$ref")) {  // draft-07 ignores what stands beside a $ref
      Json wrapped = {{"description", doc}};
      wrapped["allOf"] = Json::array({schema});
      schema = wrapped;
    } else {
      schema["description"] = schema.contains("description")
                                  ? doc + " (" + schema["description"].get<std::string>() + ")"
                                  : doc;
    }
    // In a file that is laid over another one, null takes a value away.
    if (form_ == Form::laid_over) {
      Json with_null = {{"description", doc}};
      with_null["anyOf"] = Json::array({schema, Json{{"type", "null"}}});
      schema = with_null;
    }
    properties_[std::string(key)] = schema;
  }

  Context& context_;
  std::string name_;
  Form form_;
  Json properties_ = Json::object();
  std::vector<std::string> required_;
};

template <visit::Described T>
void define(Context& context, const std::string& name, Form form, bool may_name_part) {
  const std::string key = name + (form == Form::full ? "" : ".over");
  if (context.definitions.contains(key)) return;
  context.definitions[key] = Json::object();  // once, even if the same kind appears inside
  T value{};
  SchemaVisitor visitor(context, name, form);
  describe(visitor, value);
  Json out = visitor.finish(may_name_part);
  context.definitions[key] = std::move(out);
}

}  // namespace

std::string scenario_schema(const Catalog& catalog) {
  Json definitions = Json::object();
  Context context{catalog, definitions};
  define<Scenario>(context, "scenario", Form::full, false);
  define<Scenario>(context, "scenario", Form::laid_over, false);
  definitions["scenario.over"]["properties"]["extends"] = {
      {"type", "string"},
      {"description", "scenario file that this one is laid over, relative to this file"}};
  Json out = {{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "Trainyard scenario"},
              {"allowComments", true},
              {"allowTrailingCommas", false},
              {"type", "object"}};
  out["if"] = {{"required", Json::array({"extends"})}};
  out["then"] = reference("scenario", Form::laid_over);
  out["else"] = reference("scenario", Form::full);
  out["definitions"] = definitions;
  return out.dump(2) + "\n";
}

}  // namespace trainyard::scenarios
