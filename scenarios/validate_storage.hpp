#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/validate.hpp"
#include "sim/units.hpp"

/// Published results of MLPerf Storage against the wait for data of accelerators in lock-step:
/// utilisation = compute time / step time, errors in percentage points.
///
/// Submitters add accelerators until utilisation is just above the threshold t of the benchmark, so
/// their rows lie where readers are about as fast as the steps and each step waits for the slowest
/// of n batches, whose times vary. The largest of n + 1 standard normal deviates is sqrt(2 ln(n+1))
/// at most, so with n accelerators
///
///     wait / compute = w (1 / t - 1) sqrt(2 ln(n + 1)),     utilisation = 1 / (1 + wait / compute)
///
/// w is the limit of a system and set by one row: the first of the system with the same workload,
/// else its first. Nothing is fitted: t is 0.9, for cosmoflow 0.7. A row is predicted from an
/// earlier row only; the first row of a system sets the limit and is not predicted.
///
///     row 33: cosmoflow, 38 A100, utilisation 0.710    ->  w = 0.408 / (0.4286 · 2.707) = 0.352
///     row 34: cosmoflow, 21 H100                       ->  1 / (1 + w 0.4286 · 2.486) = 0.727
///
/// Beside it, in the method of each row and by groups: what models/storage says, a DataFeed of n
/// accelerators on a SharedStore whose read rate is what the same earlier row delivered; and always
/// the threshold.
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
  double threshold = 0;  // utilisation from which a result counts
};
std::optional<StorageWorkload> storage_workload(std::string_view name,
                                                std::string_view accelerator);

/// Name of a system without the workload and the accelerator that some submitters put into it.
std::string system_of(std::string_view name);

/// Wait over compute time of n accelerators in lock-step, for w = 1.
double lock_step_wait(const StorageWorkload& workload, double accelerators);

/// Utilisation by the models of a run: readers without limits of their own on a store that reads at
/// `read_rate`.
double loader_utilisation(const StorageWorkload& workload, double accelerators,
                          BytesPerSecond read_rate);

}  // namespace trainyard::scenarios
