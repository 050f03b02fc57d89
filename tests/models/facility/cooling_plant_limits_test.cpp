#include <gtest/gtest.h>

#include <string>

#include "tests/models/facility/cooling_plant_rig.hpp"

namespace trainyard::models {
namespace {

using namespace literals;
using namespace std::chrono_literals;

TEST(CoolingPlantLimits, towers_never_reject_more_than_they_can) {
  CoolingPlantSpec spec = CoolingRig::hall();
  spec.loops["north"].chillers->rejection = Rejection::tower;
  spec.loops["north"].coolers = CoolersSpec{.units = 1, .capacity = Watts(300e3)};
  CoolingRig rig(spec, CoolingRig::ten_racks(), WeatherSeries{.dry = {22}, .wet = {17}});
  rig.stops_when_hot = false;
  rig.plant->set_rack_heat(0, 40_kW);
  for (int hour = 1; hour <= 48; ++hour) {
    rig.run(hour * 1h);
    EXPECT_LE(rig.plant->power("north/cooler-1").value(), 0.015 * 300e3 * (1 + 1e-9)) << hour;
  }
  EXPECT_TRUE(rig.plant->is_short("north"));
}

TEST(CoolingPlantLimits, what_stands_still_is_named_as_the_limit) {
  CoolingRig air(CoolingRig::hall(), CoolingRig::ten_racks());
  air.plant->set_rack_heat(0, 40_kW);
  air.run(24h);
  for (int i = 1; i <= 8; ++i) air.plant->fail("hall/crah-" + std::to_string(i));
  EXPECT_EQ(air.plant->limit().part, "hall");
  CoolingRig liquid(CoolingRig::with_cdu(), CoolingRig::liquid_rack());
  liquid.plant->set_rack_heat(0, 72_kW);
  liquid.run(24h);
  liquid.plant->fail("cdu/pump-1");
  liquid.plant->fail("cdu/pump-2");
  EXPECT_EQ(liquid.plant->limit().part, "cdu");
}

TEST(CoolingPlantLimits, what_changes_nothing_leaves_no_trace) {
  CoolingRig rig(CoolingRig::hall(), CoolingRig::ten_racks());
  rig.run(1h);
  const auto first = rig.plant->fail("north/chiller-1");
  EXPECT_EQ(rig.plant->fail("north/chiller-1"), first);
  rig.plant->restore("north/chiller-2");
  rig.plant->trip("north/chiller-1");
  EXPECT_EQ(rig.recorder.count("cooling unit failed"), 1u);
  EXPECT_EQ(rig.recorder.count("cooling unit restored"), 0u);
  EXPECT_EQ(rig.recorder.count("cooling unit tripped"), 0u);
}

}  // namespace
}  // namespace trainyard::models
