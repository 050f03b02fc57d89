#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/explain.hpp"
#include "cli/terminal.hpp"

namespace trainyard::cli {

/// What `trainyard explain` prints of one run.
struct ExplainReport {
  std::string run_file;
  std::string scenario;
  std::string run_state;
  std::string notice;  // that the run did not finish
  std::vector<analysis::Explanation> jobs;
  const analysis::CauseLog* log = nullptr;
  std::size_t top = 10;  // rows of a ranked list for people
};

/// The answer, what cost most, what would help, the interruptions that cost most.
std::string explain_text(const ExplainReport& report, const Terminal& terminal);

/// One interruption of the only job, counted from 1: its chain of causes as a timeline, its phases.
std::string interruption_text(const ExplainReport& report, std::size_t number,
                              const Terminal& terminal);

/// Everything, of every interruption (or of one, counted from 1): seconds, GPU-hours, shares.
std::string explain_json(const ExplainReport& report, std::size_t only_interruption = 0);

/// "3 d 02:11:05" of the run.
std::string clock_text(std::int64_t ns);
/// The saves that an interruption recovered from: "scratch, step 51,200".
std::string restored_text(const analysis::JobRows& job, const analysis::JobRows::Interruption& i);
/// "faulty GPU failed" and others in words: "job training, step 51,200".
std::string event_text(const analysis::ChainEvent& event);
/// Points of goodput: two digits after the point below one.
std::string points_text(double points);

}  // namespace trainyard::cli
