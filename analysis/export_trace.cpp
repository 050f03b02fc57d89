#include "analysis/export_trace.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

#include "analysis/explain_rows.hpp"

namespace trainyard::analysis {
namespace {

constexpr int jobs_process = 1, cluster_process = 2, series_process = 3;

/// Colours by name that both viewers know.
const char* colour_of(const std::string& state) {
  if (state == "training") return "good";
  if (state.find("restart") != std::string::npos) return "terrible";
  if (state.find("wait") != std::string::npos) return "bad";
  return "grey";
}

void add_job(TraceWriter& trace, const JobRows& job, int thread) {
  trace.name_thread(jobs_process, thread, job.name);
  trace.name_thread(jobs_process, thread + 1, job.name + " saves");
  for (const JobRows::Segment& s : job.segments)
    trace.slice(jobs_process, thread, s.state, s.start_ns, s.end_ns,
                "\"steps\":" + std::to_string(s.steps) + ",\"servers\":" +
                    std::to_string(s.servers) + ",\"profile\":" + std::to_string(s.profile),
                colour_of(s.state));
  for (const JobRows::Save& s : job.saves)
    if (s.complete_ns >= s.start_ns)
      trace.slice(
          jobs_process, thread + 1,
          (s.is_lost ? "lost save to " : "save to ") + (s.level.empty() ? "store" : s.level),
          s.start_ns, s.complete_ns, "\"step\":" + std::to_string(s.step),
          s.is_lost ? "terrible" : "good");
  for (const JobRows::Interruption& i : job.interruptions)
    trace.instant(jobs_process, thread, i.cls, i.time_ns,
                  "\"server\":\"" + json_escaped(i.server) + "\",\"lost_steps\":" +
                      std::to_string(i.lost_steps) + ",\"event\":" + std::to_string(i.event));
}

/// The event log, a row for each kind.
void add_events(TraceWriter& trace, const RunReader& run, const TraceOptions& options) {
  constexpr std::size_t batch = 16384;
  for (std::size_t k = 0; k < run.kinds().size(); ++k)
    trace.name_thread(cluster_process, int(k) + 1, run.kinds()[k].name);
  for (std::size_t first = 0; first < run.event_count(); first += batch)
    for (const EventRow& e : run.events(first, batch)) {
      if (e.time_ns > options.to_ns) return;
      char value[40];
      std::snprintf(value, sizeof value, "%.17g", std::isfinite(e.value) ? e.value : 0.0);
      trace.instant(cluster_process, e.kind + 1, run.subjects()[std::size_t(e.subject)], e.time_ns,
                    std::string("\"value\":") + value + ",\"cause\":" + std::to_string(e.cause));
    }
}

}  // namespace

Trace trace_of(const RunReader& run, const TraceOptions& options) {
  TraceWriter trace(options);
  trace.name_process(jobs_process, "jobs");
  trace.name_process(cluster_process, "events");
  trace.name_process(series_process, "series");
  int thread = 1;
  for (const std::string& name : job_names(run)) {
    add_job(trace, read_job(run, name), thread);
    thread += 2;
  }
  for (const std::string& name : run.series_names()) {
    const Series series = run.series(name);
    const std::string title =
        name + (series.units.empty() || series.units == "1" ? "" : " [" + series.units + ']');
    for (std::size_t i = 0; i < series.value.size(); ++i)
      trace.counter(series_process, title, series.time_ns[i], series.value[i]);
  }
  add_events(trace, run, options);
  return trace.take();
}

}  // namespace trainyard::analysis
