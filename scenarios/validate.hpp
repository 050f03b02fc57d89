#pragma once

#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scenarios/validate_table.hpp"

/// Published figures against ours: every complete row of a table is predicted, the rest is skipped
/// with a reason, and errors are summed up by group, signed: a systematic sign is a missing
/// mechanism.
///
///     const ValidationReport report = validate(table, kind_of(table, mistakes), mistakes);
///
/// A kind of table is a row of `table_kinds()`: the columns by which it is known and a function
/// that predicts one row. error = predicted / published - 1.
namespace trainyard::scenarios {

/// How much of a prediction has been measured. What errors to expect: docs/models/.
enum class Uncertainty {
  calibrated,    // this row, or its like on this system, was fitted
  extrapolated,  // parts of this system were fitted, the rest is predicted
  new_system     // nothing of this system was seen
};
std::string_view text_of(Uncertainty uncertainty);

struct RowPrediction {
  double published = 0;  // seconds
  double predicted = 0;
  std::string method;  // "nvls-tree simple"
  Uncertainty uncertainty = Uncertainty::new_system;
  std::vector<std::pair<std::string, std::string>> groups;  // by, name: in the order of the report
};

/// Why a row cannot be used, in a few words: rows are counted by it.
using SkipReason = std::string;

struct TableKind {
  std::string name;                   // "collectives"
  std::vector<std::string> required;  // columns by which it is known
  std::vector<std::string> one_of;    // and at least one of these, if any are named
  std::variant<RowPrediction, SkipReason> (*predict)(const PublishedTable&, const TableRow&,
                                                     std::vector<Diagnostic>& mistakes) = nullptr;
};

std::span<const TableKind> table_kinds();

/// The kind with the most columns that all stand in the header. Null: there is none, and a mistake
/// says what is missing for the nearest.
const TableKind* kind_of(const PublishedTable& table, std::vector<Diagnostic>& mistakes);

struct ErrorSummary {
  std::size_t used = 0;
  double mean_abs_pct = 0;
  double median_abs_pct = 0;
  double p90_abs_pct = 0;
  double mean_signed_pct = 0;
  double median_signed_pct = 0;
};

struct ErrorGroup {
  std::string by;
  std::string name;
  ErrorSummary error;
};

struct ValidatedRow {
  std::string id;  // of column id, else the line
  int line = 0;
  RowPrediction prediction;
  double error_pct = 0;
};

struct SkippedRow {
  std::string id;
  int line = 0;
  SkipReason reason;
};

struct ValidationReport {
  std::string kind;
  std::string table;  // file name
  std::size_t rows = 0;
  std::vector<ValidatedRow> predictions;  // as in the table
  std::vector<SkippedRow> skipped;
  ErrorSummary error;
  std::vector<ErrorGroup> groups;  // by order of first appearance of `by`, then by name as it comes
};

ValidationReport validate(const PublishedTable& table, const TableKind& kind,
                          std::vector<Diagnostic>& mistakes);

/// Errors in percent. Quantiles interpolate between neighbours (as R type 7 and NumPy do).
ErrorSummary summary_of(std::vector<double> errors_pct);

}  // namespace trainyard::scenarios
