#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/calibrate_constants.hpp"
#include "scenarios/calibrate_studies.hpp"
#include "scenarios/diagnostic.hpp"

/// How far constants carry, kept in a file: each study refits all constants, which takes minutes,
/// so that the validation page reads what `trainyard calibrate … --carry FILE` wrote.
namespace trainyard::scenarios {

struct CarryStudy {
  std::string constants;  // constants_digest() of the catalog that it was made with
  std::size_t rows = 0;   // of all the tables
  int largest_gpus = 0;
  std::vector<HeldOut> larger;    // fitted on small runs, tried on larger ones
  std::vector<HeldOut> left_out;  // each software stack in turn
};

std::string carry_json(const CarryStudy& study);
/// Nothing, and a mistake, if the text is no such file.
std::optional<CarryStudy> read_carry(std::string_view text, const std::string& file,
                                     std::vector<Diagnostic>& mistakes);

/// SHA-256 of the names and values of all constants, four digits each, as parts hold them.
std::string constants_digest(const ConstantTable& table, const std::vector<double>& values);

}  // namespace trainyard::scenarios
