#include "scenarios/uncertainty.hpp"

#include <algorithm>

namespace trainyard::scenarios {
namespace {

const Figure* figure_of(const Part* part, std::string_view key) {
  if (!part) return nullptr;
  const auto found = std::find_if(part->figures.begin(), part->figures.end(),
                                  [&](const Figure& f) { return f.key == key; });
  return found == part->figures.end() ? nullptr : &*found;
}

/// By the name that it shows; null if there is none.
const Part* part_shown_as(const Catalog& catalog, std::string_view kind, const std::string& name) {
  for (const std::string& part_name : catalog.names(kind)) {
    const Part* part = catalog.find(kind, part_name);
    const Figure* shown = figure_of(part, "name");
    if (shown ? shown->value == name : part_name == name) return part;
  }
  return nullptr;
}

bool is_fitted_stack(const Catalog& catalog, const std::string& name) {
  const Part* part = part_shown_as(catalog, "software", name);
  return part && std::any_of(part->figures.begin(), part->figures.end(),
                             [](const Figure& f) { return f.sure == "fit"; });
}

}  // namespace

std::string_view rate_key(models::Precision precision) {
  using P = models::Precision;
  switch (precision) {
    case P::bf16:
    case P::fp16:
      return "gemm_16bit";
    case P::fp8:
      return "gemm_fp8";
    case P::fp8_rowwise:
      return "gemm_fp8_rowwise";
    case P::mxfp8:
      return "gemm_mxfp8";
    case P::nvfp4:
      return "gemm_nvfp4";
  }
  return "";
}

Uncertainty uncertainty_of(const Catalog& catalog, const models::GpuSpec& gpu,
                           const models::SoftwareSpec& software, models::Precision precision) {
  const Figure* rate =
      figure_of(part_shown_as(catalog, "calibration", gpu.calibration.name), rate_key(precision));
  if (!rate) return Uncertainty::new_system;
  return rate->sure == "fit" && is_fitted_stack(catalog, software.name) ? Uncertainty::calibrated
                                                                        : Uncertainty::extrapolated;
}

}  // namespace trainyard::scenarios
