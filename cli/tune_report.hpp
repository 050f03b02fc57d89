#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "scenarios/tune.hpp"

namespace trainyard::cli {

/// What trainyard tune checkpoint found: the answer in one line, then the table, the optimum and
/// what formulas say.
std::string tune_text(const scenarios::CheckpointTune& tune, const Terminal& terminal);
/// One object, schema "trainyard-tune-checkpoint-1"; times in seconds, shares from 0 to 1.
std::string tune_json(const scenarios::CheckpointTune& tune);
/// One line an interval.
std::string tune_csv(const scenarios::CheckpointTune& tune);

/// The same for trainyard tune spares, schema "trainyard-tune-spares-1".
std::string tune_text(const scenarios::SparesTune& tune, const Terminal& terminal);
std::string tune_json(const scenarios::SparesTune& tune);
std::string tune_csv(const scenarios::SparesTune& tune);

}  // namespace trainyard::cli
