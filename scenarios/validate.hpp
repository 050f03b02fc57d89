#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/training/parallel_spec.hpp"
#include "scenarios/validate_table.hpp"

/// Published figures against ours: every complete row of a table is predicted, the rest is skipped
/// with a reason, and errors are summed up by group, signed: a systematic sign is a missing
/// mechanism.
///
///     const ValidationReport report = validate(table, kind_of(table, mistakes), mistakes);
///
/// A kind of table is a row of `table_kinds()`: the columns by which it is known and a function
/// that predicts one row. error = predicted / published - 1, or predicted - published where the
/// quantity is a percentage.
namespace trainyard::scenarios {

/// How much of a prediction has been measured. What errors to expect: docs/models/.
enum class Uncertainty {
  calibrated,    // this row, or its like on this system, was fitted
  extrapolated,  // parts of this system were fitted, the rest is predicted
  new_system     // nothing of this system was seen
};
std::string_view text_of(Uncertainty uncertainty);
/// The error of a step time to expect, from leaving out what is new (docs/guide/validate.md).
std::string_view expected_step_error(Uncertainty uncertainty);

/// What a table publishes and we predict.
struct PublishedQuantity {
  std::string name = "time";      // "time", "memory", …
  std::string column = "time_s";  // in --json
  std::string unit = "us";        // of the text report
  double per_unit = 1e6;          // published * per_unit is in `unit`
  bool in_points = false;         // a percentage: errors are differences, in percentage points
};

/// How a row compares with others of its table.
struct Comparable {
  std::string inputs;    // rows with equal text have identical inputs: they show the floor
  std::string question;  // rows with equal text answer one question (model, batch, GPUs): which of
                         // their layouts is faster?
  std::string baseline;  // class of the trivial baseline, one efficiency each; empty: none
  double ideal = 0;      // of `published`, at an efficiency of 1
  std::string part;      // "dense" or "experts": compared apart
};

struct RowPrediction {
  double published = 0;  // seconds, or as PublishedQuantity says
  double predicted = 0;
  bool in_points = false;  // a percentage in a table of other figures
  std::string method;      // "nvls-tree simple"
  Uncertainty uncertainty = Uncertainty::new_system;
  std::vector<std::pair<std::string, std::string>> groups;  // by, name: in the order of the report
  std::vector<std::string> rules;                           // that filled what the row leaves open
  std::optional<Comparable> comparable;
};

using RowResult = std::variant<RowPrediction, SkipReason>;
using RowPredictor = std::function<RowResult(const PublishedTable&, const TableRow&,
                                             std::vector<Diagnostic>& mistakes)>;

/// What rows are predicted with.
struct ValidationSetup {
  models::Mechanisms mechanisms;             // ablations turn some off
  std::vector<const PublishedTable*> other;  // tables that rows refer to
};

struct TableKind {
  std::string name;                   // "collectives"
  std::vector<std::string> required;  // columns by which it is known
  std::vector<std::string> one_of;    // and at least one of these, if any are named
  RowResult (*predict)(const PublishedTable&, const TableRow&,
                       std::vector<Diagnostic>& mistakes) = nullptr;
  /// In place of `predict` where rows share something (parts of the catalog, fabrics).
  RowPredictor (*start)(const ValidationSetup&) = nullptr;
  PublishedQuantity quantity{};
  std::string refers_to{};  // name of the kind of table that its rows refer to; empty: none
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

/// Errors of something else on the same rows, to judge ours by: the floor, the trivial baseline.
struct ReferenceError {
  std::string name;
  ErrorSummary error;
};

/// Pairs of rows that answer one question, published figures more than 5 % apart: how many we put
/// in the right order.
struct PairOrder {
  std::string name;
  std::size_t right = 0;
  std::size_t pairs = 0;
  std::size_t identical = 0;  // left out: nothing tells them apart
};

struct RankCorrelation {
  std::string name;
  double value = 0;  // Spearman
  std::size_t rows = 0;
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
  PublishedQuantity quantity;
  std::size_t rows = 0;
  std::vector<ValidatedRow> predictions;  // as in the table
  std::vector<SkippedRow> skipped;
  ErrorSummary error;
  std::vector<ErrorGroup> groups;  // by order of first appearance of `by`, then by name as it comes
  std::vector<ReferenceError> references;
  std::vector<PairOrder> orders;
  std::vector<RankCorrelation> ranks;
  std::map<std::string, std::size_t> rules;  // rows by rule that filled a missing input
};

ValidationReport validate(const PublishedTable& table, const TableKind& kind,
                          std::vector<Diagnostic>& mistakes, const ValidationSetup& setup = {});

/// Errors in percent. Quantiles interpolate between neighbours (as R type 7 and NumPy do).
ErrorSummary summary_of(std::vector<double> errors_pct);

}  // namespace trainyard::scenarios
