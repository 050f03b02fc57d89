#pragma once

#include <cstdint>
#include <optional>

#include "models/training/job_spec.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// Sizes and times of saves, and what becomes of them.
///
///     size   = parameters * bytes_per_parameter      (70e9 * 14 B = 980 GB)
///     stall  = size / (GPUs * host_copy_rate)        (980 GB / (512 * 10 GB/s) = 191 ms), each GPU
///     copies its share
namespace trainyard::models {

/// One save of a job.
struct CheckpointRow {
  Time start;             // the instant whose state it holds
  std::int64_t step = 0;  // first step after a restart from it
  Bytes bytes;
  std::optional<Time> stall_end;  // training goes on
  std::optional<Time> complete;   // from here on it is a checkpoint
  bool is_lost = false;           // interrupted: it never became one
  bool was_late = false;          // due before, but the save before it was still under way
};

Bytes checkpoint_size(const CheckpointSpec& spec, double parameters);
/// Of an asynchronous save of a job of so many GPUs.
Duration checkpoint_stall(const CheckpointSpec& spec, Bytes size, std::int64_t gpus);

/// First-order and higher-order optimum of the interval (training time between saves), for a save
/// that stops training for `save_s` and a mean time between interruptions of `mtbi_s`: Young 1974;
/// Daly 2006, equation 37, for save < 2 * mtbi.
double young_interval_s(double save_s, double mtbi_s);
double daly_interval_s(double save_s, double mtbi_s);
/// Share of the wall time spent on kept work when failures are exponential and may strike saves and
/// restarts (Daly 2006, equation 20): interval / (M e^(R/M) (e^((interval + C)/M) - 1)).
double expected_efficiency(double interval_s, double save_s, double restart_s, double mtbi_s);

}  // namespace trainyard::models
