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

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out;
}

std::string digits(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

}  // namespace

namespace {

void heading_lines(Page& page, const ValidationReport& report) {
  page.line(painted(page.terminal(), Colour::bold, report.table) + ": table of " + report.kind +
            ", " + with_commas(std::int64_t(report.rows)) + " rows, " +
            with_commas(std::int64_t(report.predictions.size())) + " predicted, " +
            with_commas(std::int64_t(report.skipped.size())) + " not used");
  const std::string name = report.quantity.name;
  page.line(report.quantity.in_points
                ? "error = predicted " + name + " - published " + name + ", in percentage points"
                : "error = predicted " + name + " / published " + name + " - 1, in percent");
  page.line();
  page.line("  " + left("", name_columns) + right("rows", 5) + right("median", 8) +
            right("mean", 7) + right("P90", 7) + right("signed", 8));
  page.line("  " + left("", name_columns) + right("", 5) + right("|error|", 8) +
            right("|error|", 7 + 1) + right("|error|", 7 + 1) + right("mean", 6));
}

void group_lines(Page& page, const ValidationReport& report) {
  page.line(error_row("all", report.error));
  std::string by;
  for (const scenarios::ErrorGroup& group : report.groups) {
    if (group.by != by) page.heading("by " + group.by);
    by = group.by;
    page.line(error_row(group.name, group.error));
  }
}

void comparison_lines(Page& page, const ValidationReport& report) {
  if (!report.references.empty()) page.heading("to judge these errors by");
  for (const scenarios::ReferenceError& reference : report.references)
    if (reference.error.used > 0) page.line(error_row(reference.name, reference.error));
  const bool has_pairs = std::any_of(report.orders.begin(), report.orders.end(),
                                     [](const auto& o) { return o.pairs + o.identical > 0; });
  if (has_pairs) page.heading("order of layouts for one model, batch and number of GPUs");
  for (const scenarios::PairOrder& order : report.orders)
    if (order.pairs + order.identical > 0)
      page.line(
          "  " + left(order.name, name_columns) + std::to_string(order.right) + " of " +
          std::to_string(order.pairs) + " pairs more than 5 % apart are right" +
          (order.pairs == 0
               ? ""
               : " (" + one_digit(100 * double(order.right) / double(order.pairs), false) + " %)") +
          (order.identical == 0
               ? ""
               : "; " + std::to_string(order.identical) + " more have identical inputs"));
  if (!report.ranks.empty()) page.heading("rank correlation (Spearman)");
  for (const scenarios::RankCorrelation& rank : report.ranks) {
    if (rank.rows < 2) continue;
    char value[32];
    std::snprintf(value, sizeof value, "%.3f", rank.value);
    page.line("  " + left(rank.name, name_columns) + right(std::to_string(rank.rows), 5) +
              right(value, 8));
  }
}

void worst_lines(Page& page, const ValidationReport& report) {
  std::vector<const ValidatedRow*> worst;
  for (const ValidatedRow& row : report.predictions) worst.push_back(&row);
  std::stable_sort(worst.begin(), worst.end(), [](const ValidatedRow* a, const ValidatedRow* b) {
    return std::abs(a->error_pct) > std::abs(b->error_pct);
  });
  worst.resize(std::min<std::size_t>(worst.size(), 5));
  if (!worst.empty()) page.heading("furthest off");
  for (const ValidatedRow* row : worst) {
    const scenarios::RowPrediction& p = row->prediction;
    const std::string unit = p.in_points ? "%" : report.quantity.unit;
    const double scale = p.in_points ? 1 : report.quantity.per_unit;
    page.line("  line " + left(std::to_string(row->line), 6) + "published " +
              right(digits(p.published * scale), 9) + " " + unit + ", predicted " +
              right(digits(p.predicted * scale), 9) + " " + unit + " (" +
              one_digit(row->error_pct, true) +
              (report.quantity.in_points || p.in_points ? " points) by " : " %) by ") + p.method);
  }
}

void rule_lines(Page& page, const ValidationReport& report) {
  if (!report.rules.empty()) page.heading("rules that filled what rows leave open");
  for (const auto& [rule, rows] : report.rules)
    page.line("  " + right(std::to_string(rows), 5) + "  " + rule);
}

void skipped_lines(Page& page, const ValidationReport& report) {
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
}

/// What errors to expect of step times of each class that is there.
void expectation_lines(Page& page, const ValidationReport& report) {
  if (report.quantity.name != "step time") return;
  page.heading("errors to expect of new rows");
  for (const scenarios::ErrorGroup& group : report.groups)
    for (const auto u : {scenarios::Uncertainty::calibrated, scenarios::Uncertainty::extrapolated,
                         scenarios::Uncertainty::new_system})
      if (group.by == "uncertainty" && group.name == text_of(u))
        page.line("  " + left(group.name, name_columns) +
                  std::string(scenarios::expected_step_error(u)));
}

}  // namespace

std::string validation_text(const ValidationReport& report, const Terminal& terminal) {
  Page page(terminal);
  heading_lines(page, report);
  group_lines(page, report);
  comparison_lines(page, report);
  expectation_lines(page, report);
  worst_lines(page, report);
  rule_lines(page, report);
  skipped_lines(page, report);
  return page.text();
}

namespace {

using Json = nlohmann::ordered_json;

void summary(Json& out, const ErrorSummary& e) {
  // Of no rows there is no error.
  const auto or_null = [&](double x) { return e.used == 0 ? Json(nullptr) : Json(x); };
  out["mean_abs_pct"] = or_null(e.mean_abs_pct);
  out["median_abs_pct"] = or_null(e.median_abs_pct);
  out["p90_abs_pct"] = or_null(e.p90_abs_pct);
  out["mean_signed_pct"] = or_null(e.mean_signed_pct);
  out["median_signed_pct"] = or_null(e.median_signed_pct);
}

/// Only what the table can be judged by.
void add_comparisons(Json& out, const ValidationReport& report) {
  for (const scenarios::ReferenceError& reference : report.references) {
    Json r{{"name", reference.name}, {"used", reference.error.used}};
    summary(r, reference.error);
    out["references"].push_back(std::move(r));
  }
  for (const scenarios::PairOrder& order : report.orders)
    out["pair_order"].push_back({{"name", order.name},
                                 {"right", order.right},
                                 {"pairs", order.pairs},
                                 {"identical_inputs", order.identical}});
  for (const scenarios::RankCorrelation& rank : report.ranks)
    out["rank_correlation"].push_back(
        {{"name", rank.name}, {"value", rank.value}, {"rows", rank.rows}});
  for (const auto& [rule, rows] : report.rules) out["rules"][rule] = rows;
}

}  // namespace

std::string validation_json(const ValidationReport& report) {
  Json out;
  out["schema"] = "trainyard-validate-1";
  out["table"] = report.table;
  out["kind"] = report.kind;
  out["quantity"] = report.quantity.column;
  out["error_in"] = report.quantity.in_points ? "percentage points" : "percent";
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
  add_comparisons(out, report);
  out["predictions"] = Json::array();
  for (const ValidatedRow& row : report.predictions) {
    Json r{{"id", row.id},
           {"line", row.line},
           {"published", row.prediction.published},
           {"predicted", row.prediction.predicted},
           {"error_pct", row.error_pct},
           {"method", row.prediction.method},
           {"uncertainty", std::string(text_of(row.prediction.uncertainty))}};
    if (!row.prediction.rules.empty()) r["rules"] = row.prediction.rules;
    out["predictions"].push_back(std::move(r));
  }
  // Names come from the user's file and need not be UTF-8.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string validation_csv(const ValidationReport& report) {
  // "time_s" to "published_s", as ever; other quantities keep their whole name.
  const std::string& column = report.quantity.column;
  const std::string end = column == "time_s" ? "s" : column;
  std::string out =
      "id,line,published_" + end + ",predicted_" + end + ",error_pct,method,uncertainty";
  if (!report.predictions.empty())
    for (const auto& [by, name] : report.predictions.front().prediction.groups)
      out += ',' + quoted(by);
  out += report.rules.empty() ? "\n" : ",rules\n";
  for (const ValidatedRow& row : report.predictions) {
    const scenarios::RowPrediction& p = row.prediction;
    out += quoted(row.id) + ',' + std::to_string(row.line) + ',' + digits(p.published) + ',' +
           digits(p.predicted) + ',' + digits(row.error_pct) + ',' + quoted(p.method) + ',' +
           std::string(text_of(p.uncertainty));
    for (const auto& [by, name] : p.groups) out += ',' + quoted(name);
    if (!report.rules.empty()) out += ',' + quoted(joined(p.rules));
    out += '\n';
  }
  return out;
}

}  // namespace trainyard::cli
