#include "cli/calibrate_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/page.hpp"

namespace trainyard::cli {

using scenarios::CalibrationRow;
using scenarios::Constant;
using scenarios::ErrorGroup;
using scenarios::ErrorSummary;
using scenarios::FittedConstant;

namespace {

constexpr std::size_t name_columns = 38;

std::string formatted(const char* format, double x) {
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}
std::string pct(double share) {
  return formatted("%.1f", 100 * share);
}
std::string signed_pct(double share) {
  return formatted("%+.1f", 100 * share);
}

void constants(const CalibrateReport& report, Page& page) {
  page.heading("constants (times in seconds)");
  page.line("  " + left("", name_columns) + right("value", 10) + right("s.e. %", 8) +
            right("prior", 10) + right("sigma %", 9) + right("rows", 6) + right("was", 10) +
            right("moved %", 9));
  for (std::size_t c = 0; c < report.fitted.constants.size(); ++c) {
    const Constant& constant = report.table->constants[c];
    const FittedConstant& f = report.fitted.constants[c];
    page.line("  " + left(constant.name, name_columns) + right(formatted("%.4g", f.value), 10) +
              right(pct(f.error), 8) + right(formatted("%.4g", constant.prior), 10) +
              right(pct(constant.sigma), 9) + right(std::to_string(f.rows), 6) +
              right(formatted("%.4g", f.before), 10) + right(signed_pct(f.moved()), 9) +
              (f.is_at_bound ? "  at its bound" : ""));
  }
}

void errors(const CalibrateReport& report, Page& page) {
  page.heading("errors of the rows, percent (predicted / published - 1)");
  page.line("  " + left("", name_columns) + right("", 5) + right("before", 22) +
            right("after", 30));
  page.line("  " + left("", name_columns) + right("rows", 5) +
            (right("median", 8) + right("mean", 7) + right("P90", 7) + right("signed", 8)) +
            (right("median", 8) + right("mean", 7) + right("P90", 7) + right("signed", 8)));
  const auto four = [](const ErrorSummary& e) {
    return right(formatted("%.1f", e.median_abs_pct), 8) +
           right(formatted("%.1f", e.mean_abs_pct), 7) +
           right(formatted("%.1f", e.p90_abs_pct), 7) +
           right(formatted("%+.1f", e.mean_signed_pct), 8);
  };
  const auto before = scenarios::error_groups(report.rows, report.fitted.errors_before);
  const auto after = scenarios::error_groups(report.rows, report.fitted.errors);
  for (std::size_t g = 0; g < after.size(); ++g)
    page.line("  " + left(after[g].name, name_columns) +
              right(std::to_string(after[g].error.used), 5) + four(before[g].error) +
              four(after[g].error));
}

void furthest_off(const CalibrateReport& report, Page& page) {
  std::vector<std::size_t> order;
  for (std::size_t r = 0; r < report.rows.size(); ++r) order.push_back(r);
  const auto off = [&](std::size_t r) { return std::abs(std::log1p(report.fitted.errors[r])); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return off(a) > off(b); });
  order.resize(std::min<std::size_t>(order.size(), 10));
  page.heading("furthest off (none is left out: a row that far off pulls no harder than others)");
  for (const std::size_t r : order) {
    const CalibrationRow& row = report.rows[r];
    page.line("  " + left(row.id, 24) + right(signed_pct(report.fitted.errors[r]), 8) + " %  " +
              row.group() + ", " + std::to_string(row.gpus) + " GPUs");
  }
}

void studies(const std::string& title, const std::vector<scenarios::HeldOut>& studies, Page& page) {
  if (studies.empty()) return;
  page.heading(title);
  page.line("  " + left("tried on", name_columns) + right("rows", 5) + right("fitted", 8) +
            right("median", 8) + right("mean", 7) + right("P90", 7) + right("signed", 8));
  for (const scenarios::HeldOut& s : studies)
    page.line("  " + left(s.name, name_columns) + right(std::to_string(s.error.used), 5) +
              right(std::to_string(s.fitted), 8) +
              right(formatted("%.1f", s.error.median_abs_pct), 8) +
              right(formatted("%.1f", s.error.mean_abs_pct), 7) +
              right(formatted("%.1f", s.error.p90_abs_pct), 7) +
              right(formatted("%+.1f", s.error.mean_signed_pct), 8));
}

void skipped(const CalibrateReport& report, Page& page) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const scenarios::SkippedRow& row : report.skipped) by_reason[row.reason].push_back(row.id);
  if (!by_reason.empty()) page.heading("rows not used");
  for (const auto& [reason, ids] : by_reason) {
    std::string where;
    for (std::size_t i = 0; i < std::min<std::size_t>(ids.size(), 4); ++i)
      where += (i ? ", " : "") + ids[i];
    if (ids.size() > 4) where += " and " + std::to_string(ids.size() - 4) + " more";
    page.line("  " + right(std::to_string(ids.size()), 4) + "  " + reason + " (" + where + ")");
  }
}

}  // namespace

std::string calibrate_text(const CalibrateReport& report, const Terminal& terminal) {
  Page page(terminal);
  const scenarios::Calibration& f = report.fitted;
  page.line(painted(terminal, Colour::bold, "calibration") + ": " +
            std::to_string(f.constants.size()) + " constants, " +
            formatted("%.1f", f.effective_constants) + " determined by rows rather than priors; " +
            std::to_string(report.rows.size()) + " rows; noise of a row " + pct(f.noise) + " %; " +
            std::to_string(f.steps) + " steps" + (f.is_converged ? "" : ", NOT converged"));
  for (const scenarios::FittedTable& t : report.tables)
    page.line("  " + t.name + ": " + std::to_string(t.rows) + " rows, sha256 " +
              t.sha256.substr(0, 12));
  constants(report, page);
  errors(report, page);
  furthest_off(report, page);
  studies("fitted on small runs, tried on larger dense ones", report.larger, page);
  studies("one stack left out of the fit, its dense runs predicted", report.left_out, page);
  skipped(report, page);
  if (report.is_checked) {
    page.heading("against the catalog");
    if (report.moved.empty())
      page.line("  every constant is within 3 % of its file, or its note says why not");
    for (const scenarios::MovedConstant& m : report.moved)
      page.bullet(Colour::red, "moved",
                  m.name + ": " + formatted("%.4g", m.present) + " in " + m.file + ", refit " +
                      formatted("%.4g", m.refitted) + " (" +
                      signed_pct(m.refitted / m.present - 1) + " %)");
  }
  return page.text();
}

std::string calibrate_json(const CalibrateReport& report) {
  using Json = nlohmann::ordered_json;
  const auto summary = [](const ErrorSummary& e) {
    return Json{{"used", e.used},
                {"mean_abs_pct", e.mean_abs_pct},
                {"median_abs_pct", e.median_abs_pct},
                {"p90_abs_pct", e.p90_abs_pct},
                {"mean_signed_pct", e.mean_signed_pct}};
  };
  const auto held_out = [&](const std::vector<scenarios::HeldOut>& studies) {
    Json out = Json::array();
    for (const scenarios::HeldOut& s : studies)
      out.push_back({{"name", s.name}, {"fitted", s.fitted}, {"error", summary(s.error)}});
    return out;
  };
  const scenarios::Calibration& f = report.fitted;
  Json out;
  out["schema"] = "trainyard-calibrate-1";
  out["tables"] = Json::array();
  for (const scenarios::FittedTable& t : report.tables)
    out["tables"].push_back({{"name", t.name}, {"sha256", t.sha256}, {"used", t.rows}});
  out["rows"] = report.rows.size();
  out["noise"] = f.noise;
  out["effective_constants"] = f.effective_constants;
  out["converged"] = f.is_converged;
  out["steps"] = f.steps;
  out["evaluations"] = f.evaluations;
  out["constants"] = Json::array();
  for (std::size_t c = 0; c < f.constants.size(); ++c) {
    const Constant& constant = report.table->constants[c];
    const FittedConstant& fitted = f.constants[c];
    Json by_stack = Json::array();
    for (const scenarios::RowCount& count : fitted.rows_by_stack)
      by_stack.push_back({{"table", count.table}, {"stack", count.stack}, {"rows", count.rows}});
    out["constants"].push_back({{"name", constant.name},
                                {"value", fitted.value},
                                {"relative_error", fitted.error},
                                {"prior", constant.prior},
                                {"sigma", constant.sigma},
                                {"low", constant.low},
                                {"high", constant.high},
                                {"at_bound", fitted.is_at_bound},
                                {"rows", fitted.rows},
                                {"rows_by_stack", std::move(by_stack)},
                                {"before", fitted.before},
                                {"moved", fitted.moved()},
                                {"why", constant.why}});
  }
  const auto before = scenarios::error_groups(report.rows, f.errors_before);
  const auto after = scenarios::error_groups(report.rows, f.errors);
  out["groups"] = Json::array();
  for (std::size_t g = 0; g < after.size(); ++g)
    out["groups"].push_back({{"by", after[g].by},
                             {"name", after[g].name},
                             {"before", summary(before[g].error)},
                             {"after", summary(after[g].error)}});
  if (!report.larger.empty()) out["larger"] = held_out(report.larger);
  if (!report.left_out.empty()) out["left_out"] = held_out(report.left_out);
  if (report.is_checked) {
    out["moved"] = Json::array();
    for (const scenarios::MovedConstant& m : report.moved)
      out["moved"].push_back(
          {{"name", m.name}, {"file", m.file}, {"present", m.present}, {"refitted", m.refitted}});
  }
  out["skipped"] = Json::array();
  for (const scenarios::SkippedRow& row : report.skipped)
    out["skipped"].push_back({{"id", row.id}, {"line", row.line}, {"reason", row.reason}});
  out["predictions"] = Json::array();
  for (std::size_t r = 0; r < report.rows.size(); ++r) {
    const CalibrationRow& row = report.rows[r];
    out["predictions"].push_back({{"id", row.id},
                                  {"table", row.table},
                                  {"stack", row.stack},
                                  {"gpu", row.gpu},
                                  {"precision", row.precision},
                                  {"gpus", row.gpus},
                                  {"published_s", row.published_s},
                                  {"before_pct", 100 * f.errors_before[r]},
                                  {"error_pct", 100 * f.errors[r]}});
  }
  return out.dump(2) + "\n";
}

}  // namespace trainyard::cli
