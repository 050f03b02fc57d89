#include "cli/tune_report.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace trainyard::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

scenarios::IntervalPoint point(double interval_s, double goodput, double behind, bool is_tied) {
  return {.interval_s = interval_s,
          .ranked = {{goodput, 0.003, 8}, {behind, 0.001, 8}, is_tied},
          .losses = {0.01, 0.02, 0.005, 0.015, 0.002, 0.001},
          .saves = 100,
          .theory = 0.93};
}

scenarios::CheckpointTune checkpoint() {
  scenarios::CheckpointTune t;
  t.job = "llama";
  t.level = "scratch";
  t.gpus = 16384;
  t.simulated_s = 54 * 86400;
  t.seed = 1;
  t.confidence = 0.95;
  t.replications = 8;
  t.is_precise = true;
  t.points = {point(600, 0.928, 0.004, false), point(660, 0.9315, 0.0005, true),
              point(1080, 0.932, 0, true), point(1740, 0.9312, 0.0008, true),
              point(3600, 0.92, 0.012, false)};
  t.points[0].is_now = true;
  t.now = 0;
  t.best = 2;
  t.save_s = 30;
  t.mtbi_s = 3 * 3600;
  t.recovery_s = 600;
  t.step_s = 5;
  t.young_s = 1140;
  t.daly_s = 1080;
  t.exact_s = 1080;
  t.optimum = analysis::Optimum{1080, 900, 1300, 0.932};
  return t;
}

TEST(TuneReport, the_first_line_is_the_answer) {
  Terminal terminal;
  terminal.width = 300;
  EXPECT_THAT(tune_text(checkpoint(), terminal),
              StartsWith("save every 18 min: goodput 93.2 % +- 0.3; anything between 11 min and "
                         "29 min cannot be told from the best; Young 19 min, Daly 18 min; now "
                         "10 min costs 0.4 points\n"));
}

TEST(TuneReport, the_present_interval_may_be_as_good) {
  scenarios::CheckpointTune t = checkpoint();
  t.points[0].is_now = false;
  t.points[2].is_now = true;
  t.now = 2;
  Terminal terminal;
  terminal.width = 300;
  EXPECT_THAT(tune_text(t, terminal), HasSubstr("now 18 min is as good\n"));
}

TEST(TuneReport, marks_the_best_the_tied_and_the_present_and_fits_100_columns) {
  Terminal terminal;
  terminal.width = 100;
  const std::string text = tune_text(checkpoint(), terminal);
  EXPECT_THAT(text, HasSubstr("\n*     18 min "));
  EXPECT_THAT(text, HasSubstr("\n~     11 min "));
  EXPECT_THAT(text, HasSubstr("\n      10 min<"));
  EXPECT_THAT(text, HasSubstr("\n      60 min "));
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) EXPECT_LE(columns_of(line), 100u) << line;
}

TEST(TuneReport, json_and_csv_have_every_point) {
  const auto json = nlohmann::json::parse(tune_json(checkpoint()));
  EXPECT_EQ(json["schema"], "trainyard-tune-checkpoint-1");
  ASSERT_EQ(json["points"].size(), 5u);
  EXPECT_EQ(json["points"][2]["best"], true);
  EXPECT_EQ(json["points"][1]["tied"], true);
  EXPECT_EQ(json["points"][1]["best"], false);
  EXPECT_EQ(json["points"][0]["now"], true);
  EXPECT_EQ(json["optimum"]["interval_s"], 1080);
  const std::string csv = tune_csv(checkpoint());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 6);
  const std::string head = csv.substr(0, csv.find('\n'));
  const std::string first =
      csv.substr(head.size() + 1, csv.find('\n', head.size() + 1) - head.size() - 1);
  EXPECT_EQ(std::count(head.begin(), head.end(), ','), std::count(first.begin(), first.end(), ','));
}

scenarios::SparesTune spares() {
  scenarios::SparesTune t;
  t.job = "llama";
  t.gpus = 1024;
  t.working_servers = 128;
  t.simulated_s = 30 * 86400;
  t.confidence = 0.95;
  t.replications = 6;
  for (const int n : {0, 2, 4})
    t.points.push_back({.spares = n,
                        .crews = 2,
                        .is_now = n == 4,
                        .ranked = {{0.9 + 0.01 * n, 0.002, 6}, {0.04 - 0.01 * n, 0.001, 6}, n > 0},
                        .losses = {},
                        .of_all_gpus = 0.9,
                        .down_servers = 1.5});
  t.best = 2;
  t.verdicts = {{.crews = 2, .suffice = 2, .best_of_all_gpus = 2, .down_servers = 1.5, .p99 = 5}};
  return t;
}

TEST(TuneReport, spares_say_how_many_suffice) {
  Terminal terminal;
  terminal.width = 300;
  EXPECT_THAT(
      tune_text(spares(), terminal),
      StartsWith("2 spares suffice with 2 crews: goodput 92.0 % +- 0.2, more cannot be told "
                 "from it; down on average 1.5 servers, binomial P99 5\n"));
  terminal.width = 100;
  std::istringstream in(tune_text(spares(), terminal));
  for (std::string line; std::getline(in, line);) EXPECT_LE(columns_of(line), 100u) << line;
  const auto json = nlohmann::json::parse(tune_json(spares()));
  EXPECT_EQ(json["verdicts"][0]["suffice"], 2);
  EXPECT_EQ(json["points"].size(), 3u);
}

}  // namespace
}  // namespace trainyard::cli
