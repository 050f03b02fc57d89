#include "cli/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "cli/command.hpp"

namespace trainyard::cli {

namespace {
constexpr const char* clear_line = "\r\033[K";
}

ProgressKind parse_progress(const std::string& text) {
  if (text == "auto") return ProgressKind::automatic;
  if (text == "bar") return ProgressKind::bar;
  if (text == "json") return ProgressKind::json;
  if (text == "off") return ProgressKind::off;
  throw UsageError("--progress: expected auto, bar, json or off, found '" + text + "'");
}

Progress::Progress(ProgressKind kind, std::ostream& out, const Terminal& terminal)
    : kind_(kind), out_(out), terminal_(terminal), start_(std::chrono::steady_clock::now()) {
  if (kind_ == ProgressKind::automatic)
    kind_ = terminal.interactive ? ProgressKind::bar : ProgressKind::off;
}

Progress::~Progress() {
  if (drawn_) out_ << clear_line << std::flush;
}

namespace {

/// A bar, per cent, what there is to say, and an estimate of what is left.
std::string line_of(const Terminal& terminal, double done, const std::string& what, double wall_s) {
  done = std::clamp(done, 0.0, 1.0);
  char text[32];
  std::snprintf(text, sizeof text, "%3.0f %%  ", done * 100);
  std::string figures = text + what;
  // An estimate from the first instants would jump about.
  if (done > 0.02 && wall_s > 0.5)
    figures += ", " + to_text(seconds(wall_s / done * (1 - done))) + " left";
  const int columns = std::min(40, terminal.width - 4 - int(columns_of(figures)));
  if (columns < 8) return figures;
  const std::string drawn = bar(terminal, done, columns);
  return "[" + drawn + std::string(std::size_t(columns) - columns_of(drawn), ' ') + "] " + figures;
}

std::string events_text(std::uint64_t events) {
  return ", " + short_number(double(events)) + " events";
}

}  // namespace

std::string Progress::bar_line(const Terminal& terminal, double done, Time now,
                               std::uint64_t events, double wall_s) {
  return line_of(terminal, done, to_text(now.time_since_epoch()) + events_text(events), wall_s);
}

std::string Progress::runs_line(const Terminal& terminal, std::size_t runs, std::size_t of,
                                std::uint64_t events, double wall_s) {
  return line_of(terminal, of == 0 ? 0 : double(runs) / double(of),
                 with_commas(std::int64_t(runs)) + " of " + with_commas(std::int64_t(of)) +
                     " runs" + events_text(events),
                 wall_s);
}

double Progress::wall_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::draw(const std::string& line) {
  out_ << clear_line << line << std::flush;
  drawn_ = true;
}

void Progress::report(double done, Time now, std::uint64_t events) {
  if (kind_ == ProgressKind::off) return;
  if (kind_ == ProgressKind::bar) return draw(bar_line(terminal_, done, now, events, wall_s()));
  char text[128];
  std::snprintf(text, sizeof text, "{\"done\":%.6g,\"simulated_s\":%.17g,\"events\":%llu}\n", done,
                to_seconds(now), static_cast<unsigned long long>(events));
  out_ << text << std::flush;
}

void Progress::report_runs(std::size_t runs, std::size_t of, std::uint64_t events) {
  if (kind_ == ProgressKind::off) return;
  if (kind_ == ProgressKind::bar) return draw(runs_line(terminal_, runs, of, events, wall_s()));
  char text[160];
  std::snprintf(text, sizeof text, "{\"done\":%.6g,\"runs\":%zu,\"of\":%zu,\"events\":%llu}\n",
                of == 0 ? 0 : double(runs) / double(of), runs, of,
                static_cast<unsigned long long>(events));
  out_ << text << std::flush;
}

}  // namespace trainyard::cli
