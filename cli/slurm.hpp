#pragma once

#include <string>

#include "cli/command.hpp"
#include "scenarios/study.hpp"

namespace trainyard::cli {

/// A script for sbatch that runs a study as an array of `tasks` jobs, and the command that merges
/// their results. `arguments` are those of trainyard sweep, without --slurm and --output taken
/// over.
std::string slurm_script(const Arguments& arguments, const scenarios::StudyDesign& design,
                         const std::string& folder, std::size_t tasks);

/// A word of a shell command: quoted if it must be.
std::string shell_word(const std::string& text);

}  // namespace trainyard::cli
