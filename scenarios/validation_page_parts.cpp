#include "scenarios/validation_page_parts.hpp"

#include <algorithm>

namespace trainyard::scenarios {

ErrorSummary errors_in(const ValidationReport& report, const std::vector<GroupName>& groups) {
  std::vector<double> errors;
  for (const ValidatedRow& row : report.predictions)
    if (std::all_of(groups.begin(), groups.end(),
                    [&](const GroupName& g) { return page::is_in(row.prediction, g); }))
      errors.push_back(row.error_pct);
  return summary_of(std::move(errors));
}

namespace page {

std::string base_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string count(std::size_t n) {
  return std::to_string(n);
}

std::string section(const std::string& title, const std::string& text) {
  return "\n## " + title + "\n\n" + text;
}

std::vector<const PageTable*> of_kind(const PageInput& input, std::string_view kind) {
  std::vector<const PageTable*> out;
  for (const PageTable& t : input.tables)
    if (t.report.kind == kind) out.push_back(&t);
  return out;
}

bool is_composed(const ValidationReport& report) {
  return report.kind == "vtrain" &&
         std::all_of(report.predictions.begin(), report.predictions.end(),
                     [](const ValidatedRow& r) {
                       return is_in(r.prediction, {"GPUs", "<= 8"});
                     });
}

bool is_in(const RowPrediction& row, const GroupName& group) {
  return std::any_of(row.groups.begin(), row.groups.end(),
                     [&](const auto& g) { return g.first == group.by && g.second == group.name; });
}

const ReferenceError* reference(const ValidationReport& report, std::string_view name) {
  for (const ReferenceError& r : report.references)
    if (r.name == name && r.error.used > 0) return &r;
  return nullptr;
}

std::string text_of_row(const PageTable& table, const ValidatedRow& row, std::string_view column) {
  for (const TableRow& r : table.table.rows)
    if (r.line == row.line) return std::string(table.table.text(r, column));
  return {};
}

std::vector<std::string> cells(std::vector<std::string> first, const ErrorSummary& e) {
  first.push_back(count(e.used));
  if (e.used == 0)
    first.insert(first.end(), 4, "");
  else
    for (const std::string& number : {one_digit(e.median_abs_pct), one_digit(e.mean_abs_pct),
                                      one_digit(e.p90_abs_pct), signed_digit(e.mean_signed_pct)})
      first.push_back(number);
  return first;
}

MarkdownTable error_table(std::string_view what) {
  return MarkdownTable{what, "rows>", "median>", "mean>", "P90>", "signed>"};
}

void add_groups(MarkdownTable& out, const ValidationReport& report, const std::string& by) {
  for (const bool experts : {false, true})
    for (const ErrorGroup& g : report.groups)
      if (g.by == by && g.name.ends_with(", experts") == experts) out.row(cells({g.name}, g.error));
}

}  // namespace page
}  // namespace trainyard::scenarios
