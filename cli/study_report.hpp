#pragma once

#include <string>
#include <vector>

#include "analysis/study.hpp"
#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "scenarios/study.hpp"
#include "scenarios/study_run.hpp"

namespace trainyard::cli {

/// How a sweep went, beside what it found.
struct SweepFacts {
  std::string folder, table, csv;
  scenarios::StudyOutcome outcome;
  double wall_s = 0;
  std::size_t missing = 0;  // runs that are not there yet
};

/// What a study found: points with intervals, what each axis does, where an optimum lies, axes that
/// do nothing.
std::string study_text(const analysis::Study& study, const Terminal& terminal);
/// Its sentences, for reports of another form: the best points; where an optimum lies; axes that do
/// nothing.
std::vector<std::string> study_answers(const analysis::Study& study, const Terminal& terminal);
std::vector<std::string> study_optima(const analysis::Study& study);
std::vector<std::string> study_warnings(const analysis::Study& study);
/// The same with how the runs went.
std::string sweep_text(const analysis::Study& study, const SweepFacts& facts,
                       const Terminal& terminal);
std::string sweep_json(const analysis::Study& study, const SweepFacts& facts);

/// Merges what is in the folder, writes manifest, table and CSV, prints what was found. Failed:
/// runs are missing, or some failed. (sweep.cpp)
Exit finish_sweep(const scenarios::StudyFolder& folder, SweepFacts facts, bool as_json);

/// What would run: points, replications, seeds.
std::string study_plan_text(const scenarios::StudyDesign& design, const Terminal& terminal);

/// "95 %".
std::string at_confidence(const analysis::Study& study);
/// "0.9321" with as many digits as its half width deserves.
std::string figure(double value, double half_width);
/// "0.9321 ± 0.0021".
std::string with_interval(double value, double half_width, const Terminal& terminal);
/// "goodput", "step_s in s".
std::string title_of(const analysis::StudyMetric& metric);

}  // namespace trainyard::cli
