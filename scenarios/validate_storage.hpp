#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/validate.hpp"

/// Published results of MLPerf Storage against the wait for data of accelerators in lock-step:
/// utilisation = compute time / step time, errors in percentage points.
///
/// Submitters add accelerators until utilisation is just above its threshold, so their rows lie
/// where the queues of some accelerators run empty now and then, and all wait for the slowest. With
/// n accelerators, w the wait of one alone over its compute time:
///
///     step = compute (1 + w k (1 + 0.25 ln n)),     utilisation = compute / step
///
/// w is the limit of a system and set by one row: the first of the system with the same workload,
/// else its first. k is that of a workload: 1 for unet3d, 0.7 for resnet50, 3.5 for cosmoflow with
/// its steps of milliseconds. The three constants are fitted to these rows. A row is predicted from
/// an earlier row only; the first row of a system sets the limit and is not predicted.
///
///     row 31: cosmoflow, 38 A100, utilisation 0.710         ->  w = 0.408 / (3.5 · 1.909) = 0.061
///     row 32: cosmoflow, 21 H100                            ->  1 / (1 + w 3.5 · 1.761) = 0.726
///
/// Columns: system, workload, accelerator_emulated, accelerators, and
/// implied_accelerator_utilisation or samples_per_s. docs/models/data-path.md
namespace trainyard::scenarios {

TableKind storage_table();

/// A workload of MLPerf Storage v1.0 on an emulated accelerator.
struct StorageWorkload {
  std::string_view name;
  std::string_view accelerator;
  double batch = 0;
  double compute_s = 0;  // of a step
  double record_bytes = 0;
};
std::optional<StorageWorkload> storage_workload(std::string_view name,
                                                std::string_view accelerator);

/// Name of a system without the workload and the accelerator that some submitters put into it.
std::string system_of(std::string_view name);

/// What lock-step makes of the wait of one accelerator alone: times k (1 + 0.25 ln n).
double lock_step_factor(std::string_view workload, double accelerators);

}  // namespace trainyard::scenarios
