#pragma once

#include <string_view>

#include "models/compute/gpu_spec.hpp"
#include "models/training/parallel_spec.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/validate.hpp"

/// How much of a predicted step has been measured: what `step` prints beside its time. Errors to
/// expect of each class: expected_step_error().
namespace trainyard::scenarios {

/// Key of the calibrated rate of products in this precision: "gemm_16bit".
std::string_view rate_key(models::Precision precision);

/// Calibrated: the rate of this GPU in this precision and the software stack were fitted to
/// published rows. Extrapolated: the stack is none of the catalog, or the rate derived from that of
/// another GPU or precision. New system: nothing is known of the rate, or the calibration is none
/// of the catalog.
Uncertainty uncertainty_of(const Catalog& catalog, const models::GpuSpec& gpu,
                           const models::SoftwareSpec& software, models::Precision precision);

}  // namespace trainyard::scenarios
