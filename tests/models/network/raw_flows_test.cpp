#include "models/network/raw_flows.hpp"

#include <cmath>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RawFlows, two_flows_share_a_link_then_the_longer_one_has_it_alone) {
  // Both at 5 until 0.2 s (1 done); the other has 1 left at 10: 0.3 s. Latency 0.05 comes on top.
  const RawFlowResult r = run_raw_flows({{7, "cable", 10, 0.05}}, {{1, 1, 0, {7}}, {2, 2, 0, {7}}});
  EXPECT_DOUBLE_EQ(r.flows[0].finish_s, 0.25);
  EXPECT_DOUBLE_EQ(r.flows[1].finish_s, 0.35);
  EXPECT_DOUBLE_EQ(r.makespan_s, 0.35);
  EXPECT_THAT(r.stalled, IsEmpty());
}

TEST(RawFlows, a_late_flow_starts_late_and_nothing_takes_no_time) {
  const RawFlowResult r =
      run_raw_flows({{0, "", 10, 0}}, {{5, 10, 3, {0}}, {6, 0, 1, {0}}, {7, 99, 2, {}}});
  EXPECT_DOUBLE_EQ(r.flows[0].finish_s, 4);  // in the order given, not of time
  EXPECT_EQ(r.flows[1].finish_s, 1);
  EXPECT_EQ(r.flows[2].finish_s, 2);  // no link, nothing to wait for
}

TEST(RawFlows, a_flow_that_starts_at_the_instant_another_ends_does_not_meet_it) {
  const RawFlowResult r = run_raw_flows({{0, "", 10, 0}}, {{0, 10, 0, {0}}, {1, 10, 1, {0}}});
  EXPECT_DOUBLE_EQ(r.flows[0].finish_s, 1);
  EXPECT_DOUBLE_EQ(r.flows[1].finish_s, 2);
}

TEST(RawFlows, a_broken_link_stalls_its_flows_by_name_and_no_others) {
  const RawFlowResult r =
      run_raw_flows({{0, "", 10, 0}, {1, "", 0, 0}}, {{3, 10, 0, {0, 1}}, {4, 10, 0, {0}}});
  ASSERT_EQ(r.stalled.size(), 1u);
  EXPECT_EQ(r.stalled[0].id, 3u);
  EXPECT_THAT(r.stalled[0].broken_links, ElementsAre(1u));
  EXPECT_TRUE(std::isinf(r.flows[0].finish_s));
  EXPECT_DOUBLE_EQ(r.flows[1].finish_s, 1);
  EXPECT_DOUBLE_EQ(r.makespan_s, 1);
}

TEST(RawFlows, mistakes_in_the_tables_are_listed_together) {
  const Problems problems = check_raw_flows({{0, "", 10, 0}, {0, "", -1, 0}},
                                            {{1, 10, 0, {0, 8}}, {1, std::nan(""), 0, {0}}});
  std::vector<std::string> paths;
  for (const Problem& p : problems) paths.push_back(p.path);
  EXPECT_THAT(paths, ElementsAre("links/1/id", "links/1/bytes_per_s", "flows/0/route", "flows/1/id",
                                 "flows/1/bytes"));
  EXPECT_EQ(problems[2].what, "there is no link 8");
  EXPECT_THAT(check_raw_flows({{0, "", 0, 0}}, {{0, 0, 0, {}}}), IsEmpty());
}

// ---- Against SimGrid 3.32 (cases/README.md)
// ---------------------------------------------------------

std::vector<std::vector<std::string>> read_rows(const std::string& file) {
  std::ifstream in(std::string(TRAINYARD_NETWORK_CASES) + "/" + file);
  EXPECT_TRUE(in) << file;
  std::vector<std::vector<std::string>> rows;
  std::string line, cell;
  std::getline(in, line);  // titles
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    for (rows.emplace_back(); std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

class SimGridCase : public testing::TestWithParam<std::string> {};

TEST_P(SimGridCase, every_flow_takes_as_long) {
  std::vector<RawLink> links;
  for (const auto& row : read_rows(GetParam() + ".links.csv"))
    links.push_back({std::stoull(row[0]), "", std::stod(row[1]), std::stod(row[2])});
  std::vector<RawFlow> flows;
  std::vector<double> finish_s;
  for (const auto& row : read_rows(GetParam() + ".flows.csv")) {
    RawFlow& flow = flows.emplace_back();
    flow.id = std::stoull(row[0]);
    flow.bytes = std::stod(row[1]);
    flow.start_s = std::stod(row[2]);
    finish_s.push_back(std::stod(row[3]));
    std::istringstream route(row[4]);
    for (std::uint64_t id; route >> id;) flow.route.push_back(id);
  }
  ASSERT_GE(flows.size(), 16u);
  ASSERT_THAT(check_raw_flows(links, flows), IsEmpty());
  const RawFlowResult result = run_raw_flows(links, flows);
  double worst = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const double want = finish_s[i] - flows[i].start_s,
                 got = result.flows[i].finish_s - flows[i].start_s;
    worst = std::max(worst, std::abs(got - want) / want);
  }
  RecordProperty("worst_relative_difference", std::to_string(worst * 1e12) + "e-12");
  EXPECT_LE(worst, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(RawFlows, SimGridCase,
                         testing::Values("ft16-perm", "ft16-permsz", "ft16-a2a", "ft16-poisson",
                                         "df16-perm"),
                         [](const testing::TestParamInfo<std::string>& test) {
                           std::string name = test.param;
                           name[name.find('-')] = '_';
                           return name;
                         });

}  // namespace
}  // namespace trainyard::models
