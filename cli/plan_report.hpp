#pragma once

#include <optional>
#include <string>

#include "cli/terminal.hpp"
#include "scenarios/plan_search.hpp"
#include "sim/problem.hpp"

namespace trainyard::cli {

/// What `trainyard plan` found, before it becomes text.
struct PlanReport {
  std::string model;
  double parameters = 0;
  double active_parameters = 0;
  std::string gpu;
  double peak_flops = 0;
  std::string precision;
  std::string note;      // what of the machine was chosen
  int gpus = 0;          // of the search; 0: none was made
  int global_batch = 0;  // sequences
  int sequence = 0;      // tokens
  std::optional<scenarios::Sizing> sizing;
  bool mfu_is_predicted = false;
  bool mfu_is_given = false;
  std::optional<scenarios::MeasuredPoint> measured;
  std::optional<scenarios::PlanSearch> search;
  Problems no_layout;  // why no layout divides
  // For as many GPUs as were asked for or are needed.
  double servers = 0;
  int gpus_per_server = 0;
  double power_W = 0;
  double price_usd = 0;
};

std::string plan_text(const PlanReport& report, const Terminal& terminal);
/// SI base units, the unit as a suffix of the key.
std::string plan_json(const PlanReport& report);

}  // namespace trainyard::cli
