#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/ablation.hpp"
#include "scenarios/calibrate_constants.hpp"
#include "scenarios/carry.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/validate.hpp"

/// docs/validation.md: what predictions have been compared with, and how they did, as one Markdown
/// page for readers who do not run the tool. Every number comes from the tables, the catalog and
/// the stored study of refits; the same inputs give the same bytes. What a table cannot say
/// (defects of sources, causes of misses) is prose in the file of notes, put at the end as it is.
///
///     trainyard validate validation --page docs/validation.md
namespace trainyard::scenarios {

struct PageTable {
  PublishedTable table;
  ValidationReport report;
};

/// A calibrated constant as its part holds it.
struct ConstantLine {
  std::string name;
  std::string value, standard_error, prior;
  std::string rows;  // "training_throughput.csv: 125 rows"
  std::string why;
};

/// In the order of the table of constants, those tied to others after them.
std::vector<ConstantLine> constant_lines(const Catalog& catalog, const ConstantTable& table);

struct PageInput {
  std::vector<PageTable> tables{};
  std::vector<ConstantLine> constants{};
  std::string constants_digest{};           // constants_digest() of the catalog
  std::optional<CarryStudy> carry{};        // none: the section says how to make it
  std::vector<AblationEffect> ablations{};  // the first: nothing off
  std::string notes{};                      // Markdown
};

std::string validation_page(const PageInput& input);

/// Notes with "{T0054}", or "{vtrain.csv:12}" where ids are lines, replaced by the signed error of
/// that row; what is no row stays.
std::string with_errors(const std::string& notes, const PageInput& input);

/// Errors of the rows that are in all of these groups.
struct GroupName {
  std::string by, name;
};
ErrorSummary errors_in(const ValidationReport& report, const std::vector<GroupName>& groups);

/// The sections, in their order; empty where there is nothing to say.
namespace page {
std::string how_to_read(const PageInput& input);
std::string summary(const PageInput& input);
std::string groups(const PageInput& input);
std::string layouts(const PageInput& input);  // vTrain
std::string scaling(const PageInput& input);
std::string mlperf(const PageInput& input);
std::string memory(const PageInput& input);
std::string collectives(const PageInput& input);
std::string constants(const PageInput& input);
std::string carry(const PageInput& input);
std::string ablations(const PageInput& input);
std::string furthest_off(const PageInput& input);
std::string rules(const PageInput& input);
std::string skipped(const PageInput& input);
}  // namespace page

}  // namespace trainyard::scenarios
