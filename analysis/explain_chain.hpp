#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/run_reader.hpp"

/// Chains of causes in the event log of a run. Every event may name the one that led to it, so the
/// log is a forest: upwards from a failure to the first cause, downwards to all that followed.
///
///     const CauseLog log(run);
///     const Chain chain = log.chain(struck, resumed_ns);
///     for (const ChainEvent& e : chain.events) …      // in order of time, e.depth deep
///
/// A chain holds the first cause and everything that followed from it up to an instant (training
/// goes on); what comes later (a repaired server returns) is counted, not listed.
namespace trainyard::analysis {

struct ChainEvent {
  std::int64_t event = 0;    // row of log/events
  std::int64_t parent = -1;  // row of the event that led to it
  std::int64_t time_ns = 0;
  std::string kind{};
  std::string unit_of_value{};
  std::string subject{};
  double value = 0;
  int depth = 0;  // causes between it and the first one
};

struct Chain {
  std::vector<ChainEvent> events;  // the first cause first; empty: no event is known
  std::size_t struck = 0;          // which of them is the event that was asked for
  std::size_t later = 0;           // consequences after the instant
  std::int64_t last_ns = 0;        // the last of those
  std::string last;                // "node-17: server back"
  bool is_cut = false;             // too much followed to look at all of it
};

class CauseLog {
 public:
  explicit CauseLog(const RunReader& run);

  /// `event`: a row of the log, or -1. `until_ns` < 0: everything.
  Chain chain(std::int64_t event, std::int64_t until_ns) const;
  /// The first cause of an event.
  std::int64_t first_cause(std::int64_t event) const;
  /// Rows of the events of one instant: [first, second).
  std::pair<std::size_t, std::size_t> at(std::int64_t time_ns) const;

  /// Rows of the events of one kind that happened to one subject, in order of time.
  std::vector<std::int64_t> of(std::string_view kind, std::string_view subject) const;
  /// From the first cause of an event down to it, as one line: "cdu-3/pump-1: cooling unit failed
  /// -> GPU speed 0.87 of full speed -> step time 4.899 s".
  std::string way_to(std::int64_t event) const;

  ChainEvent described(std::int64_t event) const;

 private:
  std::vector<EventRow> events_;
  std::vector<Kind> kinds_;
  std::vector<std::string> subjects_;
  // Effects of event e: effects_[first_[e]] … effects_[first_[e + 1] - 1], in order of time.
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> effects_;
};

}  // namespace trainyard::analysis
