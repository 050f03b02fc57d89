#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenarios/calibrate.hpp"
#include "scenarios/published_run.hpp"
#include "scenarios/validate_table.hpp"

/// Tables of published figures as rows of a calibration: training runs (the columns of
/// docs/guide/validate.md) with one step model each, built once and evaluated over and over; and
/// products timed alone (gpu, kind "GEMM fp16" or "GEMM fp8", m, n, k, value in TFLOP/s).
namespace trainyard::scenarios {

class CalibrationSet {
 public:
  explicit CalibrationSet(const Catalog& catalog = Catalog::standard());

  /// Appends the usable rows; a table of another kind has none.
  /// A table of single-server vTrain runs is composed from a few profiles
  /// rather than measured (docs/guide/calibrate.md): every 12th row of it stands for the rest.
  void add(const PublishedTable& table, std::vector<Diagnostic>& mistakes);

  const std::vector<CalibrationRow>& rows() const { return rows_; }
  const std::vector<SkippedRow>& skipped() const { return skipped_; }  // id: "table: id"

 private:
  void add_runs(const PublishedTable& table, std::vector<Diagnostic>& mistakes);
  void add_products(const PublishedTable& table, std::vector<Diagnostic>& mistakes);
  void skip(const PublishedTable& table, std::string id, int line, SkipReason reason);

  const Catalog& catalog_;
  PublishedShelf shelf_;  // the step models refer to its fabrics
  std::vector<CalibrationRow> rows_;
  std::vector<SkippedRow> skipped_;
};

/// The calibration that a GPU of the catalog names; empty if its constants are its own.
std::string calibration_of(const Catalog& catalog, const std::string& gpu_part);

}  // namespace trainyard::scenarios
