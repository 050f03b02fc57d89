#include "analysis/run_writer.hpp"

#include <hdf5_hl.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <filesystem>
#include <limits>
#include <map>
#include <system_error>

#include "analysis/hdf5_io.hpp"
#include "analysis/run_reader.hpp"
#include "analysis/sha256.hpp"
#include "sim/check.hpp"

namespace trainyard::analysis {

namespace fs = std::filesystem;

namespace {

/// Rows of a series that wait in memory until they are appended: each append flushes the file's
/// metadata, which costs more than to compress one chunk.
constexpr std::size_t series_rows_waiting = 8 * layout::series_chunk;

/// zlib takes and returns its state for every chunk, and glibc gives the memory back to the kernel
/// each time. Keeping it made appending 1.7 times faster (16,384 rows a chunk) on a virtual
/// machine.
void keep_freed_memory() {
#ifdef __GLIBC__
  static const bool done = [] {
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    return true;
  }();
  (void)done;
#endif
}

/// The same run gives the same bytes, so no object may hold the time of day. For those we make a
/// property says so; the one that notes how space is allocated (the superblock extension) is made
/// by the library, with its default properties of a group. So these are changed, for this process.
void keep_no_times() {
  static const bool done = H5Pset_obj_track_times(H5P_GROUP_CREATE_DEFAULT, false) >= 0;
  check(done, "HDF5 lets its default properties be changed");
}

/// The file that the name stands for, after links; so that a link to a run file stays one.
std::string resolved(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real.string();
}

void refuse_to_replace_others(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return;
  const Doing doing{path, "", "not overwritten"};
  if (!fs::is_regular_file(status)) throw_run_file_error(doing, "it is not a file");
  if (!is_run_file(path)) throw_run_file_error(doing, "it exists and is not a readable run file");
}

void rename_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw_run_file_error({to, "", "cannot rename the finished file"}, error.message());
}

FileHandle open_for_change(const std::string& path) {
  return {H5Fopen(path.c_str(), H5F_ACC_RDWR, file_access(path).get()),
          {path, "", "cannot open for writing"}};
}

void close_file(FileHandle& file, const std::string& path) {
  if (!file.reset()) throw_hdf5_error({path, "", "cannot close"});
}

}  // namespace

struct RunWriter::Impl {
  struct Series {
    std::string name, units, long_name;
    std::vector<std::int64_t> time_ns;
    std::vector<double> value;
    bool is_late = false;  // came after begin(): has no datasets until close()
    GrowingDataset times, values;
  };

  /// Names that a dataset has from `written` on.
  struct Names {
    std::vector<std::string> all;
    GrowingDataset dataset;
    std::size_t bytes = layout::name_bytes;

    void create(hid_t file, const std::string& file_name, const char* path, const char* what) {
      const Doing doing{file_name, path, "cannot make the dataset"};
      const TypeHandle type = text_type(bytes, doing);
      const std::string empty(bytes, '\0');
      dataset =
          GrowingDataset(file, file_name, path, type, layout::name_chunk, type.get(), empty.data());
      write_attribute(dataset.id(), {"long_name", std::string(what)}, doing);
    }
    void append_new() {
      if (dataset.rows() == all.size()) return;
      std::string packed;
      for (std::size_t i = dataset.rows(); i < all.size(); ++i) {
        const std::string_view name = cut_text(all[i], bytes);
        packed.append(name).append(bytes - name.size(), '\0');
      }
      const TypeHandle type = text_type(bytes, {"", "", "cannot append names"});
      dataset.append(packed.data(), all.size() - dataset.rows(), type.get());
      dataset.flush();
    }
  };

  std::string path;
  std::string part;  // the temporary name
  FileHandle file;
  bool has_begun = false;
  bool is_closed = false;

  Names kinds, kind_units, subjects;
  std::vector<Series> series;
  std::map<std::string, sim::KindId, std::less<>> kind_of;
  std::map<std::string, sim::SubjectId, std::less<>> subject_of;
  std::map<std::string, sim::SeriesId, std::less<>> series_of;

  GrowingDataset events;
  TypeHandle row_type;
  std::vector<EventRow> rows;  // not yet appended
  std::size_t events_seen = 0;

  Doing doing(std::string_view what) const { return {path, "", what}; }
  void create(const RunInfo& info);
  void create_series(hid_t in, Series& s);
  void append(Series& s);
  void append_events();
  void finish_copy(const Ending& ending);
};

void RunWriter::Impl::create(const RunInfo& info) {
  std::error_code ignored;
  fs::remove(part, ignored);
  PropertiesHandle creation(H5Pcreate(H5P_FILE_CREATE), doing("cannot create"));
  require(H5Pset_obj_track_times(creation.get(), false), doing("cannot create"));
  // A process that is killed while the kernel copies its data stops at the border of a page of
  // memory. So no piece of metadata may lie across one, or it is torn: HDF5's paged allocation
  // packs small pieces into pages and starts larger ones at a page
  // (docs/decisions/0005-run-file.md).
  require(H5Pset_file_space_strategy(creation.get(), H5F_FSPACE_STRATEGY_PAGE, false, 1),
          doing("cannot create"));
  require(H5Pset_file_space_page_size(creation.get(), layout::page_bytes), doing("cannot create"));
  file = FileHandle(H5Fcreate(part.c_str(), H5F_ACC_EXCL, creation.get(), file_access(part).get()),
                    doing("cannot create"));

  const Doing writing = doing("cannot write the attributes");
  std::vector<Attribute> about = {{"schema_name", layout::schema_name},
                                  {"schema_version", layout::schema_version},
                                  {"Conventions", "CF-1.8"},
                                  {"creator", info.creator},
                                  {"creator_version", info.creator_version},
                                  {"git_commit", info.git_commit},
                                  {"command_line", info.command_line},
                                  {"seed", info.seed},
                                  {"scenario_name", info.scenario_name},
                                  {"scenario_sha256", sha256(info.scenario)},
                                  {"scenario", info.scenario},
                                  {"run_state", std::string(name_of(RunState::running))}};
  if (info.planned) about.push_back({"planned_duration_ns", std::int64_t{info.planned->count()}});
  for (const Attribute& a : about) write_attribute(file.get(), a, writing);

  make_group(file.get(), "log", writing);
  make_group(file.get(), layout::series, writing);
  row_type = event_type(writing);
  TypeHandle packed_rows(H5Tcopy(row_type.get()), writing);
  require(H5Tpack(packed_rows.get()), writing);
  EventRow unwritten;
  unwritten.time_ns = unwritten_ns;
  events = GrowingDataset(file.get(), path, layout::events, packed_rows, layout::event_chunk,
                          row_type.get(), &unwritten);
  write_attribute(events.id(), {"long_name", "what happened, in order"}, writing);
  for (const auto& [field, unit] :
       {std::pair("time_ns_units", "ns"), std::pair("value_units", "see log/kind_units")})
    write_attribute(events.id(), {field, unit}, writing);
  kind_units.bytes = layout::unit_bytes;
  kinds.create(file.get(), path, layout::kinds, "names of event kinds, by number");
  kind_units.create(file.get(), path, layout::kind_units, "unit of the value of an event, by kind");
  subjects.create(file.get(), path, layout::subjects, "names of what events happen to, by number");
}

void RunWriter::Impl::create_series(hid_t in, Series& s) {
  std::string where = layout::series;
  for (std::string_view rest = s.name; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    if (slash > 0) where += '/' + path_component(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  const Doing writing{path, where, "cannot make the series"};
  GroupHandle group = make_group(in, where, writing);
  TypeHandle int64(H5Tcopy(H5T_NATIVE_INT64), writing), real(H5Tcopy(H5T_NATIVE_DOUBLE), writing);
  const double no_value = std::numeric_limits<double>::quiet_NaN();
  s.times = GrowingDataset(in, path, where + '/' + layout::time_ns, int64, layout::series_chunk,
                           int64.get(), &unwritten_ns);
  s.values = GrowingDataset(in, path, where + '/' + layout::value, real, layout::series_chunk,
                            real.get(), &no_value);
  write_attribute(s.times.id(), {"units", "ns"}, writing);
  write_attribute(s.times.id(), {"long_name", "simulated time since the start of the run"},
                  writing);
  write_attribute(s.values.id(), {"units", s.units}, writing);
  write_attribute(s.values.id(), {"long_name", s.long_name}, writing);
  write_attribute(s.values.id(), {"interpolation", "holds until the next sample"}, writing);
  require(H5DSset_scale(s.times.id(), layout::time_ns), writing);
  require(H5DSattach_scale(s.values.id(), s.times.id(), 0), writing);
}

void RunWriter::Impl::append(Series& s) {
  if (s.value.empty()) return;
  // A time in the file means that its value is there.
  s.values.append(s.value.data(), s.value.size(), H5T_NATIVE_DOUBLE);
  s.values.flush();
  s.times.append(s.time_ns.data(), s.time_ns.size(), H5T_NATIVE_INT64);
  s.times.flush();
  s.time_ns.clear();
  s.value.clear();
}

void RunWriter::Impl::append_events() {
  // Names first: an event in the file never points past the dictionaries in the file.
  kinds.append_new();
  kind_units.append_new();
  subjects.append_new();
  events.append(rows.data(), rows.size(), row_type.get());
  rows.clear();
}

void RunWriter::Impl::finish_copy(const Ending& ending) {
  FileHandle copy = open_for_change(part);
  for (Series& s : series) {
    if (!s.is_late) continue;
    create_series(copy.get(), s);
    append(s);
    s.times.close();
    s.values.close();
  }
  for (const Table& table : ending.tables) write_table(copy.get(), path, table);

  const Doing writing{path, layout::summary, "cannot write the summary"};
  GroupHandle summary = make_group(copy.get(), layout::summary, writing);
  for (const Attribute& a : ending.summary) write_attribute(summary.get(), a, writing);
  summary.reset();

  for (const Attribute& a : ending.attributes) write_attribute(copy.get(), a, writing);
  write_attribute(copy.get(), {"simulated_duration_ns", std::int64_t{ending.simulated.count()}},
                  writing);
  if (!ending.failure.empty()) write_attribute(copy.get(), {"failure", ending.failure}, writing);
  write_attribute(copy.get(), {"run_state", std::string(name_of(ending.state))}, writing);
  close_file(copy, path);
}

RunWriter::RunWriter(std::string path, const RunInfo& info) : impl_(std::make_unique<Impl>()) {
  silence_hdf5();
  keep_freed_memory();
  keep_no_times();
  impl_->path = resolved(path);
  impl_->part = impl_->path + ".part";
  refuse_to_replace_others(impl_->path);
  impl_->create(info);
}

RunWriter::~RunWriter() {
  if (impl_->is_closed) return;
  try {
    flush();
  } catch (const std::exception&) {
    // The file keeps what earlier flushes wrote; there is nobody left to tell.
  }
}

sim::KindId RunWriter::kind(std::string_view name, std::string_view unit_of_value) {
  if (const auto known = impl_->kind_of.find(name); known != impl_->kind_of.end())
    return known->second;
  const sim::KindId id(impl_->kinds.all.size());
  impl_->kinds.all.emplace_back(name);
  impl_->kind_units.all.emplace_back(unit_of_value);
  impl_->kind_of.emplace(name, id);
  return id;
}

sim::SubjectId RunWriter::subject(std::string_view name) {
  if (const auto known = impl_->subject_of.find(name); known != impl_->subject_of.end())
    return known->second;
  const sim::SubjectId id(impl_->subjects.all.size());
  impl_->subjects.all.emplace_back(name);
  impl_->subject_of.emplace(name, id);
  return id;
}

sim::SeriesId RunWriter::series(std::string_view name, std::string_view units,
                                std::string_view long_name) {
  if (const auto known = impl_->series_of.find(name); known != impl_->series_of.end())
    return known->second;
  check(!name.empty(), "a series has a name");
  const sim::SeriesId id(impl_->series.size());
  impl_->series.emplace_back();
  Impl::Series& s = impl_->series.back();
  s.name = name;
  s.units = units;
  s.long_name = long_name;
  s.is_late = impl_->has_begun;
  impl_->series_of.emplace(name, id);
  return id;
}

sim::EventIndex RunWriter::event(Time when, sim::Phase phase, sim::KindId kind,
                                 sim::SubjectId subject, sim::EventIndex cause, double value) {
  Impl& w = *impl_;
  check(kind.index() < w.kinds.all.size(), "an event has a registered kind", kind.index());
  check(subject.index() < w.subjects.all.size(), "an event has a registered subject",
        subject.index());
  check(!cause.is_valid() || cause.index() < w.events_seen, "a cause comes before its effect",
        cause.index());
  EventRow& row = w.rows.emplace_back();
  row.time_ns = when.time_since_epoch().count();
  row.cause = cause.is_valid() ? static_cast<std::int64_t>(cause.index()) : -1;
  row.value = value;
  row.kind = static_cast<std::int32_t>(kind.index());
  row.subject = static_cast<std::int32_t>(subject.index());
  row.phase = static_cast<std::uint8_t>(phase);
  if (w.has_begun && w.rows.size() >= layout::event_chunk) w.append_events();
  return sim::EventIndex(w.events_seen++);
}

void RunWriter::sample(sim::SeriesId series, Time when, double value) {
  check(series.index() < impl_->series.size(), "a sample belongs to a registered series",
        series.index());
  Impl::Series& s = impl_->series[series.index()];
  s.time_ns.push_back(when.time_since_epoch().count());
  s.value.push_back(value);
  if (impl_->has_begun && !s.is_late && s.value.size() >= series_rows_waiting) impl_->append(s);
}

void RunWriter::begin() {
  Impl& w = *impl_;
  if (w.has_begun) return;
  for (Impl::Series& s : w.series) w.create_series(w.file.get(), s);
  require(H5Fstart_swmr_write(w.file.get()), w.doing("cannot begin writing"));
  rename_file(w.part, w.path);
  w.has_begun = true;
  flush();
}

void RunWriter::flush() {
  Impl& w = *impl_;
  check(!w.is_closed, "a closed run file is not written");
  if (!w.has_begun) return begin();
  if (!w.rows.empty() || w.subjects.dataset.rows() < w.subjects.all.size() ||
      w.kinds.dataset.rows() < w.kinds.all.size())
    w.append_events();
  w.events.flush();
  for (Impl::Series& s : w.series) {
    if (!s.is_late) w.append(s);
  }
}

void RunWriter::close(const Ending& ending) {
  Impl& w = *impl_;
  check(ending.state != RunState::running, "a run that ends is no longer running");
  flush();
  w.is_closed = true;
  for (Impl::Names* names : {&w.kinds, &w.kind_units, &w.subjects}) names->dataset.close();
  w.events.close();
  for (Impl::Series& s : w.series) {
    s.values.close();
    s.times.close();
  }
  close_file(w.file, w.path);

  std::error_code error;
  fs::copy_file(w.path, w.part, fs::copy_options::overwrite_existing, error);
  if (error) throw_run_file_error({w.path, "", "cannot copy to finish it"}, error.message());
  w.finish_copy(ending);
  rename_file(w.part, w.path);
}

}  // namespace trainyard::analysis
