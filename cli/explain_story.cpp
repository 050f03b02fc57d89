#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "cli/explain_report.hpp"
#include "cli/page.hpp"
#include "sim/time.hpp"

/// The story of one interruption: its chain of causes as a timeline.
namespace trainyard::cli {

using analysis::Chain;
using analysis::ChainEvent;
using analysis::Explanation;
using analysis::JobRows;

namespace {

constexpr std::size_t most_lines = 60;  // of a timeline
constexpr int deepest = 10;             // levels that are indented

std::string duration_text(double s) {
  return to_text(seconds(std::max(0.0, s)));
}

/// "+9 min 10 s", "-3 s". Times of a damaged file may be far apart.
std::string relative_text(std::int64_t ns, std::int64_t origin_ns) {
  const __int128 apart = static_cast<__int128>(ns) - origin_ns;
  constexpr __int128 most = std::numeric_limits<std::int64_t>::max() - 1;
  const Duration d(static_cast<std::int64_t>(std::clamp<__int128>(apart, -most, most)));
  return (d > Duration::zero() ? "+" : "") + to_text(d);
}

/// Events that are alike become one line: the same thing happened to many at once.
std::size_t alike(const Chain& chain, std::size_t first, const std::set<std::int64_t>& parents) {
  const ChainEvent& e = chain.events[first];
  std::size_t last = first + 1;
  if (first == chain.struck || parents.count(e.event) != 0) return last;
  for (; last < chain.events.size(); ++last) {
    const ChainEvent& o = chain.events[last];
    if (last == chain.struck || o.kind != e.kind || o.time_ns != e.time_ns ||
        o.parent != e.parent || parents.count(o.event) != 0)
      break;
  }
  return last;
}

void add_timeline(Page& page, const Chain& chain, std::int64_t origin_ns) {
  std::set<std::int64_t> parents;
  for (const ChainEvent& e : chain.events) parents.insert(e.parent);
  struct Line {
    std::string when, text;
    int depth;
    bool is_struck;
  };
  std::vector<Line> lines;
  for (std::size_t i = 0; i < chain.events.size();) {
    const std::size_t next = alike(chain, i, parents);
    const ChainEvent& e = chain.events[i];
    std::string text = event_text(e);
    if (next - i > 1)
      text = e.subject + " .. " + chain.events[next - 1].subject + " (" +
             with_commas(std::int64_t(next - i)) + "): " + e.kind;
    lines.push_back({relative_text(e.time_ns, origin_ns), text, e.depth,
                     chain.struck >= i && chain.struck < next});
    i = next;
  }
  std::size_t width = 0;
  for (const Line& line : lines) width = std::max(width, columns_of(line.when));
  std::size_t shown = 0;
  for (const Line& line : lines) {
    if (shown++ == most_lines) {
      page.bullet(Colour::dim, right("", width),
                  "and " + with_commas(std::int64_t(lines.size() - most_lines)) + " more");
      break;
    }
    const std::string mark = right(line.when, width) + "  " +
                             std::string(2 * std::size_t(std::min(line.depth, deepest)), ' ') +
                             (line.is_struck ? ">" : "-");
    page.bullet(line.is_struck ? Colour::red : Colour::plain, mark, line.text);
  }
  if (chain.later > 0)
    page.bullet(Colour::dim, right("later", width),
                with_commas(std::int64_t(chain.later)) +
                    (chain.later == 1 ? " more: " : " more, the last: ") + chain.last + ", " +
                    relative_text(chain.last_ns, origin_ns));
  if (chain.is_cut)
    page.bullet(Colour::yellow, "!", "so much followed that not all of it was looked at");
}

std::string phases_text(const JobRows::Interruption& i) {
  const JobRows::Phases& p = i.phases;
  std::string text;
  const auto add = [&](const char* name, double s) {
    if (s > 0) text += (text.empty() ? "" : " + ") + std::string(name) + ' ' + duration_text(s);
  };
  add("detection", p.detection_s);
  add("diagnosis", p.diagnosis_s);
  add("replacement", p.replace_s);
  add("waiting for servers", p.waiting_s);
  add("start-up", p.start_up_s);
  add("loading", p.load_s);
  add("without network", p.disconnected_s);
  if (text.empty()) return "it did not stop";
  return text + " = " + duration_text(p.total_s());
}

}  // namespace

std::string event_text(const ChainEvent& event) {
  std::string text = event.subject + ": " + event.kind;
  if (event.unit_of_value.empty() || !std::isfinite(event.value)) return text;
  if (event.unit_of_value == "step")
    return text + ", step " + with_commas(std::int64_t(std::clamp(event.value, 0.0, 1e18)));
  if (event.unit_of_value == "s" && event.value >= 0)
    return text + ", " + duration_text(event.value);
  std::string unit = event.unit_of_value;
  if (unit == "B") return text + ", " + to_text(Bytes(event.value));
  if (event.value == 1 && unit.size() > 2 && unit.ends_with('s')) unit.pop_back();
  return text + ", " + short_number(event.value) + ' ' + unit;
}

std::string interruption_text(const ExplainReport& report, std::size_t number,
                              const Terminal& terminal) {
  const Explanation& x = report.jobs.at(0);
  const JobRows::Interruption& i = x.rows.interruptions.at(number - 1);
  Page page(terminal);
  if (!report.notice.empty()) page.bullet(Colour::red, "!", report.notice);
  const std::string title = x.rows.name + ", interruption " + with_commas(std::int64_t(number)) +
                            " of " + with_commas(std::int64_t(x.rows.interruptions.size())) +
                            ", at " + clock_text(i.time_ns) + ": " + i.unit;
  for (const std::string& line : wrapped(title, std::size_t(std::max(terminal.width, 40))))
    page.line(painted(terminal, Colour::bold, line));
  page.line();
  page.row("effect", i.effect.empty() ? "?" : i.effect, "class " + i.cls);
  page.row("cost", duration_text(i.cost_s()),
           short_number(x.gpu_hours(i.cost_s())) + " GPU-h: stopped, lost work" +
               (i.slow_s > 0 ? ", slower steps " + duration_text(i.slow_s) : ""));
  page.row("stopped", duration_text(i.phases.total_s()), phases_text(i));
  page.row("lost work", duration_text(i.lost_s), with_commas(i.lost_steps) + " steps");
  if (x.rows.has_restored || i.restored_step >= 0)
    page.row("restored", i.restored_step >= 0 ? with_commas(i.restored_step) : "?",
             "step, from " + (i.restored_level.empty() ? "nothing" : i.restored_level));
  if (i.resumed_ns < 0)
    page.row("resumed", "never", "training did not go on before the run ended");
  else
    page.row("resumed", relative_text(i.resumed_ns, i.time_ns), "at " + clock_text(i.resumed_ns));

  const Chain chain = report.log->chain(i.event, i.resumed_ns);
  page.heading("Chain of causes (time from the failure; > is what struck)");
  if (chain.events.empty())
    page.bullet(Colour::dim, "-", "the file does not say which event it was");
  else
    add_timeline(page, chain, i.time_ns);
  return page.text();
}

}  // namespace trainyard::cli
