#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/run_writer.hpp"
#include "tests/analysis/sample_run.hpp"

/// A run whose every figure can be added by hand: 3,600 GPUs, so a second of the job is one
/// GPU-hour.
///
///         0  queued 100 s, then start-up 100 s
///       200  trains 1,000 steps of 1 s; saves: stall 10 s, complete 20 s later
///     1,210  trains 800 s; a GPU of node-3 crashes: all of it is lost.
///     2,010  found 10, diagnosed 5, replaced 15, waiting 20, start-up 40, load 10 s
///     2,110  trains 1,000 s, saves as before
///     3,120  a GPU of node-3 is slow: 320 steps of 1.25 s. Then replaced 10, start-up 40, load 10
///     s;
///            400 s are lost
///     3,580  trains 1,000 s; node-3 hangs since cdu-1 fails: found after 300 s, start-up 40, load
///     10 s;
///            1,000 s are lost
///     4,930  trains 200 s; a cable is degraded: 800 steps of 1.25 s, to the end at 6,130 s
///
/// Wall time 6,030 s = training 5,400 + saves 20 + detection 310 + restarts 280 + waiting 20;
/// kept 5,400 - 2,200 = 3,200 s.
namespace trainyard::analysis::test {

struct ExplainedRun {
  bool has_new_columns = true;  // of a file that says effect, phases and levels itself
  bool has_data_waits = true;
  bool is_throttled = false;  // the last 800 steps are slow because of power, not of a cable
  std::string job = "llm";
  RunState state = RunState::complete;
};

inline constexpr std::int64_t whole_s = 1'000'000'000;

inline void write_events(RunWriter& writer, bool is_throttled = false) {
  const auto kind = [&](const char* name, const char* unit) { return writer.kind(name, unit); };
  const auto happen = [&](std::int64_t s, const char* name, const char* subject, int cause,
                          double value = 0, const char* unit = "") {
    writer.event(Time(Duration(s * whole_s)), sim::Phase::completion, kind(name, unit),
                 writer.subject(subject),
                 cause < 0 ? sim::EventIndex() : sim::EventIndex(std::size_t(cause)), value);
  };
  happen(2010, "gpu failed", "node-3/gpu-1", -1);          // 0
  happen(2010, "job struck", "llm", 0);                    // 1
  happen(2020, "failure found", "llm", 1);                 // 2
  happen(2040, "servers let go", "llm", 2, 1, "servers");  // 3
  happen(2040, "server down", "node-3", 3);                // 4
  happen(2060, "server back", "node-9", -1);               // 5
  happen(2060, "job starting", "llm", 3);                  // 6
  happen(2110, "job training", "llm", 6, 1000, "step");    // 7
  happen(3120, "gpu slow", "node-3/gpu-1", -1);            // 8
  happen(3120, "job struck", "llm", 8);                    // 9
  happen(3580, "job training", "llm", 9, 2000, "step");    // 10
  happen(4580, "cooling lost", "cdu-1", -1);               // 11
  happen(4580, "server hung", "node-3", 11);               // 12
  happen(4580, "job struck", "llm", 12);                   // 13
  for (const char* fan : {"node-0", "node-1", "node-2"})   // 14 to 16
    happen(4580, "fan stopped", fan, 11);
  happen(4930, "job training", "llm", 13, 2000, "step");  // 17
  if (is_throttled) {
    happen(5120, "power node failed", "ups-a", -1);                            // 18
    happen(5130, "GPU speed", "GPUs of all racks", 18, 0.8, "of full speed");  // 19
    happen(5130, "step time", "llm", 19, 1.25, "s");                           // 20
    return;
  }
  happen(5130, "link degraded", "leaf-0 -> spine-1", -1, 0.5, "speed");  // 18
  happen(6000, "server back", "node-3", 12);                             // 19
}

inline Table segments_of(const std::string& path) {
  Table t = Table::with(path + "/segments", "the job's life",
                        {{"start_ns", "ns", "begin", ColumnType::int64},
                         {"end_ns", "ns", "end", ColumnType::int64},
                         {"state", "", "what it did", ColumnType::text},
                         {"profile", "", "row of step_profiles", ColumnType::int64},
                         {"steps", "1", "steps", ColumnType::int64},
                         {"servers", "1", "servers", ColumnType::int64}});
  std::int64_t now = 0;
  const auto spend = [&](std::int64_t s, const char* state, std::int64_t profile = 0,
                         std::int64_t steps = 0) {
    t.add_row({now * whole_s, (now + s) * whole_s, state, profile, steps, std::int64_t{450}});
    now += s;
  };
  spend(100, "queued"), spend(100, "starting");
  spend(1000, "training", 0, 1000), spend(10, "saving"), spend(800, "training", 0, 800);
  spend(10, "detecting"), spend(5, "diagnosing"), spend(15, "replacing"), spend(20, "waiting");
  spend(40, "starting"), spend(10, "loading");
  spend(1000, "training", 0, 1000), spend(10, "saving"), spend(400, "training", 1, 320);
  spend(10, "replacing"), spend(40, "starting"), spend(10, "loading");
  spend(1000, "training", 0, 1000);
  spend(300, "detecting"), spend(40, "starting"), spend(10, "loading");
  spend(200, "training", 0, 200), spend(1000, "training", 2, 800);
  return t;
}

inline Table profiles_of(const std::string& path) {
  Table t = Table::with(path + "/step_profiles", "every distinct step",
                        {{"step_ns", "ns", "one step", ColumnType::int64},
                         {"useful_ns", "ns", "part", ColumnType::int64},
                         {"exposed_dp_ns", "ns", "part", ColumnType::int64},
                         {"data_stall_ns", "ns", "part", ColumnType::int64},
                         {"slow_ns", "ns", "part", ColumnType::int64},
                         {"tokens", "1", "tokens", ColumnType::real}});
  const auto ms = [](std::int64_t n) { return n * 1'000'000; };
  t.add_row({ms(1000), ms(800), ms(200), ms(0), ms(0), 4e6});
  t.add_row({ms(1250), ms(800), ms(210), ms(0), ms(240), 4e6});
  t.add_row({ms(1250), ms(800), ms(450), ms(0), ms(0), 4e6});
  return t;
}

inline Table saves_of(const std::string& path, bool is_new) {
  std::vector<Column> columns{{"start_ns", "ns", "begin", ColumnType::int64},
                              {"stall_end_ns", "ns", "goes on", ColumnType::int64},
                              {"complete_ns", "ns", "complete", ColumnType::int64},
                              {"step", "1", "step", ColumnType::int64},
                              {"bytes", "B", "size", ColumnType::real},
                              {"lost", "1", "lost", ColumnType::int64},
                              {"late", "1", "late", ColumnType::int64}};
  if (is_new) {
    columns.emplace_back("level", "", "level", ColumnType::text);
    columns.emplace_back("emergency", "1", "on a warning", ColumnType::int64);
    columns.emplace_back("why_lost", "", "why", ColumnType::text);
  }
  Table t = Table::with(path + "/checkpoints", "one row a save", std::move(columns));
  for (const std::int64_t start : {1200, 3110}) {
    std::vector<Value> row{start * whole_s,
                           (start + 10) * whole_s,
                           (start + 30) * whole_s,
                           std::int64_t{start < 2000 ? 1000 : 2000},
                           1e12,
                           std::int64_t{0},
                           std::int64_t{start > 2000}};
    if (is_new) row.insert(row.end(), {"scratch", std::int64_t{0}, ""});
    t.add_row(row);
  }
  return t;
}

inline Table interruptions_of(const std::string& path, bool is_new) {
  std::vector<Column> columns{{"time_ns", "ns", "when", ColumnType::int64},
                              {"class", "", "class", ColumnType::text},
                              {"server", "", "server", ColumnType::text},
                              {"servers", "1", "servers", ColumnType::int64},
                              {"found_ns", "ns", "found", ColumnType::int64},
                              {"resumed_ns", "ns", "resumed", ColumnType::int64},
                              {"lost_steps", "1", "lost", ColumnType::int64},
                              {"lost_s", "s", "lost", ColumnType::real},
                              {"event", "", "row of log/events", ColumnType::int64}};
  if (is_new) {
    for (const char* text : {"effect", "unit", "restored_level"})
      columns.emplace_back(text, "", text, ColumnType::text);
    columns.emplace_back("restored_step", "1", "step", ColumnType::int64);
    for (const char* phase : {"detection_ns", "diagnosis_ns", "replace_ns", "waiting_ns",
                              "start_up_ns", "load_ns", "lost_ns"})
      columns.emplace_back(phase, "ns", phase, ColumnType::int64);
  }
  Table t =
      Table::with(path + "/interruptions", "failures that struck the job", std::move(columns));
  struct Row {
    std::int64_t time, found, resumed, steps, lost, event, step;
    const char *cls, *effect, *unit;
    std::vector<std::int64_t> phases;
  };
  const Row rows[] = {{2010,
                       2020,
                       2110,
                       800,
                       800,
                       0,
                       1000,
                       "gpu-crash",
                       "crash",
                       "node-3/gpu-1",
                       {10, 5, 15, 20, 40, 10}},
                      {3120,
                       3520,
                       3580,
                       320,
                       400,
                       8,
                       2000,
                       "gpu-slow",
                       "slow",
                       "node-3/gpu-1",
                       {400, 0, 10, 0, 40, 10}},
                      {4580,
                       4880,
                       4930,
                       1000,
                       1000,
                       12,
                       2000,
                       "server-hang",
                       "hang",
                       "node-3",
                       {300, -1, -1, -1, 40, 10}}};
  for (const Row& r : rows) {
    std::vector<Value> row{
        r.time * whole_s,    r.cls,   "node-3",       std::int64_t{1}, r.found * whole_s,
        r.resumed * whole_s, r.steps, double(r.lost), r.event};
    if (is_new) {
      row.insert(row.end(), {r.effect, r.unit, "scratch", r.step});
      for (const std::int64_t phase : r.phases)
        row.emplace_back(phase < 0 ? std::int64_t{-1} : phase * whole_s);
      row.emplace_back(r.lost * whole_s);
    }
    t.add_row(row);
  }
  return t;
}

/// 3,600 GPUs: seconds of the job.
inline Table explained_ledger(const std::string& path) {
  const GpuNanoseconds second = GpuNanoseconds{3600} * whole_s;
  return ledger_table(
      path + "/ledger", "GPU time of the job",
      std::vector<std::pair<std::string, GpuNanoseconds>>{{"useful", 2820 * second},
                                                          {"bubble", 200 * second},
                                                          {"data_stall", 180 * second},
                                                          {"checkpoint_stall", 20 * second},
                                                          {"lost_work", 2200 * second},
                                                          {"detection", 310 * second},
                                                          {"restart", 280 * second},
                                                          {"waiting_for_nodes", 20 * second}},
      {{"gpus", std::int64_t{3600}}, {"duration_ns", 6130 * whole_s}});
}

inline std::vector<Table> explained_tables(const ExplainedRun& run) {
  const std::string path = "jobs/" + path_component(run.job);
  std::vector<Table> tables{explained_ledger(path), segments_of(path), profiles_of(path),
                            saves_of(path, run.has_new_columns),
                            interruptions_of(path, run.has_new_columns)};
  if (run.has_data_waits) {
    Table waits = Table::with(path + "/data_waits", "steps that waited for data",
                              {{"start_ns", "ns", "begin", ColumnType::int64},
                               {"end_ns", "ns", "end", ColumnType::int64},
                               {"share", "1", "of the step", ColumnType::real},
                               {"limit", "", "what limits", ColumnType::text}});
    waits.add_row({2110 * whole_s, 3110 * whole_s, 0.2,
                   "read bandwidth of scratch; neighbour etl takes 71 %"});
    waits.add_row({3500 * whole_s, 3600 * whole_s, 0.5, "metadata rate of scratch"});
    tables.push_back(std::move(waits));
  }
  Table uses = Table::with("stores/scratch/uses", "who used it",
                           {{"user", "", "who", ColumnType::text},
                            {"write", "1", "or read", ColumnType::int64},
                            {"neighbour", "1", "somebody else", ColumnType::int64},
                            {"start_ns", "ns", "begin", ColumnType::int64},
                            {"end_ns", "ns", "end", ColumnType::int64},
                            {"bytes", "B", "moved", ColumnType::real}});
  const auto use = [&](const char* who, int write, int other, std::int64_t from, std::int64_t to,
                       double bytes) {
    uses.add_row(
        {who, std::int64_t{write}, std::int64_t{other}, from * whole_s, to * whole_s, bytes});
  };
  use("llm", 1, 0, 1200, 1230, 1e12), use("llm", 1, 0, 3110, 3140, 1e12);
  use("etl", 0, 1, 2110, 3110, 5e12);
  tables.push_back(std::move(uses));
  Table repairs = Table::with("cluster/repairs", "repairs",
                              {{"server", "", "which", ColumnType::text},
                               {"down_ns", "ns", "down", ColumnType::int64},
                               {"back_ns", "ns", "back", ColumnType::int64},
                               {"waited_ns", "ns", "for a crew", ColumnType::int64}});
  repairs.add_row({"node-9", 60 * whole_s, 2060 * whole_s, 15 * whole_s});
  repairs.add_row({"node-3", 2040 * whole_s, 6000 * whole_s, 100 * whole_s});
  tables.push_back(std::move(repairs));
  return tables;
}

/// `change` may spoil the tables.
template <class Change>
void write_explained(const std::string& path, const ExplainedRun& run, Change change) {
  RunInfo info;
  info.scenario_name = "explained";
  info.scenario = "{}";
  RunWriter writer(path, info);
  writer.begin();
  write_events(writer, run.is_throttled);
  Ending ending;
  ending.state = run.state;
  ending.simulated = Duration(6130 * whole_s);
  ending.tables = explained_tables(run);
  ending.summary = {{"jobs." + run.job + ".goodput", 3200.0 / 6030}};
  change(ending);
  writer.close(ending);
}

inline void write_explained(const std::string& path, const ExplainedRun& run = {}) {
  write_explained(path, run, [](Ending&) {});
}

}  // namespace trainyard::analysis::test
