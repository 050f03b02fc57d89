#pragma once

#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "models/failures/failure_spec.hpp"
#include "models/failures/unit_names.hpp"
#include "scenarios/diagnostic.hpp"

/// A failure log as a script of faults: CSV with a header line, one fault a line, in any order.
///
///     at,unit,name,repair
///     3 d 2 h,node-17/gpu-3,xid-79,6 h
///     3 d 4 h,pod-0/leaf-1,switch,30 min
///
///     at           when, from the start of the run ("3 d 2 h"); or at_s, in seconds
///     unit         what fails, by name, as in failures.script
///     name         what reports call it; default "log"
///     effect       crash, hang, slow, corrupt, maintenance
///     detection, repair, warning    durations
///     replace      true or false
///     speed        of a slow unit
///
/// A cell that is empty, or a column that is missing, stands for the default of a scripted fault.
/// Keys are "log:" and the number of the line, so that a line that is added at the end changes
/// nobody else's luck.
namespace trainyard::scenarios {

struct FailureLog {
  std::map<std::string, models::ScriptedFaultSpec> entries;  // in the order of the file
  std::vector<Diagnostic> diagnostics;                       // at most about a hundred
};

/// `units`, if given: names that are not among them are mistakes.
FailureLog read_failure_log(const std::filesystem::path& file,
                            const models::UnitNames* units = nullptr);
FailureLog read_failure_log(std::istream& in, const std::string& name,
                            const models::UnitNames* units = nullptr);

}  // namespace trainyard::scenarios
