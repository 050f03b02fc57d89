#include "scenarios/incidents.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "scenarios/check.hpp"

namespace trainyard::scenarios {
namespace {

const std::filesystem::path directory =
    std::filesystem::path(TRAINYARD_SOURCE_DIR) / "scenarios/incidents";

PublishedTable table_of(const std::string& text, std::vector<Diagnostic>& mistakes) {
  std::istringstream in(text);
  return read_published_table(in, "table.csv", mistakes);
}

sim::MemoryRecorder changed(const std::string& file, const std::vector<std::string>& overrides) {
  const ReadResult read = load_scenario(directory / file, overrides);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return log_of(read.scenario);
}

TEST(Incidents, WhatTheModelHadToFindHolds) {
  std::ifstream in(directory / "incidents.csv");
  std::vector<Diagnostic> mistakes;
  const PublishedTable table = read_published_table(in, "incidents.csv", mistakes);
  ASSERT_TRUE(is_incident_table(table));
  const IncidentReport report = replay_incidents(table, directory, mistakes);
  ASSERT_TRUE(mistakes.empty()) << to_text(mistakes);
  EXPECT_EQ(report.incidents.size(), 6u);
  for (const Incident& incident : report.incidents)
    for (const IncidentStep& step : incident.steps) {
      EXPECT_TRUE(step.simulated) << incident.name << ": " << step.step;
      EXPECT_TRUE(!step.is_judged() || step.holds()) << incident.name << ": " << step.step;
    }
}

TEST(Incidents, WithoutTheCountOfDipsEveryUpsReturnsToTheGrid) {
  EXPECT_EQ(changed("virginia-2024.json", {}).count("ups latched off the utility"), 2u);
  const auto log = changed("virginia-2024.json", {"facility.power.nodes.ups.ups.disturbances=0"});
  EXPECT_EQ(log.count("ups latched off the utility"), 0u);
  EXPECT_EQ(log.count("generator started"), 0u);
}

TEST(Incidents, OnACoolDayTheChillersOfLondonDoNotTrip) {
  EXPECT_EQ(changed("london-2022.json", {"facility.cooling.weather.mean=25"})
                .count("chiller tripped by heat"),
            0u);
}

TEST(Incidents, VerdictsOnBothSidesOfTheirLimits) {
  std::vector<Diagnostic> mistakes;
  const PublishedTable table = table_of(
      "incident,scenario,step,published,unit,kind,subject,which,must,source\n"
      "a,a.json,begin,0,min,begin,*,first,start,s\n"
      "a,a.json,twice,10,min,twice,u-*,last,factor 2,s\n"
      "a,a.json,later,11,min,early,*,first,order,s\n"
      "a,a.json,never,12,min,never,*,first,order,s\n"
      "a,a.json,none,0,count,never,*,all,factor 2,s\n",
      mistakes);
  std::vector<Incident> incidents = read_incidents(table, mistakes);
  ASSERT_TRUE(mistakes.empty()) << to_text(mistakes);
  const auto verdicts = [&](double minutes) {
    sim::MemoryRecorder log;
    const auto say = [&](const char* kind, const char* subject, double at) {
      log.event(add(start_of_run, seconds(60 * at)), sim::Phase::failure, log.kind(kind, ""),
                log.subject(subject), {}, 0);
    };
    say("begin", "x", 5);
    say("early", "x", 5 + 6);
    say("twice", "u-1", 5 + 1);
    say("twice", "v-1", 5 + 99);
    say("twice", "u-2", 5 + minutes);
    judge(incidents.front(), log);
    std::vector<IncidentVerdict> out;
    for (const IncidentStep& step : incidents.front().steps) out.push_back(step.verdict);
    return out;
  };
  using enum IncidentVerdict;
  EXPECT_THAT(verdicts(4.9), testing::ElementsAre(start, off, holds, missing, holds));
  EXPECT_THAT(verdicts(5.1), testing::ElementsAre(start, holds, holds, missing, holds));
  EXPECT_THAT(verdicts(19.9), testing::ElementsAre(start, holds, out_of_order, missing, holds));
  EXPECT_THAT(verdicts(20.1), testing::ElementsAre(start, off, out_of_order, missing, holds));
}

TEST(Incidents, SaysWhatIsWrongWithARow) {
  std::vector<Diagnostic> mistakes;
  const PublishedTable table = table_of(
      "incident,scenario,step,published,unit,kind,subject,which,must,source\n"
      "a,a.json,begin,-1,h,begin,*,none,maybe,\n",
      mistakes);
  read_incidents(table, mistakes);
  EXPECT_EQ(mistakes.size(), 6u);  // five cells, and no start
}

}  // namespace
}  // namespace trainyard::scenarios
