#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "models/training/step_profile.hpp"

namespace trainyard::cli {

/// What `trainyard step` prints of one job: its step profile, with what the profile does not hold
/// itself.
struct StepReport {
  std::string scenario;
  std::string job;
  std::string model;
  std::int64_t gpus = 0;
  models::StepProfile profile;
  double mfu = 0;
  double hfu = 0;
  std::string uncertainty;     // "calibrated"; empty: not said
  std::string expected_error;  // "2 to 5 %"

  /// What if: these GPUs of the job run slower; the profile is with them.
  struct SlowGpu {
    std::int64_t gpu = 0;
    double speed = 1;
    int stage = 0;
    int replica = 0;
  };
  std::vector<SlowGpu> slow;
  Duration step_without_slow{};
  std::size_t replicas_played = 0;  // that differ

  struct MemoryItem {
    std::string name;  // weights, gradients, optimizer, activations, buffers
    double bytes = 0;  // of the fullest GPU
  };
  std::vector<MemoryItem> memory;
  double memory_total = 0;
  double memory_capacity = 0;

  struct LinkLine {
    std::string name;  // "pod-0/leaf-3 -> pod-0/spine-1"
    double utilisation = 0;
    double bytes = 0;  // a step
    double capacity_Bps = 0;
    std::vector<std::string> users;  // "dp stage 3"
    struct Pair {
      std::string text;  // "llama: dp stage 3, node-17/gpu-0 -> node-18/gpu-0"
      double bytes = 0;
    };
    std::vector<Pair> pairs;  // most bytes first
  };
  std::vector<LinkLine> busiest_links;  // most loaded first
};

std::string step_text(const StepReport& report, const Terminal& terminal);

/// The object of `trainyard step --json`: SI base units, the unit as a suffix of the key.
std::string step_json(const StepReport& report);

}  // namespace trainyard::cli
