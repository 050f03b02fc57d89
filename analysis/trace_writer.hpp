#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace trainyard::analysis {

struct TraceOptions {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();
  std::size_t most = 1'000'000;  // trace events
};

struct Trace {
  std::string json;
  std::size_t events = 0;
  std::size_t left_out = 0;  // more than `most`
};

/// Writes a Chrome trace (JSON object format), which ui.perfetto.dev and chrome://tracing open.
/// Processes hold threads, threads hold slices and instants; counters belong to a process. Times
/// are microseconds with three digits. `args` are members of an object: "\"step\":7". What lies
/// outside of the options' window is cut off or left out.
///
///     TraceWriter trace({});
///     trace.name_process(1, "jobs");
///     trace.slice(1, 1, "training", 0, 5'000'000'000, "\"steps\":3", "good");
///     write_maybe_gzip("run.json.gz", trace.take().json);
class TraceWriter {
 public:
  explicit TraceWriter(const TraceOptions& options);

  void name_process(int process, const std::string& name);
  void name_thread(int process, int thread, const std::string& name);
  /// `colour`: one of the viewers' names: good, bad, terrible, grey, …
  void slice(int process, int thread, const std::string& name, std::int64_t from_ns,
             std::int64_t to_ns, const std::string& args, const char* colour);
  void instant(int process, int thread, const std::string& name, std::int64_t at_ns,
               const std::string& args);
  void counter(int process, const std::string& name, std::int64_t at_ns, double value);
  Trace take();

 private:
  bool has_room();
  void line(const std::string& text);

  TraceOptions options_;
  Trace out_;
  bool is_first_ = true;
};

/// Throws TextFileError. A name that ends in .gz is compressed, with no time of day in it: the same
/// text gives the same bytes.
void write_maybe_gzip(const std::string& path, const std::string& text);

/// Text of JSON without the quotes: control characters, quotes and backslashes escaped.
std::string json_escaped(const std::string& text);

}  // namespace trainyard::analysis
