#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/time.hpp"

/// The layout of a run file, schema "trainyard-run" 1.0 (docs/guide/run-file.md describes it for
/// readers, docs/decisions/0005-run-file.md says why):
///
///     /                  attributes: schema_name, schema_version, creator, …, run_state
///     /log/events        what happened: one compound row an event
///     /log/kinds         names of event kinds; /log/kind_units has the unit of their value
///     /log/subjects      names of what it happened to
///     /series/NAME/…     time_ns, value: a quantity from the instant it changes on
///     /PATH              any other group with the attribute `rows` is a table, a dataset a column
///     /summary           attributes, written last
namespace trainyard::analysis {

/// A file that cannot be written, read or understood. The text names file, object and reason.
class RunFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class RunState : std::uint8_t { running, complete, cancelled, failed };

constexpr std::string_view name_of(RunState s) {
  constexpr std::string_view names[] = {"running", "complete", "cancelled", "failed"};
  return names[static_cast<std::size_t>(s)];
}
std::optional<RunState> run_state_named(std::string_view name);

/// What is known before the first event.
struct RunInfo {
  std::string creator = "trainyard";
  std::string creator_version;
  std::string git_commit;
  std::string command_line;
  std::string scenario_name;
  std::string scenario;  // JSON as run, every default filled in
  std::uint64_t seed = 0;
  std::optional<Duration> planned;  // simulated time asked for
};

namespace layout {

inline constexpr const char* schema_name = "trainyard-run";
inline constexpr const char* schema_version = "1.0";

inline constexpr const char* events = "log/events";
inline constexpr const char* kinds = "log/kinds";
inline constexpr const char* kind_units = "log/kind_units";
inline constexpr const char* subjects = "log/subjects";
inline constexpr const char* series = "series";
inline constexpr const char* time_ns = "time_ns";
inline constexpr const char* value = "value";
inline constexpr const char* summary = "summary";
/// A table's row numbers: the dimension scale its columns share.
inline constexpr const char* row = "row";

/// Bytes of a name in the dictionaries; longer ones are cut at a character.
inline constexpr std::size_t name_bytes = 160;
inline constexpr std::size_t unit_bytes = 32;

/// 16,384 rows a chunk appended fastest in our measurements (docs/decisions/0005-run-file.md).
/// Series are many and short.
inline constexpr std::size_t event_chunk = 16384;
inline constexpr std::size_t series_chunk = 1024;
inline constexpr std::size_t name_chunk = 256;

/// The smallest page of memory in use (x86-64; others have multiples of it).
inline constexpr std::size_t page_bytes = 4096;

}  // namespace layout

/// The time of a row that was made room for but not written: HDF5 may note that a dataset has grown
/// before it writes the rows. Only a killed or growing file has such rows, at its end; readers drop
/// them.
inline constexpr std::int64_t unwritten_ns = std::numeric_limits<std::int64_t>::min();

/// A row of log/events in memory; the file holds the same fields without padding.
struct EventRow {
  std::int64_t time_ns = 0;
  std::int64_t cause = -1;   // row of the event that led to this one; -1: none known
  double value = 0.0;        // in the unit of its kind
  std::int32_t kind = 0;     // row of log/kinds
  std::int32_t subject = 0;  // row of log/subjects
  std::uint8_t phase = 0;    // sim::Phase
  friend bool operator==(const EventRow&, const EventRow&) = default;
};

/// One component of a path in the file from a name a user chose: '/' and a leading '.' would mean
/// something to HDF5, control characters to nobody. Those bytes become %XX; an empty name becomes
/// "%".
std::string path_component(std::string_view name);

/// Valid UTF-8, whatever came in: bytes that are not become '?'. For text read from damaged files.
std::string clean_text(std::string_view bytes);

/// The longest prefix of at most `bytes` bytes that does not cut a character in two.
std::string_view cut_text(std::string_view text, std::size_t bytes);

}  // namespace trainyard::analysis
