#pragma once

#include <string>
#include <vector>

#include "scenarios/replicate.hpp"
#include "scenarios/tune.hpp"

/// What tune_checkpoint and tune_spares share.
namespace trainyard::scenarios {

/// The job that is meant. Throws TuneRefused.
std::string tuned_job(const Scenario& scenario, const std::string& asked);
/// Throws TuneRefused if nothing ever fails.
void require_failures(const Scenario& scenario);

Losses mean_losses(const std::vector<Replication>& runs);
double mean(const std::vector<double>& x);

/// Adds replications, of all variants at once, until every difference to the best that is not
/// settled is known to `precision`. False: cancelled.
bool run_until_precise(Replicator& runs, const TuneOptions& options, bool& is_precise);

ReplicateOptions replicate_options(const TuneOptions& options, const std::string& job,
                                   std::uint64_t seed, std::size_t expected_runs);

}  // namespace trainyard::scenarios
