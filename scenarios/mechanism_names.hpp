#pragma once

#include <array>
#include <string_view>

#include "models/training/parallel_spec.hpp"

/// Mechanisms of the step model by the names under which an ablation turns them off.
namespace trainyard::scenarios {

struct MechanismName {
  std::string_view name;
  bool models::Mechanisms::*flag;
};

inline constexpr std::array mechanism_names{
    MechanismName{"tensor-traffic", &models::Mechanisms::tensor_traffic},
    MechanismName{"data-traffic", &models::Mechanisms::data_traffic},
    MechanismName{"pipeline-traffic", &models::Mechanisms::pipeline_traffic},
    MechanismName{"context-traffic", &models::Mechanisms::context_traffic},
    MechanismName{"expert-traffic", &models::Mechanisms::expert_traffic},
    MechanismName{"tensor-overlap", &models::Mechanisms::tensor_overlap},
    MechanismName{"data-overlap", &models::Mechanisms::data_overlap},
    MechanismName{"bubble", &models::Mechanisms::bubble},
    MechanismName{"interleaving", &models::Mechanisms::interleaving},
    MechanismName{"recompute", &models::Mechanisms::recompute},
    MechanismName{"memory-bound-work", &models::Mechanisms::memory_bound_work},
    MechanismName{"gemm-shape", &models::Mechanisms::gemm_shape},
    MechanismName{"k-saturation", &models::Mechanisms::k_saturation},
    MechanismName{"gradient-accumulation", &models::Mechanisms::gradient_accumulation},
    MechanismName{"kernel-floor", &models::Mechanisms::kernel_floor},
    MechanismName{"host-floor", &models::Mechanisms::host_floor},
    MechanismName{"deduplication", &models::Mechanisms::deduplication},
    MechanismName{"jitter", &models::Mechanisms::jitter}};
// One flag is one byte: a mechanism added to the struct needs a name here.
static_assert(sizeof(models::Mechanisms) == mechanism_names.size());

}  // namespace trainyard::scenarios
