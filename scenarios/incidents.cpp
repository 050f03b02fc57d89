#include "scenarios/incidents.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "scenarios/check.hpp"
#include "scenarios/stage.hpp"
#include "scenarios/world.hpp"

namespace trainyard::scenarios {
namespace {

constexpr std::array<std::string_view, 10> columns_needed{
    "incident", "scenario", "step",  "published", "unit",
    "kind",     "subject",  "which", "must",      "source"};

/// A star stands for any characters.
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*')
    return !text.empty() && pattern.front() == text.front() &&
           matches(pattern.substr(1), text.substr(1));
  for (std::size_t skip = 0; skip <= text.size(); ++skip)
    if (matches(pattern.substr(1), text.substr(skip))) return true;
  return false;
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// Reads the cells of one row; what is wrong is said with its place.
class RowReader {
 public:
  RowReader(const PublishedTable& table, const TableRow& row, std::vector<Diagnostic>& mistakes)
      : table_(table), row_(row), mistakes_(mistakes) {}

  std::string text(std::string_view column) const { return std::string(table_.text(row_, column)); }

  std::string needed(std::string_view column) {
    std::string out = text(column);
    if (out.empty()) wrong(column, "is empty", "every row has one");
    return out;
  }

  double published() {
    const std::optional<double> value = number_of<double>(text("published"));
    if (value && std::isfinite(*value) && *value >= 0) return *value;
    wrong("published", "'" + text("published") + "' is no figure", "a number, 0 or more");
    return 0;
  }

  bool is_count() {
    const std::string unit = text("unit");
    if (unit != "min" && unit != "count")
      wrong("unit", "there is no unit '" + unit + "' here", "min or count");
    return unit == "count";
  }

  int which() {
    const std::string which = text("which");
    if (which == "first" || which == "all") return 1;
    if (which == "last") return 0;
    const std::optional<int> n = number_of<int>(which);
    if (n && *n > 0) return *n;
    wrong("which", "'" + which + "' names no event of several",
          "first, last, all of a count, or a number from 1");
    return 1;
  }

  IncidentDemand must() {
    const std::string must = text("must");
    if (must == "start") return IncidentDemand::start;
    if (must == "scripted") return IncidentDemand::scripted;
    if (must == "factor 2") return IncidentDemand::factor_2;
    if (must != "order")
      wrong("must", "nothing is asked by '" + must + "'", "start, scripted, order or factor 2");
    return IncidentDemand::order;
  }

 private:
  void wrong(std::string_view column, std::string what, std::string right) {
    const std::optional<std::size_t> index = table_.index_of(column);
    const bool has_cell = index && *index < row_.cells.size();
    mistakes_.push_back({.file = table_.name,
                         .line = has_cell ? row_.cells[*index].line : row_.line,
                         .column = has_cell ? row_.cells[*index].column : 1,
                         .path = std::string(column),
                         .what = std::move(what),
                         .right = std::move(right),
                         .code = "bad-value",
                         .source_line = {}});
  }

  const PublishedTable& table_;
  const TableRow& row_;
  std::vector<Diagnostic>& mistakes_;
};

std::vector<Time> times_of(const IncidentStep& step, const sim::MemoryRecorder& log) {
  std::vector<Time> out;
  for (const sim::MemoryRecorder::Event& e : log.events())
    if (log.kinds()[e.kind.index()].name == step.kind &&
        matches(step.subject, log.subjects()[e.subject.index()]))
      out.push_back(e.when);
  return out;
}

IncidentVerdict verdict_on(const IncidentStep& step, const Incident& incident) {
  if (step.must == IncidentDemand::scripted) return IncidentVerdict::scripted;
  if (!step.simulated) return IncidentVerdict::missing;
  if (step.must == IncidentDemand::start) return IncidentVerdict::start;
  if (!step.is_count)
    for (const IncidentStep& other : incident.steps)
      if (!other.is_count && other.simulated &&
          other.published<step.published&& * other.simulated> * step.simulated)
        return IncidentVerdict::out_of_order;
  if (step.must == IncidentDemand::factor_2 &&
      (*step.simulated < 0.5 * step.published || *step.simulated > 2 * step.published))
    return IncidentVerdict::off;
  return IncidentVerdict::holds;
}

}  // namespace

std::string_view text_of(IncidentVerdict verdict) {
  switch (verdict) {
    case IncidentVerdict::start:
      return "start";
    case IncidentVerdict::scripted:
      return "scripted";
    case IncidentVerdict::holds:
      return "holds";
    case IncidentVerdict::out_of_order:
      return "out of order";
    case IncidentVerdict::off:
      return "off by more than 2";
    case IncidentVerdict::missing:
      break;
  }
  return "did not happen";
}

std::size_t IncidentReport::judged() const {
  std::size_t n = 0;
  for (const Incident& incident : incidents)
    n += std::size_t(std::count_if(incident.steps.begin(), incident.steps.end(),
                                   [](const IncidentStep& s) { return s.is_judged(); }));
  return n;
}

std::size_t IncidentReport::held() const {
  std::size_t n = 0;
  for (const Incident& incident : incidents)
    n += std::size_t(std::count_if(incident.steps.begin(), incident.steps.end(),
                                   [](const IncidentStep& s) { return s.holds(); }));
  return n;
}

bool is_incident_table(const PublishedTable& table) {
  return std::all_of(columns_needed.begin(), columns_needed.end(),
                     [&](std::string_view column) { return table.has(column); });
}

std::vector<Incident> read_incidents(const PublishedTable& table,
                                     std::vector<Diagnostic>& mistakes) {
  std::vector<Incident> incidents;
  for (const TableRow& row : table.rows) {
    RowReader cells(table, row, mistakes);
    const std::string name = cells.needed("incident");
    auto at = std::find_if(incidents.begin(), incidents.end(),
                           [&](const Incident& incident) { return incident.name == name; });
    if (at == incidents.end())
      at = incidents.insert(at, {.name = name, .scenario = cells.needed("scenario"), .steps = {}});
    at->steps.push_back({.line = row.line,
                         .step = cells.needed("step"),
                         .published = cells.published(),
                         .is_count = cells.is_count(),
                         .kind = cells.needed("kind"),
                         .subject = cells.needed("subject"),
                         .which = cells.which(),
                         .must = cells.must(),
                         .source = cells.needed("source")});
  }
  for (const Incident& incident : incidents) {
    const auto starts =
        std::count_if(incident.steps.begin(), incident.steps.end(),
                      [](const IncidentStep& s) { return s.must == IncidentDemand::start; });
    if (starts != 1)
      mistakes.push_back(
          {.file = table.name,
           .line = incident.steps.front().line,
           .column = 1,
           .path = "must",
           .what = "incident '" + incident.name + "' has " + std::to_string(starts) + " starts",
           .right = "one row with \"start\": minutes count from it",
           .code = "bad-value",
           .source_line = {}});
  }
  return incidents;
}

void judge(Incident& incident, const sim::MemoryRecorder& log) {
  std::optional<Time> start;
  for (const IncidentStep& step : incident.steps)
    if (step.must == IncidentDemand::start)
      if (const std::vector<Time> times = times_of(step, log); !times.empty())
        start = step.which == 0 ? times.back() : times.front();
  for (IncidentStep& step : incident.steps) {
    const std::vector<Time> times = times_of(step, log);
    step.simulated.reset();
    if (step.is_count) {
      step.simulated = double(times.size());
    } else if (start && std::size_t(std::max(1, step.which)) <= times.size()) {
      const Time at = step.which == 0 ? times.back() : times[std::size_t(step.which) - 1];
      step.simulated = to_seconds(at - *start) / 60;
    }
  }
  for (IncidentStep& step : incident.steps) step.verdict = verdict_on(step, incident);
}

sim::MemoryRecorder log_of(const Scenario& scenario) {
  sim::MemoryRecorder log;
  Stage stage(scenario);
  World world(scenario, log, stage);
  sim::Engine& engine = world.engine();
  const Time end = add(start_of_run, scenario.duration);
  const auto look = [&] {
    if (world.facility()) world.facility()->observe();
  };
  look();
  while (!world.all_done()) {
    const std::optional<Time> next = engine.next_event();
    if (!next || *next > end) break;
    engine.step();
    look();
  }
  return log;
}

IncidentReport replay_incidents(const PublishedTable& table, const std::filesystem::path& directory,
                                std::vector<Diagnostic>& mistakes) {
  IncidentReport report{.table = table.name, .incidents = read_incidents(table, mistakes)};
  if (!mistakes.empty()) return report;
  for (Incident& incident : report.incidents) {
    const ReadResult read = load_scenario(directory / incident.scenario);
    if (!read.ok()) {
      mistakes.insert(mistakes.end(), read.diagnostics.begin(), read.diagnostics.end());
      continue;
    }
    judge(incident, log_of(read.scenario));
  }
  return report;
}

}  // namespace trainyard::scenarios
