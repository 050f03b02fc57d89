#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "cli/terminal.hpp"
#include "sim/time.hpp"

namespace trainyard::cli {

enum class ProgressKind { automatic, bar, json, off };

/// "auto", "bar", "json" or "off"; throws UsageError.
ProgressKind parse_progress(const std::string& text);

/// How far a run is, on stderr: one line that is rewritten (bar), or one JSON object a line (json),
/// which a front end reads: {"done":0.43,"simulated_s":2332800,"events":18211}. Automatic: a bar if
/// somebody is looking.
class Progress {
 public:
  Progress(ProgressKind kind, std::ostream& out, const Terminal& terminal);
  ~Progress();  // takes the bar off the screen
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void report(double done, Time now, std::uint64_t events);
  /// Of many runs: {"done":0.43,"runs":43,"of":100,"events":1821100}.
  void report_runs(std::size_t runs, std::size_t of, std::uint64_t events);
  bool is_off() const { return kind_ == ProgressKind::off; }

  /// The lines without their colours, for a given wall time since the start.
  static std::string bar_line(const Terminal& terminal, double done, Time now, std::uint64_t events,
                              double wall_s);
  static std::string runs_line(const Terminal& terminal, std::size_t runs, std::size_t of,
                               std::uint64_t events, double wall_s);

 private:
  double wall_s() const;
  void draw(const std::string& line);

  ProgressKind kind_;
  std::ostream& out_;
  Terminal terminal_;
  std::chrono::steady_clock::time_point start_;
  bool drawn_ = false;
};

}  // namespace trainyard::cli
