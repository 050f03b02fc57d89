#include "scenarios/uncertainty.hpp"

#include <gtest/gtest.h>

#include "scenarios/read.hpp"

namespace trainyard::scenarios {
namespace {

Uncertainty of(const char* gpu, const char* software, models::Precision precision) {
  const Catalog& catalog = Catalog::standard();
  return uncertainty_of(catalog, make_part<models::GpuSpec>(catalog, gpu).value(),
                        make_part<models::SoftwareSpec>(catalog, software).value(), precision);
}

TEST(Uncertainty, FittedGpuPrecisionAndStackAreCalibrated) {
  EXPECT_EQ(of("h100-sxm", "nemo", models::Precision::bf16), Uncertainty::calibrated);
  EXPECT_EQ(of("gb300", "megatron-bridge", models::Precision::nvfp4), Uncertainty::calibrated);
}

TEST(Uncertainty, ADerivedRateOrAForeignStackIsExtrapolated) {
  // Row-wise FP8 was fitted on the 500 W part alone.
  EXPECT_EQ(of("h100-sxm", "torchtitan", models::Precision::fp8_rowwise),
            Uncertainty::extrapolated);
  const Catalog& catalog = Catalog::standard();
  models::SoftwareSpec own = make_part<models::SoftwareSpec>(catalog, "nemo").value();
  own.name = "our stack";
  EXPECT_EQ(uncertainty_of(catalog, make_part<models::GpuSpec>(catalog, "h100-sxm").value(), own,
                           models::Precision::bf16),
            Uncertainty::extrapolated);
}

TEST(Uncertainty, ACalibrationOfTheUsersOwnIsANewSystem) {
  const Catalog& catalog = Catalog::standard();
  models::GpuSpec gpu = make_part<models::GpuSpec>(catalog, "h100-sxm").value();
  gpu.calibration.name = "";
  EXPECT_EQ(uncertainty_of(catalog, gpu, make_part<models::SoftwareSpec>(catalog, "nemo").value(),
                           models::Precision::bf16),
            Uncertainty::new_system);
  EXPECT_EQ(of("a100-80gb-sxm", "nemo", models::Precision::nvfp4), Uncertainty::new_system);
}

}  // namespace
}  // namespace trainyard::scenarios
