#pragma once

#include <string>

#include "analysis/run_reader.hpp"
#include "analysis/study.hpp"

/// Reports as one HTML file that needs nothing else: the answer first, then figures, tables, what
/// to be careful about, and the scenario. No scripts, no links to elsewhere; it prints.
namespace trainyard::cli {

/// Of a run file. Throws RunFileError.
std::string run_html(const analysis::RunReader& run);
/// Of a study.
std::string study_html(const analysis::Study& study);

}  // namespace trainyard::cli
