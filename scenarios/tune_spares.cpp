#include <algorithm>
#include <utility>

#include "models/training/checkpoints.hpp"
#include "scenarios/tune_parts.hpp"
#include "sim/check.hpp"

/// Spares and repair crews.
namespace trainyard::scenarios {
namespace {

constexpr std::size_t pilot_runs = 2;
constexpr double rule_quantile = 0.99;
// A difference less well known than this says nothing about what suffices.
constexpr double known = 0.005;

int servers_needed(const Scenario& scenario) {
  int sum = 0;
  for (const auto& [name, job] : scenario.jobs)
    sum += (job.gpus + scenario.cluster.server.gpus - 1) / scenario.cluster.server.gpus;
  return sum;
}

Scenario with_spares(Scenario scenario, int working, int spares, int crews) {
  scenario.cluster.servers = working + spares;
  scenario.cluster.spares = spares;
  scenario.cluster.repair.crews = crews;
  if (crews == 0) scenario.cluster.repair.night_crews.reset();
  return scenario;
}

/// Whether a run may stand on the fabric of a larger cluster, whose last servers are then not
/// there: only if nothing but the pool of servers counts them.
bool fits_larger_stage(const Scenario& scenario) {
  using models::Component;
  for (const auto& [name, store] : scenario.storage)
    if (store.network == models::StoreNetwork::training) return false;
  if (!scenario.failures.script.empty() || !scenario.failures.log.empty()) return false;
  for (const auto& [name, cls] : scenario.failures.all_classes())
    if (cls.component == Component::leaf_switch || cls.component == Component::access_link)
      return false;
  return true;
}

/// None, the mean that is down, the rule of ByteRobust, and beyond.
std::vector<int> default_spares(const Scenario& scenario, int working, double down_servers) {
  const auto rule = int(models::binomial_quantile(
      working, std::min(1.0, down_servers / double(working)), rule_quantile));
  std::vector<int> out{0,        1,
                       2,        int(down_servers + 0.5),
                       rule - 1, rule,
                       rule + 1, rule + std::max(2, rule / 2),
                       2 * rule, scenario.cluster.spares};
  if (rule > 8) out.push_back(rule * 3 / 4);
  if (rule > 8) out.push_back(rule / 2);
  if (rule > 8) out.push_back(rule / 4);
  out.push_back(4);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  std::erase_if(out, [](int n) { return n < 0; });
  return out;
}

std::vector<int> in_order(std::vector<int> x) {
  std::sort(x.begin(), x.end());
  x.erase(std::unique(x.begin(), x.end()), x.end());
  return x;
}

SparesVerdict verdict_of(const SparesTune& t, const Replicator& runs, std::size_t from,
                         std::size_t to) {
  SparesVerdict v;
  v.crews = t.points[from].crews;
  const std::size_t most = to - 1;
  // Bonferroni over the comparisons with the most spares.
  const double confidence =
      1 - (1 - t.confidence) / double(std::max<std::size_t>(to - from - 1, 1));
  std::size_t first = most;
  for (std::size_t i = most; i-- > from;) {
    const analysis::MeanInterval missing =
        analysis::paired_difference(runs.goodputs(most), runs.goodputs(i), confidence);
    if (missing.low() > 0 || missing.half_width > known) break;
    first = i;
  }
  v.suffice = t.points[first].spares;
  std::size_t best = from;
  for (std::size_t i = from; i < to; ++i)
    if (t.points[i].of_all_gpus > t.points[best].of_all_gpus) best = i;
  v.best_of_all_gpus = t.points[best].spares;
  v.down_servers = t.points[most].down_servers;
  const double servers = t.working_servers + t.points[most].spares;
  v.p99 = models::binomial_quantile(t.working_servers, std::min(1.0, v.down_servers / servers),
                                    rule_quantile);
  return v;
}

}  // namespace

SparesTune tune_spares(const Scenario& scenario, const SparesTuneOptions& options) {
  SparesTune t;
  t.job = tuned_job(scenario, options.common.job);
  require_failures(scenario);
  if (options.spares.size() == 1 && options.crews.size() < 2)
    throw TuneRefused("one number of spares alone cannot be compared: give at least two");
  if (options.common.most < 2)
    throw TuneRefused("--replications: one run alone has no uncertainty; give at least 2");
  for (const int n : options.spares)
    if (n < 0) throw TuneRefused("--spares: a number of spares is not negative");
  for (const int n : options.crews)
    if (n < 0) throw TuneRefused("--crews: a number of crews is not negative; 0: no limit");
  t.gpus = scenario.jobs.at(t.job).gpus;
  t.working_servers = servers_needed(scenario);
  t.seed = scenario.seed;
  t.confidence = options.common.confidence;
  t.simulated_s = to_seconds(scenario.duration);

  std::vector<int> spares = in_order(options.spares);
  std::vector<int> crews = in_order(options.crews);
  if (crews.empty()) crews = {scenario.cluster.repair.crews};
  const int crews_now = scenario.cluster.repair.crews;
  if (spares.empty()) {
    // How many are down with spares enough, and without a limit on crews.
    const int plenty = std::max(scenario.cluster.spares, 4 + t.working_servers / 20);
    const Scenario pilot = with_spares(scenario, t.working_servers, plenty, crews_now);
    Replicator runs({pilot}, replicate_options(options.common, t.job, scenario.seed, 100));
    runs.add({pilot, 0});
    if (!runs.run_to(pilot_runs)) return t.is_cancelled = true, t;
    spares =
        default_spares(scenario, t.working_servers,
                       mean(runs.values(0, [](const Replication& r) { return r.down_servers; })));
    t.runs += runs.runs();
  }

  std::vector<Scenario> stages;
  const bool is_shared = fits_larger_stage(scenario);
  for (const int n : spares)
    if (!is_shared || n == spares.back())
      stages.push_back(with_spares(scenario, t.working_servers, n, crews_now));
  Replicator runs(std::move(stages),
                  replicate_options(options.common, t.job, scenario.seed,
                                    spares.size() * crews.size() * options.common.most));
  for (const int c : crews)
    for (std::size_t i = 0; i < spares.size(); ++i) {
      runs.add({with_spares(scenario, t.working_servers, spares[i], c), is_shared ? 0 : i});
      t.points.push_back({.spares = spares[i],
                          .crews = c,
                          .is_now = c == crews_now && spares[i] == scenario.cluster.spares &&
                                    scenario.cluster.servers == t.working_servers + spares[i],
                          .ranked = {},
                          .losses = {}});
    }
  if (!run_until_precise(runs, options.common, t.is_precise)) return t.is_cancelled = true, t;

  std::vector<std::vector<double>> goodputs;
  double interruptions = 0;
  for (std::size_t i = 0; i < t.points.size(); ++i) goodputs.push_back(runs.goodputs(i));
  const analysis::Ranking ranking = analysis::rank_systems(goodputs, t.confidence);
  t.best = ranking.best;
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    SparesPoint& p = t.points[i];
    p.ranked = ranking.systems[i];
    p.losses = mean_losses(runs.of(i));
    p.of_all_gpus = mean(runs.values(i, [](const Replication& r) { return r.up_share; }));
    p.down_servers = mean(runs.values(i, [](const Replication& r) { return r.down_servers; }));
    p.interruptions = mean(runs.values(i, [](const Replication& r) { return r.interruptions; }));
    interruptions += p.interruptions;
  }
  if (interruptions == 0)
    throw TuneRefused("no failure struck jobs." + t.job + " in any run of " +
                      to_text(scenario.duration) + ": give the runs a longer duration");
  t.replications = goodputs.front().size();
  t.runs += runs.runs();
  for (std::size_t c = 0; c < crews.size(); ++c)
    t.verdicts.push_back(verdict_of(t, runs, c * spares.size(), (c + 1) * spares.size()));
  if (scenario.cluster.servers > t.working_servers + scenario.cluster.spares)
    t.notes.push_back(
        "the scenario has " +
        std::to_string(scenario.cluster.servers - t.working_servers - scenario.cluster.spares) +
        " servers that are neither spares nor needed by a job; they would serve as spares and are "
        "left out here");
  if (!is_shared)
    t.notes.push_back(
        "the fabric is built for the servers of each point, so steps may differ a "
        "little between numbers of spares");
  if (!t.is_precise)
    t.notes.push_back(
        "differences are not yet known to 0.1 points: more --replications narrow "
        "them");
  for (const SparesVerdict& v : t.verdicts)
    if (v.suffice == spares.back() && spares.size() > 1)
      t.notes.push_back(
          "even the most spares tried may be too few" +
          std::string(v.crews > 0 ? " for " + std::to_string(v.crews) + " crews" : "") +
          ": try more with --spares");
  return t;
}

}  // namespace trainyard::scenarios
