#include <algorithm>
#include <cmath>
#include <utility>

#include "models/training/checkpoints.hpp"
#include "scenarios/tune_parts.hpp"
#include "sim/check.hpp"

/// The interval between saves.
namespace trainyard::scenarios {
namespace {

constexpr std::size_t pilot_runs = 2;
constexpr double reach = 4;      // of the default grid, either way
constexpr double near_best = 3;  // intervals within this factor of the best make the parabola
constexpr std::size_t fewest_for_parabola = 5;
constexpr double few_interruptions = 10;  // of one run

std::string minutes(double s) {
  return to_text(seconds(s));
}

/// The level that is tuned.
std::string tuned_level(const models::CheckpointSpec& spec, const std::string& job,
                        const std::string& asked) {
  const auto levels = spec.all_levels();
  if (!spec.enabled || levels.empty())
    throw TuneRefused("jobs." + job +
                      " never saves (checkpoint.enabled is false): there is no "
                      "interval to tune");
  std::string names;
  for (const auto& [name, level] : levels) names += (names.empty() ? "" : ", ") + name;
  if (!asked.empty()) {
    if (levels.count(asked) == 0)
      throw TuneRefused("jobs." + job + " has no checkpoint level \"" + asked + "\"; there is " +
                        names);
    return asked;
  }
  if (levels.size() == 1) return levels.begin()->first;
  if (!spec.store.empty()) return spec.store;
  throw TuneRefused("jobs." + job +
                    " has several checkpoint levels: say which with --level; "
                    "there are " +
                    names);
}

/// The store's own level is written in the fields of the spec itself.
bool is_main(const models::CheckpointSpec& spec, const std::string& level) {
  return !spec.store.empty() && level == spec.store && spec.levels.count(level) == 0;
}

Scenario with_interval(Scenario scenario, const std::string& job, const std::string& level,
                       Duration interval) {
  models::CheckpointSpec& spec = scenario.jobs.at(job).checkpoint;
  if (is_main(spec, level)) {
    spec.interval = interval;
    spec.every_steps.reset();
  } else {
    spec.levels.at(level).interval = interval;
    spec.levels.at(level).every_steps.reset();
  }
  return scenario;
}

/// What the scenario has; steps are turned into time.
double present_interval_s(const models::CheckpointSpec& spec, const std::string& level,
                          double step_s) {
  const models::LevelSpec now = spec.all_levels().at(level);
  return now.every_steps ? double(*now.every_steps) * step_s : to_seconds(*now.interval);
}

/// Three significant digits, so that reports say the very interval that was run.
double rounded(double s) {
  if (s <= 0) return s;
  const double unit = std::pow(10, std::floor(std::log10(s)) - 2);
  return std::round(s / unit) * unit;
}

std::vector<double> grid(double from_s, double to_s, std::size_t points) {
  std::vector<double> out;
  for (std::size_t i = 0; i < points; ++i)
    out.push_back(rounded(from_s * std::pow(to_s / from_s, double(i) / double(points - 1))));
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// What the formulas need, from runs.
struct Measured {
  double step_s = 0, save_s = 0, mtbi_s = 0, recovery_s = 0, interruptions = 0;
};
Measured measure(const std::vector<Replication>& runs) {
  using models::Account;
  double wall_s = 0, saves = 0, stall_s = 0, recovery_s = 0, interruptions = 0, step_s = 0;
  double with_steps = 0;
  for (const Replication& r : runs) {
    wall_s += r.wall_s;
    saves += r.saves;
    interruptions += r.interruptions;
    stall_s += r.share[std::size_t(Account::checkpoint_stall)] * r.wall_s;
    for (const Account a : {Account::detection, Account::restart, Account::waiting_for_nodes})
      recovery_s += r.share[std::size_t(a)] * r.wall_s;
    if (r.step_s > 0) {
      step_s += r.step_s;
      ++with_steps;
    }
  }
  Measured m;
  m.interruptions = interruptions / double(runs.size());
  if (with_steps > 0) m.step_s = step_s / with_steps;
  if (saves > 0) m.save_s = stall_s / saves;
  if (interruptions > 0) {
    m.mtbi_s = wall_s / interruptions;
    m.recovery_s = recovery_s / interruptions;
  }
  return m;
}

/// The intervals to try, from the formulas if none are given.
std::vector<double> intervals_of(const CheckpointTuneOptions& options, const Measured& m,
                                 double longest_s) {
  std::vector<double> out;
  if (!options.intervals.empty()) {
    for (const Duration d : options.intervals) out.push_back(to_seconds(d));
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  } else {
    const double optimum_s =
        m.save_s > 0 ? models::exact_interval_s(m.save_s, m.mtbi_s) : 4 * m.step_s;
    const double least_s =
        options.from ? to_seconds(*options.from) : std::max(optimum_s / reach, m.step_s);
    double most_s = options.to ? to_seconds(*options.to) : optimum_s * reach;
    if (!options.to) most_s = std::min(std::max(most_s, 2 * least_s), longest_s / 2);
    if (least_s >= most_s)
      throw TuneRefused("the intervals go from " + minutes(least_s) + " to " + minutes(most_s) +
                        ": --from must be below --to, and both well below the duration of a run");
    out = grid(least_s, most_s, options.points);
  }
  if (out.size() < 2) throw TuneRefused("one interval alone cannot be compared: give at least two");
  if (out.front() < m.step_s * (1 - 1e-6))
    throw TuneRefused("an interval of " + minutes(out.front()) + " is shorter than one step, " +
                      minutes(m.step_s) + "; saves are made at the end of steps");
  return out;
}

/// The parabola near the best, in the logarithm of the interval.
std::optional<analysis::Optimum> optimum_of(const CheckpointTune& t, const Replicator& runs) {
  const double best_s = t.points[t.best].interval_s;
  std::vector<std::size_t> used;
  double factor = near_best;
  for (; used.size() < std::min(fewest_for_parabola, t.points.size()); factor *= 1.3) {
    used.clear();
    for (std::size_t i = 0; i < t.points.size(); ++i)
      if (const double x = t.points[i].interval_s / best_s; x <= factor && x >= 1 / factor)
        used.push_back(i);
  }
  if (used.size() < 3) return std::nullopt;
  std::vector<double> at;
  std::vector<std::vector<double>> y;
  for (const std::size_t i : used) {
    at.push_back(std::log(t.points[i].interval_s));
    y.push_back(runs.goodputs(i));
  }
  auto top = analysis::parabola_top(at, y, t.confidence);
  // Beyond the points there is nothing to stand on.
  if (!top || top->at < at.front() || top->at > at.back()) return std::nullopt;
  top->at = std::exp(top->at);
  top->low = std::exp(top->low);
  top->high = std::exp(top->high);
  return top;
}

void add_notes(CheckpointTune& t, const Measured& m) {
  if (m.interruptions < few_interruptions)
    t.notes.push_back("a run sees only " + std::to_string(int(std::lround(m.interruptions))) +
                      " interruptions: a longer duration says more than more replications");
  if (!t.is_precise)
    t.notes.push_back(
        "differences are not yet known to 0.1 points: more --replications narrow "
        "them");
  if (t.best == 0 || t.best + 1 == t.points.size())
    t.notes.push_back("the best interval is the " +
                      std::string(t.best == 0 ? "shortest" : "longest") + " of those tried: try " +
                      (t.best == 0 ? "shorter" : "longer") + " ones with --from and --to");
  if (!t.optimum)
    t.notes.push_back("the curve near the best is too flat for these runs to place its top");
  for (const IntervalPoint& p : t.points)
    if (p.saves_lost > 0.05 * p.saves && p.saves > 0) {
      t.notes.push_back("from " + minutes(p.interval_s) +
                        " on, more than 5 % of the saves are "
                        "interrupted before they are complete: formulas do not know that");
      break;
    }
}

}  // namespace

CheckpointTune tune_checkpoint(const Scenario& scenario, const CheckpointTuneOptions& options) {
  CheckpointTune t;
  t.job = tuned_job(scenario, options.common.job);
  require_failures(scenario);
  const models::JobSpec& job = scenario.jobs.at(t.job);
  t.level = tuned_level(job.checkpoint, t.job, options.level);
  if (options.intervals.size() == 1)
    throw TuneRefused("one interval alone cannot be compared: give at least two");
  if (options.intervals.empty() && options.points < 3)
    throw TuneRefused("--points: at least 3 points make a grid");
  if (options.common.most < 2)
    throw TuneRefused("--replications: one run alone has no uncertainty; give at least 2");
  t.gpus = job.gpus;
  t.seed = scenario.seed;
  t.confidence = options.common.confidence;
  t.simulated_s = to_seconds(scenario.duration);

  const std::size_t points = options.intervals.empty() ? options.points : options.intervals.size();
  Replicator runs({scenario}, replicate_options(options.common, t.job, scenario.seed,
                                                (points + 1) * options.common.most + pilot_runs));
  // A pilot at the scenario's own interval, or often enough to see saves at all.
  runs.add({scenario, 0});
  if (!runs.run_to(pilot_runs)) return t.is_cancelled = true, t;
  Measured m = measure(runs.of(0));
  if (m.save_s == 0) {
    runs.add({with_interval(scenario, t.job, t.level, scenario.duration / 40), 0});
    if (!runs.run_to(pilot_runs)) return t.is_cancelled = true, t;
    m.save_s = measure(runs.of(1)).save_s;
    if (m.step_s == 0) m.step_s = measure(runs.of(1)).step_s;
  }
  if (m.step_s == 0)
    throw TuneRefused("jobs." + t.job + " kept no step in " + to_text(scenario.duration) +
                      ": give the runs a longer duration");
  if (m.interruptions == 0)
    throw TuneRefused("no failure struck jobs." + t.job + " in " + std::to_string(pilot_runs) +
                      " runs of " + to_text(scenario.duration) +
                      ": give the runs a longer duration, or look at the rates of failures");

  std::vector<double> intervals = intervals_of(options, m, t.simulated_s);
  const double now_s = present_interval_s(job.checkpoint, t.level, m.step_s);
  const auto is_now = [&](double s) { return std::abs(s / now_s - 1) < 1e-6; };
  if (std::none_of(intervals.begin(), intervals.end(), is_now)) {
    intervals.push_back(now_s);
    std::sort(intervals.begin(), intervals.end());
  }

  runs.forget_variants();
  for (const double s : intervals) {
    t.points.push_back({.interval_s = s, .is_now = is_now(s), .ranked = {}, .losses = {}});
    if (t.points.back().is_now) t.now = t.points.size() - 1;
    // The scenario itself where nothing changes: intervals in steps stay so.
    runs.add({is_now(s) ? scenario : with_interval(scenario, t.job, t.level, seconds(s)), 0});
  }
  if (!run_until_precise(runs, options.common, t.is_precise)) return t.is_cancelled = true, t;

  std::vector<std::vector<double>> goodputs;
  std::vector<Replication> all;
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    goodputs.push_back(runs.goodputs(i));
    all.insert(all.end(), runs.of(i).begin(), runs.of(i).end());
  }
  const analysis::Ranking ranking = analysis::rank_systems(goodputs, t.confidence);
  t.best = ranking.best;
  t.replications = goodputs.front().size();
  t.runs = runs.runs();
  m = measure(all);
  t.step_s = m.step_s;
  t.save_s = m.save_s;
  t.mtbi_s = m.mtbi_s;
  t.recovery_s = m.recovery_s;
  const auto theory = [&](double s) {
    return s > 0 ? models::expected_efficiency(s, t.save_s, t.recovery_s, t.mtbi_s) : 0.0;
  };
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    IntervalPoint& p = t.points[i];
    p.ranked = ranking.systems[i];
    p.losses = mean_losses(runs.of(i));
    p.saves = mean(runs.values(i, [](const Replication& r) { return r.saves; }));
    p.saves_lost = mean(runs.values(i, [](const Replication& r) { return r.saves_lost; }));
    p.interruptions = mean(runs.values(i, [](const Replication& r) { return r.interruptions; }));
    p.theory = theory(p.interval_s);
  }
  t.young_s = models::young_interval_s(t.save_s, t.mtbi_s);
  t.daly_s = models::daly_interval_s(t.save_s, t.mtbi_s);
  t.exact_s = models::exact_interval_s(t.save_s, t.mtbi_s);
  t.young_goodput = theory(t.young_s);
  t.daly_goodput = theory(t.daly_s);
  t.exact_goodput = theory(t.exact_s);
  t.optimum = optimum_of(t, runs);
  add_notes(t, m);
  return t;
}

}  // namespace trainyard::scenarios
