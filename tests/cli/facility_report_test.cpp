#include "cli/facility_report.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "scenarios/check.hpp"
#include "tests/cli/golden.hpp"

namespace trainyard::cli {
namespace {

constexpr Terminal paper{.width = 80, .interactive = false, .colour = false, .unicode = false};

const scenarios::FacilityReport& report() {
  static const scenarios::FacilityReport once = [] {
    const scenarios::ReadResult read = scenarios::load_scenario(
        std::string(TRAINYARD_SOURCE_DIR) + "/tests/scenarios/plant.json",
        {"facility.power.racks.feeds.a.breaker.rating=\"40 A\"",
         "facility.power.racks.feeds.b.breaker.rating=\"40 A\"",
         "facility.power.nodes.ups-b.fed_by=[\"main-0\"]", "facility.swing.range=\"50 kW\""});
    EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
    return scenarios::facility_report(read.scenario);
  }();
  return once;
}

TEST(FacilityText, of_a_plant_with_every_fault) {
  expect_golden("facility.txt", facility_text(report(), paper));
}

TEST(FacilityText, no_line_is_wider_than_the_terminal) {
  std::istringstream text(facility_text(report(), paper));
  for (std::string line; std::getline(text, line);) EXPECT_LE(columns_of(line), 80u) << line;
}

TEST(FacilityJson, has_the_stable_keys_and_adds_up) {
  const auto t = nlohmann::json::parse(facility_json(report()));
  for (const char* state : {"idle", "peak"}) {
    double sum = 0;
    for (const char* part : {"gpus_W", "servers_W", "switches_W", "losses_W", "fans_W", "pumps_W",
                             "chillers_W", "coolers_W"})
      sum += t[state][part].get<double>();
    EXPECT_NEAR(sum, t[state]["site_W"].get<double>(), 1e-6);
    double lost = 0;
    for (const auto& loss : t[state]["losses"]) lost += loss["power_W"].get<double>();
    EXPECT_NEAR(lost, t[state]["losses_W"].get<double>(), 1e-6);
  }
  for (const char* key : {"schema", "scenario", "racks", "servers", "gpus", "outdoors", "ratings",
                          "violations", "single_losses", "shared_points", "step_power"})
    EXPECT_TRUE(t.contains(key)) << key;
  double before = 1e9;
  for (const auto& node : t["ratings"]) {
    EXPECT_LE(node["share"].get<double>(), before);
    before = node["share"].get<double>();
  }
  EXPECT_EQ(t["step_power"]["violations"][0]["limit_name"], "range");
}

}  // namespace
}  // namespace trainyard::cli
