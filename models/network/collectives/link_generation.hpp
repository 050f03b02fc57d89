#pragma once

#include "sim/describe.hpp"
#include "sim/units.hpp"

/// Constants of the collective cost model (tuner.hpp), one set a generation of scale-up links.
///
///     LinkConstants c = link_constants(450_GBps, true, 50_GBps);   // H100 with a 400 Gb/s adapter
///     c.network_reduction = true;                                  // switches reduce (SHARP)
///
/// Three kinds of numbers and no fourth: data sheets (link rates); the constants that NCCL's own
/// tuner uses (src/graph/tuning.cc, src/enqueue.cc and src/transport/nvls.cc of
/// github.com/NVIDIA/nccl, 2023 to 2026); and what was fitted to published nccl-tests results of a
/// *single* server with at most 8 GPUs. No constant has seen a measurement of two servers or more:
/// everything larger is predicted. Values with their rows: docs/models/collective-costs.md.
namespace trainyard::models {

enum class LinkGeneration { volta, ampere, hopper, blackwell };

struct LinkConstants {
  LinkGeneration generation = LinkGeneration::hopper;

  // Inside a scale-up domain.
  double scale_up_Bps = 450e9;     // one direction, data sheet
  double ring_efficiency = 0.815;  // Simple protocol, long messages; fitted
  double pair_efficiency = 0.88;   // one GPU to another; fitted
  double nvls_bus_Bps = 480e9;     // reduction in the scale-up switch; fitted; 0: it cannot
  double ll_bus_Bps = 141e9;       // most of LL; NCCL llMaxBws, one node
  double ll128_bus_Bps = 587e9;    // most of LL128; NCCL, Ampere fitted
  int channels = 24;               // of a ring inside a domain
  int nvls_channels = 16;          // NCCL NVLS_NCHANNELS

  // Between domains. One adapter a rank.
  double nic_Bps = 50e9;               // one direction, line rate
  double nic_efficiency = 0.96;        // NCCL counts 48 of 50 GB/s and 24 of 25
  double nvls_tree_Bps = 45.5e9;       // most of a head and its adapter; NCCL perChMaxNVLSTreeBws
  double nvls_tree_pair_Bps = 57.7e9;  // the same with two domains
  double network_latency_s = 0;        // what the adapter's plug-in tells NCCL; EFA: 35 or 75 us
  bool network_ll = true;              // false: only Simple between domains (unordered delivery)
  bool network_ll128 = false;          // of all-reduce between domains; no published curve has it
  double chunk_bytes = 524288;         // an eighth of NCCL_BUFFSIZE
  bool network_reduction = false;      // in-network reduction (SHARP) is there and allowed

  /// Calls that come one by one from the host, as in nccl-tests, cannot follow each other faster
  /// than this. 0 where launches run ahead of the GPU, as in training.
  double launch_floor_s = 0;
};

/// By rate of a GPU's scale-up link and whether it has FP8 units (H800 has the link rate of A800).
LinkGeneration generation_of(BytesPerSecond scale_up_rate, bool has_fp8);

/// The set of a generation, with its own scale-up rate and an adapter of 400 Gb/s (Ampere and
/// Volta: 200, 100).
LinkConstants constants_of(LinkGeneration generation);

/// The set of the generation, with these rates.
LinkConstants link_constants(BytesPerSecond scale_up_rate, bool has_fp8, BytesPerSecond nic_rate);

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::LinkGeneration> {
  using G = models::LinkGeneration;
  static constexpr auto all = names<G>({{G::volta, "volta"},
                                        {G::ampere, "ampere"},
                                        {G::hopper, "hopper"},
                                        {G::blackwell, "blackwell"}});
};
}  // namespace trainyard
