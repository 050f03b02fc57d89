#include "scenarios/validate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "scenarios/validate_collectives.hpp"
#include "scenarios/validate_memory.hpp"
#include "scenarios/validate_mlperf.hpp"
#include "scenarios/validate_reliability.hpp"
#include "scenarios/validate_scaling.hpp"
#include "scenarios/validate_statistics.hpp"
#include "scenarios/validate_storage.hpp"
#include "scenarios/validate_training.hpp"

namespace trainyard::scenarios {
namespace {

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * double(sorted.size() - 1);
  const std::size_t i = std::size_t(at);
  const std::size_t next = std::min(i + 1, sorted.size() - 1);
  return sorted[i] + (sorted[next] - sorted[i]) * (at - double(i));
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

/// Columns of a kind that a table lacks.
std::vector<std::string> missing(const TableKind& kind, const PublishedTable& table) {
  std::vector<std::string> out;
  for (const std::string& column : kind.required)
    if (!table.has(column)) out.push_back(column);
  const bool has_one = std::any_of(kind.one_of.begin(), kind.one_of.end(),
                                   [&](const std::string& c) { return table.has(c); });
  if (!kind.one_of.empty() && !has_one) out.push_back("one of " + listed(kind.one_of));
  return out;
}

double error_of(const PublishedQuantity& quantity, const RowPrediction& p) {
  return quantity.in_points || p.in_points ? p.predicted - p.published
                                           : 100 * (p.predicted / p.published - 1);
}

/// Errors by (by, name), both in the order in which they first appear.
class Groups {
 public:
  void add(const std::string& by, const std::string& name, double error_pct) {
    const auto [found, is_new] = index_.try_emplace({by, name}, groups_.size());
    if (is_new) groups_.push_back({by, name, {}});
    groups_[found->second].errors_pct.push_back(error_pct);
    if (std::find(order_.begin(), order_.end(), by) == order_.end()) order_.push_back(by);
  }
  std::vector<ErrorGroup> summaries() const {
    std::vector<ErrorGroup> out;
    for (const std::string& by : order_)
      for (const Group& group : groups_)
        if (group.by == by) out.push_back({by, group.name, summary_of(group.errors_pct)});
    return out;
  }

 private:
  struct Group {
    std::string by, name;
    std::vector<double> errors_pct;
  };
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
  std::vector<Group> groups_;
  std::vector<std::string> order_;
};

}  // namespace

std::string_view text_of(Uncertainty uncertainty) {
  switch (uncertainty) {
    case Uncertainty::calibrated:
      return "calibrated";
    case Uncertainty::extrapolated:
      return "extrapolated";
    case Uncertainty::new_system:
      return "new system";
  }
  return "new system";
}

std::string_view expected_step_error(Uncertainty uncertainty) {
  switch (uncertainty) {
    case Uncertainty::calibrated:
      return "2 to 5 %";
    case Uncertainty::extrapolated:
      return "4 to 9 %: a new software stack";
    case Uncertainty::new_system:
      return "15 to 20 %: GPU or precision not measured";
  }
  return "";
}

std::span<const TableKind> table_kinds() {
  static const std::array kinds{collectives_table(),   training_table(),
                                vtrain_table(),        mlperf_table(),
                                scaling_table(),       memory_table(),
                                storage_table(),       effective_time_table(),
                                failure_rates_table(), failure_categories_table(),
                                restart_times_table(), checkpoints_table()};
  return kinds;
}

const TableKind* kind_of(const PublishedTable& table, std::vector<Diagnostic>& mistakes) {
  const TableKind* best = nullptr;
  const TableKind* nearest = nullptr;
  for (const TableKind& kind : table_kinds()) {
    const std::size_t lacking = missing(kind, table).size();
    if (lacking == 0 && (!best || kind.required.size() > best->required.size())) best = &kind;
    if (!nearest || lacking < missing(*nearest, table).size()) nearest = &kind;
  }
  if (!best)
    mistakes.push_back({table.name,
                        1,
                        1,
                        {},
                        "no kind of table has this header; nearest is " + in_quotes(nearest->name) +
                            ", which also needs: " + listed(missing(*nearest, table)),
                        "the columns of one kind; see trainyard validate --help",
                        "unknown-table",
                        {}});
  return best;
}

ErrorSummary summary_of(std::vector<double> errors_pct) {
  ErrorSummary out;
  out.used = errors_pct.size();
  if (errors_pct.empty()) return out;
  std::sort(errors_pct.begin(), errors_pct.end());
  out.median_signed_pct = quantile(errors_pct, 0.5);
  for (const double e : errors_pct) out.mean_signed_pct += e / double(out.used);
  for (double& e : errors_pct) e = std::abs(e);
  std::sort(errors_pct.begin(), errors_pct.end());
  for (const double e : errors_pct) out.mean_abs_pct += e / double(out.used);
  out.median_abs_pct = quantile(errors_pct, 0.5);
  out.p90_abs_pct = quantile(errors_pct, 0.9);
  return out;
}

ValidationReport validate(const PublishedTable& table, const TableKind& kind,
                          std::vector<Diagnostic>& mistakes, const ValidationSetup& setup) {
  ValidationReport report;
  report.kind = kind.name;
  report.quantity = kind.quantity;
  const RowPredictor predict = kind.start ? kind.start(setup) : RowPredictor(kind.predict);
  report.table = table.name;
  report.rows = table.rows.size();
  Groups groups;
  std::vector<double> errors_pct;
  for (const TableRow& row : table.rows) {
    const std::string_view given = table.text(row, "id");
    const std::string id = given.empty() ? std::to_string(row.line) : std::string(given);
    const std::size_t mistakes_before = mistakes.size();
    const RowResult result = predict(table, row, mistakes);
    if (mistakes.size() > mistakes_before) continue;
    if (const auto* reason = std::get_if<SkipReason>(&result)) {
      report.skipped.push_back({id, row.line, *reason});
      continue;
    }
    const RowPrediction& prediction = std::get<RowPrediction>(result);
    const double error_pct = error_of(kind.quantity, prediction);
    for (const std::string& rule : prediction.rules) ++report.rules[rule];
    errors_pct.push_back(error_pct);
    groups.add("uncertainty", std::string(text_of(prediction.uncertainty)), error_pct);
    for (const auto& [by, name] : prediction.groups) groups.add(by, name, error_pct);
    report.predictions.push_back({id, row.line, prediction, error_pct});
  }
  report.error = summary_of(errors_pct);
  report.groups = groups.summaries();
  add_comparisons(report);
  return report;
}

}  // namespace trainyard::scenarios
