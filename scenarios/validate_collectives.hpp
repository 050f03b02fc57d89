#pragma once

#include "scenarios/validate.hpp"

/// Published results of nccl-tests against the cost model of collectives
/// (models/network/collectives/tuner.hpp).
///
/// Columns: gpu, gpus, collective, bytes, and one of time_us, algbw_gbs, busbw_gbs (the first that
/// is filled; times win). Optional: id, system, nodes, gpus_per_node, nic_gbps_per_gpu (needed when
/// the group spans servers), algorithm.
///
/// The algorithm is forced where the text names one ("ring", "NVLSTree", "ring (NVLS off)"), and
/// chosen as NCCL does for everything else.
namespace trainyard::scenarios {

TableKind collectives_table();

/// A system whose single server was in the fit, and how fast its host launches calls one by one.
struct CalibratedSystem {
  std::string_view name;  // as the column `system` begins
  double launch_floor_s = 0;
  std::string_view source;
};
std::span<const CalibratedSystem> calibrated_systems();

}  // namespace trainyard::scenarios
