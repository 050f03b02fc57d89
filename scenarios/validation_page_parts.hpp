#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/markdown.hpp"
#include "scenarios/validation_page.hpp"

/// What the sections of the validation page share.
namespace trainyard::scenarios::page {

std::string base_name(const std::string& path);
std::string count(std::size_t n);
std::string section(const std::string& title, const std::string& text);

std::vector<const PageTable*> of_kind(const PageInput& input, std::string_view kind);
/// Every run fits into one server and vTrain's table says nothing of others: composed, not
/// measured (docs/guide/calibrate.md).
bool is_composed(const ValidationReport& report);
bool is_in(const RowPrediction& row, const GroupName& group);
/// Null if there is none, or of no rows.
const ReferenceError* reference(const ValidationReport& report, std::string_view name);
/// A cell of the row that a prediction was made for.
std::string text_of_row(const PageTable& table, const ValidatedRow& row, std::string_view column);

/// These cells, then rows, median, mean, P90, signed.
std::vector<std::string> cells(std::vector<std::string> first, const ErrorSummary& e);
MarkdownTable error_table(std::string_view what);
/// Errors of all groups of one kind, dense before experts.
void add_groups(MarkdownTable& out, const ValidationReport& report, const std::string& by);

}  // namespace trainyard::scenarios::page
