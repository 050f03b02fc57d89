#include "cli/tune_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "cli/page.hpp"

namespace trainyard::cli {
namespace {

using analysis::MeanInterval;
using scenarios::CheckpointTune;
using scenarios::IntervalPoint;
using scenarios::Losses;
using scenarios::SparesPoint;
using scenarios::SparesTune;
using scenarios::SparesVerdict;

std::string number(const char* format, double x) {
  char text[48];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

/// "45 s", "18.2 min", "3.5 h".
std::string span(double s) {
  if (s < 1) return number("%.3g ms", s * 1e3);
  if (s < 180) return number("%.3g s", s);
  if (s < 180 * 60) return number("%.3g min", s / 60);
  if (s < 4 * 86400) return number("%.3g h", s / 3600);
  return number("%.3g d", s / 86400);
}

std::string points_of(double share) {
  return number("%.2f", 100 * share);
}

std::string plus_minus(const Terminal& terminal) {
  return terminal.unicode ? " \u00b1 " : " +- ";
}

/// "93.21 ± 0.30", in per cent or points.
std::string with_width(const MeanInterval& m, const Terminal& terminal) {
  return points_of(m.mean) + plus_minus(terminal) + points_of(m.half_width);
}

std::string percent_of(const MeanInterval& m, const Terminal& terminal) {
  return number("%.1f %%", 100 * m.mean) + plus_minus(terminal) +
         number("%.1f", 100 * m.half_width);
}

/// The same columns in both tables.
std::string loss_columns(const Losses& l) {
  return right(points_of(l.save), 6) + right(points_of(l.lost), 6) +
         right(points_of(l.detection), 8) + right(points_of(l.restart), 8) +
         right(points_of(l.waiting), 6) + right(points_of(l.other), 6);
}
constexpr const char* loss_titles = "  save  lost  detect restart  wait other";

void paragraph(Page& page, const Terminal& terminal, Colour colour, const std::string& text) {
  for (const std::string& line : wrapped(text, std::size_t(std::max(terminal.width, 40))))
    page.line(painted(terminal, colour, line));
}

/// The tied intervals around the best, without a gap.
std::pair<std::size_t, std::size_t> tied_range(const CheckpointTune& t) {
  std::size_t from = t.best, to = t.best;
  while (from > 0 && t.points[from - 1].ranked.is_tied) --from;
  while (to + 1 < t.points.size() && t.points[to + 1].ranked.is_tied) ++to;
  return {from, to};
}

std::string answer(const CheckpointTune& t, const Terminal& terminal) {
  const IntervalPoint& best = t.points[t.best];
  std::string out = "save every " + span(t.optimum ? t.optimum->at : best.interval_s) +
                    ": goodput " + percent_of(best.ranked.value, terminal);
  const auto [from, to] = tied_range(t);
  if (from < to)
    out += "; anything between " + span(t.points[from].interval_s) + " and " +
           span(t.points[to].interval_s) + " cannot be told from the best";
  out += "; Young " + span(t.young_s) + ", Daly " + span(t.daly_s);
  if (!t.now) return out;
  const IntervalPoint& now = t.points[*t.now];
  out += "; now " + span(now.interval_s);
  if (*t.now == t.best || (now.ranked.is_tied && now.ranked.behind.mean < 0.0005))
    return out + " is as good";
  out += now.ranked.is_tied ? " may cost " : " costs ";
  return out + number("%.1f points", 100 * now.ranked.behind.mean);
}

void mark_legend(Page& page, double confidence, bool has_now, const std::string& wall) {
  page.line();
  page.bullet(Colour::dim, "-",
              "* the best; ~ cannot be told from it" + std::string(has_now ? "; < now" : "") +
                  "; behind: the best minus this one on equal luck, all of them together at " +
                  number("%.0f %%", 100 * confidence) + "; save to other: per cent of " + wall);
}

void notes_of(Page& page, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) page.bullet(Colour::yellow, "!", note);
}

std::string mark(bool is_best, bool is_tied) {
  return is_best ? "* " : is_tied ? "~ " : "  ";
}

}  // namespace

std::string tune_text(const CheckpointTune& t, const Terminal& terminal) {
  Page page(terminal);
  paragraph(page, terminal, Colour::bold, answer(t, terminal));
  page.line();
  paragraph(page, terminal, Colour::plain,
            "jobs." + t.job + ", level " + t.level + ", " + with_commas(t.gpus) + " GPUs, " +
                span(t.simulated_s) + " a run; " + std::to_string(t.replications) +
                " replications of each interval on equal seeds from " + std::to_string(t.seed));

  page.heading("Goodput against the interval");
  page.line("    interval   goodput, %   behind, points" + std::string(loss_titles) + "  theory");
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    const IntervalPoint& p = t.points[i];
    const std::string behind = i == t.best ? "0" : with_width(p.ranked.behind, terminal);
    page.line(mark(i == t.best, p.ranked.is_tied) + right(span(p.interval_s), 10) +
              (p.is_now ? "<" : " ") + right(with_width(p.ranked.value, terminal), 13) +
              right(behind, 15) + loss_columns(p.losses) + right(points_of(p.theory), 8));
  }
  mark_legend(page, t.confidence, t.now.has_value(),
              "the job's wall time; theory: goodput by the exponential model");

  page.heading("Optimum");
  if (t.optimum)
    page.row("parabola", span(t.optimum->at),
             "between " + span(t.optimum->low) + " and " + span(t.optimum->high) + " at " +
                 number("%.0f %%", 100 * t.confidence) + "; goodput " +
                 number("%.2f %%", 100 * t.optimum->value) +
                 " (in the logarithm of the interval, near the best)");
  const auto formula = [&](const char* name, double interval_s, double goodput,
                           const std::string& what) {
    page.row(name, span(interval_s),
             number("goodput %.2f %%", 100 * goodput) + " by theory: " + what);
  };
  formula("exact", t.exact_s, t.exact_goodput, "M (1 + W0(-e^(-1 - C/M))), exponential failures");
  formula("Daly", t.daly_s, t.daly_goodput, "higher order estimate, 2006");
  formula("Young", t.young_s, t.young_goodput, "sqrt(2 C M), 1974");

  page.heading("Measured in the runs, for the formulas");
  page.row("C", span(t.save_s), "training stands still for one save");
  page.row("M", span(t.mtbi_s), "wall time of the job between interruptions");
  page.row("R", span(t.recovery_s),
           "from a failure to training again, without lost work: detection, restart, waiting");
  page.row("step", span(t.step_s), "saves are made at the end of steps");
  if (!t.notes.empty()) page.line();
  notes_of(page, t.notes);
  return page.text();
}

namespace {

std::string crews_text(int crews) {
  return crews == 0 ? std::string("no limit on crews")
                    : std::to_string(crews) + (crews == 1 ? " crew" : " crews");
}

std::string answer(const SparesTune& t, const Terminal& terminal) {
  std::string out;
  for (const SparesVerdict& v : t.verdicts) {
    const auto at = std::find_if(t.points.begin(), t.points.end(), [&](const SparesPoint& p) {
      return p.crews == v.crews && p.spares == v.suffice;
    });
    out += (out.empty() ? "" : "; ") + std::to_string(v.suffice) +
           (v.suffice == 1 ? " spare suffices" : " spares suffice") +
           (t.verdicts.size() > 1 || v.crews > 0 ? " with " + crews_text(v.crews) : "") +
           ": goodput " + percent_of(at->ranked.value, terminal) + ", more cannot be told from it";
  }
  const SparesVerdict& first = t.verdicts.front();
  return out + "; down on average " + number("%.1f servers", first.down_servers) +
         ", binomial P99 " + std::to_string(first.p99);
}

}  // namespace

std::string tune_text(const SparesTune& t, const Terminal& terminal) {
  Page page(terminal);
  paragraph(page, terminal, Colour::bold, answer(t, terminal));
  page.line();
  paragraph(page, terminal, Colour::plain,
            "jobs." + t.job + ", " + with_commas(t.gpus) + " GPUs, " +
                with_commas(t.working_servers) + " working servers, " + span(t.simulated_s) +
                " a run; " + std::to_string(t.replications) +
                " replications of each point on equal seeds from " + std::to_string(t.seed));

  page.heading("Goodput against spares and crews");
  page.line("    spares crews  goodput, % behind, points" + std::string(loss_titles) +
            " all GPUs  down");
  bool has_now = false;
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    const SparesPoint& p = t.points[i];
    has_now |= p.is_now;
    page.line(mark(i == t.best, p.ranked.is_tied) + right(std::to_string(p.spares), 8) +
              right(p.crews == 0 ? "all" : std::to_string(p.crews), 6) + (p.is_now ? "<" : " ") +
              right(with_width(p.ranked.value, terminal), 12) +
              right(i == t.best ? "0" : with_width(p.ranked.behind, terminal), 14) +
              loss_columns(p.losses) + right(points_of(p.of_all_gpus), 9) +
              right(number("%.1f", p.down_servers), 6));
  }
  mark_legend(page, t.confidence, has_now,
              "the job's wall time; all GPUs: kept GPU time, per cent of the whole cluster's; "
              "down: servers, on average");

  page.heading("How many suffice");
  for (const SparesVerdict& v : t.verdicts) {
    const std::string with = t.verdicts.size() > 1 ? ", " + crews_text(v.crews) : "";
    page.row("suffice", std::to_string(v.suffice),
             "fewest spares whose goodput cannot be told from that with the most, the difference "
             "known to half a point" +
                 with);
    page.row("for the money", std::to_string(v.best_of_all_gpus),
             "spares with the most kept time for all GPUs that are there" + with);
    page.row("binomial P99", std::to_string(v.p99),
             "99 times in 100 no more of the working servers are down at once, if they fail "
             "independently: " +
                 number("%.2f down on average", v.down_servers) + with);
  }
  if (!t.notes.empty()) page.line();
  notes_of(page, t.notes);
  return page.text();
}

}  // namespace trainyard::cli
