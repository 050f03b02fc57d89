#include "cli/summary.hpp"

#include <algorithm>
#include <vector>

#include "cli/page.hpp"
#include "scenarios/facility_at_rest.hpp"

namespace trainyard::cli {

using models::Account;
using scenarios::JobResult;
using scenarios::RunResult;
using scenarios::RunState;

namespace {

/// Accounts below this share are printed together.
constexpr double small_share = 0.001;

/// Green: the work itself. Yellow: what every step costs beyond it. Red: what failures and saves
/// cost. Dim: not in a job.
Colour colour_of(Account account) {
  if (account == Account::useful) return Colour::green;
  if (account <= Account::slow) return Colour::yellow;
  if (account <= Account::waiting_for_nodes) return Colour::red;
  return Colour::dim;
}

std::string duration_text(double s) {
  return to_text(seconds(std::max(0.0, s)));
}

std::string gpu_hours(double gpu_s) {
  return short_number(gpu_s / 3600) + " GPU-h";
}

std::string plural(std::int64_t n, const std::string& noun) {
  return with_commas(n) + ' ' + noun + (n == 1 ? "" : "s");
}

void add_request(Page& page, const RunResult& r) {
  page.line(painted(page.terminal(), Colour::bold, r.scenario) + ": " +
            duration_text(r.simulated_s) + " on " + plural(r.cluster.gpus, "GPU") + " in " +
            plural(r.cluster.nodes, "server") + ", seed " + std::to_string(r.seed));
  if (r.state == RunState::cancelled)
    page.bullet(Colour::red, "!", "Interrupted: everything below is of the time simulated so far.");
  if (r.state == RunState::failed) page.bullet(Colour::red, "!", "The run failed: " + r.failure);
}

std::string interruptions_remark(const JobResult& job) {
  std::string out = "unplanned";
  if (job.interruptions > 0) out += ", one every " + duration_text(job.mtbi_s);
  if (job.expected_interruptions > 0)
    out += "; " + short_number(job.expected_interruptions) + " expected from the configured rates";
  if (!job.interruptions_by_class.empty()) {
    std::vector<std::pair<std::int64_t, std::string>> classes;
    for (const auto& [name, count] : job.interruptions_by_class)
      if (count > 0) classes.emplace_back(-count, name);
    std::sort(classes.begin(), classes.end());
    std::string list;
    for (std::size_t i = 0; i < std::min<std::size_t>(classes.size(), 3); ++i)
      list += (i ? ", " : "; most from ") + classes[i].second + " (" +
              with_commas(-classes[i].first) + ")";
    out += list;
  }
  return out;
}

/// What did not become a checkpoint, and where restarts came from if there are several levels.
std::string saves_remark(const JobResult& job) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : "; ") + text; };
  if (job.saves_lost > 0) add(plural(job.saves_lost, "save") + " did not finish");
  if (job.saves_refused > 0) add(with_commas(job.saves_refused) + " refused, the store was full");
  if (job.restores_by_level.size() < 2) return out;
  std::string from;
  for (const auto& [level, times] : job.restores_by_level)
    from += (from.empty() ? "" : ", ") + (level.empty() ? "the beginning" : level) + " " +
            with_commas(times);
  add("restarts from " + from);
  return out;
}

/// "pipeline bubble 8.1 %, lost work 2.0 %": the three largest after useful work.
std::string largest_losses(const models::Ledger& ledger) {
  const double total = double(ledger.total());
  std::vector<std::pair<double, std::size_t>> losses;
  for (std::size_t a = 1; a < models::accounts; ++a)
    if (const auto amount = ledger[Account(a)]; amount > 0) losses.emplace_back(-double(amount), a);
  std::sort(losses.begin(), losses.end());
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(losses.size(), 3); ++i)
    out += (i ? ", " : "") + std::string(spoken(Account(losses[i].second))) + ' ' +
           percent(-losses[i].first / total);
  return out;
}

void add_job(Page& page, const JobResult& job, bool one_of_several) {
  page.line();
  page.line("  " + painted(page.terminal(), Colour::cyan, job.name) + "  " +
            (job.model.empty() ? "" : job.model + " on ") + plural(job.gpus, "GPU") + ", " +
            job.state);
  page.row("goodput", percent(job.goodput), "time in kept steps / wall time, first start to end");
  page.row("MFU", percent(job.mfu), "model FLOPs of kept steps / peak of its GPUs while stepping");
  if (job.ettr != job.goodput)
    page.row("ETTR", percent(job.ettr), "as goodput, with the time spent in the queue");
  page.row("step", duration_text(job.step_s),
           plural(job.steps_kept, "step") + " kept, " + short_number(job.tokens) + " tokens");
  page.row("interruptions", with_commas(job.interruptions), interruptions_remark(job));
  if (job.reroutes > 0 || job.cuts > 0)
    page.row("reroutes", with_commas(job.reroutes),
             job.cuts > 0 ? plural(job.cuts, "time") + " without any path"
                          : "traffic moved away from a failed link or switch");
  if (job.planned > 0)
    page.row("planned", with_commas(job.planned), "stops for maintenance or another job");
  page.row("checkpoints", with_commas(job.checkpoints), saves_remark(job));
  if (job.shrinks > 0)
    page.row("shrinks", with_commas(job.shrinks), "times it went on with fewer replicas");
  if (job.data_wait > 0)
    page.row("data wait", percent(job.data_wait), "of the time in steps; " + job.data_limit);
  if (one_of_several)
    if (const std::string losses = largest_losses(job.ledger); !losses.empty())
      page.row("lost to",
               percent(1 - double(job.ledger[Account::useful]) / double(job.ledger.total())),
               losses);
}

void add_ledger(Page& page, const scenarios::ClusterResult& cluster) {
  const models::Ledger& ledger = cluster.ledger;
  const double total = double(ledger.total());
  if (total <= 0) return;
  page.heading("Where the time of " + plural(cluster.gpus, "GPU") + " went (" +
               gpu_hours(total * 1e-9) + " in all)");

  double longest = 0;
  for (std::size_t a = 0; a < models::accounts; ++a)
    longest = std::max(longest, double(ledger[Account(a)]));

  models::GpuNanoseconds small = 0;
  int small_accounts = 0;
  const auto print = [&](std::string_view name, Colour colour, double amount) {
    page.bar_row(std::string(name), colour, amount / longest, percent(amount / total),
                 gpu_hours(amount * 1e-9));
  };
  for (std::size_t a = 0; a < models::accounts; ++a) {
    const auto amount = ledger[Account(a)];
    if (amount == 0) continue;
    if (double(amount) < small_share * total) {
      small += amount;
      ++small_accounts;
    } else {
      print(spoken(Account(a)), colour_of(Account(a)), double(amount));
    }
  }
  if (small_accounts > 0)
    print(std::to_string(small_accounts) +
              (small_accounts == 1 ? " small account" : " small accounts"),
          Colour::dim, double(small));
}

std::string or_dash(const std::optional<Dollars>& amount) {
  return amount ? models::money_text(*amount) : std::string("-");
}

/// What the run cost, by group and by the accounts that were not useful.
void add_cost(Page& page, const scenarios::RunCost& cost, std::int64_t gpus) {
  const models::CostReport& report = cost.report;
  const models::JobCost& all = report.cluster;
  if (all.gpu_h() <= 0) return;
  page.heading("What it cost (" + models::money_text(report.total()) + " for " +
               gpu_hours(all.sum.gpu_s) + ")");
  page.row("GPU-hour", or_dash(all.per_gpu_h()), "of all " + plural(gpus, "GPU"));
  page.row("useful GPU-hour", or_dash(all.per_useful_gpu_h()), "in steps that were kept");
  for (const models::JobCost& job : report.jobs)
    page.row(job.name, or_dash(job.per_useful_eflop()),
             "a useful EFLOP; " + or_dash(job.per_million_tokens()) + " a million tokens, " +
                 models::money_text(job.sum.cost.total()) + " in all");
  page.row(
      "energy", short_number(all.kWh() / 1000) + " MWh",
      "of the site, PUE " + short_number(cost.pue) + "; " + short_number(all.tCO2e()) + " tCO2e");
  double longest = 0;
  for (const Dollars amount : report.by_group) longest = std::max(longest, amount.value());
  for (std::size_t g = 0; g < models::spending_groups; ++g) {
    const Dollars amount = report.by_group[g];
    if (amount.value() <= 0) continue;
    std::string name(trainyard::name_of(models::SpendingGroup(g)));
    std::replace(name.begin(), name.end(), '_', ' ');
    page.bar_row(name, Colour::cyan, amount.value() / longest, percent(amount / report.total()),
                 to_text(amount));
  }
  std::vector<std::pair<double, std::size_t>> lost;
  for (std::size_t a = std::size_t(Account::checkpoint_stall); a < models::accounts; ++a)
    if (const double amount = all.by_account[a].cost.total().value(); amount > 0)
      lost.emplace_back(-amount, a);
  std::sort(lost.begin(), lost.end());
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(lost.size(), 4); ++i)
    text += (i ? ", " : "") + std::string(spoken(Account(lost[i].second))) + ' ' +
            models::money_text(Dollars(-lost[i].first));
  if (!text.empty()) page.bullet(Colour::dim, "-", "Paid for without a kept step: " + text);
  if (!cost.rent_or_own.empty()) page.bullet(Colour::dim, "-", cost.rent_or_own);
}

/// "cdu-3 at 87 %".
std::string limit_text(const std::string& part, double utilisation) {
  return utilisation > scenarios::nothing_left ? part + ", with nothing left that runs"
                                               : part + " at " + percent(utilisation);
}

/// Power and cooling: where the energy went, what was short, what the plant did to racks.
void add_facility(Page& page, const scenarios::FacilityResult& f) {
  page.heading("Power and cooling (" + to_text(f.site) + " of the site)");
  const auto share = [&](Joules part) { return percent(part / f.site); };
  page.row("PUE", short_number(f.pue),
           "all energy over that of servers and switches; WUE " + short_number(f.wue) + " L/kWh, " +
               short_number(f.water_m3) + " m3 of water");
  page.row("servers", share(f.it), "and switches, " + to_text(f.it));
  page.row("cooling", share(f.cooling),
           "chillers " + share(f.chillers) + ", pumps " + share(f.pumps) + ", fans " +
               share(f.fans) + ", towers and dry coolers " + share(f.coolers));
  std::string kinds;
  for (const auto& [kind, lost] : f.losses_by_kind)
    kinds += (kinds.empty() ? "" : ", ") + kind + ' ' + share(lost);
  page.row("losses", share(f.losses), kinds.empty() ? "the scenario has no power graph" : kinds);
  if (f.others > Joules(0))
    page.row("other loads", share(f.others), "constant loads of the power graph");
  page.row("peak", to_text(f.peak), "of the site, at " + to_text(f.peak_at - start_of_run));
  if (f.hottest_gpu_C > 0)
    page.row("hottest GPU", short_number(f.hottest_gpu_C) + " C", "die, of those that train");
  if (f.hottest_hour)
    page.row("hottest hour", short_number(f.hottest_hour->dry_C) + " C",
             "from " + to_text(f.hottest_hour->from - start_of_run) + ", wet bulb " +
                 short_number(f.hottest_hour->wet_C) + " C; nearest to its limit: " +
                 limit_text(f.hottest_hour->part, f.hottest_hour->utilisation));
  if (!f.worst.part.empty())
    page.row("most asked for", limit_text(f.worst.part, f.worst.utilisation),
             "of the cooling plant, at " + to_text(f.worst.at - start_of_run));
  const auto times = [&](std::int64_t n, const char* what) {
    if (n > 0) page.bullet(Colour::yellow, "!", plural(n, "time") + " a rack " + what);
  };
  times(f.racks_unfed, "lost its power");
  times(f.racks_uncooled, "was shut down because it was too hot");
  times(f.racks_shed, "was powered down by operators");
  times(f.limits, "was capped, braked or suspended");
}

void add_footer(Page& page, const RunResult& r) {
  if (!r.warnings.empty()) {
    page.heading("Warnings");
    for (const std::string& warning : r.warnings) page.bullet(Colour::yellow, "!", warning);
  }
  if (!r.no_effect.empty()) {
    page.heading("Settings that had no effect on this run");
    for (const std::string& setting : r.no_effect) page.bullet(Colour::dim, "-", setting);
  }
  page.line();
  if (r.run_file.empty())
    page.line("No run file was written; -o RUN.h5 writes one.");
  else
    page.line("Run file " + painted(page.terminal(), Colour::bold, r.run_file));
  std::string machine = short_number(double(r.events)) + " events in " + duration_text(r.wall_s);
  if (r.peak_rss_bytes > 0)
    machine += ", " + to_text(Bytes(double(r.peak_rss_bytes))) + " of memory";
  machine += "; fingerprint " + r.fingerprint;
  page.line(painted(page.terminal(), Colour::dim, machine));
}

}  // namespace

std::string_view spoken(Account account) {
  switch (account) {
    case Account::useful:
      return "useful compute";
    case Account::kernel_inefficiency:
      return "kernel inefficiency";
    case Account::recompute:
      return "recomputation";
    case Account::bubble:
      return "pipeline bubble";
    case Account::exposed_tp:
      return "exposed tensor comm";
    case Account::exposed_dp:
      return "exposed data comm";
    case Account::exposed_pp:
      return "exposed pipeline comm";
    case Account::exposed_cp:
      return "exposed context comm";
    case Account::exposed_ep:
      return "exposed expert comm";
    case Account::data_stall:
      return "waiting for data";
    case Account::slow:
      return "slow members";
    case Account::checkpoint_stall:
      return "checkpoint stall";
    case Account::lost_work:
      return "lost work";
    case Account::detection:
      return "detection";
    case Account::restart:
      return "restart";
    case Account::waiting_for_nodes:
      return "waiting for servers";
    case Account::spare_idle:
      return "idle spares";
    case Account::unallocated:
      return "not allocated";
    case Account::down_repair:
      return "in repair";
    case Account::down_fed:
      return "without power";
    case Account::down_cooled:
      return "without cooling";
    case Account::down_connected:
      return "without network";
  }
  return "?";
}

std::string summary(const RunResult& result, const Terminal& terminal) {
  Page page(terminal);
  add_request(page, result);
  for (const JobResult& job : result.jobs) add_job(page, job, result.jobs.size() > 1);
  add_ledger(page, result.cluster);
  if (result.facility) add_facility(page, *result.facility);
  if (result.cost) add_cost(page, *result.cost, result.cluster.gpus);
  add_footer(page, result);
  return page.text();
}

}  // namespace trainyard::cli
