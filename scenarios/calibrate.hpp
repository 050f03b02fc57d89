#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/calibrate_constants.hpp"
#include "scenarios/validate.hpp"

/// Fits the calibrated constants (calibrate_constants.hpp) to published rows, all of them at once:
/// a constant of a GPU and one of a stack that only ever appear together can only be told apart by
/// the other rows of either.
///
///     residual of a row = ln(predicted / published), soft-L1 above 5 %
///     (analysis/least_squares.hpp) weight of a row   = n^-0.3, n rows of its group (stack, GPU,
///     precision): otherwise the stack
///                         that published most decides everything
///     prior             = a textbook value with a width, for every constant
///
///     std::vector<CalibrationRow> rows = …;
///     const Calibration fitted = calibrate(rows, calibrated_constants(), {});
///     fitted.constants[0].value, .error, .rows
///
/// Guide: docs/guide/calibrate.md.
namespace trainyard::scenarios {

/// One published figure and the model that predicts it from constants.
struct CalibrationRow {
  std::string id;
  std::string table;  // file name
  std::string stack;  // "llm-foundry"; of a benchmark: "benchmark"
  std::string gpu;    // as published
  std::string precision;
  std::string calibration;  // parts that hold its constants; empty: none does
  std::string software;
  int gpus = 1;
  bool has_experts = false;
  double published_s = 0;
  models::GpuCalibration gpu_constants;  // those that are not fitted stay as they are
  models::SoftwareSpec software_constants;
  /// Can this figure move the row? Empty: every one can.
  std::function<bool(std::string_view key)> is_moved_by;
  std::function<double(const models::GpuCalibration&, const models::SoftwareSpec&)> predict_s;

  std::string group() const { return stack + ", " + gpu + ", " + precision; }
};

/// How many rows of one stack in one table.
struct RowCount {
  std::string table;
  std::string stack;
  std::size_t rows = 0;
};

struct FittedConstant {
  double before = 0;  // CalibrateOptions::present
  double value = 0;
  double error = 0;                     // relative standard error
  std::size_t rows = 0;                 // that it moves by more than 0.1 % for each 10 %
  std::vector<RowCount> rows_by_stack;  // tables as they come, most rows first within one
  bool is_at_bound = false;

  double moved() const { return value / before - 1; }
};

struct Calibration {
  std::vector<FittedConstant> constants;  // as in the table
  std::vector<double> errors_before;      // [row] predicted / published - 1, with those present
  std::vector<double> errors;             // [row] with the fitted constants
  double noise = 0;                       // of a row, relative
  double effective_constants = 0;         // determined by rows rather than by priors
  int steps = 0;
  std::size_t evaluations = 0;
  bool is_converged = false;
};

struct CalibrateOptions {
  unsigned threads = 1;
  double outlier = 0.05;        // residual at which a row begins to lose influence
  double crowding = 0.3;        // exponent of the weight of a group
  std::vector<double> present;  // of every constant, where the search begins; empty: the priors
};

Calibration calibrate(std::span<const CalibrationRow> rows, const ConstantTable& table,
                      const CalibrateOptions& options);

/// predicted / published - 1 of rows that were not fitted.
std::vector<double> errors_of(std::span<const CalibrationRow> rows, const ConstantTable& table,
                              std::span<const double> values);

/// Value of a figure under these values of the constants; nothing if the table does not set it.
std::optional<double> figure_value(const FigurePlace& place, const ConstantTable& table,
                                   std::span<const double> values);

/// Indices of the rows of at most so many GPUs; where a GPU type has none of a precision, those of
/// its fewest GPUs.
std::vector<std::size_t> rows_up_to(std::span<const CalibrationRow> rows, int gpus);

}  // namespace trainyard::scenarios
