#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run_file.hpp"
#include "analysis/table.hpp"

/// Reads run files: finished ones, those of a killed process, and those still being written.
/// Everything comes back as plain data that stays valid when the reader is gone.
///
///     RunReader run("run.h5");
///     if (auto notice = run.notice()) std::cerr << *notice << '\n';
///     for (const EventRow& e : run.events())
///       std::cout << e.time_ns << ' ' << run.kinds()[e.kind].name << '\n';
///
/// A damaged file ends in RunFileError with file, object and reason: what the rows point at is
/// checked here (kinds, subjects, causes, phases), what the file claims is checked before it is
/// read (guarded_file.hpp). The remaining risk is a mistake in libhdf5 itself; a test feeds it
/// damaged files.
namespace trainyard::analysis {

struct Kind {
  std::string name;
  std::string unit_of_value;
  friend bool operator==(const Kind&, const Kind&) = default;
};

/// From time_ns[i] on the quantity is value[i], until the next. Of several samples at one instant
/// the last one counts.
struct Series {
  std::string name;
  std::string units;
  std::string long_name;
  std::vector<std::int64_t> time_ns;
  std::vector<double> value;
  friend bool operator==(const Series&, const Series&) = default;
};

class RunReader {
 public:
  explicit RunReader(std::string path);
  ~RunReader();
  RunReader(RunReader&&) noexcept;
  RunReader& operator=(RunReader&&) noexcept;

  const std::string& path() const;
  RunState state() const;
  bool is_finished() const { return state() != RunState::running; }
  /// What the reader of a report must know: that the run did not finish, or that the file was
  /// repaired.
  std::optional<std::string> notice() const;

  /// Of the whole file: creator, seed, scenario, …
  const std::vector<Attribute>& attributes() const;
  const Value* attribute(std::string_view name) const;
  /// Empty if there is no such text.
  std::string text(std::string_view name) const;

  std::size_t event_count() const;
  std::vector<EventRow> events(std::size_t first = 0, std::size_t most = SIZE_MAX) const;
  const std::vector<Kind>& kinds() const;
  const std::vector<std::string>& subjects() const;

  std::vector<std::string> series_names() const;
  Series series(const std::string& name) const;

  /// Paths of all tables, such as "jobs/llm/ledger".
  std::vector<std::string> table_paths() const;
  bool has_table(const std::string& path) const;
  /// Without reading it: what it says of itself.
  std::size_t table_rows(const std::string& path) const;
  Table table(const std::string& path) const;

  /// Empty if the run did not finish.
  std::vector<Attribute> summary() const;

  /// Opens the file anew: sees what a live run has added, and that it has ended.
  void refresh();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether this file can be opened and says that it is a run file.
bool is_run_file(const std::string& path);

}  // namespace trainyard::analysis
