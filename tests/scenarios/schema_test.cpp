#include "scenarios/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/read.hpp"
#include "tests/scenarios/test_catalog.hpp"

namespace trainyard::scenarios {
namespace {

using Json = nlohmann::json;

const Json& schema() {
  static const Json parsed = Json::parse(scenario_schema(test::catalog()));
  return parsed;
}

/// Just enough of draft-07 for what the generator emits: an independent reading of it.
bool accepts(const Json& rule, const Json& value) {
  if (rule.contains("$ref")) {
    const std::string ref = rule["$ref"];
    return accepts(schema()["definitions"].at(ref.substr(std::string("#/definitions/").size())),
                   value);
  }
  if (rule.contains("if") &&
      !accepts(accepts(rule["if"], value) ? rule["then"] : rule["else"], value))
    return false;
  if (rule.contains("type")) {
    const std::string type = rule["type"];
    const bool fits =
        (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
        (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
        (type == "null" && value.is_null()) || (type == "number" && value.is_number()) ||
        (type == "integer" && value.is_number_integer());
    if (!fits) return false;
  }
  if (rule.contains("enum") &&
      std::find(rule["enum"].begin(), rule["enum"].end(), value) == rule["enum"].end())
    return false;
  if (rule.contains("minimum") && value.is_number() && value < rule["minimum"]) return false;
  if (rule.contains("exclusiveMinimum") && value.is_number() && value <= rule["exclusiveMinimum"])
    return false;
  if (rule.contains("maximum") && value.is_number() && value > rule["maximum"]) return false;
  if (rule.contains("anyOf") && std::none_of(rule["anyOf"].begin(), rule["anyOf"].end(),
                                             [&](const Json& r) { return accepts(r, value); }))
    return false;
  if (rule.contains("allOf") && !std::all_of(rule["allOf"].begin(), rule["allOf"].end(),
                                             [&](const Json& r) { return accepts(r, value); }))
    return false;
  if (value.is_object()) {
    for (const Json& key : rule.value("required", Json::array()))
      if (!value.contains(key)) return false;
    const Json properties = rule.value("properties", Json::object());
    for (const auto& [key, item] : value.items()) {
      if (properties.contains(key)) {
        if (!accepts(properties[key], item)) return false;
      } else if (rule.contains("additionalProperties")) {
        const Json& rest = rule["additionalProperties"];
        if (rest.is_boolean() ? !rest.get<bool>() : !accepts(rest, item)) return false;
      }
    }
  }
  return true;
}

void all_references(const Json& node, std::set<std::string>& out) {
  if (node.is_object() && node.contains("$ref")) out.insert(node["$ref"].get<std::string>());
  if (node.is_structured())
    for (const Json& child : node) all_references(child, out);
}

Json good() {
  Json cluster = Json::parse(
      R"({"servers": 4, "server": "box-8", "fabric": {"hosts_per_leaf": 2, "leaf_switch": "switch-64", "spine_switch": {"part": "switch-64", "price": "1 USD"}}})");
  Json job = Json::parse(
      R"({"model": "tiny-1b", "gpus": 8, "global_batch": 8, "sequence": 2048, "checkpoint": {"enabled": false}})");
  return {{"cluster", cluster}, {"jobs", {{"a", job}}}};
}

TEST(Schema, is_draft_07_and_whole) {
  EXPECT_EQ(schema()["$schema"], "http://json-schema.org/draft-07/schema#");
  std::set<std::string> references;
  all_references(schema(), references);
  EXPECT_GT(references.size(), 20u);
  for (const std::string& r : references)
    EXPECT_TRUE(schema()["definitions"].contains(r.substr(std::string("#/definitions/").size())))
        << r;
}

TEST(Schema, completes_names_of_the_catalog_and_of_enumerations) {
  const Json& cluster = schema()["definitions"]["cluster"]["properties"];
  EXPECT_EQ(cluster["server"]["anyOf"][0]["enum"], Json::array({"box-8"}));
  EXPECT_EQ(cluster["servers"]["minimum"], 1);
  EXPECT_EQ(schema()["definitions"]["cluster.fabric"]["properties"]["routing"]["enum"],
            Json::array({"ecmp", "spray", "adaptive", "static", "minimal", "valiant", "ugal"}));
  EXPECT_EQ(schema()["definitions"]["jobs.entry"]["required"],
            Json::array({"model", "gpus", "global_batch", "sequence"}));
}

/// The schema and the reader give the same verdict on what a schema can see.
TEST(Schema, agrees_with_the_reader) {
  struct Change {
    const char* pointer;
    Json value;
    bool right;
  };
  const std::vector<Change> changes{
      {"/seed", 3, true},
      {"/seed", -3, false},
      {"/seed", "3", false},
      {"/duration", "3 d", true},
      {"/duration", 3, false},
      {"/fidelity", "every-step", true},
      {"/fidelity", "every step", false},
      {"/cluster/servers", 0, false},
      {"/cluster/servers", 9, true},
      {"/cluster/spare", 1, false},
      {"/cluster/server", "bax-8", false},
      {"/cluster/server", {{"part", "box-8"}, {"gpu", "gpu-300"}}, true},
      {"/cluster/server", {{"part", "box-8"}, {"colour", "red"}}, false},
      {"/cluster/server", {{"gpus", 8}}, false},
      {"/cluster/fabric/tiers", 4, false},
      {"/jobs/a/parallel", {{"tensor", 2}}, true},
      {"/jobs/a/parallel", {{"tensor", 0}}, false},
      {"/jobs/a/parallel", Json::array(), false},
      {"/jobs/a/gpus", true, false},
      {"/storage", {{"x", {{"write_rate", "1 GB/s"}, {"read_rate", "1 GB/s"}}}}, true},
      {"/storage", {{"x", {{"write_rate", "1 GB/s"}}}}, false},
      {"/storage", {{"x", "disks"}}, true},
      {"/storage", {{"x", {{"part", "disks"}, {"latency", "1 s"}}}}, true},
      {"/storage", {{"x", "discs"}}, false},
      {"/storage", {{"x", {{"part", "disks"}, {"colour", "red"}}}}, false},
      {"/failures", {{"profile", "measured"}}, true},
      {"/failures", {{"profile", "guessed"}}, false},
      {"/failures", {{"profile", {{"part", "measured"}, {"lemons", {{"share", 0.1}}}}}}, true},
      {"/failures", {{"script", {{"a", {{"at", "1 h"}, {"fail", "node-1"}}}}}}, true},
      {"/failures", {{"script", {{"a", {{"fail", "node-1"}}}}}}, false},
      {"/failures", {{"lemons", {{"share", 0.6}}}}, false},
      {"/failures", {{"inlet", {{"mean", 30}, {"start_day", 1.5}}}}, false},
      {"/failures", {{"log", 3}}, false},
      {"/cluster/repair", {{"crews", 2}, {"night_crews", 1}}, true},
      {"/cluster/repair", {{"crews", -1}}, false},
      {"/cluster/repair", {{"vendor", "5 d"}}, false},
      {"/cluster/parents", {{"servers_per_rack", 4}}, true},
      {"/cluster/spare", {{"places", "spread"}}, true},
      {"/cluster/spare", {{"places", "everywhere"}}, false},
      {"/cluster/exclude", {{"after", 2}}, true},
      {"/cluster/exclude", {{"after", 1}}, false},
      {"/jobs/a/elastic", {{"min_data", 0}}, false},
      {"/jobs/a/priority", 3, true},
      {"/jobs/a/preemptible", "yes", false},
      {"/jobs/a/restart", {{"misdiagnosis", 0.99}}, false},
      {"/jobs/a/checkpoint/levels", {{"x", {{"kind", "local-nvme"}, {"every_steps", 9}}}}, true},
      {"/jobs/a/checkpoint/levels", {{"x", {{"kind", "floppy"}, {"every_steps", 9}}}}, false}};
  EXPECT_TRUE(accepts(schema(), good()));
  for (const Change& change : changes) {
    Json scenario = good();
    scenario[Json::json_pointer(change.pointer)] = change.value;
    const ReadResult read = read_scenario_text(scenario.dump(2), "s.json", {}, test::catalog());
    EXPECT_EQ(read.ok(), change.right) << change.pointer << " " << change.value << "\n"
                                       << to_text(read.diagnostics);
    EXPECT_EQ(accepts(schema(), scenario), change.right) << change.pointer << " " << change.value;
  }
}

TEST(Schema, stores_and_profiles_may_be_named_and_new_keys_are_described) {
  const Json& definitions = schema()["definitions"];
  const Json& store = definitions["scenario"]["properties"]["storage"]["additionalProperties"];
  EXPECT_EQ(store["anyOf"][0]["enum"], Json::array({"disks"}));
  EXPECT_EQ(definitions["failures"]["properties"]["profile"]["anyOf"][0]["enum"],
            Json::array({"measured"}));
  for (const char* name : {"cluster.repair", "cluster.parents", "cluster.spare", "cluster.exclude",
                           "failures.script.entry", "failures.inlet", "failures.lemons",
                           "part.store", "jobs.entry.elastic", "jobs.entry.data",
                           "jobs.entry.checkpoint.levels.entry", "jobs.entry.restart"}) {
    ASSERT_TRUE(definitions.contains(name)) << name;
    for (const auto& [key, value] : definitions[name]["properties"].items())
      EXPECT_TRUE(value.contains("description") && !value["description"].get<std::string>().empty())
          << name << " " << key;
  }
}

TEST(Schema, accepts_the_scenario_with_every_setting_of_failures) {
  const std::filesystem::path folder =
      std::filesystem::path(TRAINYARD_SOURCE_DIR) / "tests/scenarios";
  std::ifstream in(folder / "good_failures.json");
  EXPECT_TRUE(accepts(schema(), Json::parse(in, nullptr, true, true)));
  std::filesystem::current_path(folder);
  const ReadResult read = read_scenario("good_failures.json", {}, test::catalog());
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_TRUE(accepts(schema(), Json::parse(read.resolved)));
}

TEST(Schema, a_file_that_extends_another_may_leave_out_anything) {
  EXPECT_TRUE(accepts(
      schema(),
      Json::parse(
          R"({"extends": "base.json", "jobs": {"a": {"gpus": 16, "start": null}}, "cluster": {"server": {"gpu": {"price": "1 USD"}}}})")));
  EXPECT_FALSE(
      accepts(schema(), Json::parse(R"({"extends": "base.json", "jobs": {"a": {"gpuss": 16}}})")));
  EXPECT_FALSE(accepts(schema(), Json::parse(R"({"jobs": {"a": {"gpus": 16}}})")));
}

TEST(Schema, accepts_what_is_written_out) {
  const ReadResult read = read_scenario_text(good().dump(), "s.json", {}, test::catalog());
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_TRUE(accepts(schema(), Json::parse(read.resolved)));
}

}  // namespace
}  // namespace trainyard::scenarios
