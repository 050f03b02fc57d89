#pragma once

#include <cstddef>
#include <string>

#include "analysis/run_file.hpp"

namespace trainyard::analysis {

struct RepairReport {
  enum class Way {
    not_needed,  // the file says how its run ended, and opens
    marks,       // the marks of the writer were cleared; everything it had flushed is there
    salvage      // what could be read was copied to a new file
  };
  Way way = Way::not_needed;
  std::string text;  // for people
  std::size_t events = 0;
};

/// Makes an ordinary file of what a killed run left: clears the marks that say "a writer has this
/// open", sets run_state to "failed" with the attributes repaired = 1 and failure = why. Works on a
/// copy and takes the name in one step, so a file that cannot be repaired is left as it was. Not
/// for a run that is still going on. Throws RunFileError.
RepairReport repair(const std::string& path);

}  // namespace trainyard::analysis
