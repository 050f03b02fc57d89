#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/facility/power_phase.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"
#include "topologies/fabric.hpp"

/// What the step level tells the run level about one training iteration of one job, on its real
/// placement, under the conditions of the moment. Between two events nothing changes, so the run
/// level advances with rate 1/step.
namespace trainyard::models {

/// Where the time of a step goes, as a mean over the GPUs of the job. In this order in every file
/// and report.
enum class StepPart : std::uint8_t {
  useful,               // model FLOPs at the peak of the precision in use
  kernel_inefficiency,  // what kernels take beyond that: achieved efficiency, memory-bound work,
                        // launch floors, optimizer
  recompute,            // activations computed again in the backward pass
  bubble,               // a stage waits for another: pipeline fill and drain, unequal stages
  exposed_tp,           // tensor-parallel communication that is not hidden
  exposed_dp,           // gradient reduction, parameter gather
  exposed_pp,           // transfers between stages
  exposed_cp,
  exposed_ep,
  data_stall,  // waiting for the batch
  slow         // waiting for a slow member, jitter included
};
inline constexpr std::size_t step_parts = 11;

constexpr std::string_view name_of(StepPart part) {
  constexpr std::string_view names[step_parts] = {
      "useful",     "kernel_inefficiency", "recompute",  "bubble",     "exposed_tp", "exposed_dp",
      "exposed_pp", "exposed_cp",          "exposed_ep", "data_stall", "slow"};
  return names[static_cast<std::size_t>(part)];
}

/// Who puts bytes on a link: a collective or transfer, and one pair of ranks of it.
struct LinkUser {
  std::string what;        // "dp stage 3", "pp stage 3 -> 4"
  topologies::GpuId from;  // of several that share their servers, the first
  topologies::GpuId to;
  double bytes = 0;  // a step
};

/// Mean load of one link during the step, with who uses it.
struct LinkUse {
  topologies::LinkId link;
  double utilisation = 0;          // bytes moved / (capacity * step), 0..1
  double bytes = 0;                // a step
  BytesPerSecond capacity{};       // as it is now
  std::vector<std::string> users;  // each once: "dp stage 3", "pp stage 3 -> 4"
  std::vector<LinkUser> pairs;     // most bytes first
};

/// Closed-form lower bounds of the step: no result may be below.
struct StepBounds {
  double flops_s = 0;         // model FLOPs at peak
  double compute_s = 0;       // busiest stage, no communication, no bubble
  double pipeline_s = 0;      // with the ideal bubble of the schedule
  double busiest_link_s = 0;  // bytes / capacity of the most loaded link
};

struct StepProfile {
  Duration step{};
  std::array<Duration, step_parts> parts{};  // sums to step exactly
  double model_flops = 0;     // per step, whole job (convention: docs/models/transformer.md)
  double hardware_flops = 0;  // with recomputation
  double tokens = 0;          // per step
  std::vector<LinkUse> busiest_links;  // at most 16, most loaded first
  std::vector<PowerPhase> power;       // the waveform of one step
  StepBounds bounds;
  std::vector<std::string> notes;  // rules that fired, valid-range warnings
  /// Who has no path, and which failed links cut it; empty: the step runs. Nothing else is valid
  /// then.
  std::string cut_off;
  bool is_cut_for_good = false;  // no repair can help: the fabric has no path

  Duration part(StepPart p) const { return parts[static_cast<std::size_t>(p)]; }
};

/// Over one step; zero if the profile has no waveform.
inline Watts mean_power(const StepProfile& profile) {
  double joules = 0;
  for (const PowerPhase& phase : profile.power)
    joules += phase.power.value() * to_seconds(phase.duration);
  return profile.step > Duration::zero() ? Watts(joules / to_seconds(profile.step)) : Watts(0);
}

}  // namespace trainyard::models
