#include "models/facility/power_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace trainyard::literals;
using testing::ElementsAre;

TEST(PowerPolicy, LowPriorityGivesFirst) {
  const std::vector<RackDemand> racks = {{50_kW, 20_kW, 1}, {50_kW, 20_kW, 2}, {50_kW, 30_kW, 1}};
  // 150 kW to 125 kW: the two of priority 1 can give 30 + 20, and give half of it.
  EXPECT_THAT(share_limit(racks, 125_kW), ElementsAre(35_kW, 50_kW, 40_kW));
  // To 85 kW: all 50 of these, then 15 of the third.
  EXPECT_THAT(share_limit(racks, 85_kW), ElementsAre(20_kW, 35_kW, 30_kW));
  EXPECT_THAT(share_limit(racks, 10_kW), ElementsAre(20_kW, 20_kW, 30_kW));
  EXPECT_THAT(share_limit(racks, 150_kW), ElementsAre(50_kW, 50_kW, 50_kW));
}

TEST(PowerPolicy, CutsLowPriorityAndTheLastFirst) {
  const std::vector<RackDemand> racks = {{50_kW, 0_W, 1}, {50_kW, 0_W, 2}, {50_kW, 0_W, 1}};
  EXPECT_THAT(racks_to_cut(racks, 150_kW), ElementsAre());
  EXPECT_THAT(racks_to_cut(racks, 149_kW), ElementsAre(2));
  EXPECT_THAT(racks_to_cut(racks, 99_kW), ElementsAre(2, 0));
  EXPECT_THAT(racks_to_cut(racks, 0_W), ElementsAre(2, 0, 1));
}

TEST(PowerPolicy, CapsMeetTheLimitAndTheFloors) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    sim::Stream stream(sim::Seed{seed}, "racks");
    std::vector<RackDemand> racks(1 + stream.below(20));
    double load_W = 0, floor_W = 0;
    for (RackDemand& rack : racks) {
      rack.load = Watts(1e5 * stream.uniform());
      rack.floor = rack.load * stream.uniform();
      rack.priority = int(stream.below(3));
      load_W += rack.load.value();
      floor_W += rack.floor.value();
    }
    const double limit_W = load_W * stream.uniform() * 1.2;
    const std::vector<Watts> caps = share_limit(racks, Watts(limit_W));
    double sum_W = 0;
    for (std::size_t i = 0; i < racks.size(); ++i) {
      EXPECT_LE(caps[i], racks[i].load) << seed;
      EXPECT_GE(caps[i].value(), racks[i].floor.value() * (1 - 1e-12)) << seed;
      sum_W += caps[i].value();
    }
    EXPECT_NEAR(sum_W, std::clamp(limit_W, floor_W, load_W), 1e-6) << seed;
  }
}

}  // namespace
}  // namespace trainyard::models
