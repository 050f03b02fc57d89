#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/training/parallel_spec.hpp"
#include "scenarios/validate.hpp"

/// Ablations: one mechanism of the step model turned off, all constants as they are. A group of
/// published rows that leans on the mechanism is then off by more. One that is not has no need of
/// it: the mechanism is lost, or its rows cannot tell.
///
///     const std::vector<Ablation> off = ablations();
///     const std::vector<AblatedRow> rows = ablated_rows(table, off, mistakes);
///     for (const AblationEffect& effect : effects_of(rows, off)) …
///
/// Every row's step model is built once, on its fabric; an ablation costs a play of the step.
namespace trainyard::scenarios {

struct Ablation {
  std::string name;  // "bubble"
  models::Mechanisms mechanisms;
};

/// Nothing off, then all traffic at once, then each mechanism alone.
std::vector<Ablation> ablations();

struct AblatedRow {
  std::string id;
  std::string group;  // stack, as reports of validate name it
  bool has_experts = false;
  double published_s = 0;
  std::vector<double> predicted_s;  // [ablation]
};

using RowFilter = std::function<bool(const PublishedTable&, const TableRow&)>;

/// The usable rows of a table of training runs, those that `wanted` says. Of a table that is
/// composed from profiles every 12th row (docs/guide/calibrate.md).
std::vector<AblatedRow> ablated_rows(const PublishedTable& table,
                                     std::span<const Ablation> ablations,
                                     std::vector<Diagnostic>& mistakes,
                                     const RowFilter& wanted = {});

/// A group of rows before and after.
struct GroupEffect {
  std::string group;
  ErrorSummary with;
  ErrorSummary without;

  double rise_pct() const { return without.mean_abs_pct - with.mean_abs_pct; }
};

struct AblationEffect {
  std::string name;
  ErrorSummary dense;                // all rows without experts
  std::vector<GroupEffect> suffers;  // whose mean error rises most, first
};

/// Of ablations[0] (nothing off) and every other. Groups of fewer rows than `least_rows`, and
/// those whose error does not rise, are not named.
std::vector<AblationEffect> effects_of(std::span<const AblatedRow> rows,
                                       std::span<const Ablation> ablations,
                                       std::size_t least_rows = 2, std::size_t most_groups = 3);

}  // namespace trainyard::scenarios
