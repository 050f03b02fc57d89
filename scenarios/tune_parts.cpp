#include "scenarios/tune_parts.hpp"

#include <algorithm>
#include <utility>

namespace trainyard::scenarios {
namespace {

constexpr std::size_t fewest = 4;  // replications before an interval says anything
constexpr std::size_t added = 2;   // at a time
// A point so far behind is out, however wide its interval: its own precision does not matter.
constexpr double far_behind = 0.01;

bool is_settled(const std::vector<std::vector<double>>& x, const TuneOptions& options) {
  const analysis::Ranking ranking = analysis::rank_systems(x, options.confidence);
  return std::all_of(ranking.systems.begin(), ranking.systems.end(), [&](const auto& s) {
    return s.behind.half_width <= options.precision || (!s.is_tied && s.behind.low() > far_behind);
  });
}

}  // namespace

std::string tuned_job(const Scenario& scenario, const std::string& asked) {
  std::string names;
  for (const auto& [name, job] : scenario.jobs) names += (names.empty() ? "" : ", ") + name;
  if (asked.empty()) {
    if (scenario.jobs.size() == 1) return scenario.jobs.begin()->first;
    throw TuneRefused("the scenario has several jobs: say which with --job; there are " + names);
  }
  if (scenario.jobs.count(asked) == 0)
    throw TuneRefused("there is no job \"" + asked + "\"; there is " + names);
  return asked;
}

void require_failures(const Scenario& scenario) {
  const models::FailuresSpec& f = scenario.failures;
  if (!f.enabled)
    throw TuneRefused("failures.enabled is false: nothing fails, so there is nothing to tune");
  if (f.all_classes().empty() && f.script.empty() && f.log.empty())
    throw TuneRefused(
        "the scenario has no failures, so there is nothing to tune; give failures.classes or "
        "failures.profile");
}

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v;
  return x.empty() ? 0 : sum / double(x.size());
}

Losses mean_losses(const std::vector<Replication>& runs) {
  using models::Account;
  Losses sum;
  for (const Replication& r : runs) {
    const auto of = [&](Account a) { return r.share[std::size_t(a)]; };
    sum.save += of(Account::checkpoint_stall);
    sum.lost += of(Account::lost_work);
    sum.detection += of(Account::detection);
    sum.restart += of(Account::restart);
    sum.waiting += of(Account::waiting_for_nodes);
    sum.other += 1 - r.goodput - of(Account::checkpoint_stall) - of(Account::lost_work) -
                 of(Account::detection) - of(Account::restart) - of(Account::waiting_for_nodes);
  }
  const double n = double(std::max<std::size_t>(runs.size(), 1));
  for (double* x : {&sum.save, &sum.lost, &sum.detection, &sum.restart, &sum.waiting, &sum.other})
    *x /= n;
  sum.other = std::max(0.0, sum.other);
  return sum;
}

bool run_until_precise(Replicator& runs, const TuneOptions& options, bool& is_precise) {
  for (std::size_t n = std::min(fewest, options.most);; n = std::min(n + added, options.most)) {
    if (!runs.run_to(n)) return false;
    std::vector<std::vector<double>> x;
    for (std::size_t v = 0; v < runs.variants(); ++v) x.push_back(runs.goodputs(v));
    is_precise = is_settled(x, options);
    if (is_precise || n == options.most) return true;
  }
}

ReplicateOptions replicate_options(const TuneOptions& options, const std::string& job,
                                   std::uint64_t seed, std::size_t expected_runs) {
  ReplicateOptions out{.job = job,
                       .seed = seed,
                       .threads = std::max(options.threads, 1),
                       .cancel = options.cancel,
                       .progress = {}};
  if (options.progress)
    out.progress = [report = options.progress, expected_runs](std::size_t done, Time simulated,
                                                              std::uint64_t events) {
      report(double(done) / double(std::max<std::size_t>(expected_runs, 1)), simulated, events);
    };
  return out;
}

}  // namespace trainyard::scenarios
