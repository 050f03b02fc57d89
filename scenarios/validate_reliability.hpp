#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "models/training/job_spec.hpp"
#include "scenarios/validate.hpp"

/// Published figures of reliability against simulated runs (scenarios/reliability_run.hpp):
///
///     effective time     a row with rate, interval and restart is simulated with these; a measured
///                        one with the profile of its study, or with what its study says of
///                        failures and restarts. What a row leaves open is a rule of the report
///     failure rates      mean times, counts and concentrations, from the profile of the study or,
///     of
///                        a cluster of which only its size is known, from planning-defaults
///     categories         shares of causes: simulated runs of the published length; p of Pearson's
///                        chi-square says whether a run like this one may come of the profile
///     restart times      start-up of the recommended RestartSpec, which grows with the job
///     checkpoints        sizes by the model library, stalls by the copy to host memory
///
/// A row that no input leads to is skipped with its reason. Rows that only bound a figure are in
/// the group "a bound": the error is how far inside (or outside) the prediction lies.
/// docs/models/reliability.md has the verdict row by row.
namespace trainyard::scenarios {

TableKind effective_time_table();
TableKind failure_rates_table();
TableKind failure_categories_table();
TableKind restart_times_table();
TableKind checkpoints_table();

/// Start-up with and without scale, least squares of the logarithms over 13 MLPerf Training runs of
/// GPT-3 175B on H100, 512 to 11,616 GPUs.
models::RestartSpec recommended_restart();

/// Probability of a chi-square at least this large, if `counts` are drawn with probabilities in
/// proportion to `expected` (any scale). Classes of which fewer than 5 are expected are put
/// together (Cochran's rule), smallest first. Pearson 1900.
double chi_square_p(const std::vector<double>& counts, const std::vector<double>& expected);

/// The number at which a text begins, after words such as "about": "about 90", "99.4 / 99.3", "17
/// in 55 days".
std::optional<double> first_number(std::string_view text);

/// "71.4 ± 0.3".
std::string with_interval(double value, double half_width, int decimals);

}  // namespace trainyard::scenarios
