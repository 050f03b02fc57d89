#include "analysis/explain_levers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "sim/time.hpp"

namespace trainyard::analysis {

namespace {

std::string number(const char* format, double x) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

std::string duration(double s) {
  return to_text(seconds(std::max(0.0, s)));
}

/// GPU-seconds that an account of the ledger holds; negative: there is no ledger.
double ledger_gpu_s(const JobRows& job, const std::string& account) {
  if (!job.ledger) return -1;
  for (const Share& s : job.ledger->shares)
    if (s.account == account) return s.gpu_s;
  return 0;
}

class Bench {
 public:
  explicit Bench(const LeverInput& in) : in_(in) {}

  /// `most_s` is what the account holds, `account` its name in the ledger ("": several).
  void add(std::string what, std::string assumption, double saved_s, double most_s,
           const char* account, bool in_steps = false) {
    const double L = std::min({saved_s, most_s, in_.wall_s});
    if (L <= 0 || in_.wall_s <= 0) return;
    Lever lever;
    lever.what = std::move(what);
    lever.assumption = std::move(assumption);
    lever.saved_s = L;
    lever.gpu_s = L * static_cast<double>(in_.job->gpus);
    const double held = *account ? ledger_gpu_s(*in_.job, account) : -1;
    if (held >= 0) lever.gpu_s = std::min(lever.gpu_s, held);
    const double W = in_.wall_s;
    lever.in_steps = in_steps;
    lever.points = 100 * L / W;
    if (!in_steps) lever.points = W > L ? 100 * in_.kept_s * L / (W * (W - L)) : 0;
    if (lever.gpu_s > 0) levers_.push_back(std::move(lever));
  }

  std::vector<Lever> ranked() {
    std::stable_sort(levers_.begin(), levers_.end(),
                     [](const Lever& a, const Lever& b) { return a.saved_s > b.saved_s; });
    return std::move(levers_);
  }

 private:
  const LeverInput& in_;
  std::vector<Lever> levers_;
};

double training_step_s(const JobRows& job) {
  double steps = 0, s = 0;
  for (const JobRows::Segment& segment : job.segments) {
    if (!segment.is_training()) continue;
    steps += static_cast<double>(segment.steps);
    s += segment.length_s();
  }
  return steps > 0 ? s / steps : 0;
}

/// Corrupt results are lost back to the last verified save, and planned stops save first: neither
/// follows the interval.
bool follows_the_interval(const JobRows::Interruption& i) {
  return i.effect != "corrupt" && i.effect != "maintenance";
}

void save_interval(const LeverInput& in, Bench& bench, std::vector<std::string>& notes) {
  if (in.saves.size() > 1 && !in.job->has_restored)
    notes.push_back(
        "interruptions has no column restored_level: of several levels of saves, the "
        "best interval cannot be told");
  for (const SaveCost& level : in.saves) {
    const auto best = best_interval(in, level);
    if (!best) continue;
    const std::string of = level.level.empty() ? "" : " to " + level.level;
    std::string how = "stalls " + duration(best->stalls_s) + " / r + lost work " +
                      duration(best->lost_s) + " x r, least at r = sqrt(stalls / lost work)";
    if (best->is_bounded) how += ", not shorter than a save takes";
    how += "; Young's sqrt(2 C M) from the same figures is " +
           duration(std::sqrt(2 * best->stalls_s * level.interval_s /
                              static_cast<double>(best->count))) +
           "; " + std::to_string(best->count) +
           (best->count == 1 ? " interruption" : " interruptions") +
           ", so the lost work is known to " +
           number("%.0f %%", 100 / std::sqrt(static_cast<double>(best->count)));
    bench.add("save" + of + " every " + duration(best->interval_s) + " of training, not " +
                  duration(level.interval_s),
              how, best->gain_s, in.saves_s + in.lost_s, "");
  }
}

void detection(const LeverInput& in, Bench& bench) {
  double hangs = 0, others = 0, corrupt = 0;
  for (const JobRows::Interruption& i : in.job->interruptions) {
    (i.effect == "hang" ? hangs : others) += i.phases.detection_s;
    if (i.effect == "corrupt" && i.found_ns >= 0)
      corrupt += std::min(i.lost_s, static_cast<double>(i.found_ns - i.time_ns) / 1e9);
  }
  bench.add("find hangs in half the time", "half of the detection of hangs", hangs / 2,
            in.detection_s, "detection");
  bench.add(hangs > 0 ? "find other failures in half the time" : "find failures in half the time",
            "half of their detection", others / 2, in.detection_s, "detection");
  bench.add("find corrupt results in half the time",
            "half of the work done between corruption and discovery", corrupt / 2, in.lost_s,
            "lost_work");
  bench.add("find slow members in half the time", "half of what their slower steps cost",
            in.slow_members_s / 2, in.slow_members_s, "", true);
}

void restart(const LeverInput& in, Bench& bench) {
  JobRows::Phases all;
  for (const JobRows::Interruption& i : in.job->interruptions) {
    all.diagnosis_s += i.phases.diagnosis_s;
    all.replace_s += i.phases.replace_s;
    all.start_up_s += i.phases.start_up_s;
    all.load_s += i.phases.load_s;
    all.waiting_s += i.phases.waiting_s;
  }
  bench.add("start up in half the time", "half of the start-ups after interruptions",
            all.start_up_s / 2, in.restarts_s, "restart");
  bench.add("load in half the time: a faster store, or one more level of saves nearby",
            "half of the loads after interruptions", all.load_s / 2, in.restarts_s, "restart");
  bench.add("diagnose and replace in half the time", "half of both",
            (all.diagnosis_s + all.replace_s) / 2, in.restarts_s, "restart");
  bench.add("spares enough that no restart waits", "no wait for servers after interruptions",
            all.waiting_s, in.waiting_s, "waiting_for_nodes");
  bench.add("half the time without network", "half of rerouting and being cut off",
            in.disconnected_s / 2, in.disconnected_s, "down_connected");
}

void crews(const LeverInput& in, Bench& bench) {
  std::map<std::int64_t, std::int64_t> waited;  // for a crew, by the instant of the return
  for (const RepairRow& r : in.repairs) {
    if (r.back_ns < 0 || r.waited_ns <= 0) continue;
    std::int64_t& most = waited[r.back_ns];
    most = std::max(most, r.waited_ns);
  }
  double saved = 0;
  for (const JobRows::Segment& s : in.job->segments) {
    if (s.state != "waiting") continue;
    if (const auto back = waited.find(s.end_ns); back != waited.end())
      saved += std::min(static_cast<double>(back->second) / 1e9, s.length_s());
  }
  bench.add("crews enough that no repair waits for one",
            "waits that ended with a repaired server, shorter by its wait for a crew", saved,
            in.waiting_s, "waiting_for_nodes");
}

void offenders(const LeverInput& in, Bench& bench) {
  std::map<std::string, std::int64_t> counts;
  double saved = 0, events = 0, servers = 0;
  std::int64_t three = 0;
  for (const JobRows::Interruption& i : in.job->interruptions) {
    if (i.server.empty() || i.effect == "maintenance" || i.effect == "preempted" ||
        i.effect == "cut-off")
      continue;
    ++events;
    const std::int64_t count = ++counts[i.server];
    three += count == 3;
    if (count >= 3) saved += i.cost_s() - i.slow_s;
  }
  for (const JobRows::Segment& s : in.job->segments)
    servers = std::max(servers, static_cast<double>(s.servers));
  if (three == 0) return;
  bench.add("take servers out after their second interruption",
            "saves the third and later ones of " + std::to_string(three) +
                (three == 1 ? " server" : " servers") + "; chance alone makes " +
                number("%.2g", chance_of_three(events, servers)) + " such servers",
            saved, in.wall_s - in.kept_s, "");
}

}  // namespace

std::optional<BestInterval> best_interval(const LeverInput& in, const SaveCost& level) {
  if (level.interval_s <= 0 || (in.saves.size() > 1 && !in.job->has_restored)) return {};
  BestInterval best;
  for (const JobRows::Interruption& i : in.job->interruptions) {
    if (!follows_the_interval(i) || (in.job->has_restored && i.restored_level != level.level))
      continue;
    ++best.count;
    best.lost_s += std::max(0.0, i.lost_s - level.drain_s);
  }
  if (best.lost_s <= 0) return {};
  best.stalls_s = level.scheduled_stall_s;
  const double shortest = std::max(level.save_s, training_step_s(*in.job)) / level.interval_s;
  const double longest = std::max(1.0, in.training_s / level.interval_s);
  const double r = best_stretch(best.stalls_s, best.lost_s, shortest, longest);
  best.is_bounded = std::sqrt(best.stalls_s / best.lost_s) < shortest;
  best.interval_s = r * level.interval_s;
  best.gain_s = best.stalls_s + best.lost_s - best.stalls_s / r - r * best.lost_s;
  return best;
}

double best_stretch(double stall_s, double lost_s, double low, double high) {
  const double best = lost_s > 0 ? std::sqrt(stall_s / lost_s) : high;
  return std::max(low, std::min(best, std::max(low, high)));
}

double chance_of_three(double events, double servers) {
  if (servers <= 0) return 0;
  const double l = events / servers;
  return servers * (1 - std::exp(-l) * (1 + l + l * l / 2));
}

std::vector<Lever> levers(const LeverInput& in, std::vector<std::string>& notes) {
  Bench bench(in);
  save_interval(in, bench, notes);
  bench.add("stalls of saves half as long", "half of the stalls, at the same interval",
            in.saves_s / 2, in.saves_s, "checkpoint_stall");
  detection(in, bench);
  restart(in, bench);
  crews(in, bench);
  offenders(in, bench);
  for (const auto& [limit, s] : in.data_waits)
    bench.add("no waiting for data: " + limit, "steps without that wait", s, in.training_s,
              "data_stall", true);
  bench.add("no slower steps for other reasons", "every step as fast as the best one",
            in.other_slow_s, in.training_s, "", true);
  if (!in.worst_class.empty())
    bench.add("half as many failures of class " + in.worst_class,
              "half of all that this class cost", in.worst_class_s / 2, in.wall_s - in.kept_s, "");
  return bench.ranked();
}

}  // namespace trainyard::analysis
