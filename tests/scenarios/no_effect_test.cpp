#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "scenarios/read.hpp"
#include "tests/scenarios/test_catalog.hpp"

/// Settings of failures, repair, saves, stores and data that cannot matter. Each case changes
/// good_failures.json, in which every setting matters, until some do not, and expects exactly
/// those. (Others: read_test.cpp.)
namespace trainyard::scenarios {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

const fs::path folder = fs::path(TRAINYARD_SOURCE_DIR) / "tests/scenarios";

ReadResult read(const std::string& file, const std::vector<std::string>& overrides = {}) {
  fs::current_path(folder);
  return read_scenario(file, overrides, test::catalog());
}

TEST(NoEffectOfFailures, all_settings_of_the_full_scenario_matter) {
  const ReadResult full = read("good_failures.json");
  ASSERT_TRUE(full.ok()) << to_text(full.diagnostics);
  EXPECT_THAT(settings_without_effect(full), IsEmpty());
}

struct Case {
  const char* name;
  std::vector<std::string> overrides;
  std::vector<std::string> lines;
};

class Changed : public testing::TestWithParam<Case> {};

TEST_P(Changed, are_listed) {
  const ReadResult changed = read("good_failures.json", GetParam().overrides);
  ASSERT_TRUE(changed.ok()) << to_text(changed.diagnostics);
  EXPECT_EQ(settings_without_effect(changed), GetParam().lines);
}

INSTANTIATE_TEST_SUITE_P(
    NoEffectOfFailures, Changed,
    testing::Values(
        Case{"as_many_crews_by_night",
             {"cluster.repair.night_crews=2"},
             {"cluster.repair.night_crews: as many crews by night as by day",
              "cluster.repair.day_start: as many crews by night as by day",
              "cluster.repair.day_end: as many crews by night as by day"}},
        Case{"a_crew_for_everybody",
             {"cluster.repair.crews=0", "cluster.repair.night_crews=null"},
             {"cluster.repair.day_start: crews is 0: one for every broken server, at any time",
              "cluster.repair.day_end: crews is 0: one for every broken server, at any time"}},
        Case{"no_reset",
             {"cluster.repair.reset_share=0"},
             {"cluster.repair.reset: reset_share is 0: no reset is tried"}},
        Case{"vendor_of_offenders", {"cluster.repair.vendor_share=0"}, {}},
        Case{"no_vendor",
             {"cluster.repair.vendor_share=0", "cluster.exclude=null"},
             {"cluster.repair.vendor: vendor_share is 0 and cluster.exclude is not given: the "
              "vendor gets no server"}},
        Case{"no_cdu_fails",
             {"failures.classes.cdu=null"},
             {"cluster.parents.servers_per_cdu: no cdu fails, and no level keeps copies in "
              "different ones"}},
        Case{"copies_in_different_racks",
             {"failures.classes.rack=null", "failures.script.rack=null",
              "failures.classes.gpu.common_cause=null"},
             {}},
        Case{"copies_in_one_rack",
             {"failures.classes.rack=null", "failures.script.rack=null",
              "failures.classes.gpu.common_cause=null",
              "jobs.llm.checkpoint.levels.peer.apart=leaf-switch"},
             {"cluster.parents.servers_per_rack: no rack fails, and no level keeps copies in "
              "different ones"}},
        Case{"power_never_returns",
             {"failures.classes.rack=null", "failures.script.rack=null",
              "failures.classes.pdu.component=cdu"},
             {"cluster.parents.servers_per_pdu: no pdu fails, and no level keeps copies in "
              "different ones",
              "cluster.parents.return_failures: no rack or PDU fails: no server loses its feed"}},
        Case{"no_spares", {"cluster.spares=0"}, {"cluster.spare: cluster.spares is 0"}},
        Case{"no_lemons",
             {"failures.lemons.share=0"},
             {"failures.lemons: share is 0: no server is one"}},
        Case{"lemons_like_others",
             {"failures.lemons.factor=1"},
             {"failures.lemons: factor is 1: they fail as often as the others"}},
        Case{"no_class_follows_the_temperature",
             {"failures.classes.gpu.activation_energy=null"},
             {"failures.inlet: no failure class has an activation_energy"}},
        Case{"no_temperature",
             {"failures.inlet=null"},
             {"failures.classes.gpu.activation_energy: there is no failures.inlet: no temperature "
              "to follow"}},
        Case{
            "temperature_at_its_reference",
            {"failures.inlet.mean=24", "failures.inlet.day_swing=0", "failures.inlet.year_swing=0"},
            {"failures.inlet: it is always at its reference"}},
        Case{"same_temperature_each_day",
             {"failures.inlet.year_swing=0"},
             {"failures.inlet.start_day: year_swing is 0: every day is like the others"}},
        Case{"idle_as_busy",
             {"failures.classes.gpu.idle_factor=1"},
             {"failures.classes.gpu.idle_factor: 1: it fails as often as while training"}},
        Case{"idle_factor_of_a_cable",
             {"failures.classes.cable.idle_factor=0.5"},
             {"failures.classes.cable.idle_factor: a link belongs to no server that could be "
              "idle"}},
        Case{"no_common_cause",
             {"failures.classes.gpu.common_cause.beta=0"},
             {"failures.classes.gpu.common_cause: beta is 0: no failure strikes the whole parent"}},
        Case{"nobody_listens_to_warnings",
             {"jobs.llm.checkpoint.emergency=false", "jobs.urgent.checkpoint.emergency=false"},
             {"failures.classes.rack.warning: no job saves when a failure is announced "
              "(checkpoint.emergency)",
              "failures.classes.update.warning: no job saves when a failure is announced "
              "(checkpoint.emergency)",
              "failures.script.dead.warning: no job saves when a failure is announced "
              "(checkpoint.emergency)"}},
        Case{"no_warnings",
             {"failures.classes.rack.warning=null", "failures.script.dead.warning=null"},
             {"jobs.llm.checkpoint.emergency: no failure is announced (warning)"}},
        Case{"a_fault_after_the_end",
             {"failures.script.slow.at=6 h"},
             {"failures.script.slow: at is when the simulated time is over"}},
        Case{"in_place_without_repair",
             {"failures.script.restarted.repair={\"value\": \"1 h\"}"},
             {"failures.script.restarted.repair: replace is false: the server is not taken out"}},
        Case{"a_value_beside_values",
             {"failures.profile.classes.nic.detection.value=1 h"},
             {"failures.profile.classes.nic.detection.value: the empirical law draws from "
              "values"}},
        Case{"only_the_newest_save",
             {"failures.classes.silent=null", "storage.pfs.capacity=null"},
             {"jobs.llm.checkpoint.levels.copy.verify: nothing makes saves bad (effect "
              "\"corrupt\"), so only the newest is used",
              "jobs.llm.checkpoint.levels.host.keep: nothing makes saves bad (effect \"corrupt\"), "
              "so only the newest is used",
              "jobs.llm.checkpoint.keep: nothing makes saves bad (effect \"corrupt\"), so only the "
              "newest is used",
              "jobs.llm.checkpoint.verify: nothing makes saves bad (effect \"corrupt\"), so only "
              "the newest is used"}},
        Case{"levels_of_other_kinds",
             {"jobs.llm.checkpoint.levels.disk.group=3",
              "jobs.llm.checkpoint.levels.copy.read_rate=1 GB/s",
              "jobs.llm.checkpoint.levels.copy.mode=synchronous",
              "jobs.llm.checkpoint.levels.host.write_rate=1 GB/s"},
             {"jobs.llm.checkpoint.levels.copy.mode: a level of kind \"off-site\" is copied from "
              "the store, while training goes on",
              "jobs.llm.checkpoint.levels.copy.read_rate: a level of kind \"off-site\" has the "
              "rates of its store",
              "jobs.llm.checkpoint.levels.disk.group: a level of kind \"local-nvme\" has no peers",
              "jobs.llm.checkpoint.levels.host.write_rate: a level of kind \"host-memory\" is the "
              "copy to host memory (host_copy_rate)"}},
        Case{"a_level_that_never_saves",
             {"jobs.llm.checkpoint.levels.peer.interval=6 h"},
             {"jobs.llm.checkpoint.levels.peer.interval: longer than the job can run: it never "
              "saves there"}},
        Case{"steps_instead_of_an_interval",
             {"jobs.llm.checkpoint.every_steps=100"},
             {"jobs.llm.checkpoint.interval: every_steps is given"}},
        Case{"all_servers_are_lost",
             {"failures.classes.software=null", "failures.script.restarted=null",
              "failures.classes.flap=null", "failures.classes.spine=null",
              "failures.classes.cable=null", "jobs.llm.restart.misdiagnosis=null"},
             {"jobs.llm.restart.in_place: no failure leaves the servers in place (replace false): "
              "others come each time",
              "jobs.llm.restart.watchdog: no link or switch goes down"}},
        Case{"start_up_that_does_not_grow",
             {"jobs.llm.restart.start_up_per_1000_gpus=0 s"},
             {"jobs.llm.restart.start_up_per_1000_gpus: 0 s: start-up does not grow with the job"}},
        Case{"not_elastic",
             {"jobs.llm.elastic.enabled=false"},
             {"jobs.llm.elastic.min_data: elastic.enabled is false",
              "jobs.llm.elastic.patience: elastic.enabled is false",
              "jobs.llm.elastic.regrow_after: elastic.enabled is false"}},
        Case{"no_cache",
             {"jobs.llm.data.cache=0 B"},
             {"jobs.llm.data.cache_rate: cache is 0: every sample comes from the store",
              "jobs.llm.data.shuffle: cache is 0: every sample comes from the store"}},
        Case{"endless_samples",
             {"jobs.llm.data.samples=0"},
             {"jobs.llm.data.cache: samples is 0: no sample is read twice, so a cache holds "
              "nothing of use",
              "jobs.llm.data.cache_rate: samples is 0: no sample is read twice, so a cache holds "
              "nothing of use",
              "jobs.llm.data.shuffle: samples is 0: no sample is read twice, so a cache holds "
              "nothing of use"}},
        Case{"nothing_to_decode",
             {"jobs.llm.data.decode=0 s"},
             {"jobs.llm.data.cores: decode is 0: samples need no core"}},
        Case{"sizes_that_differ", {"jobs.llm.data.sample_spread=0.5"}, {}},
        Case{"files_that_open_at_once",
             {"storage.pfs.metadata_rate=null", "storage.pfs.open_latency=null"},
             {"storage.pfs.neighbours.other.operations: the store has no metadata_rate: operations "
              "take nothing from anybody",
              "jobs.llm.data.files_per_sample: the store has neither metadata_rate nor "
              "open_latency: opening costs nothing"}},
        Case{"no_files",
             {"jobs.llm.data.files_per_sample=0"},
             {"storage.pfs.metadata_rate: no job opens files of samples there "
              "(data.files_per_sample)",
              "storage.pfs.open_latency: no job opens files of samples there "
              "(data.files_per_sample)"}},
        Case{"equal_jobs",
             {"jobs.urgent.priority=0"},
             {"jobs.llm.preemptible: no job has a higher priority",
              "jobs.llm.priority: no preemptible job has a lower one, and nobody preempts this job",
              "jobs.urgent.priority: no preemptible job has a lower one, and nobody preempts this "
              "job"}},
        Case{"a_neighbour_who_comes_too_late",
             {"storage.pfs.neighbours.other.start=6 h", "storage.pfs.neighbours.other.end=7 h"},
             {"storage.pfs.neighbours.other: starts when the simulated time is over",
              "storage.pfs.neighbours.other.end: when the simulated time is over"}},
        Case{"a_store_that_never_fills",
             {"storage.pfs.capacity=1 TB"},
             {"storage.pfs.capacity: all saves that are kept need 99.6 GB at most: it never "
              "fills"}},
        Case{"servers_of_a_store_that_live_for_ever",
             {"failures.classes.disks=null", "failures.script.disks=null",
              "storage.pfs.network=own"},
             {"storage.pfs.servers: none of them fails, and none is on the training network: only "
              "their sum counts"}},
        Case{"streams_as_fast_as_servers",
             {"storage.pfs.stream_rate=5 GB/s", "storage.pfs.neighbours=null"},
             {"storage.pfs.stream_rate: a server is held to less by client_rate"}}),
    [](const auto& test_case) { return test_case.param.name; });

TEST(NoEffectOfFailures, without_failures_all_of_it_is_idle) {
  const ReadResult none =
      read("good_failures.json", {"failures.enabled=false", "jobs.urgent.priority=null"});
  ASSERT_TRUE(none.ok()) << to_text(none.diagnostics);
  const std::vector<std::string> lines = settings_without_effect(none);
  for (const char* path :
       {"failures.classes", "failures.profile", "failures.lemons", "failures.inlet",
        "failures.false_alarms", "failures.script", "cluster.parents.servers_per_cdu",
        "cluster.parents.return_failures", "cluster.repair", "cluster.spare.boot",
        "cluster.exclude", "jobs.llm.restart.in_place", "jobs.llm.checkpoint.emergency"})
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.starts_with(std::string(path) + ": ");
    })) << path;
}

TEST(NoEffectOfEconomics, settings_that_need_another_one_are_listed) {
  const ReadResult idle = read(
      "good.json",
      {R"(economics={"water_price": "2 USD", "start_weekday": 3, "start_day": 40, "tariff": {"demand_window": "30 min"}})"});
  ASSERT_TRUE(idle.ok()) << to_text(idle.diagnostics);
  EXPECT_EQ(settings_without_effect(idle),
            (std::vector<std::string>{
                "economics.water_price: no plant is modelled, so no water is counted",
                "economics.tariff.demand_window: there is no demand_charge",
                "economics.start_weekday: no block of the tariff is of some days of the week",
                "economics.start_day: neither prices nor carbon depend on the day of the year"}));
  const ReadResult busy = read(
      "good.json",
      {R"(economics={"start_day": 40, "start_weekday": 3, "tariff": {"demand_charge": "9 USD", "demand_window": "30 min", "blocks": {"week": {"price": "0.1 USD", "days": "weekdays"}}}})"});
  ASSERT_TRUE(busy.ok()) << to_text(busy.diagnostics);
  EXPECT_THAT(settings_without_effect(busy), IsEmpty());
}

TEST(NoEffectOfFailures, figures_of_a_profile_are_nobodys_mistake) {
  // A class of the scenario in the place of one of the profile.
  const ReadResult twice = read(
      "good_failures.json",
      {R"(failures.classes.nic={"component": "nic", "lifetime": {"mean": "9000 h"}, "detection": {"value": "1 s"}})"});
  ASSERT_TRUE(twice.ok()) << to_text(twice.diagnostics);
  EXPECT_EQ(settings_without_effect(twice),
            std::vector<std::string>{
                "failures.profile.classes.nic: failures.classes.nic stands in its place"});
}

TEST(NoEffectOfFailures, planned_work_needs_no_vendor) {
  const ReadResult planned = read(
      "good.json", {"failures.classes.gpu={\"component\": \"server\", \"effect\": \"maintenance\"}",
                    "cluster.repair={\"reset_share\": 0.5, \"test\": \"1 h\"}"});
  ASSERT_TRUE(planned.ok()) << to_text(planned.diagnostics);
  EXPECT_EQ(settings_without_effect(planned),
            std::vector<std::string>{"cluster.repair.reset_share: all work on servers is planned: "
                                     "it needs neither reset nor vendor"});
}

TEST(NoEffectOfFailures, faults_of_a_log_after_the_end_are_counted) {
  const fs::path log = fs::temp_directory_path() / ("trainyard_late_" + std::to_string(getpid()));
  std::ofstream(log) << "at,unit\n1 h,node-1\n2 d,node-2\n50 h,node-3\n";
  const ReadResult late = read("good.json", {"failures.log=" + log.string()});
  fs::remove(log);
  ASSERT_TRUE(late.ok()) << to_text(late.diagnostics);
  EXPECT_EQ(
      settings_without_effect(late),
      std::vector<std::string>{"failures.log: 2 of 3 faults are when the simulated time is over"});
}

}  // namespace
}  // namespace trainyard::scenarios
