#pragma once

#include <span>
#include <string>
#include <vector>

#include "scenarios/calibrate.hpp"
#include "scenarios/validate.hpp"

/// How far constants carry: fitted on some rows, tried on others.
namespace trainyard::scenarios {

struct HeldOut {
  std::string name;  // what was left out of the fit
  std::size_t fitted = 0;
  ErrorSummary error;  // of the rows that were left out
};

/// Fitted on rows of at most so many GPUs (rows_up_to), tried on all larger runs without experts;
/// the groups are all of them, then each table.
std::vector<HeldOut> small_to_large(std::span<const CalibrationRow> rows,
                                    const ConstantTable& table, const CalibrateOptions& options,
                                    int gpus);

/// Each of these stacks left out in turn and predicted, its runs without experts. `stacks` empty:
/// all.
std::vector<HeldOut> stacks_left_out(std::span<const CalibrationRow> rows,
                                     const ConstantTable& table, const CalibrateOptions& options,
                                     std::vector<std::string> stacks);

/// Names of stacks in the order in which they come.
std::vector<std::string> stacks_of(std::span<const CalibrationRow> rows);

/// Errors of groups of rows, percent: all runs without experts, those with, then by table, stack
/// and kind of precision. `errors`: relative, one a row.
std::vector<ErrorGroup> error_groups(std::span<const CalibrationRow> rows,
                                     std::span<const double> errors);

}  // namespace trainyard::scenarios
