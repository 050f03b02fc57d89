#include "scenarios/calibrate_studies.hpp"

#include <algorithm>

namespace trainyard::scenarios {
namespace {

constexpr double percent = 100;

std::vector<double> values_of(const Calibration& fitted) {
  std::vector<double> out;
  for (const FittedConstant& c : fitted.constants) out.push_back(c.value);
  return out;
}

ErrorSummary summary(const std::vector<double>& errors) {
  std::vector<double> in_percent;
  for (const double e : errors) in_percent.push_back(percent * e);
  return in_percent.empty() ? ErrorSummary{} : summary_of(std::move(in_percent));
}

using Rows = std::vector<CalibrationRow>;

std::vector<double> errors_after(const Rows& fitted, const Rows& tried, const ConstantTable& table,
                                 const CalibrateOptions& options) {
  return errors_of(tried, table, values_of(calibrate(fitted, table, options)));
}

}  // namespace

std::vector<HeldOut> small_to_large(std::span<const CalibrationRow> rows,
                                    const ConstantTable& table, const CalibrateOptions& options,
                                    int gpus) {
  Rows fitted, tried;
  const std::vector<std::size_t> small = rows_up_to(rows, gpus);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (std::binary_search(small.begin(), small.end(), r))
      fitted.push_back(rows[r]);
    else if (!rows[r].has_experts)
      tried.push_back(rows[r]);
  }
  const std::vector<double> errors = errors_after(fitted, tried, table, options);
  std::vector<HeldOut> out;
  out.push_back(
      {"runs on more than " + std::to_string(gpus) + " GPUs", fitted.size(), summary(errors)});
  for (const ErrorGroup& group : error_groups(tried, errors))
    if (group.by == "table") out.push_back({group.name, fitted.size(), group.error});
  return out;
}

std::vector<HeldOut> stacks_left_out(std::span<const CalibrationRow> rows,
                                     const ConstantTable& table, const CalibrateOptions& options,
                                     std::vector<std::string> stacks) {
  if (stacks.empty()) stacks = stacks_of(rows);
  std::vector<HeldOut> out;
  for (const std::string& stack : stacks) {
    Rows fitted, tried;
    for (const CalibrationRow& row : rows) {
      if (row.stack != stack)
        fitted.push_back(row);
      else if (!row.has_experts)
        tried.push_back(row);
    }
    if (tried.empty()) continue;
    out.push_back({stack, fitted.size(), summary(errors_after(fitted, tried, table, options))});
  }
  return out;
}

std::vector<std::string> stacks_of(std::span<const CalibrationRow> rows) {
  std::vector<std::string> out;
  for (const CalibrationRow& row : rows)
    if (std::find(out.begin(), out.end(), row.stack) == out.end()) out.push_back(row.stack);
  return out;
}

std::vector<ErrorGroup> error_groups(std::span<const CalibrationRow> rows,
                                     std::span<const double> errors) {
  std::vector<ErrorGroup> out;
  std::vector<std::vector<double>> members;
  const auto add = [&](const std::string& by, const std::string& name, double error) {
    const auto same = std::find_if(
        out.begin(), out.end(), [&](const ErrorGroup& g) { return g.by == by && g.name == name; });
    const auto at = std::size_t(same - out.begin());
    if (same == out.end()) {
      out.push_back({by, name, {}});
      members.emplace_back();
    }
    members[at].push_back(error);
  };
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const CalibrationRow& row = rows[r];
    const std::string kind = row.has_experts ? "with experts" : "dense";
    add("kind", kind, errors[r]);
    add("table", row.table + (row.has_experts ? ", with experts" : ""), errors[r]);
    add("stack", row.stack + (row.has_experts ? ", with experts" : ""), errors[r]);
    add("precision", row.precision + (row.has_experts ? ", with experts" : ""), errors[r]);
  }
  for (std::size_t g = 0; g < out.size(); ++g) out[g].error = summary(members[g]);
  // Tables together, then stacks, then precisions, each as they come.
  const auto rank = [](const ErrorGroup& g) {
    return g.by == "kind" ? 0 : g.by == "table" ? 1 : g.by == "stack" ? 2 : 3;
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const ErrorGroup& a, const ErrorGroup& b) { return rank(a) < rank(b); });
  return out;
}

}  // namespace trainyard::scenarios
