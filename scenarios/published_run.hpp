#pragma once

#include <string>
#include <variant>
#include <vector>

#include "models/training/job_spec.hpp"
#include "scenarios/published_cluster.hpp"
#include "scenarios/published_parts.hpp"
#include "scenarios/published_stack.hpp"
#include "scenarios/validate_table.hpp"

/// A row of a table of published training runs as a job on a machine: what the row says, and where
/// it says nothing, what a rule says. Rules look at what the row is (its stack, its numbers), never
/// at which row it is.
///
///     PublishedShelf shelf;
///     const auto run = published_run(table, row, shelf, mistakes);
///     if (const auto* skipped = std::get_if<SkipReason>(&run)) …      // "no time stated"
///     std::get<PublishedRun>(run).rules;    // {"chunks not given: 2 or 3, whichever divides"}
///
/// Columns and rules: docs/guide/validate.md.
namespace trainyard::scenarios {

struct PublishedRun {
  std::string id;  // of column id, else the line
  int line = 0;
  std::string gpu_part, software_part;  // of the catalog
  PublishedMachine machine;
  models::JobSpec job;
  double published_s = 0;
  bool derived = false;            // from tokens or FLOP/s, not a reported time
  std::vector<std::string> rules;  // one for each input that the row leaves open
  std::string paper, stack, gpu, software, precision,
      recompute;  // as the table and rules name them
  bool is_known_stack = true;

  bool has_experts() const { return job.model.experts.has_value(); }
};

/// What rows share.
struct PublishedShelf {
  explicit PublishedShelf(const Catalog& catalog = Catalog::standard()) : parts(catalog) {}
  PublishedParts parts;
  PublishedSites sites;
};

/// Numbers that are none are appended to `mistakes`; the result means nothing then.
std::variant<PublishedRun, SkipReason> published_run(const PublishedTable& table,
                                                     const TableRow& row, PublishedShelf& shelf,
                                                     std::vector<Diagnostic>& mistakes);

}  // namespace trainyard::scenarios
