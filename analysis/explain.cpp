#include "analysis/explain.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

namespace trainyard::analysis {

namespace {

std::string number(const char* format, double x) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

/// Most first; equal ones in the order in which they came.
template <class Row, class Amount>
void rank(std::vector<Row>& rows, Amount amount) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return amount(a) > amount(b); });
}

/// Training time before an instant.
class TrainingClock {
 public:
  explicit TrainingClock(const std::vector<JobRows::Segment>& segments) {
    for (const JobRows::Segment& s : segments) {
      if (!s.is_training()) continue;
      ends_.push_back({s.start_ns, s.end_ns, total_s_});
      total_s_ += s.length_s();
    }
  }
  double total_s() const { return total_s_; }
  double before(std::int64_t ns) const {
    const auto after =
        std::upper_bound(ends_.begin(), ends_.end(), ns,
                         [](std::int64_t t, const Stretch& s) { return t < s.start_ns; });
    if (after == ends_.begin()) return 0;
    const Stretch& s = *(after - 1);
    return s.before_s + static_cast<double>(std::min(ns, s.end_ns) - s.start_ns) / 1e9;
  }

 private:
  struct Stretch {
    std::int64_t start_ns, end_ns;
    double before_s;
  };
  std::vector<Stretch> ends_;
  double total_s_ = 0;
};

/// Wall time and where it went; returns what each account holds.
std::map<std::string, double> split_time(Explanation& x) {
  std::map<std::string, double> accounts;
  bool has_started = false;
  for (const JobRows::Segment& s : x.rows.segments) {
    if (s.state == "done") continue;
    if (!has_started && s.state == "queued") {
      x.queued_s += s.length_s();
      continue;
    }
    has_started = true;
    x.wall_s += s.length_s();
    if (s.is_training())
      x.training_s += s.length_s();
    else
      accounts[account_of_state(s.state)] += s.length_s();
  }
  double lost = 0;
  for (const JobRows::Interruption& i : x.rows.interruptions) lost += i.lost_s;
  if (lost > x.training_s * (1 + 1e-9))
    x.notes.push_back("interruptions say that more work was lost than was done");
  accounts["lost work"] = std::min(lost, x.training_s);
  x.kept_s = x.training_s - accounts["lost work"];
  x.goodput = x.share(x.kept_s);
  for (const auto& [name, s] : accounts)
    if (s > 0) x.outside.push_back({name, s, x.share(s)});
  rank(x.outside, [](const TimeShare& t) { return t.s; });
  return accounts;
}

// --- slower steps --------------------------------------------------------------------------------

double net_step_s(const JobRows::Profile& p) {
  return p.step_s - p.data_stall_s;
}

/// The profile whose steps take least time a token, of those that were used; -1: none was.
std::int64_t best_profile(const JobRows& job) {
  std::vector<bool> used(job.profiles.size());
  bool has_tokens = true;
  for (const JobRows::Segment& s : job.segments)
    if (s.is_training() && s.steps > 0 && !job.profiles.empty())
      used[static_cast<std::size_t>(s.profile)] = true;
  for (std::size_t p = 0; p < used.size(); ++p)
    if (used[p]) has_tokens = has_tokens && job.profiles[p].tokens > 0;
  const auto pace = [&](std::size_t p) {
    return net_step_s(job.profiles[p]) / (has_tokens ? job.profiles[p].tokens : 1.0);
  };
  std::int64_t best = -1;
  for (std::size_t p = 0; p < used.size(); ++p)
    if (used[p] && (best < 0 || pace(p) < pace(static_cast<std::size_t>(best))))
      best = static_cast<std::int64_t>(p);
  return best;
}

/// How much more a profile takes than the best one for the same tokens.
SlowSteps excess_of(const JobRows& job, std::int64_t profile, std::int64_t best) {
  SlowSteps out;
  out.profile = profile;
  const JobRows::Profile& p = job.profiles[static_cast<std::size_t>(profile)];
  const JobRows::Profile& b = job.profiles[static_cast<std::size_t>(best)];
  const double scale = p.tokens > 0 && b.tokens > 0 ? p.tokens / b.tokens : 1.0;
  out.excess_s = net_step_s(p) - scale * net_step_s(b);
  if (out.excess_s <= 1e-6 * p.step_s) out.excess_s = 0;  // steps are rounded to nanoseconds
  for (std::size_t k = 0; k < job.parts.size(); ++k) {
    const double grown = p.parts_s[k] - scale * b.parts_s[k];
    if (job.parts[k] == "data_stall" || grown <= out.part_s) continue;
    out.part = job.parts[k];
    out.part_s = grown;
  }
  return out;
}

/// Interruptions by slow members.
std::vector<JobRows::Interruption*> slow_members(JobRows& job) {
  std::vector<JobRows::Interruption*> out;
  for (JobRows::Interruption& i : job.interruptions)
    if (i.effect == "slow") out.push_back(&i);
  return out;
}

/// The latest of them at work at an instant, or null.
JobRows::Interruption* at_work(const std::vector<JobRows::Interruption*>& members,
                               std::int64_t ns) {
  for (std::size_t i = members.size(); i-- > 0;)
    if (members[i]->time_ns <= ns && !members[i]->is_over_at(ns)) return members[i];
  return nullptr;
}

/// What changed on the fabric when segment `s` began; "" if nothing did.
std::string fabric_event(const JobRows& job, std::size_t s, const CauseLog& log) {
  std::vector<std::int64_t> instants{job.segments[s].start_ns};
  if (s > 0 && account_of_state(job.segments[s - 1].state) == "without network")
    instants.push_back(job.segments[s - 1].start_ns);
  for (const std::int64_t instant : instants) {
    const auto [first, last] = log.at(instant);
    for (std::size_t e = first; e < last; ++e) {
      const ChainEvent event = log.described(static_cast<std::int64_t>(e));
      const bool is_fabric = event.kind.starts_with("link ") || event.kind.starts_with("switch ") ||
                             event.kind == "job traffic rerouted";
      if (!is_fabric) continue;
      const ChainEvent root = log.described(log.first_cause(event.event));
      return root.subject + ": " + root.kind;
    }
  }
  return "";
}

/// What power or cooling did to the clocks, from its first cause to this very step time; "" if the
/// log tells of none.
std::string throttle_cause(const JobRows& job, const JobRows::Segment& segment,
                           const std::vector<std::int64_t>& told, const CauseLog& log) {
  const double step_s = job.profiles[static_cast<std::size_t>(segment.profile)].step_s;
  const double stall_s = job.profiles[static_cast<std::size_t>(segment.profile)].data_stall_s;
  for (std::size_t i = told.size(); i-- > 0;) {
    const ChainEvent event = log.described(told[i]);
    if (event.time_ns > segment.start_ns) continue;
    const bool is_this = std::abs(event.value - step_s) <= 1e-6 * step_s ||
                         std::abs(event.value - (step_s - stall_s)) <= 1e-6 * step_s;
    return is_this ? log.way_to(event.event) : "";
  }
  return "";
}

void find_slow_steps(Explanation& x, const CauseLog& log, double& of_members_s) {
  JobRows& job = x.rows;
  const std::int64_t best = best_profile(job);
  if (best < 0) return;
  const auto members = slow_members(job);
  std::int64_t all_servers = 0;
  for (const JobRows::Segment& s : job.segments) all_servers = std::max(all_servers, s.servers);
  std::map<std::int64_t, SlowSteps> by_profile;
  const std::vector<std::int64_t> step_times = log.of("step time", job.name);
  for (std::size_t s = 0; s < job.segments.size(); ++s) {
    const JobRows::Segment& segment = job.segments[s];
    if (!segment.is_training() || segment.steps == 0 || segment.profile == best) continue;
    const auto [at, is_new] =
        by_profile.try_emplace(segment.profile, excess_of(job, segment.profile, best));
    SlowSteps& row = at->second;
    if (row.excess_s <= 0) continue;
    if (is_new) row.first_ns = segment.start_ns;
    const double s_of_it = static_cast<double>(segment.steps) * row.excess_s;
    row.steps += segment.steps;
    row.s += s_of_it;
    if (JobRows::Interruption* member = at_work(members, segment.start_ns)) {
      member->slow_s += s_of_it;
      of_members_s += s_of_it;
      if (row.cause.empty()) row.cause = member->unit + " slow (" + member->cls + ")";
    }
    if (row.cause.empty()) row.cause = throttle_cause(job, segment, step_times, log);
    if (row.cause.empty() && segment.servers < all_servers)
      row.cause = "fewer servers: " + std::to_string(segment.servers) + " of " +
                  std::to_string(all_servers);
    if (row.cause.empty()) row.cause = fabric_event(job, s, log);
    if (row.cause.empty() && s > 0 && !job.segments[s - 1].is_training() &&
        account_of_state(job.segments[s - 1].state) != "saves")
      row.cause = "other servers or paths since a restart";
  }
  for (auto& [profile, row] : by_profile) {
    if (row.s <= 0) continue;
    if (row.cause.empty()) row.cause = "not told by the log";
    x.slow_steps.push_back(std::move(row));
  }
  rank(x.slow_steps, [](const SlowSteps& r) { return r.s; });
}

// --- data, saves, stores, repairs ----------------------------------------------------------------

void find_data_waits(Explanation& x, const TrainingClock& clock) {
  std::map<std::string, DataWaitCost> by_limit;
  const auto add = [&](const std::string& limit, std::int64_t first, double training, double s) {
    if (s <= 0) return;
    const auto [at, is_new] = by_limit.try_emplace(limit);
    if (is_new) at->second.first_ns = first;
    at->second.limit = limit;
    at->second.training_s += training;
    at->second.s += s;
  };
  if (x.rows.data_waits) {
    for (const JobRows::DataWait& w : *x.rows.data_waits) {
      const double training = clock.before(w.end_ns) - clock.before(w.start_ns);
      add(w.limit.empty() ? "limit not told" : w.limit, w.start_ns, training, training * w.share);
    }
  } else if (!x.rows.profiles.empty()) {
    for (const JobRows::Segment& s : x.rows.segments)
      if (s.is_training() && s.steps > 0) {
        const JobRows::Profile& p = x.rows.profiles[static_cast<std::size_t>(s.profile)];
        add("limit not told: the file has no table data_waits", s.start_ns, s.length_s(),
            static_cast<double>(s.steps) * p.data_stall_s);
      }
  }
  for (auto& [limit, row] : by_limit) {
    x.data_wait_s += row.s;
    x.data_waits.push_back(std::move(row));
  }
  rank(x.data_waits, [](const DataWaitCost& r) { return r.s; });
}

void find_saves(Explanation& x) {
  std::map<std::string, SaveCost> by_level;
  std::map<std::string, std::map<std::string, std::int64_t>> why;
  for (const JobRows::Save& s : x.rows.saves) {
    SaveCost& row = by_level[s.level];
    row.level = s.level;
    row.kind = s.kind;
    ++row.count;
    row.emergency += s.is_emergency;
    row.late += s.was_late;
    const double stall =
        s.stall_end_ns < 0 ? 0 : static_cast<double>(s.stall_end_ns - s.start_ns) / 1e9;
    row.stall_s += stall;
    if (!s.is_emergency) row.scheduled_stall_s += stall;
    if (s.complete_ns >= 0) {
      ++row.complete;
      const double save = static_cast<double>(s.complete_ns - s.start_ns) / 1e9;
      row.save_s += save;
      row.drain_s += std::max(0.0, save - stall);
    }
    if (s.is_lost) {
      ++row.lost;
      ++why[s.level][s.why_lost.empty() ? "interrupted by a failure" : s.why_lost];
    }
  }
  for (auto& [level, row] : by_level) {
    if (row.count > row.emergency)
      row.interval_s = x.training_s / static_cast<double>(row.count - row.emergency);
    if (row.complete > 0) {
      row.save_s /= static_cast<double>(row.complete);
      row.drain_s /= static_cast<double>(row.complete);
    }
    row.why_lost.assign(why[level].begin(), why[level].end());
    rank(row.why_lost, [](const auto& w) { return w.second; });
    x.saves.push_back(std::move(row));
  }
  rank(x.saves, [](const SaveCost& r) { return r.stall_s; });
}

void find_stores(Explanation& x, const std::vector<StoreUse>& uses) {
  std::map<std::tuple<std::string, std::string, bool, bool>, StoreCost> by_user;
  for (const StoreUse& u : uses) {
    StoreCost& row = by_user[{u.store, u.user, u.is_write, u.is_neighbour}];
    row.store = u.store;
    row.user = u.user;
    row.is_write = u.is_write;
    row.is_neighbour = u.is_neighbour;
    ++row.uses;
    row.s += static_cast<double>(u.end_ns - u.start_ns) / 1e9;
    row.bytes += u.bytes;
  }
  for (auto& [key, row] : by_user) x.stores.push_back(std::move(row));
  rank(x.stores, [](const StoreCost& r) { return r.bytes; });
}

void find_failure_costs(Explanation& x) {
  std::map<std::string, ClassCost> classes;
  std::map<std::string, std::map<std::string, std::int64_t>> effects;
  std::map<std::string, ServerCost> servers;
  for (const JobRows::Interruption& i : x.rows.interruptions) {
    ClassCost& c = classes[i.cls];
    c.cls = i.cls;
    ++c.count;
    c.detection_s += i.phases.detection_s;
    c.lost_s += i.lost_s;
    c.restart_s += i.phases.restart_s();
    c.waiting_s += i.phases.waiting_s + i.phases.disconnected_s;
    c.slow_s += i.slow_s;
    ++effects[i.cls][i.effect];
    if (i.server.empty()) continue;
    ServerCost& s = servers[i.server];
    s.server = i.server;
    ++s.count;
    s.s += i.cost_s();
  }
  for (auto& [name, c] : classes) {
    std::int64_t most = 0;
    for (const auto& [effect, count] : effects[name])
      if (count > most) {
        most = count;
        c.effect = effect;
      }
    x.classes.push_back(std::move(c));
  }
  rank(x.classes, [](const ClassCost& c) { return c.total_s(); });
  for (auto& [name, s] : servers)
    if (s.count >= 2) x.offenders.push_back(std::move(s));
  rank(x.offenders, [](const ServerCost& s) { return s.s; });
}

void compare_with_summary(Explanation& x, const RunReader& run) {
  if (x.wall_s <= 0) return;
  for (const Attribute& a : run.summary()) {
    const auto* said = std::get_if<double>(&a.value);
    if (a.name != "jobs." + x.rows.name + ".goodput" || said == nullptr) continue;
    if (std::abs(*said - x.goodput) > 5e-4)
      x.notes.push_back("the summary of the run says goodput " + number("%.2f %%", 100 * *said) +
                        ", the rows add up to " + number("%.2f %%", 100 * x.goodput));
  }
}

}  // namespace

std::string account_of_state(const std::string& state) {
  if (state == "saving") return "saves";
  if (state == "detecting") return "detection";
  if (state == "starting" || state == "loading" || state == "replacing" || state == "diagnosing")
    return "restarts";
  if (state == "waiting" || state == "queued") return "waiting for servers";
  if (state == "rerouting" || state == "cut off" || state == "cut-off") return "without network";
  if (state == "training" || state == "done") return "";
  return state.empty() ? "unknown state" : state;
}

Explanation explain(const RunReader& run, const std::string& job, const CauseLog& log) {
  Explanation x;
  x.rows = read_job(run, job);
  x.notes = x.rows.missing;
  std::map<std::string, double> accounts = split_time(x);
  const TrainingClock clock(x.rows.segments);
  LeverInput input;
  find_slow_steps(x, log, input.slow_members_s);
  find_data_waits(x, clock);
  find_saves(x);
  find_stores(x, read_store_uses(run));
  find_failure_costs(x);
  input.repairs = read_repairs(run);
  for (const RepairRow& r : input.repairs) {
    if (r.back_ns < 0) continue;
    ++x.repairs.count;
    x.repairs.down_s += static_cast<double>(r.back_ns - r.down_ns) / 1e9;
    x.repairs.waited_s += static_cast<double>(r.waited_ns) / 1e9;
  }
  compare_with_summary(x, run);

  input.job = &x.rows;
  input.wall_s = x.wall_s;
  input.kept_s = x.kept_s;
  input.training_s = x.training_s;
  input.saves_s = accounts["saves"];
  input.detection_s = accounts["detection"];
  input.restarts_s = accounts["restarts"];
  input.waiting_s = accounts["waiting for servers"];
  input.disconnected_s = accounts["without network"];
  input.lost_s = accounts["lost work"];
  input.saves = x.saves;
  for (const SlowSteps& s : x.slow_steps) input.other_slow_s += s.s;
  input.other_slow_s = std::max(0.0, input.other_slow_s - input.slow_members_s);
  for (const DataWaitCost& w : x.data_waits) input.data_waits.emplace_back(w.limit, w.s);
  if (!x.classes.empty()) {
    input.worst_class = x.classes.front().cls;
    input.worst_class_s = x.classes.front().total_s() - x.classes.front().slow_s;
  }
  x.levers = levers(input, x.notes);
  for (SaveCost& level : x.saves)
    if (const auto best = best_interval(input, level)) level.best_interval_s = best->interval_s;
  return x;
}

}  // namespace trainyard::analysis
