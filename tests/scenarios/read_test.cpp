#include "scenarios/read.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "scenarios/write.hpp"
#include "tests/scenarios/test_catalog.hpp"

namespace trainyard::scenarios {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path folder = fs::path(TRAINYARD_SOURCE_DIR) / "tests/scenarios";

/// Reads a text laid over good.json.
ReadResult over_good(const std::string& text, const std::vector<std::string>& overrides = {}) {
  fs::current_path(folder);
  const std::size_t brace = text.find('{');
  const std::string body = text.substr(brace + 1);
  return read_scenario_text("{\"extends\": \"good.json\"" +
                                std::string(body.find(':') == std::string::npos ? "" : ", ") + body,
                            "over.json", overrides, test::catalog());
}

ReadResult good(const std::vector<std::string>& overrides = {}) {
  fs::current_path(folder);
  return read_scenario("good.json", overrides, test::catalog());
}

TEST(Read, fills_the_structs) {
  const ReadResult read = good();
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  const Scenario& s = read.scenario;
  EXPECT_EQ(s.name, "good");
  EXPECT_EQ(s.seed, 7u);
  EXPECT_EQ(s.duration, Duration(std::chrono::hours(48)));
  EXPECT_EQ(s.fidelity, Fidelity::fast_forward);
  EXPECT_EQ(s.cluster.servers, 18);
  EXPECT_EQ(s.cluster.server.name, "box-8");
  EXPECT_EQ(s.cluster.server.gpu.name, "gpu-1000");
  EXPECT_EQ(s.cluster.server.gpu.memory, Bytes(80e9));
  EXPECT_EQ(s.cluster.server.nic.rate, BytesPerSecond(50e9));
  EXPECT_EQ(s.cluster.server.gpus, 8);  // default
  EXPECT_EQ(s.cluster.fabric.leaf_switch.price, Dollars(0));
  EXPECT_EQ(s.cluster.fabric.spine_switch.price, Dollars(1000));  // a part with one field changed
  EXPECT_EQ(s.cluster.fabric.spine_switch.latency, Duration(500));
  EXPECT_EQ(s.storage.at("pfs").read_rate, BytesPerSecond(90e9));
  EXPECT_EQ(s.failures.classes.at("gpu").lifetime.mean, Duration(std::chrono::hours(50000)));
  EXPECT_EQ(s.jobs.at("llm").model.heads, 16);
  EXPECT_EQ(s.jobs.at("llm").parallel.tensor, 8);
  EXPECT_FALSE(s.jobs.at("llm").parallel.data);
  EXPECT_EQ(s.jobs.at("llm").checkpoint.interval, Duration(std::chrono::minutes(30)));
}

TEST(Read, a_scenario_without_a_name_is_called_after_its_file) {
  EXPECT_EQ(over_good(R"({"name": null})").scenario.name, "over");
}

TEST(Read, every_value_knows_where_it_came_from) {
  const ReadResult read = over_good("{\n\"jobs\": {\"llm\":\n {\"gpus\": 32}}}",
                                    {"cluster.spares=1", "cluster.server.gpu.power_max=600 W"});
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_EQ(read.origin.at("jobs.llm.gpus"), "over.json:3");
  EXPECT_EQ(read.origin.at("seed"), "good.json:4");
  EXPECT_EQ(read.origin.at("cluster.spares"), "--set");
  EXPECT_EQ(read.origin.at("cluster.server.gpu.power_max"), "--set");
  EXPECT_EQ(read.origin.at("cluster.server.gpu.memory"), "catalog: gpu-1000");
  EXPECT_EQ(read.origin.at("cluster.server.nic"), "catalog: box-8");
  EXPECT_EQ(read.origin.at("cluster.fabric.spine_switch.price"), "good.json:13");
  EXPECT_EQ(read.origin.at("fidelity"), "default");
  EXPECT_EQ(read.origin.at("jobs.llm.restart.replace"), "default");
  EXPECT_TRUE(read.is_written("jobs.llm.gpus"));
  EXPECT_TRUE(read.is_written("cluster.spares"));
  EXPECT_FALSE(read.is_written("fidelity"));
  EXPECT_FALSE(read.is_written("cluster.server.gpu.memory"));
}

TEST(Read, what_is_written_out_reads_back_as_the_same_scenario) {
  const ReadResult first = good();
  ASSERT_TRUE(first.ok());
  const ReadResult second =
      read_scenario_text(first.resolved, "resolved.json", {}, test::catalog());
  ASSERT_TRUE(second.ok()) << to_text(second.diagnostics);
  EXPECT_EQ(second.resolved, first.resolved);
  EXPECT_THAT(first.resolved, HasSubstr("\"memory\": \"80 GB\""));
  EXPECT_THAT(first.resolved, HasSubstr("\"fidelity\": \"fast-forward\""));
}

TEST(Extends, merges_objects_and_null_takes_away) {
  const ReadResult read = over_good(
      R"({"seed": 9, "failures": {"classes": {"gpu": null}}, "jobs": {"llm": {"checkpoint": {"enabled": false}}}})");
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_EQ(read.scenario.seed, 9u);
  EXPECT_THAT(read.scenario.failures.classes, IsEmpty());
  EXPECT_EQ(read.scenario.jobs.at("llm").checkpoint.interval,
            Duration(std::chrono::minutes(30)));  // kept
}

TEST(Extends, a_chain_is_read_from_its_far_end_and_each_name_is_relative_to_its_own_file) {
  const fs::path dir =
      fs::temp_directory_path() / ("trainyard_extends_" + std::to_string(getpid()));
  fs::create_directories(dir / "inner");
  fs::copy_file(folder / "good.json", dir / "inner/good.json",
                fs::copy_options::overwrite_existing);
  std::ofstream(dir / "inner/middle.json")
      << R"({"extends": "good.json", "seed": 2, "cluster": {"spares": 1}})";
  std::ofstream(dir / "top.json") << R"({"extends": "inner/middle.json", "seed": 3})";
  const ReadResult read = read_scenario(dir / "top.json", {}, test::catalog());
  fs::remove_all(dir);
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_EQ(read.scenario.seed, 3u);
  EXPECT_EQ(read.scenario.cluster.spares, 1);
  EXPECT_EQ(read.scenario.cluster.servers, 18);
}

TEST(Extends, an_object_over_the_name_of_a_part_changes_that_part) {
  const ReadResult read = over_good(R"({"cluster": {"server": {"gpu": {"price": "5000 USD"}}}})");
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_EQ(read.scenario.cluster.server.gpu.price, Dollars(5000));
  EXPECT_EQ(read.scenario.cluster.server.gpu.peak_16bit, FlopsPerSecond(1e15));
}

TEST(Extends, another_name_replaces_the_part) {
  const ReadResult read = over_good(R"({"cluster": {"server": {"gpu": "gpu-300"}}})");
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_EQ(read.scenario.cluster.server.gpu.peak_16bit, FlopsPerSecond(3e14));
}

TEST(Parts, can_be_described_in_full) {
  const ReadResult read = over_good(
      R"({"cluster": {"server": {"part": null, "name": "mine", "gpus": 8, "nics": 4, "nic": {"rate": "200 Gb/s"},
      "gpu": {"peak_16bit": "500 TFLOP/s", "sms": 96, "memory": "96 GiB", "memory_rate": "2 TB/s", "scale_up_rate": "200 GB/s", "power_max": "500 W", "power_idle": "60 W"}}}})");
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_EQ(read.scenario.cluster.server.name, "mine");
  EXPECT_EQ(read.scenario.cluster.server.gpu.memory, Bytes(96 * 1073741824.0));
}

TEST(Set, the_last_one_wins_and_values_are_json_or_text) {
  const ReadResult read =
      good({"cluster.spares=1", "cluster.spares=3", "jobs.llm.checkpoint.interval=2 h",
            "fidelity=every-step", "jobs.llm.checkpoint.size=null",
            "storage.other={\"write_rate\": \"1 GB/s\", \"read_rate\": \"2 GB/s\"}"});
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_EQ(read.scenario.cluster.spares, 3);
  EXPECT_EQ(read.scenario.fidelity, Fidelity::every_step);
  EXPECT_EQ(read.scenario.jobs.at("llm").checkpoint.interval, Duration(std::chrono::hours(2)));
  EXPECT_EQ(read.scenario.storage.at("other").read_rate, BytesPerSecond(2e9));
}

TEST(Set, a_setting_absent_from_the_file_can_be_given) {
  const ReadResult read = good({"jobs.llm.restart.start_up=90 s"});
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_EQ(read.scenario.jobs.at("llm").restart.start_up, Duration(std::chrono::seconds(90)));
}

TEST(Whole, numbers_may_be_written_with_a_point_or_an_exponent) {
  EXPECT_EQ(good({"jobs.llm.gpus=64.0"}).scenario.jobs.at("llm").gpus, 64);
  EXPECT_EQ(good({"jobs.llm.global_batch=1e3"}).scenario.jobs.at("llm").global_batch, 1000);
  EXPECT_FALSE(good({"jobs.llm.gpus=64.5"}).ok());
  EXPECT_EQ(good({"seed=18446744073709551615"}).scenario.seed, 18446744073709551615u);
  EXPECT_FALSE(good({"seed=18446744073709551616"}).ok());
  EXPECT_EQ(good({"jobs.llm.global_batch=2147483647"}).scenario.jobs.at("llm").global_batch,
            2147483647);
  EXPECT_FALSE(good({"jobs.llm.global_batch=2147483648"}).ok());
}

// 16 servers of 8 GPUs are left beside 2 spares: 128 fit, 136 do not.
TEST(References, a_job_may_use_all_that_is_not_spare) {
  EXPECT_TRUE(good({"jobs.llm.gpus=128"}).ok());
  EXPECT_FALSE(good({"jobs.llm.gpus=136"}).ok());
  EXPECT_TRUE(good({"jobs.llm.gpus=136", "cluster.spares=1"}).ok());
  EXPECT_TRUE(good({"jobs.llm.gpus=4"}).ok());    // less than a server
  EXPECT_FALSE(good({"jobs.llm.gpus=12"}).ok());  // a server and a half
}

TEST(References, three_tiers_need_a_core_switch) {
  EXPECT_FALSE(good({"cluster.fabric.tiers=3"}).ok());
  EXPECT_TRUE(good({"cluster.fabric.tiers=3", "cluster.fabric.core_switch=switch-64"}).ok());
}

TEST(Locate, points_at_the_value_or_its_nearest_parent) {
  const ReadResult read = good();
  const Diagnostic at_value = read.locate(
      {"parallel.tensor", "must divide the heads, found 8", "1, 2, 4 or 16"}, "jobs.llm");
  EXPECT_EQ(at_value.text(),
            "good.json:34:30: error: jobs.llm.parallel.tensor: must divide the heads, found 8\n"
            "   34 |       \"parallel\": {\"tensor\": 8},\n"
            "      |                              ^\n"
            "  hint: 1, 2, 4 or 16\n");
  const Diagnostic at_parent = read.locate({"parallel.chunks", "w", ""}, "jobs.llm");
  EXPECT_EQ(at_parent.path, "jobs.llm.parallel.chunks");
  EXPECT_EQ(std::pair(at_parent.line, at_parent.column), std::pair(34, 7));
  EXPECT_EQ(read.locate({"nowhere", "w", ""}).line, 2);  // the root
  const Diagnostic of_part = read.locate({"cluster.server.gpu.memory", "is too small", ""});
  EXPECT_EQ(of_part.what, "is too small (from the catalog part gpu-1000)");
  EXPECT_EQ(of_part.line, 8);  // the line that names the server
}

/// A folder of its own that goes away with the test.
class LogOfFailures : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(dir / "logs");
    fs::copy_file(folder / "good.json", dir / "good.json", fs::copy_options::overwrite_existing);
    write("with_log.json",
          R"({"extends": "good.json", "failures": {"log": "logs/may.csv",
 "script": {"own": {"at": "1 h", "fail": "node-1"}}}})");
    write("logs/may.csv",
          "at,unit,name,repair\n3 h,node-2/gpu-1,xid-79,6 h\n1 h,node-4,,\n2 h,node-5,\"a, b\",1 "
          "s\n");
  }
  void TearDown() override { fs::remove_all(dir); }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(dir / file, std::ios::binary) << text;
  }
  ReadResult read(const std::vector<std::string>& overrides = {}) {
    return read_scenario(dir / "with_log.json", overrides, test::catalog());
  }
  const fs::path dir = fs::temp_directory_path() / ("trainyard_log_" + std::to_string(getpid()));
};

TEST_F(LogOfFailures, joins_the_script_under_keys_that_are_names) {
  const ReadResult got = read();
  ASSERT_TRUE(got.ok()) << to_text(got.diagnostics);
  const auto& script = got.scenario.failures.script;
  std::vector<std::string> keys;
  for (const auto& [key, fault] : script) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("log-0000002", "log-0000003", "log-0000004", "own"));
  EXPECT_EQ(script.at("log-0000002").name, "xid-79");
  EXPECT_EQ(script.at("log-0000002").fail, "node-2/gpu-1");
  EXPECT_EQ(script.at("log-0000002").repair.value, Duration(std::chrono::hours(6)));
  EXPECT_EQ(script.at("log-0000004").name, "a, b");
  EXPECT_EQ(got.scenario.failures.log, "");
  EXPECT_EQ(got.origin.at("failures.script.log-0000003.at"),
            (dir / "logs/may.csv").string() + ":3");
}

TEST_F(LogOfFailures, is_part_of_what_is_written_out) {
  const ReadResult first = read();
  ASSERT_TRUE(first.ok()) << to_text(first.diagnostics);
  TearDown();  // nothing but the text is needed
  const ReadResult second =
      read_scenario_text(first.resolved, "resolved.json", {}, test::catalog());
  ASSERT_TRUE(second.ok()) << to_text(second.diagnostics);
  EXPECT_EQ(second.resolved, first.resolved);
  EXPECT_EQ(second.scenario.failures.script.size(), 4u);
}

TEST_F(LogOfFailures, by_set_is_found_from_where_the_program_was_started) {
  fs::current_path(dir / "logs");
  EXPECT_TRUE(read({"failures.log=may.csv"}).ok());
  EXPECT_FALSE(read({"failures.log=logs/may.csv"}).ok());
  fs::current_path(folder);
}

TEST_F(LogOfFailures, tells_mistakes_by_line_of_the_log) {
  write("logs/may.csv", "at,unit,effect\n3 h,node-2,crush\n1 parsec,node-4,\n");
  const ReadResult got = read();
  ASSERT_EQ(got.diagnostics.size(), 2u) << to_text(got.diagnostics);
  EXPECT_EQ(got.diagnostics[0].file, (dir / "logs/may.csv").string());
  EXPECT_EQ(got.diagnostics[0].line, 2);
  EXPECT_THAT(got.diagnostics[0].right, HasSubstr("did you mean \"crash\""));
  EXPECT_EQ(got.diagnostics[1].line, 3);
}

TEST_F(LogOfFailures, may_not_share_a_key_with_the_script) {
  const ReadResult got =
      read({"failures.script.log-0000003={\"at\": \"1 h\", \"fail\": \"node-1\"}"});
  ASSERT_EQ(got.diagnostics.size(), 1u) << to_text(got.diagnostics);
  EXPECT_EQ(got.diagnostics[0].path, "failures.script.log-0000003");
  EXPECT_THAT(got.diagnostics[0].what, HasSubstr("line 3 of the log"));
}

TEST_F(LogOfFailures, that_is_missing_is_told_where_it_was_named) {
  fs::remove(dir / "logs/may.csv");
  const ReadResult got = read();
  ASSERT_EQ(got.diagnostics.size(), 1u) << to_text(got.diagnostics);
  EXPECT_EQ(got.diagnostics[0].path, "failures.log");
  EXPECT_EQ(got.diagnostics[0].line, 1);
  EXPECT_THAT(got.diagnostics[0].what, HasSubstr("may.csv\": there is no such file"));
}

TEST(Read, a_scenario_with_every_setting_of_failures_is_written_out_whole) {
  fs::current_path(folder);
  const ReadResult first = read_scenario("good_failures.json", {}, test::catalog());
  ASSERT_TRUE(first.ok()) << to_text(first.diagnostics);
  const ReadResult second =
      read_scenario_text(first.resolved, "resolved.json", {}, test::catalog());
  ASSERT_TRUE(second.ok()) << to_text(second.diagnostics);
  EXPECT_EQ(second.resolved, first.resolved);
}

TEST(NoEffect, a_plain_scenario_has_none) {
  EXPECT_THAT(settings_without_effect(good()), IsEmpty());
}

struct Idle {
  const char* name;
  std::vector<std::string> overrides;
  std::vector<std::string> lines;
};

class NoEffectOf : public testing::TestWithParam<Idle> {};

TEST_P(NoEffectOf, is_listed) {
  const ReadResult read = good(GetParam().overrides);
  ASSERT_TRUE(read.ok()) << to_text(read.diagnostics);
  EXPECT_EQ(settings_without_effect(read), GetParam().lines);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, NoEffectOf,
    testing::Values(
        Idle{"checkpoints_disabled",
             {"jobs.llm.checkpoint.enabled=false"},
             {"storage.pfs: no job saves its checkpoints there or reads data from it",
              "jobs.llm.checkpoint.interval: checkpoint.enabled is false",
              "jobs.llm.checkpoint.store: checkpoint.enabled is false"}},
        Idle{"failures_disabled",
             {"failures.enabled=false"},
             {"failures.classes: failures.enabled is false, so nothing fails"}},
        Idle{"no_failure_classes",
             {"failures.enabled=true", "failures.classes.gpu=null"},
             {"failures.enabled: there are no failure classes, so nothing fails"}},
        Idle{"nothing_is_replaced",
             {"failures.classes=null", "jobs.llm.restart.replace=5 s"},
             {"jobs.llm.restart.replace: nothing fails, so nothing is replaced"}},
        Idle{"repair_in_place",
             {"failures.classes.gpu.replace=false",
              "failures.classes.gpu.repair={\"value\": \"3 h\", \"law\": \"fixed\"}"},
             {"failures.classes.gpu.repair: replace is false: the server is not taken out"}},
        Idle{"unused_store",
             {"storage.scratch={\"write_rate\": \"1 GB/s\", \"read_rate\": \"1 GB/s\"}"},
             {"storage.scratch: no job saves its checkpoints there or reads data from it"}},
        Idle{"sprayed",
             {"cluster.fabric.routing=spray", "cluster.fabric.flows_per_pair=4"},
             {"cluster.fabric.flows_per_pair: sprayed packets use all paths whatever the number of "
              "queue pairs"}},
        Idle{"core_of_two_tiers",
             {"cluster.fabric.core_switch=switch-64"},
             {"cluster.fabric.core_switch: a fat-tree fabric of 2 tiers has no such switches"}},
        Idle{"no_tensor_parallelism",
             {"jobs.llm.parallel.tensor=1", "jobs.llm.parallel.sequence_parallel=true"},
             {"jobs.llm.parallel.sequence_parallel: there is no tensor parallelism (tensor is 1)"}},
        Idle{"no_sequence_parallelism",  // the backward pass hides its all-reduce all the same
             {"jobs.llm.parallel.sequence_parallel=false",
              "jobs.llm.software.tensor_overlap_forward=0.5",
              "jobs.llm.software.tensor_overlap_backward=0.4"},
             {"jobs.llm.software.tensor_overlap_forward: only sequence parallelism gathers, and "
              "hides traffic in the forward pass, and sequence_parallel is false"}},
        Idle{"one_stage",
             {"jobs.llm.software.overlap_pipeline=false"},
             {"jobs.llm.software.overlap_pipeline: there is one pipeline stage"}},
        Idle{"sharded_by_layer",
             {"jobs.llm.parallel={\"sharding\": \"fsdp\"}", "jobs.llm.software.bucket=1 GB"},
             {"jobs.llm.software.bucket: gradients are reduced layer by layer (sharding)"}},
        Idle{"sixteen_bits",
             {"jobs.llm.software.cast_bytes=1"},
             {"jobs.llm.software.cast_bytes: nothing is quantised in 16-bit precision"}},
        Idle{"no_experts",
             {"jobs.llm.software.expert_overlap=0.5"},
             {"jobs.llm.software.expert_overlap: the model has no experts"}},
        Idle{
            "experts_split_over_tensor_ranks",  // they exchange, if only inside the group
            {"jobs.llm.model.experts={\"count\": 8, \"per_token\": 2}",
             "jobs.llm.software.expert_overlap=0.5", "jobs.llm.software.expert_deduplication=true"},
            {"jobs.llm.software.expert_deduplication: there is no expert parallelism (expert is "
             "1)"}},
        Idle{"fused_attention",
             {"cluster.server.gpu.calibration.unfused_bytes=1.2"},
             {"cluster.server.gpu.calibration.unfused_bytes: all jobs have flash attention"}},
        Idle{"stall_given",
             {"jobs.llm.checkpoint.stall=1 s", "jobs.llm.checkpoint.host_copy_rate=5 GB/s"},
             {"jobs.llm.checkpoint.host_copy_rate: stall is given"}},
        Idle{"interval_beyond_the_end",
             {"jobs.llm.checkpoint.interval=3 d"},
             {"jobs.llm.checkpoint.interval: longer than the job can run: it never saves"}},
        Idle{"starts_too_late",
             {"jobs.llm.start=2 d"},
             {"jobs.llm: starts when the simulated time is over"}}),
    [](const auto& test_case) { return test_case.param.name; });

}  // namespace
}  // namespace trainyard::scenarios
