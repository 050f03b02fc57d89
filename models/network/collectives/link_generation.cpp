#include "models/network/collectives/link_generation.hpp"

#include "sim/check.hpp"

namespace trainyard::models {

LinkGeneration generation_of(BytesPerSecond scale_up_rate, bool has_fp8) {
  // One direction: V100 150, A100 300 (A800 200), H100 450 (H800 200), B200 900 GB/s.
  const double rate_Bps = scale_up_rate.value();
  if (has_fp8) return rate_Bps > 636e9 ? LinkGeneration::blackwell : LinkGeneration::hopper;
  return rate_Bps > 173e9 ? LinkGeneration::ampere : LinkGeneration::volta;
}

// Fitted: ring_efficiency, pair_efficiency, nvls_bus_Bps and Ampere's ll128_bus_Bps, on the rows
// named in docs/models/collective-costs.md. All else: data sheets and NCCL.
LinkConstants constants_of(LinkGeneration generation) {
  LinkConstants c;
  c.generation = generation;
  switch (generation) {
    case LinkGeneration::volta:
      c.scale_up_Bps = 150e9;
      c.ring_efficiency = 0.813;
      c.pair_efficiency = 0.913;  // no measurement: as Ampere
      c.nvls_bus_Bps = 0;
      c.ll_bus_Bps = 39e9;
      c.ll128_bus_Bps = 120e9;
      c.channels = 12;
      c.nic_Bps = 12.5e9;
      c.nvls_tree_Bps = c.nvls_tree_pair_Bps = 0;
      return c;
    case LinkGeneration::ampere:
      c.scale_up_Bps = 300e9;
      c.ring_efficiency = 0.787;
      c.pair_efficiency = 0.913;
      c.nvls_bus_Bps = 0;
      c.ll_bus_Bps = 87.7e9;
      c.ll128_bus_Bps = 200e9;
      c.nic_Bps = 25e9;
      c.nvls_tree_Bps = c.nvls_tree_pair_Bps = 0;
      return c;
    case LinkGeneration::hopper:
      return c;
    case LinkGeneration::blackwell:
      c.scale_up_Bps = 900e9;
      c.ring_efficiency = 0.75;
      c.pair_efficiency = 0.829;
      c.nvls_bus_Bps = 777e9;
      c.ll_bus_Bps = 282e9;
      c.ll128_bus_Bps = 640e9;
      c.nvls_channels = 24;
      c.nvls_tree_Bps = 80e9;
      c.nvls_tree_pair_Bps = 96e9;
      return c;
  }
  check(false, "every generation has its constants");
  return c;
}

LinkConstants link_constants(BytesPerSecond scale_up_rate, bool has_fp8, BytesPerSecond nic_rate) {
  LinkConstants c = constants_of(generation_of(scale_up_rate, has_fp8));
  // What a cut-down link (A800, H800) cannot carry falls with it.
  const double cut = scale_up_rate.value() / c.scale_up_Bps;
  c.scale_up_Bps = scale_up_rate.value();
  c.nvls_bus_Bps *= cut;
  c.nic_Bps = nic_rate.value();
  return c;
}

}  // namespace trainyard::models
