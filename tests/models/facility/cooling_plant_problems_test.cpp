#include <gtest/gtest.h>

#include "tests/models/facility/cooling_plant_rig.hpp"

namespace trainyard::models {
namespace {

std::vector<std::string> paths(const CoolingPlantSpec& spec, const std::vector<CooledRack>& racks) {
  std::vector<std::string> list;
  for (const Problem& problem : check_cooling(spec, racks)) {
    EXPECT_FALSE(problem.what.empty());
    EXPECT_FALSE(problem.right.empty());
    list.push_back(problem.path);
  }
  return list;
}

using Paths = std::vector<std::string>;

TEST(CoolingPlantProblems, the_hall_of_the_tests_has_none) {
  EXPECT_EQ(paths(CoolingRig::hall(), CoolingRig::ten_racks()), Paths{});
  EXPECT_EQ(paths(CoolingRig::with_cdu(), CoolingRig::liquid_rack()), Paths{});
}

TEST(CoolingPlantProblems, equal_units_have_names_of_their_own) {
  CoolingPlantSpec spec = CoolingRig::with_cdu();
  EXPECT_EQ(cdu_names(spec), Paths{"cdu"});
  spec.cdus["cdu"].count = 3;
  spec.cdus["b"] = spec.cdus["cdu"];
  spec.cdus["b"].count = 1;
  EXPECT_EQ(cdu_names(spec), (Paths{"b", "cdu-1", "cdu-2", "cdu-3"}));
  spec.cdus["cdu-2"] = spec.cdus["b"];
  const Paths found = paths(spec, CoolingRig::liquid_rack());
  EXPECT_NE(std::find(found.begin(), found.end(), "cdus.cdu-2"), found.end());
}

TEST(CoolingPlantProblems, a_rack_on_nothing_says_what_there_is) {
  CoolingPlantSpec spec = CoolingRig::with_cdu();
  spec.cdus["cdu"].count = 2;
  std::vector<CooledRack> racks{
      {"a", {.room = "hall", .cdu = "cdu-1", .liquid_share = 0.8}},
      {"b", {.room = "hall", .cdu = "cdu-2", .liquid_share = 0.8}},
  };
  EXPECT_EQ(paths(spec, racks), Paths{});
  racks[1].spec.cdu = "cdu-3";
  const Problems problems = check_cooling(spec, racks);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].path, "racks.b.cdu");
  EXPECT_EQ(problems[0].what, "there is no CDU \"cdu-3\"");
  EXPECT_EQ(problems[0].right, "one of cdu-1 to -2");
  EXPECT_EQ(problems[1].path, "cdus.cdu");
  EXPECT_EQ(problems[1].what, "no rack is on cdu-2");
  racks[1].spec.cdu = "cdu";  // the group is no unit
  EXPECT_EQ(paths(spec, racks), (Paths{"racks.b.cdu", "cdus.cdu"}));
  racks[1].spec.cdu = "hall";
  EXPECT_EQ(paths(spec, racks), (Paths{"racks.b.cdu", "cdus.cdu"}));
  racks[1] = {"a", {.room = "attic"}};
  EXPECT_EQ(paths(spec, racks), (Paths{"racks.a", "racks.a.room", "cdus.cdu"}));
}

TEST(CoolingPlantProblems, what_nobody_uses_is_named) {
  CoolingPlantSpec spec = CoolingRig::with_cdu();
  spec.loops["south"] = spec.loops["north"];
  spec.rooms["attic"] = spec.rooms["hall"];
  EXPECT_EQ(paths(spec, CoolingRig::ten_racks()),
            (Paths{"loops.south", "rooms.attic", "cdus.cdu"}));
  spec.rooms["attic"].loop = "south";
  spec.cdus["cdu"].loop = "west";
  EXPECT_EQ(paths(spec, CoolingRig::liquid_rack()), (Paths{"cdus.cdu.loop", "rooms.attic"}));
}

TEST(CoolingPlantProblems, a_loop_needs_machines_for_what_it_is_laid_out_for) {
  CoolingPlantSpec spec = CoolingRig::hall();
  const std::vector<CooledRack> racks = CoolingRig::ten_racks();
  spec.loops["north"].design_heat = Watts(800e3);  // 4 · 200 kW
  EXPECT_EQ(paths(spec, racks), Paths{});
  spec.loops["north"].design_heat = Watts(801e3);
  EXPECT_EQ(paths(spec, racks), Paths{"loops.north.design_heat"});
  // Towers carry the work of the compressors as well. COP 0.6 · 286.15 / (32 - 13) = 9.036, so 889
  // kW of towers are 800.4 kW for chillers.
  WaterLoopSpec& loop = spec.loops["north"];
  loop.design_heat = Watts(800e3);
  loop.chillers->rejection = Rejection::tower;
  loop.coolers = CoolersSpec{.units = 1, .capacity = Watts(889e3)};
  EXPECT_EQ(paths(spec, racks), Paths{});
  loop.coolers->capacity = Watts(888e3);
  EXPECT_EQ(paths(spec, racks), Paths{"loops.north.design_heat"});
  loop.chillers.reset();
  EXPECT_EQ(paths(spec, racks), Paths{});
  loop.coolers->economizer = false;
  EXPECT_EQ(paths(spec, racks), Paths{"loops.north.design_heat"});
  loop.coolers.reset();
  EXPECT_EQ(paths(spec, racks), Paths{"loops.north"});
}

TEST(CoolingPlantProblems, nothing_is_cooled_below_its_water) {
  CoolingPlantSpec spec = CoolingRig::with_cdu();
  spec.cdus["cdu"].set_point = 19;  // water of 18 to 19
  EXPECT_EQ(paths(spec, CoolingRig::liquid_rack()), Paths{"cdus.cdu.set_point"});
  spec.cdus["cdu"].set_point = 19.1;
  EXPECT_EQ(paths(spec, CoolingRig::liquid_rack()), Paths{});
  spec.rooms["hall"].set_point = 18.5;
  EXPECT_EQ(paths(spec, CoolingRig::liquid_rack()), Paths{"rooms.hall.set_point"});
}

TEST(CoolingPlantProblems, names_are_not_those_of_units) {
  CoolingPlantSpec spec = CoolingRig::with_cdu();
  spec.cdus["a/b"] = spec.cdus["cdu"];
  spec.cdus.erase("cdu");
  std::vector<CooledRack> racks = CoolingRig::liquid_rack();
  racks[0].spec.cdu = "a/b";
  EXPECT_EQ(paths(spec, racks), Paths{"cdus.a/b"});
}

}  // namespace
}  // namespace trainyard::models
