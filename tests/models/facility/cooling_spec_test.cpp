#include "models/facility/cooling_spec.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trainyard::models {
namespace {

/// Evaluates the rules between members; descends into parts.
struct Rules {
  std::vector<std::string> broken = {};
  int members = 0;

  template <class T, class... Rest>
  void required(const char*, T& member, Rest...) {
    visit(member);
  }
  template <class T, class... Rest>
  void optional(const char*, T& member, Rest...) {
    visit(member);
  }
  void check(bool holds, const char* key, const char*) {
    if (!holds) broken.push_back(key);
  }
  template <class T>
  void visit(T& member) {
    ++members;
    if constexpr (requires { describe(*this, member); }) describe(*this, member);
  }
  template <class T>
  void visit(std::optional<T>& member) {
    if (member) visit(*member);
  }
  template <class T>
  void visit(std::map<std::string, T>& member) {
    for (auto& [name, value] : member) visit(value);
  }
};

template <class Spec>
std::vector<std::string> broken(Spec spec) {
  Rules rules;
  describe(rules, spec);
  EXPECT_GT(rules.members, 0);
  return rules.broken;
}

CoolingPlantSpec small() {
  CoolingPlantSpec spec;
  spec.loops["north"].chillers = ChillersSpec{};
  spec.rooms["hall"].loop = "north";
  spec.cdus["cdu"].loop = "north";
  return spec;
}

TEST(CoolingSpec, a_small_site_breaks_no_rule) {
  EXPECT_TRUE(broken(small()).empty());
}

TEST(CoolingSpec, what_hangs_on_nothing_is_named) {
  CoolingPlantSpec spec = small();
  spec.rooms["hall"].loop = "south";
  EXPECT_EQ(broken(spec), std::vector<std::string>{"rooms"});
  spec = small();
  spec.cdus["cdu"].loop = "";
  EXPECT_EQ(broken(spec), std::vector<std::string>{"cdus"});
  spec = small();
  spec.loops["north"].chillers.reset();
  EXPECT_EQ(broken(spec), std::vector<std::string>{"chillers"});
  spec = small();
  spec.rooms["cdu"] = spec.rooms["hall"];  // one name for two parts
  EXPECT_EQ(broken(spec), std::vector<std::string>{"rooms"});
}

TEST(CoolingSpec, tower_chillers_need_towers) {
  CoolingPlantSpec spec = small();
  spec.loops["north"].chillers->rejection = Rejection::tower;
  EXPECT_EQ(broken(spec), std::vector<std::string>{"coolers"});
  spec.loops["north"].coolers = CoolersSpec{};
  EXPECT_TRUE(broken(spec).empty());
  spec.loops["north"].coolers->kind = Rejection::air;
  EXPECT_EQ(broken(spec), std::vector<std::string>{"coolers"});
}

TEST(CoolingSpec, a_liquid_rack_names_its_cdu_and_limits_are_in_order) {
  EXPECT_EQ(broken(RackCoolingSpec{.room = "hall", .liquid_share = 0.8}),
            std::vector<std::string>{"cdu"});
  EXPECT_EQ(broken(RackCoolingSpec{.room = "hall", .cdu = "cdu"}), std::vector<std::string>{"cdu"});
  EXPECT_EQ(broken(PumpsSpec{.units = 2, .normal = 3}), std::vector<std::string>{"normal"});
  EXPECT_EQ(broken(CoolingLimitsSpec{.air_warning = 46}), std::vector<std::string>{"air_warning"});
}

}  // namespace
}  // namespace trainyard::models
