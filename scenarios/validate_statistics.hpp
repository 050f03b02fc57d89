#pragma once

#include <vector>

#include "scenarios/validate.hpp"

/// What errors are to be judged by, from the rows themselves:
///
///     floor      rows of identical inputs around their geometric mean: no model of these inputs
///                errs less
///     baseline   one efficiency for each class of rows, the geometric mean of the published ones
///     order      of two layouts for one question, more than 5 % apart: is ours the faster one?
///     rank       Spearman's correlation of predicted and published, over all rows and inside
///                questions (mean over those of 3 different layouts or more, weighted by rows)
namespace trainyard::scenarios {

/// Fills references, orders and ranks from rows that have a Comparable.
void add_comparisons(ValidationReport& report);

/// Spearman's rank correlation; ties share the mean of their ranks. 0 for fewer than two rows or
/// equal values.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace trainyard::scenarios
