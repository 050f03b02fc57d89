#include "scenarios/calibrate_files.hpp"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/units_text.hpp"

namespace trainyard::scenarios {
namespace {

using Json = nlohmann::ordered_json;

/// Four digits: more would be noise, and three would round by up to half a percent.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return std::stod(text);
}

/// As the figure is written: a number, or a time with its unit.
Json figure_json(const FigurePlace& place, double value) {
  if (is_time(place)) return to_exact_text(seconds(rounded(value)));
  return rounded(value);
}

std::optional<double> figure_number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  UnitError error;
  if (value.is_string())
    if (const auto time = parse_duration(value.get<std::string>(), error)) return to_seconds(*time);
  return {};
}

/// An object on one line, as people write it: {"a": 1, "b": [2, 3]}.
void on_one_line(const Json& json, std::string& out) {
  if (json.is_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : json.items()) {
      out += (first ? "" : ", ") + Json(key).dump() + ": ";
      on_one_line(value, out);
      first = false;
    }
    out += '}';
  } else if (json.is_array()) {
    out += '[';
    bool first = true;
    for (const Json& value : json) {
      out += first ? "" : ", ";
      on_one_line(value, out);
      first = false;
    }
    out += ']';
  } else {
    out += json.dump();
  }
}

/// Figures one a line, groups of figures one level deeper.
void figures_text(const Json& figures, const std::string& indent, std::string& out) {
  out += "{\n";
  bool first = true;
  for (const auto& [key, value] : figures.items()) {
    out += (first ? "" : ",\n") + indent + "  " + Json(key).dump() + ": ";
    if (value.is_object() && !value.contains("value"))
      figures_text(value, indent + "  ", out);
    else
      on_one_line(value, out);
    first = false;
  }
  out += "\n" + indent + "}";
}

std::string to_text(const Json& part) {
  std::string out = "{\n";
  bool first = true;
  for (const auto& [key, value] : part.items()) {
    out += (first ? "  " : ",\n  ") + Json(key).dump() + ": ";
    if (key == "figures")
      figures_text(value, "  ", out);
    else
      on_one_line(value, out);
    first = false;
  }
  return out + "\n}\n";
}

FigurePlace place_of(const Json& part, const std::string& key) {
  return {part.at("kind").get<std::string>(), part.at("part").get<std::string>(), key};
}

bool can_hold_constants(const Json& part) {
  const std::string kind = part.at("kind").get<std::string>();
  return kind == "calibration" || kind == "software";
}

/// The constant whose own figure this is.
std::optional<std::size_t> constant_at(const FigurePlace& place, const ConstantTable& table) {
  for (std::size_t c = 0; c < table.constants.size(); ++c)
    for (const FigurePlace& set : table.constants[c].sets)
      if (set.covers(place)) return c;
  return {};
}

constexpr std::size_t stacks_named = 5;  // those with most rows; a shared constant has many more

/// "training_throughput.csv: 125 rows (llm-foundry 60, …); device_micro.csv: 12 rows (…)"
std::string rows_text(const FittedConstant& fitted) {
  if (fitted.rows == 0) return "none: the value is its prior";
  std::string out;
  for (std::size_t i = 0; i < fitted.rows_by_stack.size();) {
    const std::string& table = fitted.rows_by_stack[i].table;
    std::string stacks;
    std::size_t rows = 0, listed = 0, others = 0;
    for (; i < fitted.rows_by_stack.size() && fitted.rows_by_stack[i].table == table; ++i) {
      const RowCount& count = fitted.rows_by_stack[i];
      rows += count.rows;
      if (++listed <= stacks_named)
        stacks += (stacks.empty() ? "" : ", ") + count.stack + " " + std::to_string(count.rows);
      else
        others += count.rows;
    }
    if (others > 0) stacks += ", others " + std::to_string(others);
    out +=
        (out.empty() ? "" : "; ") + table + ": " + std::to_string(rows) + " rows (" + stacks + ")";
  }
  return out;
}

constexpr const char* method =
    "Least squares over published step times and GEMM benchmarks (docs/guide/calibrate.md): ";

std::string tie_text(const TiedFigure& tied) {
  std::string out = tied.why + " (";
  for (std::size_t i = 0; i < tied.times.size(); ++i) out += (i ? " x " : "") + tied.times[i];
  for (const std::string& name : tied.over) out += " / " + name;
  return out + ")";
}

/// Writes one figure anew if it is fitted or tied to what is; says whether it is.
bool update(Json& figure, const FigurePlace& place, const ConstantTable& table,
            const Calibration& fitted) {
  std::vector<double> values;
  for (const FittedConstant& c : fitted.constants) values.push_back(c.value);
  const auto value = figure_value(place, table, values);
  if (!value) return false;
  Json out = {{"value", figure_json(place, *value)}};
  if (const auto at = constant_at(place, table)) {
    const Constant& constant = table.constants[*at];
    out["prior"] = figure_json(place, constant.prior);
    out["standard_error"] = [&]() -> Json {
      char text[32];
      std::snprintf(text, sizeof text, "%.2g", *value * fitted.constants[*at].error);
      if (is_time(place)) return to_exact_text(seconds(std::stod(text)));
      return std::stod(text);
    }();
    out["rows"] = rows_text(fitted.constants[*at]);
    out["source"] = method + constant.why;
    out["sure"] = "fit";
  } else {
    for (const TiedFigure& tied : table.tied)
      if (tied.place.covers(place)) out["source"] = tie_text(tied);
    out["sure"] = "calc";
  }
  if (figure.contains("note")) out["note"] = figure["note"];
  figure = std::move(out);
  return true;
}

std::string tables_text(const std::vector<FittedTable>& tables) {
  std::string out;
  for (const FittedTable& t : tables)
    out += (out.empty() ? "" : "; ") + t.name + " (" + std::to_string(t.rows) + " rows, sha256 " +
           t.sha256.substr(0, 12) + ")";
  return out;
}

/// The value that a note announces: "refit 0.77: …" or "refit 4.4 us; …".
std::optional<double> announced(const Json& figure) {
  if (!figure.contains("note") || !figure["note"].is_string()) return {};
  const std::string note = figure["note"].get<std::string>();
  const std::size_t at = note.find("refit ");
  if (at == std::string::npos) return {};
  const std::string words = note.substr(at + 6, note.find_first_of(";:,", at) - at - 6);
  UnitError error;
  if (const auto time = parse_duration(words, error)) return to_seconds(*time);
  char* end = nullptr;
  const double number = std::strtod(words.c_str(), &end);
  return end == words.c_str() ? std::nullopt : std::optional(number);
}

}  // namespace

std::string part_text(std::string_view json) {
  return to_text(Json::parse(json));
}

std::vector<double> present_values(const std::vector<PartText>& parts, const ConstantTable& table) {
  std::vector<std::optional<double>> found(table.constants.size());
  for (const PartText& file : parts) {
    const Json part = Json::parse(file.text);
    if (!can_hold_constants(part)) continue;
    for (const auto& [key, figure] : part.at("figures").items()) {
      const auto at = constant_at(place_of(part, key), table);
      const auto value =
          at && figure.contains("value") ? figure_number(figure["value"]) : std::nullopt;
      if (value && !found[*at]) found[*at] = value;
    }
  }
  std::vector<double> out;
  for (std::size_t c = 0; c < found.size(); ++c)
    out.push_back(found[c].value_or(table.constants[c].prior));
  return out;
}

std::vector<PartFile> calibrated_files(const std::vector<PartText>& parts,
                                       const ConstantTable& table, const Calibration& fitted,
                                       const std::vector<FittedTable>& tables) {
  std::vector<PartFile> out;
  for (const PartText& file : parts) {
    Json part = Json::parse(file.text);
    if (!can_hold_constants(part)) continue;
    bool holds_some = false;
    for (auto& [key, figure] : part["figures"].items())
      holds_some = update(figure, place_of(part, key), table, fitted) || holds_some;
    if (!holds_some) continue;
    if (part["kind"] == "calibration" && !tables.empty())
      part["figures"]["rows"] = {
          {"value", tables_text(tables)}, {"source", "docs/guide/calibrate.md"}, {"sure", "calc"}};
    out.push_back({std::string(file.file), to_text(part)});
  }
  return out;
}

std::vector<MovedConstant> moved_without_note(const std::vector<PartText>& parts,
                                              const ConstantTable& table, const Calibration& fitted,
                                              double tolerance) {
  std::vector<MovedConstant> out;
  std::vector<bool> is_listed(table.constants.size(), false);
  for (const PartText& file : parts) {
    const Json part = Json::parse(file.text);
    if (!can_hold_constants(part)) continue;
    for (const auto& [key, figure] : part.at("figures").items()) {
      const auto at = constant_at(place_of(part, key), table);
      if (!at || is_listed[*at] || !figure.contains("value")) continue;
      const auto present = figure_number(figure["value"]);
      const double refitted = fitted.constants[*at].value;
      if (!present || std::abs(refitted / *present - 1) <= tolerance) continue;
      const auto note = announced(figure);
      if (note && std::abs(refitted / *note - 1) <= tolerance) continue;
      is_listed[*at] = true;
      out.push_back({table.constants[*at].name, *present, refitted, std::string(file.file)});
    }
  }
  return out;
}

}  // namespace trainyard::scenarios
