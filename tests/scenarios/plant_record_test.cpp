#include "scenarios/plant_record.hpp"

#include <gmock/gmock.h>

#include <map>

#include "analysis/run_reader.hpp"
#include "scenarios/check.hpp"
#include "scenarios/run.hpp"

/// What a run file says of the plant.
namespace trainyard::scenarios {
namespace {

using analysis::RunReader;
using analysis::Series;
using analysis::Table;

RunReader run_plant(const std::vector<std::string>& overrides, const char* name) {
  const ReadResult read =
      load_scenario(std::string(TRAINYARD_SOURCE_DIR) + "/tests/scenarios/plant.json", overrides);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  const std::string file = testing::TempDir() + name;
  RunOptions options;
  options.run_file = file;
  run(read.scenario, options);
  return RunReader(file);
}

std::string text(const Table& table, const char* column, std::size_t row) {
  return std::get<std::string>((*table.find(column))[row]);
}
double real(const Table& table, const char* column, std::size_t row) {
  return std::get<double>((*table.find(column))[row]);
}
std::int64_t whole(const Table& table, const char* column, std::size_t row) {
  return std::get<std::int64_t>((*table.find(column))[row]);
}

double at(const Series& series, double time_s) {
  double value = -1;
  for (std::size_t i = 0; i < series.time_ns.size(); ++i)
    if (double(series.time_ns[i]) <= time_s * 1e9) value = series.value[i];
  return value;
}

TEST(PlantRecord, names_the_graph_and_follows_a_lost_feed) {
  const RunReader file = run_plant(
      {"duration=2 h",
       R"(facility.script={"a": {"at": "1 h", "part": "pdu-a", "action": "fail", "duration": "30 min"}})"},
      "plant_record.h5");
  const Table nodes = file.table("plant/power_nodes");
  ASSERT_EQ(nodes.rows(), 7u);  // utility, two transformers, two UPS, two PDUs
  std::map<std::string, std::size_t> row;
  for (std::size_t i = 0; i < nodes.rows(); ++i) row[text(nodes, "name", i)] = i;
  EXPECT_EQ(text(nodes, "kind", row.at("ups-a")), "ups");
  EXPECT_EQ(real(nodes, "rating", row.at("pdu-a")), 500e3);
  EXPECT_EQ(real(nodes, "rating_apparent", row.at("main-1")), 1e6);
  EXPECT_EQ(whole(nodes, "racks", row.at("pdu-b")), 9);
  EXPECT_EQ(whole(nodes, "racks", row.at("ups-b")), 0);

  const Table feeds = file.table("plant/power_feeds");
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i < feeds.rows(); ++i)
    pairs.push_back(text(nodes, "name", std::size_t(whole(feeds, "from", i))) + " > " +
                    text(nodes, "name", std::size_t(whole(feeds, "to", i))));
  EXPECT_THAT(
      pairs, testing::UnorderedElementsAre("utility > main-0", "utility > main-1", "main-0 > ups-a",
                                           "main-1 > ups-b", "ups-a > pdu-a", "ups-b > pdu-b"));

  // Each carries half; then one carries all, within what a series may leave out.
  const Series a = file.series("plant/power/pdu-a"), b = file.series("plant/power/pdu-b");
  const double half_W = at(b, 3599);
  EXPECT_NEAR(at(a, 3599), half_W, 0.02 * half_W);
  EXPECT_EQ(at(a, 3601), 0);
  EXPECT_NEAR(at(b, 3601), 2 * half_W, 0.05 * half_W);
  EXPECT_NEAR(at(b, 7000), half_W, 0.05 * half_W);
  EXPECT_EQ(a.units, "W");
}

TEST(PlantRecord, names_what_cools_and_follows_its_temperatures) {
  const RunReader file = run_plant({"duration=2 h", R"(facility.script={
          "first": {"at": "1 h", "part": "cdu-1/pump-1", "action": "fail"},
          "second": {"at": "1 h", "part": "cdu-1/pump-2", "action": "fail"}})"},
                                   "plant_record_cdu.h5");
  const Table cooling = file.table("plant/cooling");
  ASSERT_EQ(cooling.rows(), 5u);  // a loop, a room, three CDUs
  EXPECT_EQ(text(cooling, "name", 0), "north");
  EXPECT_EQ(real(cooling, "capacity", 0), 750e3);
  EXPECT_EQ(text(cooling, "kind", 2), "cdu");
  EXPECT_EQ(text(cooling, "on", 2), "north");
  const Table zones = file.table("plant/zones");
  ASSERT_EQ(zones.rows(), 3u);
  EXPECT_EQ(text(zones, "cdu", 1), "cdu-2");
  EXPECT_EQ(whole(zones, "first_rack", 1), 4);
  EXPECT_EQ(whole(zones, "racks", 2), 1);
  const Series hall = file.series("plant/temperature/hall");
  EXPECT_EQ(hall.units, "degree_Celsius");
  EXPECT_NEAR(at(hall, 3000), 24, 0.8);  // set-point and dead band
  // At its set-point; without flow nothing brings it heat and nothing takes any.
  const Series coolant = file.series("plant/temperature/cdu-1");
  EXPECT_NEAR(at(coolant, 3000), 30, 0.8);
  EXPECT_NEAR(at(coolant, 7200), at(coolant, 3599), 0.3);
  const Series north = file.series("plant/temperature/north");
  EXPECT_NEAR(at(north, 3000), 18.5, 1.0);  // set-point, band
}

TEST(PlantRecord, a_run_without_a_plant_has_no_such_tables) {
  const RunReader file = run_plant({"duration=10 min", "facility=null"}, "plant_record_none.h5");
  for (const std::string& path : file.table_paths()) EXPECT_NE(path.rfind("plant", 0), 0u) << path;
}

}  // namespace
}  // namespace trainyard::scenarios
