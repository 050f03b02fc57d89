#include "cli/facility_report.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/page.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {

using scenarios::FacilityReport;
using scenarios::GroupLoss;
using scenarios::NodeLoad;
using scenarios::NodeLoss;
using scenarios::RollUp;

namespace {

constexpr std::size_t lines_told = 12;

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[96];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

std::string quantity(double value, const std::string& unit) {
  if (unit == "W") return to_text(Watts(value));
  if (unit == "VA") return to_text(VoltAmperes(value));
  return to_text(Amperes(value));
}

std::string units(std::size_t n, const std::string& one) {
  return with_commas(std::int64_t(n)) + ' ' + one + (n == 1 ? "" : one.ends_with('s') ? "es" : "s");
}

/// One unit for the whole table, so that it can be added up by eye.
class Power {
 public:
  explicit Power(Watts largest) : is_large_(largest >= Watts(1e6)) {}
  std::string operator()(Watts w) const {
    return is_large_ ? format("%.3f", w.value() / 1e6) : format("%.2f", w.value() / 1e3);
  }
  std::string unit() const { return is_large_ ? "MW" : "kW"; }

 private:
  bool is_large_;
};

void print_power(Page& page, const FacilityReport& r) {
  const RollUp& idle = r.idle;
  const RollUp& peak = r.peak;
  const Power power(peak.site());
  page.heading("Power of the site");
  Table table({"", "idle " + power.unit(), "peak " + power.unit(), "of peak"});
  const auto row = [&](const std::string& name, Watts at_idle, Watts at_peak) {
    if (at_idle <= Watts(0) && at_peak <= Watts(0)) return;
    table.add({name, power(at_idle), power(at_peak), percent(at_peak / peak.site())});
  };
  row("GPUs", idle.gpus, peak.gpus);
  row("servers without GPUs", idle.servers, peak.servers);
  row("switches", idle.switches, peak.switches);
  for (const GroupLoss& loss : peak.losses) {
    const auto same = std::find_if(idle.losses.begin(), idle.losses.end(),
                                   [&](const GroupLoss& l) { return l.group == loss.group; });
    row("lost in " + loss.group +
            (loss.group.find(loss.kind) == std::string::npos ? " (" + loss.kind + ")"
                                                             : std::string()),
        same == idle.losses.end() ? Watts(0) : same->lost, loss.lost);
  }
  if (r.outdoors) {
    row("fans", idle.fans, peak.fans);
    row("pumps", idle.pumps, peak.pumps);
    row("chillers", idle.chillers, peak.chillers);
    row("coolers", idle.coolers, peak.coolers);
  }
  row("other loads", idle.others, peak.others);
  row("in all", idle.site(), peak.site());
  table.add({"PUE", format("%.3f", idle.pue()), format("%.3f", peak.pue()), ""});
  table.print(page);
  page.line();
  page.bullet(Colour::dim, "-",
              "idle: every GPU at " + to_text(idle.gpu) + "; peak: every GPU at its limit of " +
                  to_text(peak.gpu) +
                  "; the rest of a server draws the same at both; switches are not on the power "
                  "graph");
  if (!r.has_power_graph)
    page.bullet(Colour::dim, "-", "the scenario has no power graph: no losses, no ratings");
  if (!r.outdoors) {
    page.bullet(Colour::dim, "-", "the scenario has no cooling plant: its power is not counted");
    return;
  }
  page.bullet(Colour::dim, "-",
              format("cooling at %.1f °C outside, wet bulb %.1f °C: the hottest hour of a year",
                     r.outdoors->dry, r.outdoors->wet));
}

void print_cooling(Page& page, const FacilityReport& r) {
  if (!r.outdoors) return;
  for (const auto& [name, state] : {std::pair("idle", &r.idle), std::pair("peak", &r.peak)}) {
    std::string text = std::string("at ") + name + " racks breathe " +
                       format("%.1f °C at most", state->warmest_air_C);
    if (state->coolant_C > 0) text += format(" and are given coolant of %.1f °C", state->coolant_C);
    if (!state->limit.part.empty() && state->limit.utilisation < scenarios::nothing_left)
      text += "; nearest to its limit is " + state->limit.part + ", " +
              percent(state->limit.utilisation) + " of what it can do";
    page.bullet(Colour::dim, "-", text);
    for (const std::string& loop : state->short_loops)
      page.bullet(Colour::red, "!",
                  std::string("at ") + name + " loop " + loop +
                      " is asked for more heat than it can take out");
    if (!state->is_cooled)
      page.bullet(
          Colour::red, "!",
          std::string("at ") + name + " racks become too hot to run: the cooling falls short");
  }
}

void print_ratings(Page& page, const FacilityReport& r) {
  if (r.ratings.empty()) return;
  page.heading("Ratings at peak: the most loaded unit of each group");
  Table table({"group", "units", "most loaded", "load", "allowed", "share"});
  std::map<std::string, int> count;
  for (const NodeLoad& n : r.ratings) ++count[n.group];
  for (const NodeLoad& n : r.ratings) {
    const auto at = count.find(n.group);
    if (at == count.end()) continue;
    table.add({n.group, with_commas(at->second), n.node + (n.where.empty() ? "" : " " + n.where),
               quantity(n.load, n.unit), quantity(n.allowed, n.unit),
               format("%.0f %%", n.share() * 100)});
    count.erase(at);
  }
  table.print(page);
  page.line();
  const bool has_currents = std::any_of(r.ratings.begin(), r.ratings.end(),
                                        [](const NodeLoad& n) { return n.unit == "A"; });
  if (has_currents)
    page.bullet(Colour::dim, "-",
                "of a breaker's rated current 80 % may be planned, unless it is made for all");
  for (std::size_t i = 0; i < std::min(lines_told, r.violations.size()); ++i)
    page.bullet(Colour::red, "!", to_text(r.violations[i]));
  if (r.violations.size() > lines_told)
    page.bullet(Colour::red, "!",
                with_commas(std::int64_t(r.violations.size() - lines_told)) + " more: --json");
  if (r.violations.empty()) page.bullet(Colour::green, "-", "nothing is above its rating");
}

std::string text_of(const NodeLoss& loss) {
  std::string text = "without " + loss.node;
  if (loss.alike > 1) text += " (" + std::to_string(loss.alike - 1) + " more alike)";
  text += ": ";
  text += loss.dark_racks > 0
              ? units(loss.dark_racks, "rack") + " dark (" + to_text(loss.dark_load) + ")"
              : "all racks fed";
  for (std::size_t i = 0; i < loss.dark_loads.size(); ++i)
    text += (i > 0 ? ", " : "; dark too: ") + loss.dark_loads[i];
  if (loss.worst) {
    text += "; " + loss.worst->node + " at " + format("%.0f %%", loss.worst->ratio * 100) +
            " of its rating, before " + format("%.0f %%", loss.worst->before * 100);
    if (loss.worst->trips) text += ", trips after " + to_text(*loss.worst->trips);
    if (loss.overloaded > 1) text += "; " + units(loss.overloaded, "node") + " above their rating";
  }
  if (loss.dark_after_trips > loss.dark_racks)
    text += "; after all trips " + units(loss.dark_after_trips, "rack") + " dark";
  return text;
}

void print_losses(Page& page, const FacilityReport& r) {
  if (r.losses.empty()) return;
  page.heading("After any single loss, at peak");
  std::size_t harmless = 0, told = 0, left_out = 0;
  for (const NodeLoss& loss : r.losses) {
    if (loss.is_harmless()) {
      harmless += std::size_t(loss.alike);
      continue;
    }
    if (++told > lines_told) {
      left_out += std::size_t(loss.alike);
      continue;
    }
    page.bullet(loss.dark_after_trips > 0 ? Colour::red : Colour::yellow, "!", text_of(loss));
  }
  if (left_out > 0)
    page.bullet(Colour::red, "!", with_commas(std::int64_t(left_out)) + " more: --json");
  if (harmless > 0)
    page.bullet(Colour::green, "-",
                units(harmless, told > 0 ? "other loss" : "loss") +
                    " of a node: all racks fed, nothing above its rating");
}

void print_shared(Page& page, const FacilityReport& r) {
  if (!r.has_power_graph) return;
  page.heading("Shared by redundant feeds");
  for (std::size_t i = 0; i < std::min(lines_told, r.shared.size()); ++i)
    page.bullet(Colour::yellow, "!", to_text(r.shared[i]));
  if (r.shared.size() > lines_told)
    page.bullet(Colour::yellow, "!",
                with_commas(std::int64_t(r.shared.size() - lines_told)) + " more: --json");
  if (r.shared.empty()) page.bullet(Colour::green, "-", "no node");
}

void print_steps(Page& page, const FacilityReport& r) {
  if (r.steps.jobs.empty()) return;
  page.heading("Power of training over one step");
  Table table({"job", "step", "mean", "peak", "low", "swing", "ramp MW/s", "strongest line"});
  const auto row = [&](const std::string& name, const std::string& step,
                       const models::PowerSwing& s) {
    table.add({name, step, to_text(s.mean), to_text(s.peak), to_text(s.low), to_text(s.range),
               format("%.3g", s.ramp_W_per_s / 1e6),
               s.frequency > 0 ? to_text(s.amplitude) + format(" at %.3g Hz", s.frequency) : "-"});
  };
  for (const auto& job : r.steps.jobs) row(job.job, to_text(job.step), job.swing);
  if (r.steps.jobs.size() > 1) row("all at worst", "", r.steps.together);
  table.print(page);
  page.line();
  for (const models::SwingViolation& v : r.steps.violations)
    page.bullet(Colour::red, "!", scenarios::to_text(v));
  if (r.steps.violations.empty())
    page.bullet(Colour::dim, "-", "no limit of facility.swing is passed");
}

}  // namespace

std::string facility_text(const FacilityReport& r, const Terminal& terminal) {
  Page page(terminal);
  page.line(painted(terminal, Colour::bold, r.scenario) + ": the plant at rest");
  page.line("for " + with_commas(std::int64_t(r.racks)) + " racks, " + with_commas(r.servers) +
            " servers, " + with_commas(r.gpus) + " GPUs");
  print_power(page, r);
  print_cooling(page, r);
  print_ratings(page, r);
  print_losses(page, r);
  print_shared(page, r);
  print_steps(page, r);
  return page.text();
}

}  // namespace trainyard::cli
