#include "analysis/export_csv.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "sim/wait.hpp"

namespace trainyard::analysis {

namespace fs = std::filesystem;

namespace {

std::string heading(const std::string& name, const std::string& unit) {
  return csv_field(unit.empty() ? name : name + " [" + unit + "]");
}

/// A CSV file being written.
class Sheet {
 public:
  Sheet(const fs::path& path) : path_(path) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    out_.open(path, std::ios::binary | std::ios::trunc);
    if (!out_) throw RunFileError(path.string() + ": cannot create");
  }
  void row(const std::vector<std::string>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) out_ << (i == 0 ? "" : ",") << fields[i];
    out_ << "\r\n";
  }
  void close() {
    out_.close();
    if (!out_) throw RunFileError(path_.string() + ": cannot write, is the disk full?");
  }

 private:
  fs::path path_;
  std::ofstream out_;
};

/// "jobs/llm/ledger" -> "jobs/llm/ledger.csv". A hostile file may name a group ".."; that component
/// is spelt out, so nothing is written outside the folder.
std::string file_of(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    // Names that a writer has already made safe stay as they are.
    const bool is_safe = !part.empty() && part.front() != '.';
    if (!out.empty()) out += '/';
    out += is_safe ? clean_text(part) : path_component(part);
  }
  return out + ".csv";
}

void export_events(const RunReader& run, const fs::path& path) {
  Sheet sheet(path);
  sheet.row(
      {"event", "time_ns [ns]", "phase", "kind", "subject", "cause", "value", "unit of value"});
  std::size_t index = 0;
  for (std::size_t count = run.event_count(); index < count;) {
    for (const EventRow& e :
         run.events(index, std::min<std::size_t>(count - index, layout::event_chunk))) {
      const Kind& kind = run.kinds()[static_cast<std::size_t>(e.kind)];
      sheet.row({std::to_string(index), std::to_string(e.time_ns),
                 sim::to_text(static_cast<sim::Phase>(e.phase)), csv_field(kind.name),
                 csv_field(run.subjects()[static_cast<std::size_t>(e.subject)]),
                 e.cause < 0 ? "" : std::to_string(e.cause), text_of(Value(e.value)),
                 csv_field(kind.unit_of_value)});
      ++index;
    }
  }
  sheet.close();
}

void export_series(const Series& series, const fs::path& path) {
  Sheet sheet(path);
  sheet.row({"time_ns [ns]", heading("value", series.units)});
  for (std::size_t i = 0; i < series.value.size(); ++i)
    sheet.row({std::to_string(series.time_ns[i]), text_of(Value(series.value[i]))});
  sheet.close();
}

void export_table(const Table& table, const fs::path& path) {
  Sheet sheet(path);
  std::vector<std::string> fields;
  for (const Column& c : table.columns) fields.push_back(heading(c.name, c.units));
  sheet.row(fields);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    fields.clear();
    for (const Column& c : table.columns) fields.push_back(csv_field(text_of(c[row])));
    sheet.row(fields);
  }
  sheet.close();
}

void export_summary(const std::vector<Attribute>& summary, const fs::path& path) {
  Sheet sheet(path);
  sheet.row({"name", "value"});
  for (const Attribute& a : summary) sheet.row({csv_field(a.name), csv_field(text_of(a.value))});
  sheet.close();
}

}  // namespace

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::vector<std::string> export_csv(const RunReader& run, const std::string& folder) {
  std::vector<std::string> written;
  const auto next = [&](const std::string& path) {
    written.push_back(file_of(path));
    return fs::path(folder) / written.back();
  };
  export_events(run, next(layout::events));
  for (const std::string& name : run.series_names())
    export_series(run.series(name), next(std::string(layout::series) + '/' + name));
  for (const std::string& path : run.table_paths()) export_table(run.table(path), next(path));
  if (const auto summary = run.summary(); !summary.empty())
    export_summary(summary, next(layout::summary));
  return written;
}

}  // namespace trainyard::analysis
