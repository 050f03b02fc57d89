#pragma once

#include <optional>
#include <string_view>

#include "scenarios/validate.hpp"

/// Step times from raw MLPerf Training logs. Such a table holds no layouts: those of the
/// submissions of a benchmark, round and GPU are facts, kept here.
namespace trainyard::scenarios {

struct SubmittedLayout {
  std::string_view benchmark;
  double first_round, last_round;
  std::string_view gpu;  // beginning of its name
  std::string_view precision;
  int tensor, pipeline, context, chunks, micro_batch;
};

/// None: no submission of this benchmark, round and GPU is known.
std::optional<SubmittedLayout> submitted_layout(std::string_view benchmark, double round,
                                                std::string_view gpu);

TableKind mlperf_table();

}  // namespace trainyard::scenarios
