#include "cli/explain_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/page.hpp"
#include "cli/summary.hpp"
#include "sim/time.hpp"

namespace trainyard::cli {

using analysis::ClassCost;
using analysis::Explanation;
using analysis::JobRows;

namespace {

using Cells = std::vector<std::string>;

std::string formatted(const char* format, double x) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

std::string duration_text(double s) {
  return to_text(seconds(std::max(0.0, s)));
}

/// Three digits: "36.1 min".
std::string short_duration(double s) {
  if (s < 60) return formatted("%.3g s", s);
  if (s < 3600) return formatted("%.3g min", s / 60);
  return s < 86400 ? formatted("%.3g h", s / 3600) : formatted("%.4g d", s / 86400);
}

std::string plural(std::int64_t n, const std::string& noun) {
  return with_commas(n) + ' ' + noun + (n == 1 ? "" : "s");
}

void add_lines(Page& page, Colour colour, const std::string& text) {
  for (const std::string& line : wrapped(text, std::size_t(std::max(page.terminal().width, 40))))
    page.line(painted(page.terminal(), colour, line));
}

void add_heading(Page& page, const std::string& text) {
  page.line();
  add_lines(page, Colour::bold, text);
}

/// Name of an account of a ledger in words; a name that this program does not know as it is.
std::string spoken_name(const std::string& account) {
  for (std::size_t a = 0; a < models::accounts; ++a)
    if (name_of(models::Account(a)) == account) return std::string(spoken(models::Account(a)));
  return account;
}

/// Yellow: what every step costs beyond the work itself. Red: what failures and saves cost.
Colour colour_of(const std::string& account) {
  for (std::size_t p = 0; p < models::step_parts; ++p)
    if (name_of(models::StepPart(p)) == account) return Colour::yellow;
  return Colour::red;
}

/// Columns with one line of headings; `words` are aligned to the left, and give way where the table
/// is too wide.
void add_table(Page& page, const Cells& titles, const std::vector<Cells>& rows,
               const std::vector<bool>& words) {
  std::vector<std::size_t> widths;
  for (const std::string& title : titles) widths.push_back(columns_of(title));
  for (const Cells& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], columns_of(row[i]));
  std::size_t all = 1;
  for (const std::size_t w : widths) all += w + 1;
  constexpr std::size_t least = 6;
  for (const auto room = std::size_t(std::max(page.terminal().width, 40)); all > room; --all) {
    std::size_t widest = titles.size();
    for (std::size_t i = 0; i < titles.size(); ++i)
      if (words[i] && widths[i] > least && (widest == titles.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == titles.size()) break;
    --widths[widest];
  }
  const auto line = [&](const Cells& cells) {
    std::string text = " ";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      std::string cell = cells[i];
      if (columns_of(cell) > widths[i])
        cell = std::string(analysis::cut_text(cell, widths[i] - 2)) + "..";
      text += ' ' + (words[i] ? left(cell, widths[i]) : right(cell, widths[i]));
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  page.line(painted(page.terminal(), Colour::dim, line(titles)));
  for (const Cells& row : rows) page.line(line(row));
}

std::string hidden_text(std::size_t all, std::size_t shown) {
  return all > shown ? ", the first " + with_commas(std::int64_t(shown)) + " of " +
                           with_commas(std::int64_t(all))
                     : "";
}

std::string lever_points(const analysis::Lever& lever) {
  return '+' + points_text(lever.points) + (lever.in_steps ? "*" : "");
}

void add_answer(Page& page, const Explanation& x) {
  std::string answer = x.rows.name + ": ";
  if (x.wall_s <= 0) {
    answer += "never started";
    if (x.queued_s > 0) answer += "; it waited " + duration_text(x.queued_s) + " for servers";
  } else {
    answer += "goodput " + percent(x.goodput);
    if (!x.outside.empty()) answer += "; of the " + percent(1 - x.goodput) + " lost: ";
    for (std::size_t i = 0; i < x.outside.size(); ++i)
      answer += (i ? ", " : "") + x.outside[i].name + ' ' + points_text(100 * x.outside[i].share);
    if (!x.levers.empty())
      answer += "; largest single lever: " + x.levers[0].what + " (" + lever_points(x.levers[0]) +
                (x.levers[0].in_steps ? " points of its time)" : " points)");
  }
  add_lines(page, Colour::bold, answer);
  if (x.wall_s <= 0) return;
  std::string about = duration_text(x.wall_s) + " on " + plural(x.rows.gpus, "GPU") + ", " +
                      short_number(x.gpu_hours(x.wall_s)) + " GPU-h; ";
  const auto n = std::int64_t(x.rows.interruptions.size());
  about += plural(n, "interruption");
  if (n > 0) about += ", one every " + duration_text(x.wall_s / double(n));
  if (x.queued_s > 0)
    about += "; queued for " + duration_text(x.queued_s) + " before, which goodput does not count";
  add_lines(page, Colour::dim, about);
}

void add_accounts(Page& page, const Explanation& x, std::size_t top) {
  struct Bar {
    std::string name;
    Colour colour;
    double share, gpu_h;
  };
  std::vector<Bar> bars;
  std::string of = "share of its time, GPU-hours";
  if (x.rows.ledger) {
    for (const analysis::Share& s : x.rows.ledger->shares)
      if (s.account != "useful" && s.gpu_s > 0)
        bars.push_back({spoken_name(s.account), colour_of(s.account), s.share, s.gpu_s / 3600});
    of = "share of the GPU time it held, GPU-hours";
  } else {
    for (const analysis::TimeShare& t : x.outside)
      bars.push_back({t.name, Colour::red, t.share, x.gpu_hours(t.s)});
  }
  if (bars.empty()) return;
  const std::size_t shown = std::min(top, bars.size());
  add_heading(page, "What cost most, by account (" + of + hidden_text(bars.size(), shown) + ")");
  for (std::size_t i = 0; i < shown; ++i)
    page.bar_row(bars[i].name, bars[i].colour, bars[i].share / bars[0].share,
                 percent(bars[i].share), short_number(bars[i].gpu_h) + " GPU-h");
}

void add_classes(Page& page, const Explanation& x, std::size_t top) {
  if (x.classes.empty()) return;
  struct Part {
    const char* title;
    double ClassCost::*s;
  };
  std::vector<Part> parts;
  for (const Part part : {Part{"detect", &ClassCost::detection_s}, Part{"lost", &ClassCost::lost_s},
                          Part{"restart", &ClassCost::restart_s},
                          Part{"wait", &ClassCost::waiting_s}, Part{"slow", &ClassCost::slow_s}})
    if (std::any_of(x.classes.begin(), x.classes.end(),
                    [&](const ClassCost& c) { return c.*part.s > 0; }))
      parts.push_back(part);
  Cells titles{"class", "effect", "n"};
  for (const Part& part : parts) titles.emplace_back(part.title);
  titles.insert(titles.end(), {"total", "share"});
  std::vector<bool> words(titles.size(), false);
  words[0] = words[1] = true;
  const std::size_t shown = std::min(top, x.classes.size());
  std::vector<Cells> rows;
  for (std::size_t i = 0; i < shown; ++i) {
    const ClassCost& c = x.classes[i];
    Cells row{c.cls, c.effect.empty() ? "?" : c.effect, with_commas(c.count)};
    for (const Part& part : parts) row.push_back(short_number(x.gpu_hours(c.*part.s)));
    row.push_back(short_number(x.gpu_hours(c.total_s())));
    row.push_back(percent(x.share(c.total_s())));
    rows.push_back(std::move(row));
  }
  add_heading(page, "By failure class (GPU-hours; share of its time" +
                        hidden_text(x.classes.size(), shown) + ")");
  add_table(page, titles, rows, words);
}

void add_servers(Page& page, const Explanation& x, std::size_t top) {
  if (x.offenders.empty()) return;
  const std::size_t shown = std::min(top, x.offenders.size());
  add_heading(page, "Servers that failed more than once" + hidden_text(x.offenders.size(), shown));
  for (std::size_t i = 0; i < shown; ++i) {
    const analysis::ServerCost& s = x.offenders[i];
    page.row(s.server, plural(s.count, "time"),
             short_number(x.gpu_hours(s.s)) + " GPU-h, " + percent(x.share(s.s)) + " of its time");
  }
}

void add_steps(Page& page, const Explanation& x, std::size_t top) {
  if (!x.slow_steps.empty()) {
    const std::size_t shown = std::min(top, x.slow_steps.size());
    add_heading(page, "Steps slower than the best (GPU-hours" +
                          hidden_text(x.slow_steps.size(), shown) + ")");
    for (std::size_t i = 0; i < shown; ++i) {
      const analysis::SlowSteps& s = x.slow_steps[i];
      std::string text = s.cause + ": " + plural(s.steps, "step") + " of profile " +
                         std::to_string(s.profile) + ", +" + duration_text(s.excess_s) + " each";
      if (!s.part.empty())
        text += " (" + spoken_name(s.part) + " +" + duration_text(s.part_s) + ")";
      text += ", from " + clock_text(s.first_ns) + "; " + percent(x.share(s.s)) + " of its time";
      page.bullet(Colour::yellow, right(short_number(x.gpu_hours(s.s)), 7), text);
    }
  }
  if (x.data_waits.empty()) return;
  const double share = x.training_s > 0 ? x.data_wait_s / x.training_s : 0;
  const std::size_t shown = std::min(top, x.data_waits.size());
  add_heading(page, "Waiting for data: " + percent(share) + " of training (GPU-hours" +
                        hidden_text(x.data_waits.size(), shown) + ")");
  constexpr double too_much = 0.1;
  if (share > too_much) page.bullet(Colour::red, "!", "more than 10 % of training waits for data");
  for (std::size_t i = 0; i < shown; ++i) {
    const analysis::DataWaitCost& w = x.data_waits[i];
    page.bullet(Colour::yellow, right(short_number(x.gpu_hours(w.s)), 7),
                w.limit + ": " + percent(w.s / w.training_s) + " of " +
                    duration_text(w.training_s) + " of training, from " + clock_text(w.first_ns) +
                    "; " + percent(x.share(w.s)) + " of its time");
  }
}

void add_saves(Page& page, const Explanation& x) {
  if (x.saves.empty()) return;
  add_heading(page, "Saves");
  for (const analysis::SaveCost& s : x.saves) {
    std::string text = plural(s.count, "save");
    if (s.interval_s > 0) text += ", one every " + duration_text(s.interval_s) + " of training";
    if (s.best_interval_s > 0)
      text += " (best to first order: " + duration_text(s.best_interval_s) + ")";
    text += "; stall " + duration_text(s.stall_s / double(s.count)) + " each, " +
            duration_text(s.stall_s) + " in all, " + percent(x.share(s.stall_s)) + " of its time";
    if (s.drain_s > 0) text += "; " + duration_text(s.drain_s) + " more until complete";
    if (s.emergency > 0) text += "; " + with_commas(s.emergency) + " on a warning";
    if (s.late > 0) text += "; " + with_commas(s.late) + " late: the one before was under way";
    if (s.lost > 0) text += "; " + with_commas(s.lost) + " lost";
    for (std::size_t i = 0; i < s.why_lost.size(); ++i)
      text += (i ? ", " : ": ") + s.why_lost[i].first +
              (s.why_lost.size() > 1 ? " " + with_commas(s.why_lost[i].second) : "");
    page.bullet(Colour::plain, s.level.empty() ? "-" : s.level + ":", text);
  }
}

void add_around(Page& page, const Explanation& x, std::size_t top) {
  if (!x.stores.empty()) {
    const std::size_t shown = std::min(top, x.stores.size());
    add_heading(page, "Who used the stores" + hidden_text(x.stores.size(), shown));
    for (std::size_t i = 0; i < shown; ++i) {
      const analysis::StoreCost& s = x.stores[i];
      page.bullet(Colour::plain, s.store + ":",
                  (s.is_neighbour ? "neighbour " : "") + s.user +
                      (s.is_write ? " wrote " : " read ") + to_text(Bytes(s.bytes)) + " in " +
                      plural(s.uses, "use") + ", " + duration_text(s.s));
    }
  }
  if (x.repairs.count > 0)
    page.row("repairs", with_commas(x.repairs.count),
             "down " + duration_text(x.repairs.down_s / double(x.repairs.count)) +
                 " each, of it waiting for a crew " +
                 duration_text(x.repairs.waited_s / double(x.repairs.count)));
}

void add_levers(Page& page, const Explanation& x, std::size_t top) {
  if (x.levers.empty()) return;
  const std::size_t shown = std::min(top, x.levers.size());
  const bool any_in_steps = std::any_of(x.levers.begin(), x.levers.end(),
                                        [](const analysis::Lever& l) { return l.in_steps; });
  add_heading(
      page, "What would help: points of goodput, GPU-hours" + hidden_text(x.levers.size(), shown));
  add_lines(page, Colour::dim,
            "First order, each by itself; they do not add up." +
                std::string(any_in_steps ? " * faster steps: points of its time." : ""));
  for (std::size_t i = 0; i < shown; ++i) {
    const analysis::Lever& lever = x.levers[i];
    page.bullet(Colour::green,
                right(lever_points(lever), 7) + ' ' + right(short_number(lever.gpu_s / 3600), 7),
                lever.what + ": " + lever.assumption);
  }
}

void add_interruptions(Page& page, const Explanation& x, const analysis::CauseLog& log,
                       std::size_t top) {
  const auto& all = x.rows.interruptions;
  if (all.empty()) return;
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].cost_s() > all[b].cost_s(); });
  const std::size_t shown = std::min(top, order.size());
  std::vector<Cells> rows;
  for (std::size_t k = 0; k < shown; ++k) {
    const JobRows::Interruption& i = all[order[k]];
    std::string what = i.unit;
    if (i.event >= 0)
      if (const std::string root = log.described(log.first_cause(i.event)).subject;
          root != i.unit && root != x.rows.name)
        what += " <- " + root;
    rows.push_back({std::to_string(order[k] + 1), clock_text(i.time_ns), what, i.cls,
                    i.effect.empty() ? "?" : i.effect, short_duration(i.cost_s()),
                    short_duration(i.lost_s), restored_text(x.rows, i)});
  }
  add_heading(page, "Interruptions that cost most" + hidden_text(all.size(), shown) +
                        " (--interruption N tells its story)");
  add_table(page, {"N", "time", "what failed", "class", "effect", "cost", "lost work", "restored"},
            rows, {false, false, true, true, true, false, false, true});
}

}  // namespace

std::string points_text(double points) {
  const double size = std::abs(points);
  return formatted(size >= 0.995 ? "%.1f" : size >= 0.005 || size == 0 ? "%.2f" : "%.1g", points);
}

std::string clock_text(std::int64_t ns) {
  const std::int64_t s = ns / 1'000'000'000;
  char text[64];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d", int(s / 3600 % 24), int(s / 60 % 60),
                int(s % 60));
  return (s >= 86400 ? std::to_string(s / 86400) + " d " : "") + text;
}

std::string restored_text(const JobRows& job, const JobRows::Interruption& i) {
  if (!job.has_restored) return i.restored_step >= 0 ? with_commas(i.restored_step) : "?";
  if (i.restored_level.empty()) return "nothing";
  return i.restored_level + (i.restored_step >= 0 ? ", step " + with_commas(i.restored_step) : "");
}

std::string explain_text(const ExplainReport& report, const Terminal& terminal) {
  Page page(terminal);
  if (!report.notice.empty()) page.bullet(Colour::red, "!", report.notice);
  bool is_first = true;
  for (const Explanation& x : report.jobs) {
    if (!is_first) page.line();
    is_first = false;
    add_answer(page, x);
    add_accounts(page, x, report.top);
    add_classes(page, x, report.top);
    add_servers(page, x, report.top);
    add_steps(page, x, report.top);
    add_saves(page, x);
    add_around(page, x, report.top);
    add_levers(page, x, report.top);
    add_interruptions(page, x, *report.log, report.top);
    if (!x.notes.empty()) add_heading(page, "Notes");
    for (const std::string& note : x.notes) page.bullet(Colour::yellow, "!", note);
  }
  return page.text();
}

}  // namespace trainyard::cli
