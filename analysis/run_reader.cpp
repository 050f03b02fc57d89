#include "analysis/run_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "analysis/guarded_file.hpp"
#include "analysis/hdf5_io.hpp"
#include "sim/wait.hpp"

namespace trainyard::analysis {

namespace {

// A hostile file may link a group into itself; nothing of ours is deeper or wider.
constexpr std::size_t deepest = 8;
constexpr std::size_t most_objects = 100'000;
constexpr std::size_t most_columns = 1'000;

/// Whether a writer has the file open, or had it open when it was killed: bits 0 and 2 of the
/// consistency flags, byte 11 of a version 3 superblock (HDF5 file format specification, II.A).
bool is_marked_open(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char superblock[12] = {};
  in.read(superblock, sizeof superblock);
  return in && superblock[8] == 3 && (superblock[11] & 0b101) != 0;
}

GuardedFile open_run_file(const std::string& path) {
  const Doing opening{path, "", "cannot open"};
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw_run_file_error(opening, "there is no such file");
  if (!std::filesystem::is_regular_file(status)) throw_run_file_error(opening, "it is not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw_run_file_error(opening, "no permission to read it");
  char signature[8] = {};
  in.read(signature, sizeof signature);
  if (!in || std::string_view(signature, 8) != std::string_view("\x89HDF\r\n\x1a\n", 8))
    throw_run_file_error(opening, "it is not an HDF5 file");

  const bool is_live = is_marked_open(path);
  const unsigned mode = is_live ? H5F_ACC_RDONLY | H5F_ACC_SWMR_READ : H5F_ACC_RDONLY;
  return {FileHandle(H5Fopen(path.c_str(), mode, file_access(path).get()), opening), path, is_live};
}

}  // namespace

struct RunReader::Impl {
  std::string path;
  GuardedFile file;
  std::vector<Attribute> about;
  RunState state = RunState::running;
  // Read when first asked for, and again when events point past them: a live run adds names.
  std::vector<Kind> kinds;
  std::vector<std::string> subjects;
  bool has_names = false;

  /// Ended in order: no rows that were made room for and not written.
  bool is_whole() const { return state != RunState::running; }
  void open();
  void read_names();
  void check_events(const std::vector<EventRow>& rows, std::size_t first) const;
  bool has_names_for(const std::vector<EventRow>& rows) const;
  void find_tables(const std::string& group, std::size_t depth, std::size_t& seen,
                   std::vector<std::string>& out) const;
  void find_series(const std::string& group, std::size_t depth, std::size_t& seen,
                   std::vector<std::string>& out) const;
};

void RunReader::Impl::open() {
  silence_hdf5();
  file = open_run_file(path);
  about = file.attributes("/");
  const Doing opening{path, "", "cannot open"};
  if (text_attribute(about, "schema_name") != layout::schema_name)
    throw_run_file_error(opening, "it is an HDF5 file, but not a run file");
  const std::string version = text_attribute(about, "schema_version");
  if (version.substr(0, version.find('.')) != "1")
    throw_run_file_error(opening, "its schema version is " + version + "; this program reads 1.x");
  const std::string named = text_attribute(about, "run_state");
  const auto known = run_state_named(named);
  if (!known) throw_run_file_error(opening, "unknown run_state \"" + named + "\"");
  state = *known;
  has_names = false;
}

void RunReader::Impl::read_names() {
  std::vector<std::string> units = file.texts(layout::kind_units);
  std::vector<std::string> names = file.texts(layout::kinds);
  // Kinds are written before their units.
  kinds.clear();
  for (std::size_t i = 0; i < std::min(names.size(), units.size()); ++i)
    kinds.push_back({std::move(names[i]), std::move(units[i])});
  subjects = file.texts(layout::subjects);
  has_names = true;
}

bool RunReader::Impl::has_names_for(const std::vector<EventRow>& rows) const {
  return has_names && std::all_of(rows.begin(), rows.end(), [&](const EventRow& e) {
           return e.kind < static_cast<std::int64_t>(kinds.size()) &&
                  e.subject < static_cast<std::int64_t>(subjects.size());
         });
}

void RunReader::Impl::check_events(const std::vector<EventRow>& rows, std::size_t first) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const EventRow& e = rows[i];
    const auto refuse = [&](const std::string& why) {
      throw_run_file_error({path, layout::events, "damaged"},
                           "event " + std::to_string(first + i) + " " + why);
    };
    if (e.time_ns == unwritten_ns) refuse("was never written");
    if (e.kind < 0 || e.kind >= static_cast<std::int64_t>(kinds.size()))
      refuse("has kind " + std::to_string(e.kind) + " of " + std::to_string(kinds.size()));
    if (e.subject < 0 || e.subject >= static_cast<std::int64_t>(subjects.size()))
      refuse("has subject " + std::to_string(e.subject) + " of " + std::to_string(subjects.size()));
    if (e.cause < -1 || e.cause >= static_cast<std::int64_t>(first + i))
      refuse("has a cause that is not earlier: " + std::to_string(e.cause));
    if (e.phase > static_cast<std::uint8_t>(sim::Phase::observation))
      refuse("has an unknown phase");
  }
}

void RunReader::Impl::find_tables(const std::string& group, std::size_t depth, std::size_t& seen,
                                  std::vector<std::string>& out) const {
  if (depth > deepest)
    throw_run_file_error({path, group, "cannot list"}, "groups are nested too deep");
  for (const std::string& name : file.members(group, most_objects)) {
    if (++seen > most_objects)
      throw_run_file_error({path, group, "cannot list"}, "too many objects");
    const std::string full = group == "/" ? name : group + '/' + name;
    if (group == "/" && (name == "log" || name == layout::series || name == layout::summary))
      continue;
    if (!file.is_group(full)) continue;
    if (find(file.attributes(full), "rows") != nullptr)
      out.push_back(full);
    else
      find_tables(full, depth + 1, seen, out);
  }
}

void RunReader::Impl::find_series(const std::string& group, std::size_t depth, std::size_t& seen,
                                  std::vector<std::string>& out) const {
  if (depth > deepest)
    throw_run_file_error({path, group, "cannot list"}, "groups are nested too deep");
  bool has_time = false, has_value = false;
  std::vector<std::string> below;
  for (const std::string& name : file.members(group, most_objects)) {
    if (++seen > most_objects)
      throw_run_file_error({path, group, "cannot list"}, "too many objects");
    const std::string full = group + '/' + name;
    if (file.is_group(full))
      below.push_back(full);
    else if (name == layout::time_ns)
      has_time = true;
    else if (name == layout::value)
      has_value = true;
  }
  if (has_time && has_value && depth > 0)
    out.push_back(group.substr(std::string_view("series/").size()));
  for (const std::string& full : below) find_series(full, depth + 1, seen, out);
}

RunReader::RunReader(std::string path) : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  impl_->open();
}

RunReader::~RunReader() = default;
RunReader::RunReader(RunReader&&) noexcept = default;
RunReader& RunReader::operator=(RunReader&&) noexcept = default;

const std::string& RunReader::path() const {
  return impl_->path;
}
RunState RunReader::state() const {
  return impl_->state;
}
const std::vector<Attribute>& RunReader::attributes() const {
  return impl_->about;
}
const Value* RunReader::attribute(std::string_view name) const {
  return find(impl_->about, name);
}
std::string RunReader::text(std::string_view name) const {
  return text_attribute(impl_->about, name);
}

std::optional<std::string> RunReader::notice() const {
  if (!is_finished())
    return path() +
           ": the run did not finish: it was stopped, or is still going on. What it had written "
           "is shown; there are no results of the whole run.";
  if (attribute("repaired") != nullptr)
    return path() + ": the run did not finish; the file was repaired afterwards.";
  return std::nullopt;
}

std::size_t RunReader::event_count() const {
  silence_hdf5();
  return impl_->is_whole() ? impl_->file.rows(layout::events)
                           : impl_->file.written_events(layout::events);
}

std::vector<EventRow> RunReader::events(std::size_t first, std::size_t most) const {
  silence_hdf5();
  std::vector<EventRow> rows = impl_->file.events(layout::events, first, most);
  if (!impl_->is_whole())
    while (!rows.empty() && rows.back().time_ns == unwritten_ns) rows.pop_back();
  if (!impl_->has_names_for(rows)) impl_->read_names();
  impl_->check_events(rows, first);
  return rows;
}

const std::vector<Kind>& RunReader::kinds() const {
  silence_hdf5();
  if (!impl_->has_names) impl_->read_names();
  return impl_->kinds;
}

const std::vector<std::string>& RunReader::subjects() const {
  silence_hdf5();
  if (!impl_->has_names) impl_->read_names();
  return impl_->subjects;
}

std::vector<std::string> RunReader::series_names() const {
  silence_hdf5();
  std::vector<std::string> out;
  std::size_t seen = 0;
  if (impl_->file.has(layout::series)) impl_->find_series(layout::series, 0, seen, out);
  return out;
}

Series RunReader::series(const std::string& name) const {
  silence_hdf5();
  const std::string group = std::string(layout::series) + '/' + name;
  const std::string values = group + '/' + layout::value;
  Series out;
  out.name = name;
  const auto about = impl_->file.attributes(values);
  out.units = text_attribute(about, "units");
  out.long_name = text_attribute(about, "long_name");
  out.time_ns = impl_->file.int64s(group + '/' + layout::time_ns);
  out.value = impl_->file.reals(values);
  // A live or killed run may have appended to one and not yet to the other.
  std::size_t both = std::min(out.time_ns.size(), out.value.size());
  while (both > 0 && out.time_ns[both - 1] == unwritten_ns) --both;
  out.time_ns.resize(both);
  out.value.resize(both);
  return out;
}

std::vector<std::string> RunReader::table_paths() const {
  silence_hdf5();
  std::vector<std::string> out;
  std::size_t seen = 0;
  impl_->find_tables("/", 0, seen, out);
  return out;
}

bool RunReader::has_table(const std::string& path) const {
  silence_hdf5();
  return impl_->file.has(path) && impl_->file.is_group(path) &&
         find(impl_->file.attributes(path), "rows") != nullptr;
}

std::size_t RunReader::table_rows(const std::string& path) const {
  silence_hdf5();
  const auto about = impl_->file.attributes(path);
  const Value* rows = find(about, "rows");
  const auto* number = rows == nullptr ? nullptr : std::get_if<std::uint64_t>(rows);
  if (number == nullptr)
    throw_run_file_error({impl_->path, path, "cannot read the table"}, "it is not a table");
  return static_cast<std::size_t>(*number);
}

Table RunReader::table(const std::string& path) const {
  silence_hdf5();
  Table out;
  out.path = path;
  const Doing reading{impl_->path, path, "cannot read the table"};
  std::optional<std::uint64_t> rows;
  for (Attribute& a : impl_->file.attributes(path)) {
    if (a.name == "description" && std::holds_alternative<std::string>(a.value))
      out.description = std::get<std::string>(a.value);
    else if (a.name == "rows" && std::holds_alternative<std::uint64_t>(a.value))
      rows = std::get<std::uint64_t>(a.value);
    else
      out.attributes.push_back(std::move(a));
  }
  if (!rows) throw_run_file_error(reading, "it is not a table");
  for (const std::string& name : impl_->file.members(path, most_columns)) {
    if (name == layout::row) continue;
    out.columns.push_back(impl_->file.column(path + '/' + name, name));
    if (out.columns.back().size() != *rows)
      throw_run_file_error(reading, "column " + name + " has another number of rows");
  }
  return out;
}

std::vector<Attribute> RunReader::summary() const {
  silence_hdf5();
  if (!impl_->file.has(layout::summary)) return {};
  return impl_->file.attributes(layout::summary);
}

void RunReader::refresh() {
  // The old file first: HDF5 shares what it knows of a file between two openings of it.
  impl_->file = {};
  impl_->open();
}

bool is_run_file(const std::string& path) {
  try {
    RunReader reader(path);
    return true;
  } catch (const RunFileError&) {
    return false;
  }
}

}  // namespace trainyard::analysis
