#pragma once

#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "scenarios/calibrate.hpp"
#include "scenarios/calibrate_files.hpp"
#include "scenarios/calibrate_studies.hpp"

namespace trainyard::cli {

/// All that `trainyard calibrate` has to say.
struct CalibrateReport {
  std::vector<scenarios::FittedTable> tables;
  std::vector<scenarios::CalibrationRow> rows;
  std::vector<scenarios::SkippedRow> skipped;
  const scenarios::ConstantTable* table = nullptr;
  scenarios::Calibration fitted;
  bool is_checked = false;
  std::vector<scenarios::MovedConstant> moved;  // with --check
  std::vector<scenarios::HeldOut> larger;       // with --largest-gpus
  std::vector<scenarios::HeldOut> left_out;     // with --leave-out
};

std::string calibrate_text(const CalibrateReport& report, const Terminal& terminal);
/// The object of `trainyard calibrate --json`.
std::string calibrate_json(const CalibrateReport& report);

}  // namespace trainyard::cli
