#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/calibrate.hpp"
#include "scenarios/catalog.hpp"

/// Fitted constants in the files of the catalog: read as they are, written back with prior,
/// standard error and rows. Whatever is not fitted keeps its text, byte for byte.
namespace trainyard::scenarios {

/// A part file: "calibration/h100.json" and its text.
struct PartFile {
  std::string file;
  std::string text;
};

/// Value of every constant in these files, of a shared one where it stands first; its prior where
/// they hold none.
std::vector<double> present_values(const std::vector<PartText>& parts, const ConstantTable& table);

/// What the fit stands on, for the figure "rows" of a calibration: file, hash and rows of each
/// table.
struct FittedTable {
  std::string name;
  std::string sha256;
  std::size_t rows = 0;  // used
};

/// The files that hold fitted figures, with these values.
std::vector<PartFile> calibrated_files(const std::vector<PartText>& parts,
                                       const ConstantTable& table, const Calibration& fitted,
                                       const std::vector<FittedTable>& tables);

/// A constant whose refit is elsewhere than its file says.
struct MovedConstant {
  std::string name;
  double present = 0;
  double refitted = 0;
  std::string file;
};

/// Those that moved by more than `tolerance` (relative) from any figure that holds them, unless the
/// "note" of that figure says "refit X" with an X that is as near to what was found.
std::vector<MovedConstant> moved_without_note(const std::vector<PartText>& parts,
                                              const ConstantTable& table, const Calibration& fitted,
                                              double tolerance = 0.03);

/// A part file in the form of the catalog: one figure a line.
std::string part_text(std::string_view json);

}  // namespace trainyard::scenarios
