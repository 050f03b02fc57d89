#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/validate_table.hpp"
#include "sim/recorder.hpp"

/// Published incidents of data centres against the plant of a run: a plausible site, the sequence
/// of what people and single parts did (facility.script), and what must follow by itself:
/// temperatures, shut-downs, lock-outs, transfers, jobs.
///
///     incident,scenario,step,published,unit,kind,subject,which,must,source
///     "Hong Kong","hong-kong-2022.json","halls too warm",0,min,rack is warm,*,first,start,…
///     "Hong Kong","hong-kong-2022.json","servers fail",21,min,rack too hot,*,first,factor 2,…
///
/// A row names an event of the log: its kind, a pattern of its subject (a star stands for any
/// characters) and which of them: first, last, or a number. `published` counts minutes from the row
/// of the incident that `must` be "start"; with unit "count" it is the number of such events.
/// `must` says what is asked of a row:
///
///     start       time zero of the incident
///     scripted    the scenario says when: shown, not judged
///     order       not before any row of the incident that was published earlier
///     factor 2    that, and between half and twice the published figure
///
/// Page: docs/models/incidents.md.
namespace trainyard::scenarios {

enum class IncidentDemand { start, scripted, order, factor_2 };
enum class IncidentVerdict { start, scripted, holds, out_of_order, off, missing };
std::string_view text_of(IncidentVerdict verdict);

struct IncidentStep {
  int line = 0;  // of the table
  std::string step;
  double published = 0;  // minutes after the start of the incident, or a count
  bool is_count = false;
  std::string kind, subject;  // of the event
  int which = 1;              // the n-th; 0: the last
  IncidentDemand must = IncidentDemand::order;
  std::string source;
  std::optional<double> simulated = {};  // as `published`
  IncidentVerdict verdict = IncidentVerdict::missing;

  bool is_judged() const {
    return must == IncidentDemand::order || must == IncidentDemand::factor_2;
  }
  bool holds() const { return verdict == IncidentVerdict::holds; }
};

struct Incident {
  std::string name;
  std::string scenario;  // file, beside the table
  std::vector<IncidentStep> steps;
};

struct IncidentReport {
  std::string table;
  std::vector<Incident> incidents;
  std::size_t judged() const;
  std::size_t held() const;
};

/// Known by its columns.
bool is_incident_table(const PublishedTable& table);

/// What the table asks for; nothing is run.
std::vector<Incident> read_incidents(const PublishedTable& table,
                                     std::vector<Diagnostic>& mistakes);

/// Simulated figures and verdicts from the log of a run.
void judge(Incident& incident, const sim::MemoryRecorder& log);

/// The run of a scenario that passed check_scenario(), as its log of events.
sim::MemoryRecorder log_of(const Scenario& scenario);

/// Reads, runs and judges all of them; scenarios lie in `directory`.
IncidentReport replay_incidents(const PublishedTable& table, const std::filesystem::path& directory,
                                std::vector<Diagnostic>& mistakes);

}  // namespace trainyard::scenarios
