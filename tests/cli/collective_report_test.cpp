#include "cli/collective_report.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/collective_options.hpp"
#include "scenarios/read.hpp"
#include "tests/cli/golden.hpp"

namespace trainyard::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Terminal paper{.width = 80, .interactive = false, .colour = false, .unicode = false};

scenarios::SweepResult sweep(const scenarios::SweepRequest& request) {
  const auto read = scenarios::read_scenario(
      std::string(TRAINYARD_SOURCE_DIR) + "/scenarios/library/quickstart.json",
      {"cluster.fabric.routing=ecmp", "cluster.fabric.leaf_oversubscription=2"});
  EXPECT_TRUE(read.ok());
  return scenarios::sweep_collectives(read.scenario, request);
}

scenarios::SweepRequest request() {
  return {.traffic = {{models::CollectiveKind::all_reduce}, {models::CollectiveKind::all_to_all}},
          .bytes = {1024, 1048576, 1073741824},
          .group = {64, 0},
          .order = scenarios::ServerOrder::spread,
          .compete = 1};
}

scenarios::SweepRequest parsed(std::map<std::string, std::vector<std::string>> given) {
  Parsed args;
  args.given = std::move(given);
  return sweep_request(args);
}

TEST(CollectiveReport, table) {
  expect_golden("collective.txt", collective_text("quickstart", sweep(request()), paper));
}

TEST(CollectiveReport, no_line_is_wider_than_the_terminal) {
  std::istringstream text(collective_text("quickstart", sweep(request()), paper));
  for (std::string line; std::getline(text, line);) EXPECT_LE(columns_of(line), 80u) << line;
}

TEST(CollectiveReport, json_has_the_stable_keys_and_they_agree) {
  const auto json = nlohmann::json::parse(collective_json("quickstart", sweep(request())));
  EXPECT_EQ(json["schema"], "trainyard-collective-1");
  ASSERT_EQ(json["rows"].size(), 6u);
  for (const auto& row : json["rows"]) {
    for (const char* key : {"kind", "algorithm", "ranks", "bytes", "time_s", "algbw_Bps",
                            "busbw_Bps", "bound_s", "bottleneck"})
      EXPECT_TRUE(row.contains(key)) << key;
    const double time = row["time_s"], bytes = row["bytes"];
    EXPECT_DOUBLE_EQ(row["algbw_Bps"].get<double>(), bytes / time);
    EXPECT_NEAR(row["latency_s"].get<double>() + row["fill_s"].get<double>() +
                    row["fabric_s"].get<double>(),
                time, 1e-12 * time);
    const double factor = row["kind"] == "all-reduce" ? 2 * 63 / 64.0 : 63 / 64.0;
    EXPECT_NEAR(row["busbw_Bps"].get<double>(), factor * bytes / time, 1e-3);
  }
}

TEST(CollectiveReport, csv_has_as_many_cells_in_every_line) {
  std::istringstream text(collective_csv(sweep(request())));
  int lines = 0;
  for (std::string line; std::getline(text, line); ++lines)
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 14) << line;
  EXPECT_EQ(lines, 7);
}

// docs/guide/collectives.md shows output; it is the product's.
TEST(CollectiveReport, the_guide_shows_what_the_command_prints) {
  std::ostringstream page;
  page << std::ifstream(std::string(TRAINYARD_SOURCE_DIR) + "/docs/guide/collectives.md").rdbuf();
  const auto expect_shown = [&](const std::vector<std::string>& overrides,
                                const scenarios::SweepRequest& request) {
    const auto read = scenarios::read_scenario(
        std::string(TRAINYARD_SOURCE_DIR) + "/scenarios/library/quickstart.json", overrides);
    const std::string text =
        collective_text("quickstart", scenarios::sweep_collectives(read.scenario, request), paper);
    EXPECT_NE(page.str().find("```\n" + text + "```"), std::string::npos)
        << "the page does not show this:\n"
        << text;
  };
  expect_shown({}, parsed({{"bytes", {"64K:4G:16"}}}));
  for (const std::string placement : {"spread", "packed"})
    expect_shown({"cluster.fabric.leaf_oversubscription=4"}, parsed({{"ranks", {"64"}},
                                                                     {"placement", {placement}},
                                                                     {"compete", {"3"}},
                                                                     {"bytes", {"1M,1G"}}}));
}

TEST(CollectiveOptions, sizes) {
  EXPECT_THAT(parse_sizes("8"), ElementsAre(8));
  EXPECT_THAT(parse_sizes("1K,1KiB,1kB,2GiB"), ElementsAre(1024, 1024, 1000, 2147483648.0));
  EXPECT_THAT(parse_sizes("8:64:2"), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(parse_sizes("8:63:2"), ElementsAre(8, 16, 32));
  EXPECT_THAT(parse_sizes("1M:1G:32,5"), ElementsAre(1048576, 33554432, 1073741824, 5));
  EXPECT_EQ(parse_sizes("8:16G:2").size(), 32u);
}

TEST(CollectiveOptions, sizes_that_are_none) {
  for (const char* bad : {"", "0", "-8", "8Gb", "1.5", "x", "8,", "16:8", "8:16:1", "8:16:nan",
                          "1:2:3:4", "1e300", "1:1000000:1.1", "8:1e18:1.01"})
    EXPECT_THROW(parse_sizes(bad), UsageError) << bad;
  EXPECT_THAT([] { parse_sizes("8Gb"); }, ThrowsMessage<UsageError>(HasSubstr("64KiB")));
}

TEST(CollectiveOptions, servers) {
  EXPECT_THAT(parse_servers("3"), ElementsAre(3));
  EXPECT_THAT(parse_servers("0,8-10,node-4"), ElementsAre(0, 8, 9, 10, 4));
  EXPECT_THAT(parse_servers("node-8-9"), ElementsAre(8, 9));
  for (const char* bad : {"", "a", "3-", "-3", "5-3", "0,,1"})
    EXPECT_THROW(parse_servers(bad), UsageError) << bad;
}

TEST(CollectiveOptions, defaults_are_those_of_the_help) {
  const scenarios::SweepRequest r = parsed({});
  EXPECT_EQ(r.traffic.size(), 1u);
  EXPECT_EQ(r.bytes.size(), 32u);
  EXPECT_FALSE(r.algorithm);
  EXPECT_EQ(r.order, scenarios::ServerOrder::packed);
}

TEST(CollectiveOptions, jobs_faults_and_names) {
  const auto r = parsed({{"compete", {"2", "all-to-all:1GiB:64"}},
                         {"fail", {"leaf-0", "a -> b=0.5"}},
                         {"kind", {"all-gather,permutation"}},
                         {"placement", {"random"}},
                         {"protocol", {"auto"}}});
  EXPECT_EQ(r.compete, 2u);
  ASSERT_EQ(r.competitors.size(), 1u);
  EXPECT_EQ(r.competitors[0].group.ranks, 64u);
  ASSERT_EQ(r.faults.size(), 2u);
  EXPECT_EQ(r.faults[0].factor, 0);
  EXPECT_EQ(r.faults[1].name, "a -> b");
  EXPECT_EQ(r.faults[1].factor, 0.5);
  EXPECT_TRUE(r.traffic[1].is_permutation);
  EXPECT_EQ(r.order, scenarios::ServerOrder::random);
  for (const auto& [option, bad] :
       std::vector<std::pair<std::string, std::string>>{{"kind", "all-reduc"},
                                                        {"algorithm", "rings"},
                                                        {"placement", "near"},
                                                        {"compete", "a:b"},
                                                        {"compete", "-1"},
                                                        {"fail", "a=0"},
                                                        {"fail", "a=2"},
                                                        {"loss", "0.6"},
                                                        {"ranks", "1"},
                                                        {"per-node", "0"},
                                                        {"channels", "1.5"},
                                                        {"launch-floor", "5"}})
    EXPECT_THROW(parsed({{option, {bad}}}), UsageError) << option << ' ' << bad;
}

}  // namespace
}  // namespace trainyard::cli
