#include "cli/validate_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/page.hpp"

namespace trainyard::cli {

using scenarios::ErrorSummary;
using scenarios::ValidatedRow;
using scenarios::ValidationReport;

namespace {

std::string one_digit(double x, bool is_signed) {
  char text[32];
  std::snprintf(text, sizeof text, is_signed ? "%+.1f" : "%.1f", x);
  return text;
}

constexpr std::size_t name_columns = 42;

/// A name from the user's file: no control characters, and cut between two characters.
std::string shortened(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  if (columns_of(name) <= name_columns) return name;
  std::size_t end = 0;
  for (std::size_t columns = 0; columns < name_columns - 3; ++columns) {
    ++end;
    while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) ++end;
  }
  return name.substr(0, end) + "...";
}

std::string error_row(const std::string& name, const ErrorSummary& e) {
  const std::string shown = shortened(name);
  return "  " + left(shown, name_columns) + right(std::to_string(e.used), 5) +
         right(one_digit(e.median_abs_pct, false), 8) + right(one_digit(e.mean_abs_pct, false), 7) +
         right(one_digit(e.p90_abs_pct, false), 7) + right(one_digit(e.mean_signed_pct, true), 8);
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string digits(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

}  // namespace

std::string validation_text(const ValidationReport& report, const Terminal& terminal) {
  Page page(terminal);
  page.line(painted(terminal, Colour::bold, report.table) + ": table of " + report.kind + ", " +
            with_commas(std::int64_t(report.rows)) + " rows, " +
            with_commas(std::int64_t(report.predictions.size())) + " predicted, " +
            with_commas(std::int64_t(report.skipped.size())) + " not used");
  page.line("error = predicted time / published time - 1, in percent");
  page.line();
  page.line("  " + left("", name_columns) + right("rows", 5) + right("median", 8) +
            right("mean", 7) + right("P90", 7) + right("signed", 8));
  page.line("  " + left("", name_columns) + right("", 5) + right("|error|", 8) +
            right("|error|", 7 + 1) + right("|error|", 7 + 1) + right("mean", 6));
  page.line(error_row("all", report.error));
  std::string by;
  for (const scenarios::ErrorGroup& group : report.groups) {
    if (group.by != by) page.heading("by " + group.by);
    by = group.by;
    page.line(error_row(group.name, group.error));
  }

  std::vector<const ValidatedRow*> worst;
  for (const ValidatedRow& row : report.predictions) worst.push_back(&row);
  std::stable_sort(worst.begin(), worst.end(), [](const ValidatedRow* a, const ValidatedRow* b) {
    return std::abs(a->error_pct) > std::abs(b->error_pct);
  });
  worst.resize(std::min<std::size_t>(worst.size(), 5));
  if (!worst.empty()) page.heading("furthest off");
  for (const ValidatedRow* row : worst)
    page.line("  line " + left(std::to_string(row->line), 6) + "published " +
              right(digits(row->prediction.published * 1e6), 9) + " us, predicted " +
              right(digits(row->prediction.predicted * 1e6), 9) + " us (" +
              one_digit(row->error_pct, true) + " %) by " + row->prediction.method);

  std::map<std::string, std::vector<int>> lines_of_reason;
  for (const scenarios::SkippedRow& row : report.skipped)
    lines_of_reason[row.reason].push_back(row.line);
  if (!lines_of_reason.empty()) page.heading("not used");
  for (const auto& [reason, lines] : lines_of_reason) {
    std::string where = lines.size() == 1 ? "line " : "lines ";
    for (std::size_t i = 0; i < std::min<std::size_t>(lines.size(), 8); ++i)
      where += (i ? ", " : "") + std::to_string(lines[i]);
    if (lines.size() > 8) where += " and " + std::to_string(lines.size() - 8) + " more";
    page.line("  " + right(std::to_string(lines.size()), 4) + "  " + reason + " (" + where + ")");
  }
  return page.text();
}

std::string validation_json(const ValidationReport& report) {
  using Json = nlohmann::ordered_json;
  const auto summary = [](Json& out, const ErrorSummary& e) {
    // Of no rows there is no error.
    const auto or_null = [&](double x) { return e.used == 0 ? Json(nullptr) : Json(x); };
    out["mean_abs_pct"] = or_null(e.mean_abs_pct);
    out["median_abs_pct"] = or_null(e.median_abs_pct);
    out["p90_abs_pct"] = or_null(e.p90_abs_pct);
    out["mean_signed_pct"] = or_null(e.mean_signed_pct);
    out["median_signed_pct"] = or_null(e.median_signed_pct);
  };
  Json out;
  out["schema"] = "trainyard-validate-1";
  out["table"] = report.table;
  out["kind"] = report.kind;
  out["quantity"] = "time_s";
  out["rows"] = report.rows;
  out["used"] = report.predictions.size();
  out["skipped"] = Json::array();
  for (const scenarios::SkippedRow& row : report.skipped)
    out["skipped"].push_back({{"id", row.id}, {"line", row.line}, {"reason", row.reason}});
  summary(out["error"], report.error);
  out["groups"] = Json::array();
  for (const scenarios::ErrorGroup& group : report.groups) {
    Json g{{"by", group.by}, {"name", group.name}, {"used", group.error.used}};
    summary(g, group.error);
    out["groups"].push_back(std::move(g));
  }
  out["predictions"] = Json::array();
  for (const ValidatedRow& row : report.predictions)
    out["predictions"].push_back(
        {{"id", row.id},
         {"line", row.line},
         {"published", row.prediction.published},
         {"predicted", row.prediction.predicted},
         {"error_pct", row.error_pct},
         {"method", row.prediction.method},
         {"uncertainty", std::string(text_of(row.prediction.uncertainty))}});
  // Names come from the user's file and need not be UTF-8.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string validation_csv(const ValidationReport& report) {
  std::string out = "id,line,published_s,predicted_s,error_pct,method,uncertainty";
  if (!report.predictions.empty())
    for (const auto& [by, name] : report.predictions.front().prediction.groups) out += ',' + by;
  out += '\n';
  for (const ValidatedRow& row : report.predictions) {
    const scenarios::RowPrediction& p = row.prediction;
    out += quoted(row.id) + ',' + std::to_string(row.line) + ',' + digits(p.published) + ',' +
           digits(p.predicted) + ',' + digits(row.error_pct) + ',' + quoted(p.method) + ',' +
           std::string(text_of(p.uncertainty));
    for (const auto& [by, name] : p.groups) out += ',' + quoted(name);
    out += '\n';
  }
  return out;
}

}  // namespace trainyard::cli
