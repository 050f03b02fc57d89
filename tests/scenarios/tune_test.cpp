#include "scenarios/tune.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/training/checkpoints.hpp"
#include "scenarios/check.hpp"

namespace trainyard::scenarios {
namespace {

using testing::HasSubstr;

/// 64 GPUs with failures every few hours and saves that stop training for half a minute.
Scenario small(const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides{"duration=4 d",
                                     "cluster.servers=10",
                                     "cluster.spares=2",
                                     "jobs.llama.model=llama3-8b",
                                     "jobs.llama.gpus=64",
                                     "jobs.llama.global_batch=256",
                                     "jobs.llama.parallel.pipeline=2",
                                     "jobs.llama.parallel.chunks=2",
                                     "jobs.llama.parallel.tensor=4",
                                     "jobs.llama.checkpoint.interval=20 min",
                                     "jobs.llama.checkpoint.stall=30 s",
                                     "failures.classes.gpu-or-host.lifetime.count=450",
                                     "failures.classes.gpu-or-host.repair.value=2 h",
                                     "failures.classes.software-hang.lifetime.count=150"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  const ReadResult read =
      load_scenario(std::string(TRAINYARD_LIBRARY) + "/quickstart.json", overrides);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return read.scenario;
}

std::string refused(const Scenario& s, const CheckpointTuneOptions& options) {
  try {
    tune_checkpoint(s, options);
  } catch (const TuneRefused& e) {
    return e.what();
  }
  return "not refused";
}

TEST(TuneCheckpoint, finds_the_optimum_of_the_theory_and_does_not_depend_on_threads) {
  CheckpointTuneOptions options;
  options.points = 7;
  options.common.most = 6;
  const CheckpointTune one = tune_checkpoint(small(), options);
  ASSERT_GE(one.points.size(), 7u);
  EXPECT_TRUE(one.points[one.best].ranked.is_tied);
  // Where theory is best, the simulation cannot tell it from its own best.
  std::size_t nearest = 0;
  for (std::size_t i = 0; i < one.points.size(); ++i)
    if (std::abs(std::log(one.points[i].interval_s / one.exact_s)) <
        std::abs(std::log(one.points[nearest].interval_s / one.exact_s)))
      nearest = i;
  EXPECT_LT(one.points[nearest].ranked.behind.mean, 0.005);
  // Both ends, four times off, are clearly worse.
  EXPECT_FALSE(one.points.front().ranked.is_tied);
  EXPECT_FALSE(one.points.back().ranked.is_tied);
  EXPECT_NEAR(one.save_s, 30, 0.5);
  for (const IntervalPoint& p : one.points) {
    // Every loss is somewhere, and the model of the theory is near.
    const Losses& l = p.losses;
    EXPECT_NEAR(
        p.ranked.value.mean + l.save + l.lost + l.detection + l.restart + l.waiting + l.other, 1,
        1e-9)
        << p.interval_s;
    EXPECT_NEAR(p.theory, p.ranked.value.mean, 0.03) << p.interval_s;
  }
  options.common.threads = 2;
  const CheckpointTune two = tune_checkpoint(small(), options);
  ASSERT_EQ(two.points.size(), one.points.size());
  EXPECT_EQ(two.replications, one.replications);
  for (std::size_t i = 0; i < one.points.size(); ++i) {
    EXPECT_EQ(two.points[i].interval_s, one.points[i].interval_s);
    EXPECT_EQ(two.points[i].ranked.value.mean, one.points[i].ranked.value.mean);
    EXPECT_EQ(two.points[i].ranked.behind.half_width, one.points[i].ranked.behind.half_width);
  }
}

TEST(TuneCheckpoint, the_interval_of_the_scenario_is_among_the_points) {
  CheckpointTuneOptions options;
  options.intervals = {std::chrono::minutes(10), std::chrono::minutes(40)};
  options.common.most = 2;
  const CheckpointTune t = tune_checkpoint(small(), options);
  ASSERT_EQ(t.points.size(), 3u);
  ASSERT_TRUE(t.now.has_value());
  EXPECT_EQ(*t.now, 1u);
  EXPECT_EQ(t.points[1].interval_s, 1200);
  EXPECT_EQ(t.replications, 2u);
}

TEST(TuneCheckpoint, says_what_is_wrong) {
  CheckpointTuneOptions options;
  options.common.most = 2;
  options.common.job = "lama";
  EXPECT_THAT(refused(small(), options), HasSubstr("there is no job \"lama\"; there is llama"));
  options.common.job = "";
  options.level = "disk";
  EXPECT_THAT(refused(small(), options), HasSubstr("no checkpoint level \"disk\""));
  options.level = "";
  options.intervals = {std::chrono::minutes(10)};
  EXPECT_THAT(refused(small(), options), HasSubstr("at least two"));
  options.intervals = {std::chrono::milliseconds(1), std::chrono::minutes(10)};
  EXPECT_THAT(refused(small(), options), HasSubstr("shorter than one step"));
  options.intervals = {};
  EXPECT_THAT(refused(small({"failures.enabled=false"}), options), HasSubstr("nothing fails"));
  EXPECT_THAT(refused(small({"jobs.llama.checkpoint.enabled=false"}), options),
              HasSubstr("never saves"));
}

TEST(TuneSpares, more_spares_wait_less_until_they_suffice) {
  SparesTuneOptions options;
  options.spares = {0, 1, 4, 6};
  options.common.most = 6;
  const SparesTune t = tune_spares(small(), options);
  ASSERT_EQ(t.points.size(), 4u);
  EXPECT_EQ(t.working_servers, 8);
  EXPECT_GT(t.points[0].losses.waiting, t.points[1].losses.waiting);
  EXPECT_GT(t.points[1].losses.waiting, t.points[3].losses.waiting);
  EXPECT_FALSE(t.points[0].ranked.is_tied);
  ASSERT_EQ(t.verdicts.size(), 1u);
  EXPECT_GT(t.verdicts[0].suffice, 0);
  // Mean down: about 8 servers x rate x (2 h median, mean 3.3 h); the rule is above the mean.
  EXPECT_GT(t.verdicts[0].down_servers, 0);
  EXPECT_GT(double(t.verdicts[0].p99), t.verdicts[0].down_servers);
}

}  // namespace
}  // namespace trainyard::scenarios
