#include "analysis/explain_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace trainyard::analysis {

namespace {

/// Columns of a table that is not trusted; a column that is not there gives its default.
class Rows {
 public:
  Rows(const RunReader& run, const std::string& path)
      : file_(run.path()), table_(run.table(path)) {}

  std::size_t count() const { return table_.rows(); }
  bool has(const char* column) const { return table_.find(column) != nullptr; }
  const Table& table() const { return table_; }

  double real(const char* name, std::size_t row, double otherwise) const {
    const Column* column = table_.find(name);
    if (column == nullptr) return otherwise;
    const Value value = (*column)[row];
    double x = 0;
    if (const auto* whole = std::get_if<std::int64_t>(&value))
      x = static_cast<double>(*whole);
    else if (const auto* natural = std::get_if<std::uint64_t>(&value))
      x = static_cast<double>(*natural);
    else if (const auto* number = std::get_if<double>(&value))
      x = *number;
    else
      refuse(row, std::string(name) + " is no number");
    if (!std::isfinite(x)) refuse(row, std::string(name) + " is no finite number");
    return x;
  }
  std::int64_t whole(const char* name, std::size_t row, std::int64_t otherwise) const {
    const Column* column = table_.find(name);
    if (column == nullptr) return otherwise;
    const auto* cells = std::get_if<std::vector<std::int64_t>>(&column->cells);
    if (cells == nullptr) refuse(row, std::string(name) + " is no whole number");
    return (*cells)[row];
  }
  std::string text(const char* name, std::size_t row, const std::string& otherwise = {}) const {
    const Column* column = table_.find(name);
    if (column == nullptr) return otherwise;
    const auto* cells = std::get_if<std::vector<std::string>>(&column->cells);
    if (cells == nullptr) refuse(row, std::string(name) + " is no text");
    return clean_text((*cells)[row]);
  }
  /// An instant of the run, or -1.
  std::int64_t instant(const char* name, std::size_t row, std::int64_t otherwise) const {
    const std::int64_t ns = whole(name, row, otherwise);
    if (ns < -1) refuse(row, std::string(name) + " is before the start of the run");
    return ns;
  }
  /// A begin and an end, both known.
  void span(std::size_t row, std::int64_t start, std::int64_t end) const {
    if (start < 0 || end < start) refuse(row, "it ends before it begins");
  }
  /// Not negative; -1 stands for "unknown".
  double amount(const char* name, std::size_t row, double otherwise) const {
    const double x = real(name, row, otherwise);
    if (x < 0 && x != -1) refuse(row, std::string(name) + " is negative");
    return x;
  }
  [[noreturn]] void refuse(std::size_t row, const std::string& why) const {
    throw RunFileError(file_ + ": " + table_.path + ", row " + std::to_string(row) + ": " + why);
  }

 private:
  std::string file_;
  Table table_;
};

std::string path_of(const std::string& job) {
  return "jobs/" + path_component(job);
}

void read_segments(const RunReader& run, JobRows& job) {
  const Rows rows(run, path_of(job.name) + "/segments");
  std::int64_t before = 0;
  for (std::size_t i = 0; i < rows.count(); ++i) {
    JobRows::Segment s;
    s.start_ns = rows.instant("start_ns", i, 0);
    s.end_ns = rows.instant("end_ns", i, 0);
    rows.span(i, s.start_ns, s.end_ns);
    if (s.start_ns < before) rows.refuse(i, "it overlaps the row before");
    before = s.end_ns;
    s.state = rows.text("state", i);
    s.profile = rows.whole("profile", i, 0);
    s.steps = rows.whole("steps", i, 0);
    s.servers = rows.whole("servers", i, 0);
    constexpr std::int64_t most_steps = 1'000'000'000'000;  // their sums stay whole numbers
    if (s.steps < 0 || s.servers < 0 || s.steps > most_steps) rows.refuse(i, "no count of steps");
    const bool has_profile =
        s.profile >= 0 && s.profile < static_cast<std::int64_t>(job.profiles.size());
    if (s.is_training() && s.steps > 0 && !job.profiles.empty() && !has_profile)
      rows.refuse(i, "there is no step profile " + std::to_string(s.profile));
    if (s.end_ns > s.start_ns || s.steps > 0) job.segments.push_back(std::move(s));
  }
}

void read_profiles(const RunReader& run, JobRows& job) {
  const std::string path = path_of(job.name) + "/step_profiles";
  if (!run.has_table(path)) {
    job.missing.push_back("no table step_profiles: slower steps cannot be told from others");
    return;
  }
  const Rows rows(run, path);
  std::vector<std::string> columns;
  for (const Column& c : rows.table().columns)
    if (c.name.ends_with("_ns") && c.name != "step_ns") {
      columns.push_back(c.name);
      job.parts.push_back(c.name.substr(0, c.name.size() - 3));
    }
  for (std::size_t i = 0; i < rows.count(); ++i) {
    JobRows::Profile p;
    p.step_s = rows.amount("step_ns", i, 0) / 1e9;
    p.data_stall_s = std::max(0.0, rows.amount("data_stall_ns", i, 0)) / 1e9;
    p.tokens = std::max(0.0, rows.amount("tokens", i, 0));
    for (const std::string& column : columns)
      p.parts_s.push_back(rows.real(column.c_str(), i, 0) / 1e9);
    job.profiles.push_back(std::move(p));
  }
}

void read_saves(const RunReader& run, JobRows& job) {
  const std::string path = path_of(job.name) + "/checkpoints";
  if (!run.has_table(path)) {
    job.missing.push_back("no table checkpoints: what saves cost is known as a sum only");
    return;
  }
  const Rows rows(run, path);
  job.has_levels = rows.has("level");
  for (std::size_t i = 0; i < rows.count(); ++i) {
    JobRows::Save s;
    s.start_ns = rows.instant("start_ns", i, -1);
    s.stall_end_ns = rows.instant("stall_end_ns", i, -1);
    s.complete_ns = rows.instant("complete_ns", i, -1);
    if (s.start_ns < 0) rows.refuse(i, "it has no start");
    for (const std::int64_t end : {s.stall_end_ns, s.complete_ns})
      if (end >= 0) rows.span(i, s.start_ns, end);
    s.step = rows.whole("step", i, 0);
    s.bytes = rows.real("bytes", i, 0);
    s.is_lost = rows.whole("lost", i, 0) != 0;
    s.was_late = rows.whole("late", i, 0) != 0;
    s.is_emergency = rows.whole("emergency", i, 0) != 0;
    s.level = rows.text("level", i);
    s.kind = rows.text("kind", i);
    s.why_lost = rows.text("why_lost", i);
    job.saves.push_back(std::move(s));
  }
}

/// The phases of an interruption that says nothing about them.
void add_phase(JobRows::Phases& p, const JobRows::Segment& s) {
  if (s.state == "detecting") p.detection_s += s.length_s();
  if (s.state == "diagnosing") p.diagnosis_s += s.length_s();
  if (s.state == "replacing") p.replace_s += s.length_s();
  if (s.state == "waiting" || s.state == "queued") p.waiting_s += s.length_s();
  if (s.state == "starting") p.start_up_s += s.length_s();
  if (s.state == "loading") p.load_s += s.length_s();
  if (s.state == "rerouting" || s.state == "cut off" || s.state == "cut-off")
    p.disconnected_s += s.length_s();
}

/// `known`: which rows have phases of their own.
void phases_from_segments(JobRows& job, const std::vector<bool>& known) {
  constexpr std::size_t far_enough = 64;  // interruptions that are under way at one instant
  auto& all = job.interruptions;
  for (const JobRows::Segment& s : job.segments) {
    const auto after = std::upper_bound(
        all.begin(), all.end(), s.start_ns,
        [](std::int64_t ns, const JobRows::Interruption& i) { return ns < i.time_ns; });
    auto i = static_cast<std::size_t>(after - all.begin());
    for (std::size_t looked = 0; i > 0 && looked < far_enough; ++looked) {
      --i;
      if (all[i].is_over_at(s.start_ns)) continue;
      if (!known[i]) add_phase(all[i].phases, s);
      break;
    }
  }
}

void read_interruptions(const RunReader& run, JobRows& job) {
  const std::string path = path_of(job.name) + "/interruptions";
  if (!run.has_table(path)) {
    job.missing.push_back("no table interruptions: nothing can be said about failures");
    return;
  }
  const Rows rows(run, path);
  job.has_restored = rows.has("restored_level");
  if (!rows.has("effect"))
    job.missing.push_back(
        "interruptions has no column effect: hangs, slow members and corruption "
        "look like crashes");
  if (!rows.has("detection_ns"))
    job.missing.push_back("interruptions has no phases: they are taken from the segments");
  const auto events = static_cast<std::int64_t>(run.event_count());
  struct Row {
    JobRows::Interruption what;
    bool has_phases = false;
  };
  std::vector<Row> all;
  for (std::size_t r = 0; r < rows.count(); ++r) {
    Row row;
    JobRows::Interruption& i = row.what;
    i.time_ns = rows.instant("time_ns", r, -1);
    if (i.time_ns < 0) rows.refuse(r, "it has no time");
    i.cls = rows.text("class", r);
    i.server = rows.text("server", r);
    i.unit = rows.text("unit", r);
    if (i.unit.empty()) i.unit = i.server;
    i.effect = rows.text("effect", r);
    if (i.cls.empty()) i.cls = i.effect.empty() ? "unknown" : i.effect;
    i.servers = rows.whole("servers", r, 1);
    i.found_ns = rows.instant("found_ns", r, -1);
    i.resumed_ns = rows.instant("resumed_ns", r, -1);
    for (const std::int64_t end : {i.found_ns, i.resumed_ns})
      if (end >= 0) rows.span(r, i.time_ns, end);
    i.lost_steps = rows.whole("lost_steps", r, 0);
    const double lost_ns = rows.amount("lost_ns", r, -1);
    i.lost_s = std::max(0.0, lost_ns >= 0 ? lost_ns / 1e9 : rows.amount("lost_s", r, 0));
    i.event = rows.whole("event", r, -1);
    if (i.event < -1 || i.event >= events) rows.refuse(r, "there is no such event in the log");
    i.restored_level = rows.text("restored_level", r);
    i.restored_step = rows.whole("restored_step", r, -1);
    const auto phase = [&](const char* name, double& into) {
      const double ns = rows.amount(name, r, -1);
      if (ns < 0) return;
      row.has_phases = true;
      into = ns / 1e9;
    };
    phase("detection_ns", i.phases.detection_s);
    phase("diagnosis_ns", i.phases.diagnosis_s);
    phase("replace_ns", i.phases.replace_s);
    phase("waiting_ns", i.phases.waiting_s);
    phase("start_up_ns", i.phases.start_up_s);
    phase("load_ns", i.phases.load_s);
    // A slow or corrupting member is found while training goes on: no time is spent on it.
    if (i.effect == "slow" || i.effect == "corrupt") i.phases.detection_s = 0;
    all.push_back(std::move(row));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Row& a, const Row& b) { return a.what.time_ns < b.what.time_ns; });
  std::vector<bool> known;
  for (Row& row : all) {
    known.push_back(row.has_phases);
    job.interruptions.push_back(std::move(row.what));
  }
  phases_from_segments(job, known);
}

void read_data_waits(const RunReader& run, JobRows& job) {
  const std::string path = path_of(job.name) + "/data_waits";
  if (!run.has_table(path)) return;
  const Rows rows(run, path);
  job.data_waits.emplace();
  for (std::size_t i = 0; i < rows.count(); ++i) {
    JobRows::DataWait w;
    w.start_ns = rows.instant("start_ns", i, 0);
    w.end_ns = rows.instant("end_ns", i, 0);
    rows.span(i, w.start_ns, w.end_ns);
    w.share = rows.real("share", i, 0);
    if (w.share < 0 || w.share > 1 + 1e-9) rows.refuse(i, "share is not between 0 and 1");
    w.limit = rows.text("limit", i);
    job.data_waits->push_back(std::move(w));
  }
}

/// "a%2Fb" is "a/b".
std::string unescaped(const std::string& component) {
  if (component == "%") return "";
  std::string out;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  for (std::size_t i = 0; i < component.size(); ++i) {
    const bool is_code = component[i] == '%' && i + 2 < component.size() &&
                         digit(component[i + 1]) >= 0 && digit(component[i + 2]) >= 0;
    out += is_code ? static_cast<char>(digit(component[i + 1]) * 16 + digit(component[i + 2]))
                   : component[i];
    if (is_code) i += 2;
  }
  return out;
}

}  // namespace

std::vector<std::string> job_names(const RunReader& run) {
  std::vector<std::string> names;
  for (const std::string& path : run.table_paths()) {
    if (!path.starts_with("jobs/") || !path.ends_with("/segments")) continue;
    names.push_back(unescaped(path.substr(5, path.size() - 5 - 9)));
  }
  return names;
}

JobRows read_job(const RunReader& run, const std::string& name) {
  JobRows job;
  job.name = name;
  const std::string path = path_of(name);
  if (run.has_table(path + "/ledger")) {
    const Table ledger = run.table(path + "/ledger");
    job.ledger = breakdown(ledger);
    if (const Value* gpus = ledger.attribute("gpus"))
      if (const auto* n = std::get_if<std::int64_t>(gpus)) job.gpus = std::max<std::int64_t>(*n, 0);
  } else {
    job.missing.push_back("no table ledger: what steps are made of is not known");
  }
  read_profiles(run, job);
  read_segments(run, job);
  read_saves(run, job);
  read_interruptions(run, job);
  read_data_waits(run, job);
  return job;
}

std::vector<StoreUse> read_store_uses(const RunReader& run) {
  std::vector<StoreUse> uses;
  for (const std::string& path : run.table_paths()) {
    if (!path.starts_with("stores/") || !path.ends_with("/uses")) continue;
    const Rows rows(run, path);
    for (std::size_t i = 0; i < rows.count(); ++i) {
      StoreUse use;
      use.store = unescaped(path.substr(7, path.size() - 7 - 5));
      use.user = rows.text("user", i);
      use.is_write = rows.whole("write", i, 0) != 0;
      use.is_neighbour = rows.whole("neighbour", i, 0) != 0;
      use.start_ns = rows.instant("start_ns", i, 0);
      use.end_ns = rows.instant("end_ns", i, 0);
      rows.span(i, use.start_ns, use.end_ns);
      use.bytes = rows.amount("bytes", i, 0);
      uses.push_back(std::move(use));
    }
  }
  return uses;
}

std::vector<RepairRow> read_repairs(const RunReader& run) {
  std::vector<RepairRow> repairs;
  if (!run.has_table("cluster/repairs")) return repairs;
  const Rows rows(run, "cluster/repairs");
  for (std::size_t i = 0; i < rows.count(); ++i) {
    RepairRow r;
    r.server = rows.text("server", i);
    r.down_ns = rows.instant("down_ns", i, 0);
    r.back_ns = rows.instant("back_ns", i, -1);
    if (r.back_ns >= 0) rows.span(i, r.down_ns, r.back_ns);
    r.waited_ns = std::max<std::int64_t>(rows.instant("waited_ns", i, 0), 0);
    repairs.push_back(std::move(r));
  }
  return repairs;
}

}  // namespace trainyard::analysis
