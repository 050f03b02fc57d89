#include "cli/validation_page.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/command.hpp"
#include "cli/files.hpp"
#include "scenarios/ablation.hpp"
#include "scenarios/calibrate_files.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/validation_page.hpp"

namespace trainyard::cli {
namespace {

using scenarios::Diagnostic;
using scenarios::PageTable;

constexpr const char* order_of_kinds[] = {"training", "mlperf", "scaling",
                                          "vtrain",   "memory", "collectives"};

/// Empty text if there is no such file.
std::string text_of(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  std::ostringstream out;
  out << open_to_read(path.string()).rdbuf();
  return out.str();
}

struct KnownTable {
  scenarios::PublishedTable table;
  const scenarios::TableKind* kind;
};

/// Those of a kind that validate knows, as the page shows them.
std::vector<KnownTable> tables_in(const std::string& directory, std::vector<Diagnostic>& mistakes) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".csv") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<KnownTable> all, out;
  for (const std::string& file : files) {
    std::ifstream in = open_to_read(file);
    scenarios::PublishedTable table = scenarios::read_published_table(in, file, mistakes);
    std::vector<Diagnostic> unknown;  // tables that only a calibration reads may stand beside
    if (const scenarios::TableKind* kind = scenarios::kind_of(table, unknown))
      all.push_back({std::move(table), kind});
  }
  for (const char* kind : order_of_kinds)
    for (KnownTable& known : all)
      if (known.kind->name == kind) out.push_back(std::move(known));
  return out;
}

/// Groups are of all rows, the mean of training runs alone.
std::vector<scenarios::AblationEffect> ablation_effects(const std::vector<PageTable>& tables,
                                                        std::vector<Diagnostic>& mistakes) {
  const std::vector<scenarios::Ablation> off = scenarios::ablations();
  std::vector<scenarios::AblatedRow> all, training;
  for (const PageTable& t : tables) {
    if (t.report.kind != "training" && t.report.kind != "vtrain") continue;
    const auto rows = scenarios::ablated_rows(t.table, off, mistakes);
    all.insert(all.end(), rows.begin(), rows.end());
    if (t.report.kind == "training") training.insert(training.end(), rows.begin(), rows.end());
  }
  std::vector<scenarios::AblationEffect> out = scenarios::effects_of(all, off);
  const auto of_training = scenarios::effects_of(training, off);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].dense = of_training[i].dense;
  return out;
}

}  // namespace

std::string validation_page_of(const std::string& directory, std::vector<Diagnostic>& mistakes) {
  std::vector<KnownTable> tables = tables_in(directory, mistakes);
  if (tables.empty() || tables.front().kind->name != "training")
    throw UsageError("--page needs a directory with a table of training runs; there is none in '" +
                     directory + "'");
  scenarios::ValidationSetup setup;
  for (const KnownTable& known : tables)
    if (known.kind->name == "training") setup.other.push_back(&known.table);

  scenarios::PageInput input;
  for (const KnownTable& known : tables) {
    if (!mistakes.empty()) return {};
    input.tables.push_back(
        {known.table, scenarios::validate(known.table, *known.kind, mistakes, setup)});
  }
  input.ablations = ablation_effects(input.tables, mistakes);
  const scenarios::ConstantTable& constants = scenarios::calibrated_constants();
  input.constants = scenarios::constant_lines(scenarios::Catalog::standard(), constants);
  input.constants_digest = scenarios::constants_digest(
      constants, scenarios::present_values(scenarios::embedded_parts(), constants));
  const std::filesystem::path carry = std::filesystem::path(directory) / "carry.json";
  if (const std::string text = text_of(carry); !text.empty())
    input.carry = scenarios::read_carry(text, carry.string(), mistakes);
  input.notes = text_of(std::filesystem::path(directory) / "notes.md");
  return mistakes.empty() ? scenarios::validation_page(input) : std::string();
}

}  // namespace trainyard::cli
