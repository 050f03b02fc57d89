#include "analysis/repair.hpp"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "analysis/hdf5_io.hpp"
#include "analysis/run_reader.hpp"
#include "analysis/run_writer.hpp"

namespace trainyard::analysis {

namespace fs = std::filesystem;

namespace {

constexpr const char* why = "the process that wrote this file was stopped before the run ended";

/// Cuts off rows that were made room for and never written.
void cut(hid_t file, const std::string& dataset, std::size_t rows, const Doing& doing) {
  DatasetHandle open(H5Dopen2(file, dataset.c_str(), H5P_DEFAULT), doing);
  const hsize_t extent = rows;
  require(H5Dset_extent(open.get(), &extent), doing);
}

struct Written {
  std::size_t events = 0;
  std::vector<std::pair<std::string, std::size_t>> series;
};

/// Reads everything once; throws if something is not there.
Written read_all(const std::string& path) {
  const RunReader run(path);
  Written written;
  written.events = run.events().size();
  for (const std::string& name : run.series_names())
    written.series.emplace_back(name, run.series(name).value.size());
  for (const std::string& table : run.table_paths()) run.table(table);
  return written;
}

/// What `h5clear --status --increment=0` does. The two properties are the library's own
/// (H5Fprivate.h) and are found by name: the first lets a marked file be opened, the second one
/// whose end is not where its superblock says. Setting the end to the larger of the two makes every
/// chunk reachable; clearing the marks alone leaves data that plain readers refuse ("addr
/// overflow").
void clear_marks(const std::string& path, const Written& written) {
  const Doing clearing{path, "", "cannot clear the writer's marks"};
  PropertiesHandle access = file_access(path);
  const hbool_t yes = true;
  require(H5Pset(access.get(), "clear_status_flags", &yes), clearing);
  require(H5Pset(access.get(), "skip_eof_check", &yes), clearing);
  FileHandle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), clearing);
  require(H5Fincrement_filesize(file.get(), 0), clearing);
  cut(file.get(), layout::events, written.events, clearing);
  for (const auto& [name, rows] : written.series)
    for (const char* part : {layout::time_ns, layout::value})
      cut(file.get(), std::string(layout::series) + '/' + name + '/' + part, rows, clearing);
  write_attribute(file.get(), {"run_state", std::string(name_of(RunState::failed))}, clearing);
  write_attribute(file.get(), {"failure", why}, clearing);
  write_attribute(file.get(), {"repaired", std::int64_t{1}}, clearing);
  if (!file.reset()) throw_hdf5_error(clearing);
}

std::uint64_t seed_of(const RunReader& run) {
  const Value* seed = run.attribute("seed");
  const auto* number = seed == nullptr ? nullptr : std::get_if<std::uint64_t>(seed);
  return number == nullptr ? 0 : *number;
}

/// The second way: the longest readable beginning of the events, and every series that can be read,
/// in a new file.
std::size_t salvage(const std::string& from, const std::string& to) {
  const RunReader run(from);
  RunInfo info;
  info.creator = run.text("creator");
  info.creator_version = run.text("creator_version");
  info.git_commit = run.text("git_commit");
  info.command_line = run.text("command_line");
  info.scenario_name = run.text("scenario_name");
  info.scenario = run.text("scenario");
  info.seed = seed_of(run);
  if (const Value* planned = run.attribute("planned_duration_ns"))
    if (const auto* ns = std::get_if<std::int64_t>(planned)) info.planned = Duration(*ns);

  RunWriter writer(to, info);
  for (const Kind& k : run.kinds()) writer.kind(k.name, k.unit_of_value);
  for (const std::string& s : run.subjects()) writer.subject(s);
  Time last{};
  std::size_t events = 0;
  try {
    for (;;) {
      const auto rows = run.events(events, layout::event_chunk);
      if (rows.empty()) break;
      for (const EventRow& e : rows) {
        last = Time(Duration(e.time_ns));
        writer.event(
            last, static_cast<sim::Phase>(e.phase), sim::KindId(static_cast<std::size_t>(e.kind)),
            sim::SubjectId(static_cast<std::size_t>(e.subject)),
            e.cause < 0 ? sim::EventIndex() : sim::EventIndex(static_cast<std::size_t>(e.cause)),
            e.value);
      }
      events += rows.size();
    }
  } catch (const RunFileError&) {
    // The rest of the events is lost; those before it count.
  }
  for (const std::string& name : run.series_names()) {
    try {
      const Series s = run.series(name);
      const sim::SeriesId id = writer.series(s.name, s.units, s.long_name);
      for (std::size_t i = 0; i < s.value.size(); ++i)
        writer.sample(id, Time(Duration(s.time_ns[i])), s.value[i]);
    } catch (const RunFileError&) {
      // This series is lost.
    }
  }
  Ending ending;
  ending.state = RunState::failed;
  ending.simulated = last.time_since_epoch();
  ending.failure = std::string(why) + "; only a part of it could be read";
  ending.attributes = {{"repaired", std::int64_t{1}}};
  writer.close(ending);
  return events;
}

}  // namespace

RepairReport repair(const std::string& path) {
  silence_hdf5();
  {
    const RunReader run(path);
    if (run.is_finished())
      return {RepairReport::Way::not_needed,
              path + ": nothing to repair, the run is " + std::string(name_of(run.state())),
              run.event_count()};
  }
  const std::string work = path + ".repair";
  std::error_code error;
  fs::copy_file(path, work, fs::copy_options::overwrite_existing, error);
  if (error) throw_run_file_error({path, "", "cannot copy to repair it"}, error.message());

  RepairReport report;
  try {
    try {
      clear_marks(work, read_all(path));
      report.events = read_all(work).events;
      report.way = RepairReport::Way::marks;
      report.text = path + ": repaired; it holds all that the run had written";
    } catch (const RunFileError&) {
      fs::remove(work, error);
      report.events = salvage(path, work);
      report.way = RepairReport::Way::salvage;
      report.text = path + ": damaged; what could be read was saved";
    }
    fs::rename(work, path);
  } catch (...) {
    fs::remove(work, error);
    throw;
  }
  report.text += " (" + std::to_string(report.events) + " events)";
  return report;
}

}  // namespace trainyard::analysis
